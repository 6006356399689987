"""The moment estimator, eqs. (9)-(12), in its streaming form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from bayesmeta.agents.learners import Finished, Moments
from bayesmeta.checks import InputError
from bayesmeta.environment import Bounds, Setting
from bayesmeta.estimators import moments as moment
from bayesmeta.estimators.estimate import Status
from bayesmeta.estimators.moments import raise_eigenvalues, widening_radius
from bayesmeta.statistics import TaskStatistics
from bayesmeta.theory.constants import covariance_radius, widening_constant
from tests.helpers import size


def some_tasks(
    rng: np.random.Generator, tasks: int, dim: int, steps: int, sd: float = 1.0
) -> TaskStatistics:
    actions = rng.standard_normal((tasks, steps, dim))
    theta = 1.0 + rng.standard_normal((tasks, dim)) * np.arange(1, dim + 1)
    rewards = np.einsum("nti,ni->nt", actions, theta) + sd * rng.standard_normal((tasks, steps))
    return TaskStatistics(
        np.einsum("nti,ntj->nij", actions, actions), np.einsum("nti,nt->ni", actions, rewards)
    )


def after(stats: TaskStatistics) -> moment.MomentState:
    state = moment.empty(stats.dim)
    for gram, total in zip(stats.gram, stats.moment, strict=True):
        moment.observe(state, gram, total)
    return state


def finished(gram: np.ndarray, total: np.ndarray) -> Finished:
    return Finished(gram, total, 9, 1.0)


def setting(dim: int, prior_min: float = 0.1) -> Setting:
    return Setting(dim, 50, 100, 1.0, Bounds(1.0, 0.2, prior_min, 4.0, 3.0))


def test_streaming_equals_the_printed_formulas() -> None:
    """Mean and covariance after k tasks against eqs. (9), (10), (11) written out in one go."""
    stats = some_tasks(np.random.default_rng(0), 30, 3, 8)
    state = after(stats)
    theta = np.linalg.solve(stats.gram, stats.moment[..., None])[..., 0]
    centred = theta - theta.mean(axis=0)
    noise = 1.7**2 / 30 * np.linalg.inv(stats.gram).sum(axis=0)
    np.testing.assert_allclose(state.mean, theta.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        moment.covariance(state, 1.7**2),
        centred.T @ centred / 29 - noise,
        rtol=1e-10, atol=1e-12,
    )  # fmt: skip


@given(cut=st.integers(0, 20), seed=st.integers(0, 1000))
def test_merging_is_exact(cut: int, seed: int) -> None:
    """The states of two groups of tasks merge to that of their union, empty groups included."""
    stats = some_tasks(np.random.default_rng(seed), 20, 2, 5)
    parts = [TaskStatistics(stats.gram[a:b], stats.moment[a:b]) for a, b in ((0, cut), (cut, 20))]
    merged = moment.merge(after(parts[0]), after(parts[1]))
    for one, other in zip(merged, after(stats), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@given(
    cuts=st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted),
    shuffled=st.permutations(range(20)),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    seed=st.integers(0, 1000),
)
def test_merging_does_not_care_for_order(
    cuts: list[int], shuffled: list[int], scale: float, seed: int
) -> None:
    """Associative, commutative, and blind to the order of tasks, to rounding, in any units."""
    stats = some_tasks(np.random.default_rng(seed), 20, 2, 5)
    stats = TaskStatistics(scale**2 * stats.gram, scale * stats.moment)
    order = np.array(shuffled)
    spans = ((0, cuts[0]), (cuts[0], cuts[1]), (cuts[1], 20))

    def state(k: int) -> moment.MomentState:
        a, b = spans[k]
        return after(TaskStatistics(stats.gram[order[a:b]], stats.moment[order[a:b]]))

    left = moment.merge(moment.merge(state(0), state(1)), state(2))
    right = moment.merge(state(0), moment.merge(state(1), state(2)))
    swapped = moment.merge(state(2), moment.merge(state(1), state(0)))
    whole = after(stats)
    for found in (left, right, swapped):
        assert found.tasks.tolist() == whole.tasks.tolist()
        np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-9, atol=1e-9 / scale)
        np.testing.assert_allclose(
            moment.covariance(found, 1.0), moment.covariance(whole, 1.0),
            rtol=1e-8, atol=1e-8 / scale**2,
        )  # fmt: skip


def test_a_singular_task_is_passed_over_and_counted() -> None:
    """A task without an invertible gram leaves the estimate alone and is counted."""
    stats = some_tasks(np.random.default_rng(1), 5, 3, 8)
    state = after(stats)
    mean = state.mean.copy()
    moment.observe(state, np.diag([1.0, 1.0, 0.0]), np.ones(3))
    assert state.tasks.tolist() == [5, 1]
    np.testing.assert_array_equal(state.mean, mean)


def test_ols_is_eq_9() -> None:
    """Against NumPy's least squares on the raw data, task by task."""
    rng = np.random.default_rng(0)
    actions, rewards = rng.standard_normal((4, 9, 3)), rng.standard_normal((4, 9))
    found = moment.least_squares(
        TaskStatistics(
            [a.T @ a for a in actions], [a.T @ x for a, x in zip(actions, rewards, strict=True)]
        )
    )
    for row, a, x in zip(found, actions, rewards, strict=True):
        np.testing.assert_allclose(row, np.linalg.lstsq(a, x)[0], rtol=1e-9)


def test_ols_does_not_depend_on_units() -> None:
    """Actions in tiny or huge units leave invertible grams, which must not be called singular."""
    plain = some_tasks(np.random.default_rng(1), 2, 3, 6)
    for unit in (1e-6, 1e6):
        scaled = TaskStatistics(plain.gram * unit**2, plain.moment * unit)
        np.testing.assert_allclose(
            moment.least_squares(scaled) * unit, moment.least_squares(plain), rtol=1e-9
        )


def test_ols_refuses_grams_singular_up_to_rounding() -> None:
    """Two steps in three dimensions: rounding often makes such a gram invertible, to no good."""
    for seed in range(8):
        short = some_tasks(np.random.default_rng(seed), 1, 3, 2)
        with pytest.raises(InputError, match="gram of task 0 is singular"):
            moment.least_squares(short)


def test_ols_of_a_singular_task_is_refused_or_left_out() -> None:
    """The task is named; asked for, its estimate is NaN and the others are there."""
    gram = np.stack([np.eye(2), [[1.0, 1.0], [1.0, 1.0]]])
    stats = TaskStatistics(gram, np.ones((2, 2)), tasks=("one", "two"))
    with pytest.raises(InputError, match="gram of task 'two' is singular"):
        moment.least_squares(stats)
    found = moment.least_squares(stats, undetermined="nan")
    np.testing.assert_array_equal(found, [[1.0, 1.0], [np.nan, np.nan]])


def test_widening_covers_the_error_of_the_lemma() -> None:
    """Eq. (12) adds what the lemma on the covariance allows for, with eta = 1 / (d n T)."""
    told = (3, 0.7, 0.2, 4.0)
    for n in (2, 30, 10_000):
        expected = covariance_radius(*told, n, 1 / (3 * n * 50))
        found = moment.widening_radius(n, 3, 50, widening_constant(*told))
        assert found == pytest.approx(expected, rel=1e-12)


def test_widening_radius_is_the_printed_one() -> None:
    """c_w sqrt((5d + 2 ln(d n T)) / (n - 1)), eq. (12)."""
    expected = 10 * math.sqrt((25 + 2 * math.log(5 * 126 * 200)) / 125)
    assert widening_radius(126, 5, 200, 10.0) == pytest.approx(expected, rel=1e-14)


def test_the_learner_widens_and_says_ok() -> None:
    """The prior handed on is the raw covariance plus the radius, with status OK."""
    learner, told = Moments(widening=2.0), setting(3)
    memory = learner.start(told)
    stats = some_tasks(np.random.default_rng(2), 12, 3, 9)
    for gram, total in zip(stats.gram, stats.moment, strict=True):
        memory = learner.observe(memory, finished(gram, total))
    estimate = learner.estimate(memory, told, np.random.default_rng())
    assert estimate.status is Status.OK
    radius = 2.0 * math.sqrt((15 + 2 * math.log(3 * 13 * 50)) / 12)
    np.testing.assert_allclose(estimate.prior.cov, estimate.raw_cov + radius * np.eye(3))
    np.testing.assert_allclose(
        estimate.prior.cholesky @ estimate.prior.cholesky.T, estimate.prior.cov, rtol=1e-12
    )


def test_theoretical_widening_constant_is_the_default() -> None:
    """c_w = 50 (2 sigma^2 / (lambda_A d) + lambda_max), from the bounds the learner was told."""
    assert Moments().start(setting(3)).constant == pytest.approx(50 * (2 / (0.2 * 3) + 4.0))


def test_an_indefinite_estimate_is_raised_and_said() -> None:
    """Where eq. (12) is not positive definite, eigenvalues go up to Assumption 2's bound."""
    learner, told = Moments(widening=0.0), setting(2, prior_min=0.3)
    memory = learner.start(told)
    # identical estimates with noisy grams: the scatter is 0, so eq. (11) is negative definite
    for _ in range(4):
        memory = learner.observe(memory, finished(np.diag([2.0, 3.0]), np.array([2.0, 3.0])))
    estimate = learner.estimate(memory, told, np.random.default_rng())
    assert estimate.status is Status.RAISED
    assert "lower bound of Assumption 2" in estimate.status.advice
    np.testing.assert_allclose(estimate.raw_cov, -np.diag([1 / 2, 1 / 3]))
    np.testing.assert_allclose(estimate.prior.cov, 0.3 * np.eye(2), atol=1e-14)


def test_raising_leaves_higher_eigenvalues_alone() -> None:
    """Only eigenvalues below the floor move; eigenvectors stay."""
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    cov = turn @ np.diag([-1.0, 0.05, 2.0]) @ turn.T
    raise_eigenvalues(cov, 0.2)
    np.testing.assert_allclose(cov, turn @ np.diag([0.2, 0.2, 2.0]) @ turn.T, atol=1e-12)


@pytest.mark.parametrize("floor", [0.0, 1e-18, 0.3])
def test_a_raised_covariance_has_its_cholesky_factor(floor: float) -> None:
    """L L' = cov, L triangular, also where the floor is 0 or lost to rounding."""
    told = setting(4, prior_min=floor)
    learner = Moments(widening=0.0)
    rng = np.random.default_rng(7)
    raised = 0
    for _ in range(30):
        memory = learner.start(told)
        for gram in [np.diag(rng.uniform(0.5, 2.0, 4)) for _ in range(6)]:
            theta = np.array([1.0, 2.0, 0.0, 0.0]) * rng.standard_normal()
            memory = learner.observe(memory, finished(gram, gram @ theta))
        estimate = learner.estimate(memory, told, rng)
        raised += estimate.status is Status.RAISED
        factor = estimate.prior.cholesky
        np.testing.assert_allclose(factor @ factor.T, estimate.prior.cov, atol=1e-12)
        assert (np.triu(factor, 1) == 0).all()
        assert np.linalg.eigvalsh(estimate.prior.cov)[0] >= floor - 1e-12
    assert raised == 30


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -5.0, "a"])
def test_widening_is_checked(bad: object) -> None:
    """c_w must be a finite number that does not narrow."""
    with pytest.raises(InputError, match="widening must be"):
        Moments(widening=bad)


def test_too_few_tasks_fall_back_and_say_so() -> None:
    """Before two usable tasks there is no covariance: the uninformed prior, with its status."""
    learner, told = Moments(widening=1.0), setting(2)
    estimate = learner.estimate(learner.start(told), told, np.random.default_rng())
    assert estimate.status is Status.TOO_FEW_TASKS
    np.testing.assert_array_equal(estimate.prior.cov, 4.0 * np.eye(2))


def test_covariance_is_unbiased() -> None:
    """Null: E of eq. (11) is Sigma_*. z-tests of all entries and of the mean, 500 groups.

    The same test rejects the estimator without its correction.
    """
    rng = np.random.default_rng(4)
    groups, truth = 500, np.diag([1.0, 4.0])
    largest = {}
    states = [after(some_tasks(rng, 12, 2, 4, sd=1.5)) for _ in range(groups)]
    for name, variance in (("eq. (11)", 1.5**2), ("uncorrected", 0.0)):
        table = np.array(
            [
                np.concatenate(
                    [
                        (moment.covariance(state, variance) - truth)[np.triu_indices(2)],
                        state.mean - 1.0,
                    ]
                )
                for state in states
            ]
        )
        z = table.mean(axis=0) / (table.std(axis=0, ddof=1) / math.sqrt(groups))
        largest[name] = np.abs(z).max()
    critical = norm.isf(size("moment/unbiased") / 2 / 5)
    assert largest["eq. (11)"] < critical
    assert largest["uncorrected"] > critical
