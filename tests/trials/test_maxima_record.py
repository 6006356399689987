"""What ``make maxima`` counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.trials import tables
from tests.trials.maxima import summary


def test_a_silent_shortfall_is_counted() -> None:
    """Two tables that fall short: one says so, the other does not."""
    references = [
        {"seed": seed, "value": 1.0, "variance": 0.1, "at_floor": False} for seed in range(3)
    ]
    fit = {"value": 0.5, "error": 0.0, "seconds": 1.0}
    fits = [
        {"seed": seed, "fit": {**fit, "status": status}, "usual": {**fit, "status": status}}
        for seed, status in enumerate(("OK", "NO_NOISE", "REFUSED"))
    ]
    found = summary(references, fits)
    assert found["short"] == 1 and found["fit"]["short_in_silence"] == {"0": 0.5}
    assert found["fit"]["short_and_said"] == 1 and found["hard"] == {"0": 1.0}


def test_rational_densities_are_those_of_gaussians() -> None:
    """One task of one row: a normal density; restricted, of a table whose mean is known."""
    made = tables.Table([np.array([[1.0]]), np.array([[2.0]])], [np.zeros(1)] * 2, None, False)
    value = tables.exact(made, np.array([[3.0]]), 0.5)
    each = [math.log(2 * math.pi * (0.5 + 3.0 * x * x)) for x in (1.0, 2.0)]
    assert value == pytest.approx(-0.5 * sum(each), rel=1e-14)
    information = 1 / 3.5 + 4 / 12.5
    restricted = tables.exact(made._replace(restricted=True), np.array([[3.0]]), 0.5)
    assert restricted == pytest.approx(value + 0.5 * math.log(2 * math.pi / information), rel=1e-14)
