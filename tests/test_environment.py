"""Bounds, Setting and TaskFamily: what learners are told, Assumptions 1-3, the paper's family."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, norm

from bayesmeta.actions import FiniteSet, UniformBall, WholeBall
from bayesmeta.checks import InputError
from bayesmeta.densities import TruncatedGaussian
from bayesmeta.environment import Bounds, Setting, TaskFamily, paper_family
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.theory.constants import exploration_length, widening_constant
from tests.helpers import size

BOUNDS = Bounds(radius=1.0, action_min=0.1, prior_min=0.2, prior_max=2.0, mean_norm=3.0)


def a_family(**change: object) -> TaskFamily:
    """mu = (3, 4), eigenvalues of Sigma 0.5 and 2, actions uniform in the ball of radius 2."""
    fields: dict[str, object] = {
        "prior": GaussianPrior([3.0, 4.0], np.diag([0.5, 2.0])),
        "actions": UniformBall(2, 2.0, 5),
        "noise_sd": 0.5,
        "horizon": 10,
    }
    return TaskFamily(**(fields | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": -1.0}, "radius must be at least 0"),
        ({"radius": math.nan}, "radius must be finite"),
        ({"action_min": -0.1}, "action_min must be at least 0"),
        ({"prior_min": -0.1}, "prior_min must be at least 0"),
        ({"prior_max": -1.0}, "prior_max must be at least 0"),
        ({"prior_max": math.inf}, "prior_max must be finite"),
        ({"prior_min": 3.0}, "prior_min (3) must not exceed prior_max (2)"),
        ({"mean_norm": -1.0}, "mean_norm must be at least 0"),
        ({"mean_norm": None}, "mean_norm must be a number"),
    ],
)
def test_bad_bounds_are_refused_by_name(change: dict[str, float], message: str) -> None:
    """The constants of Assumptions 1-3."""
    with pytest.raises(InputError, match="^" + re.escape(message)):
        replace(BOUNDS, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 0}, "dim must be at least 1"),
        ({"dim": 2.0}, "dim must be a whole number"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"tasks": 0}, "tasks must be at least 1"),
        ({"noise_sd": 0.0}, "noise_sd must be greater than 0"),
        ({"noise_sd": math.nan}, "noise_sd must be finite"),
        ({"ball": 0.0}, "ball must be greater than 0"),
        ({"ball": math.nan}, "ball must be finite"),
        ({"truth": GaussianPrior([0.0], [[1.0]])}, "truth has dimension 1, the setting 2"),
    ],
)
def test_bad_settings_are_refused_by_name(change: dict[str, object], message: str) -> None:
    """What a learner may know."""
    with pytest.raises(InputError, match="^" + re.escape(message)):
        replace(Setting(2, 10, 5, 1.0, BOUNDS), **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise_sd": 0.0}, "noise_sd must be greater than 0"),
        ({"noise_sd": -1.0}, "noise_sd must be greater than 0"),
        ({"noise_sd": math.inf}, "noise_sd must be finite"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"horizon": 2.5}, "horizon must be a whole number"),
        ({"actions": UniformBall}, "actions must be an action set, got UniformBall"),
        ({"actions": UniformBall(3, 1.0, 5)}, "prior has dimension 2 but actions have 3"),
        ({"actions": WholeBall(1, 1.0)}, "prior has dimension 2 but actions have 1"),
        ({"actions": FiniteSet(np.eye(4))}, "prior has dimension 2 but actions have 4"),
    ],
)
def test_bad_families_are_refused_by_name(change: dict[str, object], message: str) -> None:
    """Noise, horizon, and dimensions that do not fit together."""
    with pytest.raises(InputError, match="^" + re.escape(message)):
        a_family(**change)


def test_told_are_the_exact_values() -> None:
    """Without bounds given, learners are told what is true of the family."""
    told = a_family().told()
    assert told.radius == 2.0 and told.mean_norm == pytest.approx(5.0)
    assert told.action_min == pytest.approx(4 / (2 + 2))
    assert (told.prior_min, told.prior_max) == (pytest.approx(0.5), pytest.approx(2.0))
    assert a_family().violations() == {}


def test_told_are_the_bounds_given() -> None:
    """Looser bounds are passed on as they are, and hold."""
    loose = Bounds(radius=3.0, action_min=0.5, prior_min=0.1, prior_max=9.0, mean_norm=6.0)
    family = a_family(bounds=loose)
    assert family.told() is loose and family.violations() == {}
    setting = family.setting(7)
    assert setting.bounds is loose and setting.truth is family.prior
    assert (setting.dim, setting.horizon, setting.tasks, setting.noise_sd) == (2, 10, 7, 0.5)
    assert setting.ball is None
    assert a_family(bounds=loose, actions=WholeBall(2, 2.0)).setting(7).ball == 2.0


def test_told_of_a_singular_covariance_is_zero() -> None:
    """Rounding must not make the smallest eigenvalue negative, which Bounds would refuse."""
    half = np.random.default_rng(0).standard_normal((5, 2))
    family = a_family(prior=GaussianPrior(np.zeros(5), half @ half.T), actions=WholeBall(5, 1.0))
    assert 0 <= family.told().prior_min < 1e-12


@pytest.mark.parametrize(
    ("change", "assumption", "message"),
    [
        ({"actions": UniformBall(2, 2.0, 5, "task")}, 1, "fixed within a task"),
        ({"actions": FiniteSet(np.eye(2))}, 1, "finite set"),
        ({"bounds": {"action_min": 1.1}}, 1, "action_min 1.1 exceeds lambda_min = 1"),
        ({"bounds": {"action_min": 0.0}}, 1, "not positive"),
        ({"bounds": {"radius": 1.9}}, 1, "actions reach 2, beyond radius 1.9"),
        ({"prior": GaussianPrior([3.0, 4.0], np.diag([0.0, 2.0]))}, 2, "not positive"),
        ({"bounds": {"prior_min": 0.6}}, 2, "outside the bounds [0.6, 2]"),
        ({"bounds": {"prior_max": 1.9}}, 2, "span [0.5, 2], outside the bounds [0.5, 1.9]"),
        ({"bounds": {"mean_norm": 4.9}}, 3, "|mu_*| = 5 exceeds the bound 4.9"),
    ],
)
def test_each_violation_is_named(change: dict[str, object], assumption: int, message: str) -> None:
    """One assumption broken at a time; the others are not blamed."""
    if "bounds" in change:
        change = {"bounds": replace(a_family().told(), **change["bounds"])}
    found = a_family(**change).violations()
    assert list(found) == [f"Assumption {assumption}"]
    assert message in found[f"Assumption {assumption}"]


def test_all_violations_at_once() -> None:
    """Every assumption that fails is listed."""
    tight = Bounds(radius=1.0, action_min=5.0, prior_min=1.0, prior_max=1.5, mean_norm=1.0)
    assert list(a_family(bounds=tight).violations()) == [f"Assumption {i}" for i in (1, 2, 3)]


def test_the_papers_family() -> None:
    """Section 6: d = 5, T = 200, 20 actions in a ball of 0.25, mu = 2, Sigma of ones and 0.8."""
    family = paper_family()
    assert (family.dim, family.horizon, family.noise_sd) == (5, 200, 1.0)
    assert (family.actions.count, family.actions.radius) == (20, 0.25)
    np.testing.assert_array_equal(family.prior.mean, [2.0] * 5)
    np.testing.assert_array_equal(family.prior.cov, 0.8 + 0.2 * np.eye(5))
    np.testing.assert_allclose(family.actions.second_moment(), 0.25**2 / 7 * np.eye(5))
    assert family.violations() == {}
    told = family.told()
    # eigenvalues of 0.2 I + 0.8 11': 0.2 four times and 0.2 + 0.8 * 5
    assert (told.prior_min, told.prior_max) == (pytest.approx(0.2), pytest.approx(4.2))
    assert told.mean_norm == pytest.approx(2 * math.sqrt(5))
    assert told.action_min == pytest.approx(0.0625 / 7)


def test_the_papers_constants() -> None:
    """tau of eq. (8) and c_w below eq. (12) at the settings of Section 6, by hand.

    8 a^2 / lambda_A = 8 (d + 2) = 56 and ln(25 * 10^8 * 200) = ln 5 + 11 ln 10, so tau = 1508.5
    rounded up, seven times the horizon; c_w = 50 (2 * 7 / (5 / 16) + 4.2) = 50 * 49.
    """
    told = paper_family().told()
    tau = 56 * (math.log(5) + 11 * math.log(10))
    assert 1508 < tau < 1509
    assert exploration_length(5, 10_000, 200, told.radius, told.action_min) == 1509
    assert widening_constant(5, 1.0, told.action_min, told.prior_max) == pytest.approx(2450.0)


def test_exploration_takes_at_least_d_steps() -> None:
    """The first term of the maximum of eq. (8), where the second is below it."""
    # 8 * 1 / 1 * ln(1 * 1 * 1) = 0 for one dimension, one task, one step
    assert exploration_length(1, 1, 1, 1.0, 1.0) == 1
    # 8 / 10^6 ln(100^2 * 4 * 2) < 100
    assert exploration_length(100, 2, 2, 1.0, 1e6) == 100


def test_widening_constant_in_other_units() -> None:
    """c_w is linear in sigma^2 / lambda_A and in lambda_max: both terms in the same units."""
    assert widening_constant(2, 3.0, 0.5, 4.0) == pytest.approx(50 * (2 * 9 / (0.5 * 2) + 4))


def test_draw_shapes_and_order() -> None:
    """A task is parameter, noise, actions; the first two do not depend on the kind of actions."""
    families = {
        (10, 2, 5): a_family(),
        (1, 2, 5): a_family(actions=UniformBall(2, 2.0, 5, "task")),
        (1, 2, 3): a_family(actions=FiniteSet([[2.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])),
        (1, 2, 0): a_family(actions=WholeBall(2, 2.0)),
        (10, 2, 4): a_family(actions=TruncatedGaussian(2, 2.0, 4)),
    }
    first = a_family().draw(np.random.default_rng(4))
    for shape, family in families.items():
        task = family.draw(np.random.default_rng(4))
        assert task.actions.shape == shape and task.noise.shape == (10,) and task.radius == 2.0
        np.testing.assert_array_equal(task.theta, first.theta)
        np.testing.assert_array_equal(task.noise, first.noise)
        if shape[-1]:
            best = np.einsum("tdk,d->tk", task.actions, task.theta).max(axis=1)
        else:
            best = np.array([2 * np.linalg.norm(task.theta)])
        np.testing.assert_allclose(task.best, best, rtol=1e-12)


def test_law_of_task_parameters() -> None:
    """Null: theta ~ N(mu_*, Sigma_*), noise standard and independent of theta.

    Mahalanobis distance of the mean (chi2), each entry of the covariance of (theta, noise) (z);
    Bonferroni over all. A covariance with 0.7 in place of 0.8 is rejected.
    """
    family = paper_family(dim=3, horizon=2, actions=1)
    rng, n = np.random.default_rng(5), 10_000
    tasks = [family.draw(rng) for _ in range(n)]
    x = np.array([[*task.theta, *task.noise] for task in tasks])
    x -= [2.0, 2.0, 2.0, 0.0, 0.0]
    level = size("environment/theta-law") / (1 + 15) / 2

    def worst(off_diagonal: float) -> float:
        cov = np.eye(5)
        cov[:3, :3] = off_diagonal + (1 - off_diagonal) * np.eye(3)
        z = [
            (np.mean(x[:, i] * x[:, j]) - cov[i, j]) / math.sqrt((cov[i, j] ** 2 + 1) / n)
            for i in range(5)
            for j in range(i + 1)
        ]
        return float(np.abs(z).max())

    block = np.eye(5)
    block[:3, :3] = family.prior.cov
    mean = x.mean(axis=0)
    assert n * mean @ np.linalg.solve(block, mean) < chi2.isf(2 * level, 5)
    assert worst(0.8) < norm.isf(level) < worst(0.7)
