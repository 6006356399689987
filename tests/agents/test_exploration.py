"""When a task explores: what the rules refuse, what they settle to, and how they choose."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import chisquare

import bayesmeta as bm
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import (
    Exploration,
    first_steps,
    no_exploration,
    rescue,
    theoretical_steps,
    until_eigenvalue,
)
from bayesmeta.agents.learners import KNOWN
from bayesmeta.agents.policies import greedy, thompson
from bayesmeta.checks import InputError
from bayesmeta.environment import Bounds, Setting, paper_family
from bayesmeta.kernels.choose import explore, uniform
from bayesmeta.kernels.codes import Rule
from bayesmeta.kernels.tuples import Plan
from tests.helpers import size

BOUNDS = Bounds(radius=1.0, action_min=0.1, prior_min=0.2, prior_max=2.0, mean_norm=3.0)


@pytest.mark.parametrize("tau", [-1, 2.0, True, "two", None, math.nan])
def test_bad_tau_is_refused(tau: object) -> None:
    """A number of steps is a whole number and not negative."""
    with pytest.raises(InputError, match=r"^tau must be"):
        first_steps(tau)


@pytest.mark.parametrize("threshold", [0.0, -0.03, math.nan, math.inf, "low", None])
def test_bad_threshold_is_refused(threshold: object) -> None:
    """A threshold of zero or below would be met before the first step."""
    with pytest.raises(InputError, match=r"^threshold must be"):
        until_eigenvalue(threshold)


def test_a_tau_beyond_the_horizon_is_refused() -> None:
    """A fixed tau may fill the task and not exceed it."""
    setting = Setting(2, 10, 5, 1.0, BOUNDS)
    assert first_steps(10).plan(setting) == Plan(Rule.FIRST_STEPS, 10, 0.0, 10)
    with pytest.raises(InputError, match=r"^tau is 11 steps but a task has horizon 10"):
        first_steps(11).plan(setting)


def test_the_tau_of_eq_8_does_not_fit_the_papers_tasks() -> None:
    """56 ln(5 10^11) = 1508.5 steps in tasks of 200: why Section 6 uses the eigenvalue rule."""
    with pytest.raises(InputError, match=r"^tau of eq. \(8\) is 1509 steps .* horizon 200"):
        theoretical_steps().plan(paper_family().setting(10_000))


def test_the_tau_of_eq_8() -> None:
    """8 a^2 / lambda_A ln(d^2 N^2 T) = 80 ln(4 * 25 * 2000), rounded up."""
    plan = theoretical_steps().plan(Setting(2, 2000, 5, 1.0, BOUNDS))
    assert plan == Plan(Rule.FIRST_STEPS, math.ceil(80 * math.log(200_000)), 0.0, 2000)


def test_the_tau_of_eq_8_needs_assumption_1() -> None:
    """Without a positive lower bound on lambda_A eq. (8) divides by zero; say so."""
    none = Bounds(radius=1.0, action_min=0.0, prior_min=0.2, prior_max=2.0, mean_norm=3.0)
    with pytest.raises(InputError, match="needs action_min > 0"):
        theoretical_steps().plan(Setting(2, 2000, 5, 1.0, none))


def test_a_plan_is_plain_numbers() -> None:
    """What numba types by class: an enumeration's member would compile every kernel again."""
    plan = until_eigenvalue(0.5).plan(Setting(2, 9, 1, 1.0, BOUNDS))
    assert plan == Plan(Rule.UNTIL_EIGENVALUE, 0, 0.5, 9)
    assert [type(value) for value in plan] == [int, int, float, int]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (no_exploration(), 0),
        (first_steps(0), 0),
        (first_steps(4), 4),
        (first_steps(12), 12),
        (rescue(), 0),
    ],
)
def test_steps_explored(rule: Exploration, expected: int) -> None:
    """A simulated task explores as long as its rule says; sets of ten never need a rescue."""
    agent = Agent("a", thompson(), rule, KNOWN, "a")
    record = bm.simulate(paper_family(dim=3, horizon=12, actions=10), [agent], tasks=5)
    assert (record.exploration_steps == expected).all()


def test_rescue_explores_at_the_end() -> None:
    """Greedy on the unit vectors, sure of the first, plays nothing else until the last d = 3
    steps; these explore while the gram has rank below 3, and not beyond.
    """
    sure = bm.GaussianPrior([100.0, 0.0, 0.0], 1e-4 * np.eye(3))
    family = bm.TaskFamily(sure, bm.unit_vectors(3), 1.0, 20)
    player = bm.Player(Agent("a", greedy(), rescue(), KNOWN, "a"), family.setting(50))
    explored, rescued = set(), set()
    for _ in range(50):
        player.start_task()
        chosen = []
        for _ in range(20):
            chosen.append(player.ask(np.eye(3)))
            player.tell(0.0)
        player.end_task()
        assert chosen[:17] == [0] * 17
        rescued_in_two = {*chosen[:19]} == {0, 1, 2}
        assert chosen[19] == 0 or not rescued_in_two
        explored |= {*chosen[17:]}
        rescued |= {rescued_in_two}
    assert explored == {0, 1, 2} and rescued == {False, True}


def test_uniform_number_of_a_step() -> None:
    """The last normal of the row through its distribution function, always below 1."""
    draws = np.array([[9.0, -1.3], [9.0, 0.0], [9.0, 40.0], [9.0, -40.0], [9.0, 8.2]])
    found = [uniform(draws, step) for step in range(5)]
    assert found[0] == pytest.approx(NormalDist().cdf(-1.3), rel=1e-12)
    assert found[1] == 0.5 and 0 < found[2] < 1 and 0 <= found[3] < 1e-300 and found[4] < 1


@pytest.mark.parametrize("count", [1, 2, 3, 20, 2**31])
def test_exploration_stays_inside_the_set(count: int) -> None:
    """Extreme normals give the first and the last index, never one beyond."""
    draws = np.array([[-40.0], [40.0], [0.0]])
    assert [explore(draws, step, count) for step in range(3)] == [0, count - 1, count // 2]


@pytest.mark.parametrize("count", [3, 7, 20])
def test_exploration_is_uniform(count: int) -> None:
    """Null: indices 0..K-1 are equally likely. chi2 test, Bonferroni over three K.

    The same normals brought into [0, 1) by a straight line are rejected.
    """
    draws = np.random.default_rng(count).standard_normal((20_000, 1))
    level = size("exploration/uniform") / 3
    chosen = [explore(draws, step, count) for step in range(len(draws))]
    times = np.bincount(chosen, minlength=count)
    assert len(times) == count and chisquare(times).pvalue > level
    wrong = np.floor((draws[:, 0] / 8 + 0.5).clip(0, 1 - 1e-9) * count).astype(int)
    assert chisquare(np.bincount(wrong, minlength=count)).pvalue < level
