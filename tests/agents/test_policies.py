"""The schemes inside a task: what all of them keep to, bad input, the whole ball, their rules."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import binomtest, kstest, norm

import bayesmeta as bm
from bayesmeta.agents import reference
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.learners import KNOWN, UNKNOWN
from bayesmeta.agents.policies import (
    Policy,
    bayes_ucb,
    frequentist_ids,
    greedy,
    knowledge_gradient,
    oful,
    thompson,
    two_rhc,
    v_ids,
)
from bayesmeta.checks import InputError
from bayesmeta.environment import NOTHING
from bayesmeta.kernels import choose, points
from bayesmeta.kernels.codes import Scheme
from bayesmeta.kernels.tuples import Belief, work_space
from tests.helpers import size

FINITE = {
    "bayes_ucb": bayes_ucb(),
    "v_ids": v_ids(10),
    "v_ids, sobol": v_ids(8, sobol=True),
    "oful": oful(2.0),
    "frequentist_ids": frequentist_ids(2.0),
    "frequentist_ids, randomised": frequentist_ids(2.0, randomised=True),
    "knowledge gradient": knowledge_gradient(4),
    "2-RHC": two_rhc(3),
}


POLICIES = {"thompson": thompson(), "greedy": greedy(), **FINITE}
each_policy = pytest.mark.parametrize("name", POLICIES)
STEP = 3


class Posed:
    """A posterior, actions on offer, and 40 rows of normals, alike but for the last of each row:
    their uniform numbers lie evenly and symmetrically in (0, 1)."""

    def __init__(self, seed: int, count: int = 6, dim: int = 3) -> None:
        self.seed, rng = seed, np.random.default_rng(seed)
        half = rng.standard_normal((dim, dim))
        self.prior = bm.GaussianPrior(rng.standard_normal(dim), half @ half.T / dim + np.eye(dim))
        self.actions, self.noise_sd = rng.standard_normal((count, dim)), 0.5

    def draws(self, policy: Policy) -> np.ndarray:
        row = np.random.default_rng(self.seed).standard_normal(policy.normals(self.prior.dim))
        draws = np.tile(row, (40, 1))
        draws[:, -1] = norm.ppf((np.arange(40) + 0.5) / 40)
        return draws

    def choices(self, policy: Policy, actions: np.ndarray | None = None) -> np.ndarray:
        """What the kernel chooses at step ``STEP``, for every row of normals."""
        offered = self.actions if actions is None else actions
        belief = Belief(
            self.prior.mean.copy(),
            np.ascontiguousarray(self.prior.cholesky.T),
            self.noise_sd**2,
        )
        sets = np.array(offered.T, order="C")[None]
        found = []
        for row in self.draws(policy):
            work = work_space(self.prior.dim, len(offered))
            chosen = choose.choose(
                policy.choosing([STEP], self.prior.dim), belief, sets, NOTHING, row[None], 0, work
            )
            found.append(chosen)
        return np.array(found)

    def scaled(self, rewards: float, actions: float) -> Posed:
        """The same problem in other units of the rewards and of the actions."""
        out, unit = copy.copy(self), rewards / actions
        out.prior = bm.GaussianPrior(unit * self.prior.mean, unit**2 * self.prior.cov)
        out.actions, out.noise_sd = actions * self.actions, rewards * self.noise_sd
        return out


@each_policy
@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_a_policy_is_its_readable_twin(name: str, dim: int) -> None:
    """The kernel chooses what ``reference.choose`` does."""
    policy = POLICIES[name]
    for seed in range(10 if dim == 3 else 4):
        posed = Posed(seed, dim=dim)
        expected = [
            reference.choose(
                policy,
                STEP,
                posed.prior.mean,
                posed.prior.cov,
                posed.actions,
                row,
                NormalDist().cdf(float(row[-1])),
                posed.noise_sd,
            )
            for row in posed.draws(policy)
        ]
        np.testing.assert_array_equal(posed.choices(policy), expected)


@each_policy
def test_a_policy_does_not_see_the_order_of_actions(name: str) -> None:
    """Offered in another order, every action is chosen as often. (A randomised scheme may take the
    two actions of its law in the other order, so the same uniform number need not give the same.)
    """
    policy = POLICIES[name]
    for seed in range(10):
        posed = Posed(seed)
        order = np.random.default_rng(seed).permutation(6)
        again = order[posed.choices(policy, posed.actions[order])]
        times, others = (np.bincount(k, minlength=6) for k in (posed.choices(policy), again))
        np.testing.assert_array_equal(times, others)


@each_policy
@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_a_policy_does_not_see_units(name: str, unit: float) -> None:
    """Of the rewards, of the actions; |theta| and the ridge are numbers in those units."""
    policy = POLICIES[name]
    for seed in range(10):
        posed = Posed(seed)
        bound, ridge = policy.norm_bound, policy.ridge
        dearer = replace(policy, norm_bound=bound * unit)
        longer = replace(policy, norm_bound=bound / unit, ridge=ridge * unit**2)
        expected = posed.choices(policy)
        np.testing.assert_array_equal(posed.scaled(unit, 1.0).choices(dearer), expected)
        np.testing.assert_array_equal(posed.scaled(1.0, unit).choices(longer), expected)


@each_policy
@pytest.mark.parametrize("count", [1, 2, 17])
def test_a_policy_chooses_one_of_the_actions_on_offer(name: str, count: int) -> None:
    """Where one action is on offer, that one."""
    chosen = Posed(1, count).choices(POLICIES[name])
    assert chosen.dtype == np.int64 and ((chosen >= 0) & (chosen < count)).all()


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"knowledge gradient"}))
@pytest.mark.parametrize("best", [0, 4])
def test_a_policy_finds_a_best_action_it_is_sure_of(name: str, best: int) -> None:
    """theta is known to 1e-4, and one action earns far more than the others. (The knowledge
    gradient looks for what to learn alone: it has nothing to choose by.)"""
    posed = Posed(2)
    posed.prior = bm.GaussianPrior([5.0, 0.0, 0.0], 1e-8 * np.eye(3))
    posed.actions[:, 0] = -np.abs(posed.actions[:, 0])
    posed.actions[best, 0] = 3.0
    assert (posed.choices(POLICIES[name]) == best).all()


def an_agent(policy: Policy, **fields: object) -> Agent:
    return Agent("a", policy, bm.agents.no_exploration(), KNOWN, "a", **fields)


@pytest.mark.parametrize("make", [oful, frequentist_ids])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm_bound": math.nan}, "norm_bound must be finite"),
        ({"norm_bound": math.inf}, "norm_bound must be finite"),
        ({"norm_bound": -1.0}, "norm_bound must be at least 0"),
        ({"norm_bound": "one"}, "norm_bound must be a number"),
        ({"norm_bound": 1.0, "delta": 0.0}, "delta must be greater than 0"),
        ({"norm_bound": 1.0, "delta": -0.1}, "delta must be greater than 0"),
        ({"norm_bound": 1.0, "delta": 1.0}, "delta must be below 1"),
        ({"norm_bound": 1.0, "delta": 2.0}, "delta must be below 1"),
        ({"norm_bound": 1.0, "delta": math.nan}, "delta must be finite"),
        ({"norm_bound": 1.0, "ridge": 0.0}, "ridge must be greater than 0"),
        ({"norm_bound": 1.0, "ridge": math.nan}, "ridge must be finite"),
    ],
)
def test_bad_confidence_sets_are_refused_by_name(
    make: Callable[..., Policy], arguments: dict[str, object], message: str
) -> None:
    """Bound, confidence level and ridge of the frequentist schemes."""
    with pytest.raises(InputError, match="^" + message):
        make(**arguments)


@pytest.mark.parametrize("draws", [1, 0, -5, 10.0, None])
def test_v_ids_needs_two_draws(draws: object) -> None:
    """One draw has no variance."""
    with pytest.raises(InputError, match=r"^draws must be"):
        v_ids(draws)


def test_pairs_of_draws_are_even() -> None:
    with pytest.raises(InputError, match=r"^draws come in pairs with sobol, got 7"):
        v_ids(7, sobol=True)


def _gaps_and_information(rng: np.random.Generator, kind: str) -> tuple[np.ndarray, np.ndarray]:
    count = int(rng.integers(1, 25))
    gap, information = rng.exponential(size=(2, count))
    if kind == "tied":  # whole numbers: equal gaps, equal information, duplicates, zeros
        gap, information = rng.integers(0, 5, size=(2, count)).astype(float)
        gap += rng.integers(0, 2)
    if kind == "traded":  # all on one front
        gap = np.sort(gap)
        information = np.sort(information)
        order = rng.permutation(count)
        gap, information = gap[order], information[order]
    return gap, information


@pytest.mark.parametrize("kind", ["any", "tied", "traded"])
def test_pruned_search_chooses_as_the_whole_one(kind: str) -> None:
    """``two_point`` of the kernel looks at the Pareto front alone, its twin at all pairs."""
    rng = np.random.default_rng(8)
    pruned = 0
    for _ in range(1500):
        gap, information = _gaps_and_information(rng, kind)
        first = choose.smallest_ratio(gap, information)
        front = choose.pareto_front(gap, information, first)
        pruned += len(front) < len(gap)
        worse = (gap[:, None] <= gap) & (information[:, None] >= information)
        strictly = worse & ((gap[:, None] < gap) | (information[:, None] > information))
        np.testing.assert_array_equal(front, np.flatnonzero(~strictly.any(axis=0)))
        for u in (0.0, *rng.random(3), 1 - 1e-12):
            found = choose.two_point(gap, information, u)
            assert found == reference.two_point(gap, information, u)
    assert pruned > 1000 or kind == "traded"


def test_normal_quantile_is_scipys() -> None:
    p = np.concatenate([np.logspace(-17, -0.31, 400), 1 - np.logspace(-15, -0.31, 400)])
    found = np.array([points.normal_quantile(one) for one in p])
    np.testing.assert_allclose(found, ndtri(p), rtol=1e-13, atol=1e-15)


def test_shifted_points_are_normal_and_even() -> None:
    """Null: each point by itself is standard normal (Kolmogorov-Smirnov, 12 of them). The mean
    square of a step's points varies less than that of independent ones, 2 / 32."""
    policy, rng = v_ids(32, sobol=True), np.random.default_rng(3)
    cube, dim = policy.points(4).flatten(), 4
    shifts = rng.standard_normal((2000, dim))
    drawn = np.array(
        [points.shifted_normals(cube, dim, shifts, t)[0].reshape(-1, dim) for t in range(2000)]
    )
    np.testing.assert_array_equal(drawn[:, 0::2], -drawn[:, 1::2])
    tested = [drawn[:, m, i] for m in (0, 6, 30) for i in range(dim)]
    assert min(kstest(sample, norm.cdf).pvalue for sample in tested) > size(
        "policies/shifted-law"
    ) / len(tested)
    assert (drawn**2).mean(axis=1).var(axis=0).max() < 0.25 * 2 / 32
    np.testing.assert_allclose(drawn[0], reference.shifted_normals(policy.points(4), shifts[0]))


@pytest.mark.parametrize("name", FINITE)
def test_the_whole_ball_is_refused_by_name(name: str) -> None:
    """A policy that compares actions one by one refuses the ball: simulated, asked, warming up."""
    message = f"^policy {FINITE[name].scheme.name.lower()} .* cannot be given the whole ball"
    prior = bm.GaussianPrior(np.zeros(2), np.eye(2))
    family = bm.TaskFamily(prior, bm.WholeBall(2, 1.0), 1.0, 5)
    with pytest.raises(InputError, match=message):
        bm.simulate(family, [an_agent(FINITE[name])], tasks=2)
    player = bm.Player(an_agent(FINITE[name]), family.setting(2))
    player.start_task()
    with pytest.raises(InputError, match=message):
        player.ask()
    assert player.ask(np.eye(2)) in (0, 1)  # the refusal leaves the player as it was
    warming = an_agent(thompson(), warmup=1, warmup_policy=FINITE[name])
    with pytest.raises(InputError, match=message):
        bm.simulate(family, [warming], tasks=2)
    player = bm.Player(warming, family.setting(2))
    player.start_task()
    with pytest.raises(InputError, match=message):
        player.ask()


@pytest.mark.parametrize("policy", [thompson(), greedy()])
def test_the_whole_ball_is_played(policy: Policy) -> None:
    """The others answer with an action of length a."""
    prior = bm.GaussianPrior([3.0, 4.0], np.eye(2))
    family = bm.TaskFamily(prior, bm.WholeBall(2, 0.5), 1.0, 5)
    player = bm.Player(an_agent(policy), family.setting(1))
    player.start_task()
    action = player.ask()
    assert np.linalg.norm(action) == pytest.approx(0.5)
    if policy.scheme is Scheme.GREEDY:
        np.testing.assert_allclose(action, [0.3, 0.4])
    assert (bm.simulate(family, [an_agent(policy)], tasks=3).regret > 0).all()


def test_ask_and_play_share_their_ball() -> None:
    """Told a loose bound on the radius, an agent asked step by step stays where play stays."""
    prior = bm.GaussianPrior([3.0, 4.0], np.eye(2))
    loose = bm.Bounds(radius=3.0, action_min=0.1, prior_min=1.0, prior_max=1.0, mean_norm=5.0)
    family = bm.TaskFamily(prior, bm.WholeBall(2, 1.0), 1.0, 5, bounds=loose)
    assert family.violations() == {}
    lengths = []
    for step_by_step in (True, False):
        player = bm.Player(an_agent(greedy()), family.setting(1))
        player.start_task()
        task = family.draw(np.random.default_rng(0))
        taken = player.ask() if step_by_step else player.play(task).taken[0]
        lengths.append(float(np.linalg.norm(taken)))
    assert lengths == pytest.approx([1.0, 1.0])


def test_bayes_ucb_quantile() -> None:
    """Level 1 - 1/(t + 1) at step t = 1, 2, …; the other schemes have none."""
    assert bayes_ucb().quantile(0) == pytest.approx(0.0, abs=1e-15)
    assert bayes_ucb().quantile(18) == pytest.approx(NormalDist().inv_cdf(0.95))
    assert thompson().quantile(18) == 0.0


def test_frequentist_schemes_start_from_their_ridge() -> None:
    """V = ridge I is the prior N(0, sigma^2/ridge I), whatever prior the agent has learned."""
    setting = bm.paper_family().setting(3)
    player = bm.Player(an_agent(oful(1.0, ridge=4.0)), setting)
    prior = player.start_task().prior
    assert (prior.mean == 0).all() and not oful(1.0).uses_prior and thompson().uses_prior
    np.testing.assert_allclose(prior.cov, 0.25 * np.eye(5))


def test_normals_of_a_step() -> None:
    """M d for the posterior draws and one for the uniform number."""
    assert thompson().normals(5) == 5 and v_ids(100).normals(5) == 501
    assert v_ids(32, sobol=True).normals(5) == 6
    assert thompson().normals(5, ball=True) == 6 and greedy().normals(5) == 1
    assert v_ids(100).normals(2, ball=True) == 201 and greedy().normals(5, ball=True) == 6


def the_law(gap: np.ndarray, information: np.ndarray) -> tuple[int, int, float]:
    """(first, second, weight of the first) of the two-point rule, found from its answers to u."""
    first = choose.two_point(gap, information, 0.0)
    second = choose.two_point(gap, information, 1 - 1e-16)
    if first == second:
        return first, second, 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if choose.two_point(gap, information, middle) == first else (low, middle)
        )
    return first, second, low


def ratio(gap: np.ndarray, information: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(E gap)^2 / E information where anything informs, else infinite."""
    top, bottom = (weights @ gap) ** 2, weights @ information
    return np.divide(top, bottom, out=np.full(np.shape(top), np.inf), where=bottom > 0)


def brute_force(gap: np.ndarray, information: np.ndarray) -> float:
    """The smallest ratio over all pairs of actions on a grid of 1,001 weights."""
    grid = np.linspace(0, 1, 1001)
    lowest = math.inf
    for i in range(len(gap)):
        for j in range(i, len(gap)):
            weights = np.zeros((len(grid), len(gap)))
            weights[:, i] += grid
            weights[:, j] += 1 - grid
            lowest = min(lowest, float(ratio(gap, information, weights).min()))
    return lowest


def law_ratio(gap: np.ndarray, information: np.ndarray) -> float:
    first, second, weight = the_law(gap, information)
    weights = np.zeros(len(gap))
    weights[first] += weight
    weights[second] += 1 - weight
    return float(ratio(gap, information, weights[None])[0])


VALUE = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.floats(1e-6, 10.0))


@given(pairs=st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=5))
def test_two_point_rule_against_brute_force(pairs: list[tuple[float, float]]) -> None:
    """No pair on a fine grid does better, with ties and with actions that do not inform."""
    gap, information = np.array(pairs).T.copy()
    assume((information > 0).any() and not ((gap == 0) & (information == 0)).any())
    lowest = brute_force(gap, information)
    assert law_ratio(gap, information) <= lowest * (1 + 1e-9)


def test_two_point_rule_by_hand() -> None:
    """Gaps 1 and 4, information 0 and 1: q of the second minimises (1 + 3q)^2 / q, so q = 1/3."""
    gap, information = np.array([1.0, 4.0]), np.array([0.0, 1.0])
    first, second, weight = the_law(gap, information)
    assert (first, second) == (0, 1) and weight == pytest.approx(2 / 3)
    assert law_ratio(gap, information) == pytest.approx(12.0)
    # a single action would cost 16, and the brute force is able to see the difference
    assert brute_force(gap, information) == pytest.approx(12.0, rel=1e-4)


def test_two_point_rule_without_information() -> None:
    """Where nothing informs, the smallest gap is played, the first where several tie."""
    for u in (0.0, 0.5, 0.999):
        assert choose.two_point(np.array([3.0, 1.0, 1.0]), np.zeros(3), u) == 1


def test_two_point_rule_with_all_alike() -> None:
    """Identical actions: any is right, and none is out of range."""
    for u in (0.0, 0.5, 0.999):
        assert choose.two_point(np.ones(4), np.ones(4), u) in range(4)


def test_an_action_known_to_be_best_is_played() -> None:
    """Gap 0 and information 0: the ratio tends to 0 as all weight goes there, so it is the law.

    No action without it comes near: every other has a positive gap.
    """
    gap, information = np.array([2.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.3])
    assert choose.smallest_ratio(gap, information) == 1
    assert [choose.two_point(gap, information, u) for u in (0.0, 0.5, 0.999)] == [1, 1, 1]


@pytest.mark.parametrize("randomised", [False, True])
def test_frequentist_ids_settles_on_doing_nothing(randomised: bool) -> None:
    """With the zero action on offer and all others losing 3 a step, IDS must stop losing.

    Once every upper bound but that of the zero action is below 0, its gap and its information are
    both 0. Playing on would lose 3 * 500 a task; OFUL loses about 45.
    """
    prior = bm.GaussianPrior([-3.0, -3.0], 0.01 * np.eye(2))
    family = bm.TaskFamily(prior, bm.FiniteSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 1.0, 500)
    agent = Agent(
        "a", frequentist_ids(5.0, randomised=randomised), bm.agents.no_exploration(), KNOWN, "a"
    )
    assert float(bm.simulate(family, [agent], tasks=3).regret.max()) < 150


def test_thompson_plays_each_action_as_often_as_it_is_best() -> None:
    """Null: P(arm 0) = P(theta_0 > theta_1) = Phi((mu_0 - mu_1) / sd of the difference).

    Exact binomial test. The law without the correlation of the arms is rejected.
    """
    cov = np.array([[1.0, 0.7], [0.7, 0.8]])
    prior = bm.GaussianPrior([0.3, 0.0], cov)
    family = bm.TaskFamily(prior, bm.unit_vectors(2), 1.0, 1)
    player = bm.Player(an_agent(thompson()), family.setting(1), random_seed=11)
    n, chosen = 6000, 0
    for _ in range(n):
        player.start_task()
        chosen += player.ask(np.eye(2)) == 0
        player.tell(0.0)
        player.end_task()
    level = size("policies/thompson-law")
    right = norm.cdf(0.3 / math.sqrt(1.0 + 0.8 - 2 * 0.7))
    wrong = norm.cdf(0.3 / math.sqrt(1.0 + 0.8))
    assert binomtest(chosen, n, right).pvalue > level > binomtest(chosen, n, wrong).pvalue


def test_greedy_ignores_its_uncertainty() -> None:
    """The best action under the mean, the first where several tie."""
    prior = bm.GaussianPrior([1.0, 1.0, 0.5], np.diag([0.1, 5.0, 50.0]))
    family = bm.TaskFamily(prior, bm.unit_vectors(3), 1.0, 4)
    player = bm.Player(an_agent(greedy()), family.setting(1))
    player.start_task()
    assert player.ask(np.eye(3)) == 0


def test_bayes_ucb_and_oful_are_optimistic() -> None:
    """Of two arms with the same mean the more uncertain one is played from the second step on."""
    prior = bm.GaussianPrior([0.0, 0.0], np.diag([0.01, 4.0]))
    family = bm.TaskFamily(prior, bm.unit_vectors(2), 1.0, 9)
    player = bm.Player(an_agent(bayes_ucb()), family.setting(1))
    player.start_task()
    player.ask(np.eye(2))
    player.tell(0.0)
    assert player.ask(np.eye(2)) == 1
    # OFUL starts from equal widths; told of the first arm, it plays the second
    player = bm.Player(
        Agent("b", oful(1.0), bm.agents.no_exploration(), UNKNOWN, "b"), family.setting(1)
    )
    player.start_task()
    assert player.ask(np.eye(2)) == 0
    player.tell(0.0)
    assert player.ask(np.eye(2)) == 1


@pytest.mark.parametrize("variance", [0.25, 2.0])
@pytest.mark.parametrize("ridge", [0.5, 4.0])
def test_widths_of_confidence_sets(ridge: float, variance: float) -> None:
    """sqrt(beta) / sigma from the determinant of V, at the start (where it is that of the ridge)
    and after a short step, which changes it by little."""
    code = oful(2.5, ridge=ridge, delta=0.1).choosing(range(3), 2)
    for action in (np.zeros(2), np.array([0.1, 0.2]), np.array([3.0, -1.0])):
        gram = ridge * np.eye(2) + np.outer(action, action)
        upper = np.linalg.cholesky(variance * np.linalg.inv(gram)).T.copy()
        log_det = np.linalg.slogdet(gram / ridge)[1]
        expected = math.sqrt(log_det + 2 * math.log(10)) + math.sqrt(ridge / variance) * 2.5
        found = choose.confidence_width(code, Belief(np.zeros(2), upper, variance))
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dim", range(1, 8))
def test_the_best_action_is_of_its_own_numbers(dim: int) -> None:
    """Not of what lies behind them in memory: other sets, other numbers."""
    rng = np.random.default_rng(dim)
    behind = np.append(rng.standard_normal(dim), [1e9, 1e9])
    sets = rng.standard_normal((2, dim, 9))
    for row in (0, 1):
        values = sets[row].T @ behind[:dim]
        scores = np.empty(9)
        assert choose.best_action(sets, row, behind[:dim], scores) == values.argmax()
        np.testing.assert_allclose(scores, values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mean", [-2.0, 2.0])
def test_the_end_of_a_line_is_chosen(mean: float) -> None:
    """The whole ball in one dimension: the end on the side of the mean."""
    family = bm.TaskFamily(bm.GaussianPrior([mean], [[0.1]]), bm.WholeBall(1, 0.5), 1.0, 3)
    player = bm.Player(an_agent(greedy()), family.setting(1))
    player.start_task()
    assert player.ask() == pytest.approx([math.copysign(0.5, mean)])
