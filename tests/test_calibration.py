"""The band and the test of uniform ranks: right size, and power against what matters."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.models.calibration import coverage, uniformity
from tests.budget import size


def test_uniform_ranks_are_seldom_refused() -> None:
    """p-values of uniform ranks are at most 0.1 in a tenth of samples.

    Size: an exact binomial test of that over 400 samples at the budget's level.
    """
    from scipy.stats import binomtest

    rng = np.random.default_rng(11)
    refused = sum(uniformity(rng.integers(0, 100, 200), 99).p_value <= 0.1 for _ in range(400))
    assert binomtest(refused, 400, 0.1).pvalue > size("calibration/size")


@pytest.mark.parametrize("shape", [(2.0, 2.0), (0.6, 0.6), (1.0, 1.5)], ids=str)
def test_other_ranks_are_refused(shape: tuple[float, float]) -> None:
    """Too narrow, too wide, shifted: seen in 500 ranks, and outside the band where it is drawn."""
    ranks = np.floor(100 * np.random.default_rng(1).beta(*shape, 500))
    found = uniformity(ranks, 99)
    assert found.p_value < 0.001
    outside = (found.difference < found.low) | (found.difference > found.high)
    assert outside.any()


def test_coverage_of_uniform_ranks_is_the_level() -> None:
    """Every rank once: central intervals hold their share."""
    levels = np.array([0.2, 0.5, 0.9, 0.95, 0.99, 0.123])
    np.testing.assert_allclose(coverage(np.arange(100), 99, levels), levels)


def test_bad_ranks_are_refused() -> None:
    """Too few, or not numbers."""
    for ranks in (np.arange(5), np.array([np.nan] * 20)):
        with pytest.raises(bm.InputError, match="ranks must be ten or more"):
            uniformity(ranks, 99)
