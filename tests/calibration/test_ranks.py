"""The band and the test of uniform ranks: right size, and power against what matters."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.calibration.ranks import coverage, uniformity
from tests.helpers import size

pytestmark = pytest.mark.slow


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


def test_the_harness_runs_and_tells_right_from_wrong() -> None:
    """Fifteen replications of a right model and of a wrong one, through the study's own cell.

    Null: the ranks of the right model are uniform; of five quantities none has a p-value below the
    budget's size over five. The wrong model, least squares taken for theta, is far off.
    """
    from bayesmeta.studies.calibration import DRAWS, replicate

    def ranks(model: str) -> np.ndarray:
        cells = [replicate({"data": "random", "model": model}, seed) for seed in range(15)]
        assert sum(int(cell.divergent) for cell in cells) <= 1
        return np.array([cell["rank"].values for cell in cells])

    right, wrong = ranks("right"), ranks("least squares as theta")
    assert np.isnan(right[:, -1]).all()  # the noise is known
    p_values = [uniformity(right[:, k], DRAWS).p_value for k in range(5)]
    assert min(p_values) > size("calibration/harness") / 5
    assert uniformity(wrong[:, 2], DRAWS).p_value < 1e-3


def test_a_cell_of_the_comparison_runs() -> None:
    """What the report reads of a cell is there and finite; radii are positive, the posterior's
    covariance definite."""
    from bayesmeta.studies.bayes import compare

    cell = compare({"rule": "tau=50", "n": 20}, 3)
    assert float(cell.lowest_eigenvalue.sel(estimate="posterior")) > 0
    assert (cell.mean_radius > 0).all() and np.isfinite(cell.regret).all()
    assert float(cell.mean_error.sel(estimate="posterior")) < 5
