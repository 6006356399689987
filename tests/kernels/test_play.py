"""The numba kernels against plain NumPy, exactly and on awkward shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesmeta.actions import FiniteSet, UniformBall, WholeBall, unit_vectors
from bayesmeta.agents import reference
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import (
    Exploration,
    each_action_once,
    first_steps,
    no_exploration,
    rescue,
    two_ends,
    until_eigenvalue,
)
from bayesmeta.agents.learners import KNOWN
from bayesmeta.agents.player import Player
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
from bayesmeta.environment import Bounds, Setting, TaskFamily
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.linalg import (
    has_full_rank,
    smallest_eigenvalue_at_least,
    update_posterior,
    upper_root,
)
from bayesmeta.pricing import pricing_family
from bayesmeta.streams import stream

POLICIES = {
    "thompson": thompson(),
    "greedy": greedy(),
    "bayes-ucb": bayes_ucb(),
    "v-ids": v_ids(draws=20),
    "knowledge-gradient": knowledge_gradient(4),
    "two-rhc": two_rhc(3),
    "v-ids-sobol": v_ids(draws=16, sobol=True),
    "oful": oful(norm_bound=3.0),
    "ids-deterministic": frequentist_ids(norm_bound=3.0),
    "ids-randomised": frequentist_ids(norm_bound=3.0, randomised=True),
}
AHEAD = {"knowledge-gradient", "two-rhc"}
"""Policies that are not defined where rewards are not earned."""
RULES = {
    "none": no_exploration(),
    "first": first_steps(3),
    "eigenvalue": until_eigenvalue(0.4),
    "rescue": rescue(),
    "each": each_action_once(),
    "ends": two_ends(0.4),
}


def random_prior(rng: np.random.Generator, dim: int) -> GaussianPrior:
    half = rng.standard_normal((dim, dim))
    return GaussianPrior(rng.standard_normal(dim), half @ half.T / dim + 0.1 * np.eye(dim))


def agent(policy: Policy, rule: Exploration) -> Agent:
    return Agent("test", policy, rule, KNOWN, "test")


def both(family: TaskFamily, policy: Policy, rule: Exploration, seed: int = 0):
    """One task played by the kernel and by the reference, on the same randomness."""
    task = family.draw(np.random.default_rng(seed))
    setting = family.setting(1)
    player = Player(agent(policy, rule), setting, random_seed=seed)
    prior = player.start_task().prior
    draws = stream(seed, "test").standard_normal((family.horizon, player._normals()))
    outcome = player.play(task)
    plan = rule.plan(setting)
    twin = reference.play(policy, plan, task, prior, family.noise_sd, draws, setting.bounds.radius)
    return player, outcome, twin


def assert_same(player: Player, outcome, twin) -> None:
    if twin.chosen.ndim == 1:
        np.testing.assert_array_equal(outcome.chosen, twin.chosen)
    else:
        np.testing.assert_allclose(outcome.taken, twin.chosen, rtol=1e-8, atol=1e-10)
    scale = np.abs(twin.rewards).max()
    np.testing.assert_allclose(outcome.rewards, twin.rewards, rtol=1e-9, atol=1e-9 * scale)
    assert outcome.explored == twin.explored
    assert outcome.regret == pytest.approx(twin.regret, rel=1e-8, abs=1e-9 * scale)
    mean, root, _ = player._state.belief
    np.testing.assert_allclose(mean, twin.mean, rtol=1e-7, atol=1e-9 * scale)
    np.testing.assert_allclose(root.T @ root, twin.cov, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("rule", RULES)
def test_kernel_agrees_with_reference(policy: str, rule: str) -> None:
    """Algorithm 1: every policy under every exploration rule makes the same choices as its NumPy
    twin, and has the same regret, eq. (1)."""
    rng = np.random.default_rng(11)
    family = TaskFamily(random_prior(rng, 4), UniformBall(4, 1.0, 7), 0.7, 40)
    for seed in range(3):
        assert_same(*both(family, POLICIES[policy], RULES[rule], seed))


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - AHEAD))
@pytest.mark.parametrize("rule", ["none", "ends"])
def test_prices_agree_with_reference(policy: str, rule: str) -> None:
    """Where an action earns something else than the reward observed."""
    family = pricing_family(prior_sd=0.5, horizon=40)
    for seed in range(2):
        assert_same(*both(family, POLICIES[policy], RULES[rule], seed))


@pytest.mark.parametrize("policy", ["thompson", "greedy"])
@pytest.mark.parametrize("rule", sorted(set(RULES) - {"ends"}))
def test_whole_ball_agrees_with_reference(policy: str, rule: str) -> None:
    """The closed-form argmax over the whole ball, with every exploration rule."""
    rng = np.random.default_rng(5)
    family = TaskFamily(random_prior(rng, 3), WholeBall(3, 0.5), 0.3, 30)
    for seed in range(3):
        assert_same(*both(family, POLICIES[policy], RULES[rule], seed))


@given(
    dim=st.integers(1, 20),
    horizon=st.integers(1, 25),
    count=st.integers(1, 12),
    policy=st.sampled_from(sorted(POLICIES)),
    rule=st.sampled_from(sorted(RULES)),
    seed=st.integers(0, 1000),
)
def test_agreement_on_any_shape(
    dim: int, horizon: int, count: int, policy: str, rule: str, seed: int
) -> None:
    """Dimensions 1-20, one action, T = 1, horizons shorter than the dimension (singular grams)."""
    rng = np.random.default_rng(seed)
    family = TaskFamily(random_prior(rng, dim), UniformBall(dim, 1.0, count), 0.5, horizon)
    chosen = RULES[rule]
    if chosen.tau and chosen.tau > horizon:
        chosen = first_steps(horizon)
    assert_same(*both(family, POLICIES[policy], chosen, seed))


@pytest.mark.parametrize("policy", POLICIES)
def test_fixed_sets_agree_with_reference(policy: str) -> None:
    """K arms, and a given finite set that spans less than the space."""
    rng = np.random.default_rng(2)
    flat = np.array([[1.0, 0.0, 0.0], [0.5, 0.2, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    for actions in (unit_vectors(4), FiniteSet(flat)):
        family = TaskFamily(random_prior(rng, actions.dim), actions, 0.5, 30)
        assert_same(*both(family, POLICIES[policy], RULES["eigenvalue"], 1))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("rule", ["none", "eigenvalue", "rescue"])
def test_units_of_the_reward_do_not_matter(unit: float, policy: str, rule: str) -> None:
    """Rewards, noise, prior and norm bound times c, the threshold over c^2: the same actions."""
    rng = np.random.default_rng(3)
    prior = random_prior(rng, 3)
    scaled = GaussianPrior(unit * prior.mean, unit**2 * prior.cov)
    scheme = POLICIES[policy]
    rules = (RULES[rule], replace(RULES[rule], threshold=RULES[rule].threshold / unit**2))
    policies = (scheme, replace(scheme, norm_bound=scheme.norm_bound * unit))
    outcomes = [
        both(TaskFamily(p, UniformBall(3, 1.0, 6), sd, 60), q, r, 4)[1]
        for p, sd, q, r in zip((prior, scaled), (0.6, 0.6 * unit), policies, rules, strict=True)
    ]
    np.testing.assert_array_equal(outcomes[0].chosen, outcomes[1].chosen)
    assert outcomes[0].explored == outcomes[1].explored
    np.testing.assert_allclose(
        outcomes[1].rewards / unit, outcomes[0].rewards, rtol=1e-8, atol=1e-9
    )


def test_recursion_equals_batch() -> None:
    """Step-by-step posterior, eq. (4), against the batch formula with an explicit inverse."""
    rng = np.random.default_rng(0)
    prior = random_prior(rng, 6)
    mean, root = prior.mean.copy(), np.ascontiguousarray(prior.cholesky.T)
    actions, rewards = rng.standard_normal((50, 6)), rng.standard_normal(50)
    for action, reward in zip(actions, rewards, strict=True):
        update_posterior(mean, root, action, reward, 0.49, np.empty(6), np.empty(6))
    precision = np.linalg.inv(prior.cov) + actions.T @ actions / 0.49
    cov = np.linalg.inv(precision)
    expected = cov @ (np.linalg.solve(prior.cov, prior.mean) + actions.T @ rewards / 0.49)
    np.testing.assert_allclose(root.T @ root, cov, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(mean, expected, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rank_one_updates_against_refactorisation(scale: float) -> None:
    """After 10^4 updates the factor is still the Cholesky factor, triangular to the bit."""
    rng = np.random.default_rng(1)
    d, steps = 8, 10_000
    prior = GaussianPrior(np.zeros(d), scale**2 * random_prior(rng, d).cov)
    mean, root = prior.mean.copy(), np.ascontiguousarray(prior.cholesky.T)
    actions = rng.standard_normal((steps, d)) * np.geomspace(1e-2, 1, d)
    rewards = scale * rng.standard_normal(steps)
    left, gain = np.empty(d), np.empty(d)
    for action, reward in zip(actions, rewards, strict=True):
        update_posterior(mean, root, action, reward, scale**2, left, gain)
    batch_mean, batch = prior.posterior(actions.T @ actions, actions.T @ rewards, scale)
    np.testing.assert_allclose(root.T, np.linalg.cholesky(batch), rtol=1e-8, atol=1e-11 * scale)
    np.testing.assert_allclose(mean, batch_mean, rtol=1e-7, atol=1e-11 * scale)
    assert (np.tril(root, -1) == 0).all()


@given(dim=st.integers(1, 12), rank=st.integers(0, 12), seed=st.integers(0, 10_000))
def test_eigenvalue_rule_against_eigvalsh(dim: int, rank: int, seed: int) -> None:
    """The Cholesky test for lambda_min >= bound, away from the bound; rank by the same means."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((dim, min(rank, dim)))
    matrix = half @ half.T
    lowest, highest = np.linalg.eigvalsh(matrix)[[0, -1]]
    work = np.empty((dim, dim))
    for bound in (lowest - 0.01 * (highest + 1), lowest + 0.01 * (highest + 1)):
        assert smallest_eigenvalue_at_least(matrix, bound, work) == (lowest >= bound)
    assert has_full_rank(matrix, work) == (rank >= dim)


def test_eigenvalue_rule_is_exact_for_ties() -> None:
    """lambda_min exactly at the bound counts as reached (>=), as for K arms pulled once each."""
    work = np.empty((3, 3))
    assert smallest_eigenvalue_at_least(np.diag([2.0, 1.0, 3.0]), 1.0, work)
    assert not smallest_eigenvalue_at_least(np.diag([2.0, 1.0, 3.0]), 1.0 + 1e-15, work)
    assert not smallest_eigenvalue_at_least(np.zeros((3, 3)), 1e-300, work)
    assert not has_full_rank(np.zeros((3, 3)), work)


@pytest.mark.parametrize(("dim", "steps"), [(2, 200), (3, 200), (5, 500)])
def test_rounding_does_not_make_a_singular_gram_invertible(dim: int, steps: int) -> None:
    """Grams of many steps in a subspace stay singular, whatever their sums are rounded to."""
    rng = np.random.default_rng(6)
    work = np.empty((dim, dim))
    for _ in range(200):
        basis = rng.standard_normal((dim - 1, dim))
        actions = basis[rng.integers(dim - 1, size=steps)]
        gram = np.cumsum(actions[:, :, None] * actions[:, None, :], axis=0)[-1]
        assert not has_full_rank(gram, work)


def test_upper_root() -> None:
    """root' root = cov, and an indefinite matrix is refused."""
    cov = random_prior(np.random.default_rng(0), 5).cov
    root = np.full((5, 5), np.nan)
    assert upper_root(cov, root)
    np.testing.assert_allclose(root, np.linalg.cholesky(cov).T, rtol=1e-12, atol=1e-14)
    assert not upper_root(cov - 2 * np.eye(5) * np.linalg.eigvalsh(cov)[0], np.empty((5, 5)))


def test_rescue_explores_while_the_gram_is_singular() -> None:
    """Greedy on a fixed set repeats one arm; the last d steps rescue what rank they can."""
    family = TaskFamily(
        GaussianPrior(np.array([3.0, 0, 0]), 0.01 * np.eye(3)), unit_vectors(3), 0.1, 20
    )
    _, outcome, _ = both(family, greedy(), rescue(), 0)
    assert (outcome.chosen[:17] == 0).all()
    assert 1 <= outcome.explored <= 3


def test_eigenvalue_exploration_stops_at_the_first_time() -> None:
    """The opening exploration ends at the first step with lambda_min(V / sigma^2) >= threshold."""
    rng = np.random.default_rng(8)
    sd, threshold = 0.7, 0.4
    family = TaskFamily(random_prior(rng, 3), UniformBall(3, 1.0, 5), sd, 60)
    _, outcome, twin = both(family, thompson(), until_eigenvalue(threshold), 0)
    taken = outcome.taken
    lowest = [np.linalg.eigvalsh(taken[:t].T @ taken[:t] / sd**2)[0] for t in range(1, 61)]
    first = next(t for t, value in enumerate(lowest, start=1) if value >= threshold)
    assert outcome.explored == first == twin.opening


def test_a_setting_offers_the_ball_only_where_it_says_so() -> None:
    """Asked without actions, an agent takes one of the setting's ball, or says what is missing."""
    truth = GaussianPrior(np.ones(2), np.eye(2))
    setting = Setting(2, 5, 1, 0.1, Bounds(0.9, 0.01, 0.1, 1.0, 1.0), truth, ball=0.4)
    for offered in (setting, replace(setting, ball=None)):
        player = Player(agent(thompson(), no_exploration()), offered)
        player.start_task()
        if offered.ball:
            assert np.linalg.norm(player.ask()) == pytest.approx(0.4)
        else:
            with pytest.raises(InputError, match="ball=radius"):
                player.ask()
