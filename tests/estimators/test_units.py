"""The same answer from a learner and from ``fit_prior``, whatever the units of the features."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents.learners import Finished, Learner, Likelihood, Moments
from bayesmeta.environment import Bounds, Setting
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.moments import least_squares
from bayesmeta.statistics import TaskStatistics
from tests.helpers import recipes

TASKS, STEPS, SD = 20, 12, 0.5
UNITS = [
    (1.0, 1.0, 1.0),
    (1.0, 1e-7, 1.0),
    (1e8, 1.0, 1e-8),
    (1e-8, 1e-8, 1e-8),
    (1e8, 1e8, 1e8),
    (1e-8, 1e8, 3.7),
    (1e3, 1e-3, 1e8),
]
"""Of the features of a task."""


def data(units: tuple[float, ...], seed: int = 0, short: bool = True) -> TaskStatistics:
    """The same tasks with each feature multiplied by its unit; where ``short``, one of them has
    too few steps to determine its theta."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((TASKS, STEPS, 3))
    rows[..., 2] += rows[..., 0]  # correlated features
    if short:
        rows[5, 2:] = 0.0
    theta = [1.0, -2.0, 0.5] + rng.standard_normal((TASKS, 3)) @ np.diag([1.0, 2.0, 3.0])
    rewards = np.einsum("nti,ni->nt", rows, theta) + SD * rng.standard_normal((TASKS, STEPS))
    rows = rows * np.array(units)
    return TaskStatistics(
        np.einsum("nti,ntj->nij", rows, rows),
        np.einsum("nti,nt->ni", rows, rewards),
        np.full(TASKS, float(STEPS)),
        (rewards**2).sum(axis=1),
    )


def learned(learner: Learner, stats: TaskStatistics, noise_sd: float = SD) -> PriorEstimate:
    """What a learner says after all tasks, one after another."""
    setting = Setting(3, STEPS, TASKS, noise_sd, Bounds(1.0, 0.1, 1e-30, 1e30, 1.0))
    memory = learner.start(setting)
    assert stats.count is not None and stats.energy is not None
    for gram, moment, energy in zip(stats.gram, stats.moment, stats.energy, strict=True):
        memory = learner.observe(memory, Finished(gram, moment, STEPS, float(energy)))
    return learner.estimate(memory, setting, np.random.default_rng(0))


def in_units_of_the_rewards(
    estimate: PriorEstimate, units: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance (before widening) as they would be with features in unit 1."""
    cov = estimate.prior.cov if estimate.raw_cov is None else estimate.raw_cov
    return estimate.prior.mean * units, cov * np.outer(units, units)


PAIRS: dict[str, tuple[Learner, dict[str, object]]] = {
    "moment": (Moments(widening=0.0), {}),
    "moment-widened": (Moments(widening=2.0), {"widening": 2.0, "horizon": STEPS}),
    "ml": (Likelihood(restricted=False), {}),
    "reml": (Likelihood(), {}),
}
"""Every estimator that is also a learner, and what ``fit_prior`` is told."""


@pytest.mark.parametrize("units", UNITS, ids=str)
@pytest.mark.parametrize("method", PAIRS)
def test_a_learner_and_the_function_agree(method: str, units: tuple[float, ...]) -> None:
    """Mean, covariance and the tasks passed over, to the digits that the units leave."""
    learner, options = PAIRS[method]
    stats = data(units)
    one, other = learned(learner, stats), bm.fit_prior(stats, SD, method, **options)
    assert one.passed_over == other.passed_over == (1 if method.startswith("moment") else 0)
    raised = one.status is Status.RAISED
    assert raised == (other.status is Status.NOT_POSITIVE_DEFINITE)
    assert raised or one.status is other.status
    if raised:
        one = one._replace(prior=other.prior)  # the function leaves it as it is
    scale = np.sqrt(np.diag(other.prior.cov))
    np.testing.assert_allclose(one.prior.mean / scale, other.prior.mean / scale, atol=1e-7)
    np.testing.assert_allclose(
        one.prior.cov / np.outer(scale, scale), other.prior.cov / np.outer(scale, scale), atol=1e-6
    )


@pytest.mark.parametrize("units", UNITS[1:], ids=str)
@pytest.mark.parametrize("method", ["moment", "ml", "reml", "gls", "of the recipe"])
def test_units_do_not_matter(method: str, units: tuple[float, ...]) -> None:
    """Features times u: the mean is divided by u, the covariance by u u', noise and status stay.

    Also for the estimator that CONTRIBUTING.md shows how to add.
    """
    if method == "of the recipe":
        plain, other = (recipes().fit_plain(data(u), None) for u in (UNITS[0], units))
    else:
        plain, other = (bm.fit_prior(data(u), method=method) for u in (UNITS[0], units))
    assert plain.status is other.status
    assert other.noise_sd == pytest.approx(plain.noise_sd, rel=1e-6)
    for one, two in zip(
        in_units_of_the_rewards(plain, UNITS[0]), in_units_of_the_rewards(other, units), strict=True
    ):
        np.testing.assert_allclose(two, one, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("units", [(1e8, 1.0, 1e-8), (1e8, 1e8, 1e-8)], ids=str)
@pytest.mark.parametrize("method", ["moment", "moment-clipped", "split"])
def test_whether_it_is_a_covariance_has_no_units(method: str, units: tuple[float, ...]) -> None:
    """Status and negative eigenvalues of ten data sets are those they have in unit 1, and what is
    not clipped is the same; for the learner too."""
    counts = []
    for seed in range(10):
        found = []
        for u in (UNITS[0], units):
            pair = (data(u, seed, short=False), data(u, seed + 100, short=False))
            stats = pair if method == "split" else pair[0]
            found.append(bm.fit_prior(stats, None if method == "split" else 2.5, method))
        assert found[0].status is found[1].status and found[0].negative == found[1].negative
        counts.append(found[0].negative)
        if method == "moment":
            learner = learned(Moments(widening=0.0), pair[0], noise_sd=2.5)
            assert (learner.status is Status.RAISED) == (found[1].negative > 0)
    assert 0 < sum(count > 0 for count in counts) < 10  # both kinds are among them


@pytest.mark.parametrize("units", UNITS, ids=str)
def test_the_rank_of_a_task_has_no_units(units: tuple[float, ...]) -> None:
    """One task of twenty is short, in any units, for every way to ask."""
    stats = data(units)
    expected = np.arange(TASKS) != 5
    np.testing.assert_array_equal(stats.determined(), expected)
    np.testing.assert_array_equal(
        np.isfinite(least_squares(stats, undetermined="nan")).all(axis=1), expected
    )
    freedom = stats.residuals()[1]
    assert freedom == TASKS * STEPS - 3 * TASKS + 1
