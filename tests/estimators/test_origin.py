"""Correlations that are due to where a feature is measured from."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.estimators import origin
from bayesmeta.estimators.origin import origin_note
from bayesmeta.statistics import TaskStatistics


def lines(far: float, *, name: str = "intercept", weighted: bool = False) -> TaskStatistics:
    """Forty lines whose heights in the middle and slopes are independent, and a common slope in
    another feature."""
    rng = np.random.default_rng(1)
    task, year = np.arange(40).repeat(9), np.tile(np.arange(-4.0, 5.0), 40)
    theta = (rng.standard_normal((40, 2)) * [2.0, 1.0] + [10.0, 1.0])[task]
    other = rng.standard_normal(360)
    rewards = theta[:, 0] + theta[:, 1] * year + other + rng.standard_normal(360)
    return TaskStatistics.from_arrays(
        task,
        rewards,
        np.column_stack([np.ones(360), year + far, other]),
        [name, "Year", "other"],
        varying=[True, True, False],
        weights=np.full(360, 2.0) if weighted else None,
    )


def correlation(estimate: bm.PriorEstimate) -> float:
    cov = estimate.prior.cov
    return float(cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]))


@pytest.mark.parametrize("far", [200.0, 2000.0, 1e5, -2000.0])
def test_a_far_origin_is_named(far: float) -> None:
    """The correlation that is promised is the one that centring gives."""
    stats = lines(far)
    estimate = bm.fit_prior(stats)
    assert estimate.status is bm.Status.OK  # the rank of Sigma does not depend on the origin
    at_mean = correlation(bm.fit_prior(lines(0.0)))
    assert origin_note(stats, estimate) == (
        f"the correlation of intercept and Year is {correlation(estimate):.3f} because the origin "
        f"of Year is far from the data; at its mean, {far:.6g}, it is {at_mean:.2f}: centre Year"
    )


def test_an_intercept_is_known_by_its_name_or_its_squares() -> None:
    for stats, known in (
        (lines(2000.0, name="level"), True),
        (lines(2000.0, name="(Intercept)", weighted=True), True),
        (lines(2000.0, name="level", weighted=True), False),
    ):
        assert bool(origin_note(stats, bm.fit_prior(stats))) is known


def test_nothing_is_said_where_the_origin_is_not_the_reason() -> None:
    """Near the data; where the correlation is 1 at any origin; without an intercept."""
    for stats in (lines(0.0), lines(3.0)):
        assert origin_note(stats, bm.fit_prior(stats)) == ""
    far, change = lines(2000.0), np.eye(3)
    change[0, 1] = -2000.0
    for inner, said in (([2.0, 1.0, 0.0], False), ([0.0, 1.0, 0.0], False), (None, True)):
        cov = np.diag([4.0, 1.0, 0.0]) if inner is None else np.outer(inner, inner)
        prior = bm.GaussianPrior(np.zeros(3), change @ cov @ change.T)
        estimate = bm.PriorEstimate(prior, bm.Status.GIVEN)
        assert abs(correlation(estimate)) > origin.NEAR
        assert bool(origin_note(far, estimate)) is said
    stats = TaskStatistics.from_arrays(
        [1, 1, 2, 2], [1.0, 2.0, 4.0, 4.5], [[2.0], [1.0], [3.0], [1]]
    )
    assert origin_note(stats, bm.fit_prior(stats, 1.0)) == ""


def test_two_features_that_are_far_away_are_centred_together() -> None:
    """One of them alone leaves the intercept far from the data."""
    rng = np.random.default_rng(3)
    task = np.arange(60).repeat(12)
    features = np.column_stack([np.ones(720), 5000.0 + rng.standard_normal((720, 2))])
    theta = np.column_stack([rng.standard_normal((60, 1)), rng.standard_normal((60, 2))])
    theta[:, 2] = theta[:, 1] + 1e-2 * theta[:, 2]
    rewards = ((features - [0.0, 5000.0, 5000.0]) * theta[task]).sum(axis=1)
    rewards += rng.standard_normal(720)
    stats = TaskStatistics.from_arrays(task, rewards, features, ["intercept", "Year", "Day"])
    note = origin_note(stats, bm.fit_prior(stats))
    assert note.count("the correlation of intercept") == 2
    assert note.count("centre Year and Day") == 2


def test_its_example_runs() -> None:
    known = {"bm": bm}
    found = doctest.testmod(origin, extraglobs=known, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 5 and not found.failed
