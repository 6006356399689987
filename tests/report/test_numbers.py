"""Numbers of pages: intervals of shares and ratios against closed forms, and CSV files."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayesmeta.report.numbers import (
    csv_text,
    exact_share,
    ratio_of_errors,
    ratio_of_means,
    scientific,
)
from bayesmeta.simulation.summaries import interval


def test_exact_shares() -> None:
    """Where none or all of n did, the ends are 1 - (alpha/2)^(1/n) and its mirror."""
    end = 1 - 0.025 ** (1 / 20)
    assert exact_share(0, 20) == pytest.approx((0.0, 0.0, end))
    assert exact_share(20, 20) == pytest.approx((1.0, 1 - end, 1.0))


def test_ratios_of_means() -> None:
    """By a unit that does not vary, the t interval of the mean over it; of a multiple, exact."""
    values = np.random.default_rng(0).normal(3.0, 1.0, size=15)
    expected = [end / 2.0 for end in interval(values)]
    assert ratio_of_means(values, np.full(15, 2.0)) == pytest.approx(expected)
    assert ratio_of_means(3 * values, values) == pytest.approx((3.0, 3.0, 3.0))


def test_ratios_of_errors() -> None:
    """Root mean squares, runs drawn together: a multiple in every run has no doubt."""
    errors = np.abs(np.random.default_rng(0).normal(size=15))
    assert ratio_of_errors(1.5 * errors, errors, draws=50) == pytest.approx((1.5, 1.5, 1.5))
    found = ratio_of_errors(errors, errors[::-1], draws=500)
    assert found.mean == pytest.approx(1.0) and found.low < 1 < found.high


def test_csv_files() -> None:
    """Commas are quoted, numbers have six digits, what is missing is empty."""
    text = csv_text(["of", "value", "n"], [["widened, c_w", 1 / 3, 7], ["none", math.nan, None]])
    assert text == 'of,value,n\n"widened, c_w",0.333333,7\nnone,,\n'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (1.0, "1"), (999_999, "999,999"), (1e6, "1·10⁶"), (1.16e23, "1.2·10²³")),
        *((0.0163, "1.6·10⁻²"), (3.76e-13, "3.8·10⁻¹³")),
    ],
)
def test_powers_of_ten(value: float, text: str) -> None:
    assert scientific(value) == text
