"""Entries of Sigma as quantities: values, standard errors and intervals."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.fitted import wald
from bayesmeta.fitted.profile import profile_intervals
from bayesmeta.fitted.quantities import Quantities


@pytest.fixture(scope="module")
def sleep() -> bm.TaskStatistics:
    """Reaction times, features in very different units."""
    return bm.tabulate(bm.load_data("sleepstudy"), "Reaction ~ Days + (Days | Subject)").stats


def test_names_and_values(sleep: bm.TaskStatistics) -> None:
    """The lower triangle, row by row, between correlations and the noise; absent unless asked."""
    every = Quantities.of(sleep, True, entries=True)
    names = ["cov[intercept, intercept]", "cov[Days, intercept]", "cov[Days, Days]"]
    assert every.names[5:8] == names and every.names[-1] == "sigma"
    assert Quantities.of(sleep, True).names == [*every.names[:5], "sigma"]
    cov = np.array([[4.0, 1.0], [1.0, 9.0]])
    found = every.values(np.zeros((2, 2)), np.stack([cov, 2 * cov]), 0.5)
    np.testing.assert_allclose(found[:, 5:8], [[4, 1, 9], [8, 2, 18]])


@pytest.mark.parametrize("method", ["ml", "reml", "moment"])
def test_standard_errors(sleep: bm.TaskStatistics, method: str) -> None:
    """Of all entries those that the estimate itself states; by the delta method a variance has
    twice the sd times the sd's error, and other quantities' errors stay as they are."""
    estimate = bm.fit_prior(sleep, method=method)
    restricted = {"ml": False, "reml": True}.get(method)
    every, few = Quantities.of(sleep, True, entries=True), Quantities.of(sleep, True)
    errors = wald.errors(sleep, estimate, every, restricted)
    np.testing.assert_array_equal(
        np.delete(errors, [5, 6, 7]), wald.errors(sleep, estimate, few, restricted)
    )
    assert estimate.cov_sd is not None
    np.testing.assert_allclose(errors[5:8], estimate.cov_sd[[0, 1, 1], [0, 0, 1]], rtol=1e-6)
    sd = np.sqrt(np.diag(estimate.prior.cov))
    np.testing.assert_allclose(errors[[5, 7]], 2 * sd * errors[2:4], rtol=1e-6)


def test_intervals(sleep: bm.TaskStatistics) -> None:
    """A variance's ends are the squares of its sd's; a covariance has estimate and errors, or, of
    profiles, none; where an sd has none a variance has none."""
    estimate = bm.fit_prior(sleep, method="reml")
    every = Quantities.of(sleep, True, entries=True)
    values = every.values(estimate.prior.mean, estimate.prior.cov, estimate.noise_sd or np.nan)
    errors = wald.errors(sleep, estimate, every, True)
    low, high = wald.interval(values, errors, every, 0.9)
    np.testing.assert_allclose(low[[5, 7]], low[2:4] ** 2)
    np.testing.assert_allclose(high[[5, 7]], high[2:4] ** 2)
    assert (low[6] + high[6]) / 2 == pytest.approx(values[6])
    assert high[6] - low[6] == pytest.approx(2 * 1.6448536 * errors[6])
    unsure = errors.copy()
    unsure[2], unsure[5] = 2 * values[2], 4 * values[5]
    low, high = wald.interval(values, unsure, every, 0.9)
    assert np.isnan(low[[2, 5]]).all() and np.isfinite(low[[6, 7]]).all()
    low, high = profile_intervals(sleep, estimate, every, 0.9)
    np.testing.assert_allclose(low[[5, 7]], low[2:4] ** 2)
    assert np.isnan(low[6]) and np.isnan(high[6])
