"""Rows of the rivals: what each is in a limit, and that its numbers are those of its paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import bayesmeta as bm
from bayesmeta.agents import ROSTER, ArmMoments, Centre, Commit, Decorrelated, Finished, Given
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.moment_mean import MomentMean
from bayesmeta.checks import InputError
from bayesmeta.kernels.codes import Scheme
from bayesmeta.kernels.decorrelate import decorrelate
from bayesmeta.simulation.simulator import simulate_run
from tests.agents.test_learners import SETTING, TRUTH, after, planted
from tests.helpers import size

FAMILY = bm.TaskFamily(TRUTH, bm.UniformBall(2, 0.7, 5), 0.5, 12)
RNG = np.random.default_rng


def regret(row: Agent, family: bm.TaskFamily = FAMILY, tasks: int = 12) -> np.ndarray:
    return simulate_run(family, [row], tasks=tasks)["regret"][0]


# ---- BIAS-OFUL and its centres


def test_bias_oful_around_zero_is_oful() -> None:
    """Bit for bit; around mu_* it is another policy."""
    oful = {"delta": 0.1, "ridge": 2.0}
    plain = Agent("a", bm.agents.oful(2.0, **oful), bm.agents.no_exploration(), Given("zero"), "a")
    centred = replace(plain, policy=bm.agents.oful(2.0, centred=True, **oful))
    np.testing.assert_array_equal(regret(centred), regret(plain))
    assert (regret(replace(centred, learner=Given())) != regret(plain)).any()


def test_bias_oful_with_a_large_ridge_is_greedy_on_its_centre() -> None:
    """lambda to infinity leaves no width and no learning within the task."""
    base = bm.ROSTER["BIAS-OFUL"]
    stiff = replace(base, policy=bm.agents.oful(0.0, delta=0.5, ridge=1e14, centred=True))
    sure = replace(base, policy=bm.agents.greedy(), learner=Given(scale=1e-14))
    np.testing.assert_allclose(regret(stiff), regret(sure), rtol=1e-12)


def test_what_the_setting_settles() -> None:
    """The Bayesian ridge, a bound that |theta| keeps to, delta = 1/T; numbers given are kept."""
    policy = bm.ROSTER["BIAS-OFUL"].policy
    ridge, bound, delta = policy.settled(SETTING)
    assert ridge == pytest.approx(0.25 / (1.5 / 2)) and delta == pytest.approx(1 / 15)
    far = np.linalg.norm(TRUTH.sample(RNG(0), 200) - TRUTH.mean, axis=1).max()
    assert far < bound < 3 * far
    whole = replace(policy, centred=False).settled(SETTING)[1]
    assert whole == pytest.approx(bound + SETTING.bounds.mean_norm)
    assert bm.agents.oful(3.0, ridge=2.0).settled(SETTING) == (2.0, 3.0, 0.05)
    np.testing.assert_allclose(policy.own_prior(SETTING, TRUTH.mean).cov, 0.75 * np.eye(2))


def test_centres_are_their_formulas() -> None:
    """The mean of ridge estimates, and the ridge regression of all steps."""
    tasks = planted(9)
    ridge = 0.25 / 0.75
    each = [np.linalg.solve(t.gram + ridge * np.eye(2), t.moment) for t in tasks]
    np.testing.assert_allclose(after(Centre(), tasks).prior.mean, np.mean(each, axis=0))
    gram = sum(t.gram for t in tasks) + ridge * np.eye(2)
    pooled = np.linalg.solve(gram, sum(t.moment for t in tasks))
    np.testing.assert_allclose(after(Centre("pooled"), tasks).prior.mean, pooled)
    with pytest.raises(InputError, match="how"):
        Centre("median")


def test_pooling_is_biased_by_choices_and_not_by_chance() -> None:
    """RR-OFUL's centre tends to E[V]^-1 E[V theta]: 0.1 and more from mu_* where arms are chosen,
    within 0.05 where they are drawn. Thresholds from the size of theta's spread, 1."""
    family = bm.arms_family(2, prior_sd=1.0, noise_sd=0.1, horizon=10, mean=[0.0, 0.0])
    gaps = []
    for rule in (bm.agents.no_exploration(), bm.agents.every_step()):
        row = replace(ROSTER["RR-OFUL"], policy=bm.agents.greedy(), exploration=rule)
        gaps.append(simulate_run(family, [row], tasks=1500)["mean_error"][0, -1])
    assert gaps[0] > 0.1 > 0.05 > 0.5 * gaps[1]


# ---- Meta-DP


def test_meta_dp_with_the_true_mean_is_kts_tau() -> None:
    """Its prior then has the bits of the true one; Meta-DP++ plays as Th-MTS_tau."""
    learner = MomentMean()
    memory = learner.start(SETTING)
    memory.state.mean[:], memory.state.tasks[0] = TRUTH.mean, 9
    prior = learner.estimate(memory, SETTING, RNG(0)).prior
    for found, true in ((prior.mean, TRUTH.mean), (prior.cholesky, TRUTH.cholesky)):
        np.testing.assert_array_equal(found, true)
    twin = replace(ROSTER["Meta-DP++"], name="Th-MTS_tau")
    np.testing.assert_array_equal(regret(twin), regret(ROSTER["Th-MTS_tau"]))


# ---- explore, then commit


def pulled(rng: np.random.Generator, theta: np.ndarray, steps: int, sigma: float) -> Finished:
    """A task of arms pulled at random."""
    arms = np.eye(len(theta))[rng.integers(len(theta), size=steps)]
    rewards = arms @ theta + sigma * rng.standard_normal(steps)
    return Finished(arms.T @ arms, arms.T @ rewards, steps, float(rewards @ rewards))


def test_moments_of_arms_are_unbiased() -> None:
    """Null: mean of u is mu and mean of M is mu mu' + Sigma, entry by entry (normal bounds)."""
    rng, sigma = RNG(3), SETTING.noise_sd
    truth = bm.GaussianPrior([0.5, -0.2, 0.1], [[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0, 0, 0.5]])
    setting = replace(SETTING, dim=3, truth=truth, hyper=None)
    learner, found = ArmMoments(), []
    for theta in truth.sample(rng, 4000):
        memory = learner.observe(learner.start(setting), pulled(rng, theta, 6, sigma))
        found.append(np.append(memory.first, memory.second))
    expected = np.append(truth.mean, truth.cov + np.outer(truth.mean, truth.mean))
    z = (np.mean(found, axis=0) - expected) / (np.std(found, axis=0) / np.sqrt(len(found)))
    assert np.abs(z).max() < norm.isf(size("rivals/arm-moments") / 2 / z.size)


def test_moments_of_arms_find_the_prior_and_refuse_other_actions() -> None:
    """Within 0.15 from 4,000 tasks; without the covariance lambda_max I stays."""
    rng = RNG(4)
    tasks = [pulled(rng, theta, 20, SETTING.noise_sd) for theta in TRUTH.sample(rng, 4000)]
    found = after(ArmMoments(), tasks)
    assert np.abs(found.prior.mean - TRUTH.mean).max() < 0.15
    assert np.abs(found.prior.cov - TRUTH.cov).max() < 0.15
    assert after(ArmMoments(covariance=False), tasks).prior.cov.tolist() == [[2.0, 0], [0, 2.0]]
    few = after(ArmMoments(), tasks[:3])
    assert (few.negative > 0) == (few.status is bm.Status.CLIPPED)
    assert after(ArmMoments(), [pulled(rng, TRUTH.mean, 1, 1.0)] * 4).passed_over == 4
    with pytest.raises(InputError, match="need actions that are unit vectors"):
        after(ArmMoments(), planted(1))


def test_a_committed_learner_stops_learning() -> None:
    """After its tasks; until then it is the learner inside."""
    inner, tasks = bm.agents.Moments(widening=0.0), planted(12)
    for seen in (5, 9):
        one, two = after(Commit(inner, 9), tasks[:seen]).prior, after(inner, tasks[:seen]).prior
        np.testing.assert_array_equal(one.cov, two.cov)
    kept = after(Commit(inner, 9), tasks).prior
    np.testing.assert_array_equal(kept.mean, after(inner, tasks[:9]).prior.mean)
    with pytest.raises(InputError, match="inner must be a learner"):
        Commit(bm.agents.Moments, 3)


def test_rows_that_commit_explore_first() -> None:
    """Every step of the first N_0 tasks, none after; ask and tell do the same."""
    row = replace(ROSTER["MoM-TS"], warmup=3, learner=Commit(bm.agents.Moments(widening=0.0), 3))
    found = simulate_run(FAMILY, [row, ROSTER["KTS"]], tasks=8)
    assert found["exploration_steps"][0].tolist() == [12] * 3 + [0] * 5
    assert len(set(found["mean_error"][0][3:])) == 1 and not found["exploration_steps"][1].any()
    player, actions = bm.Player(row, FAMILY.setting(8)), RNG(0).standard_normal((5, 2)) / 5
    explored = []
    for _ in range(5):
        player.start_task()
        player.ask(actions)
        explored.append(player._opening)
        player.tell(0.3)
        player.end_task()
    assert explored == [True] * 3 + [False] * 2


# ---- Algorithm 2, and better policies


def test_algorithm_2_opens_with_frequentist_ids() -> None:
    """From its ridge in the first N_0 = d^3 tasks, from what it learned after."""
    player = bm.Player(ROSTER["MQB-IDS"], FAMILY.setting(20))
    rng, schemes = RNG(0), []
    for _ in range(10):
        mean = player.start_task().prior.mean
        schemes.append(player._policy.scheme)
        assert (mean == 0).all() == (player._policy.scheme is Scheme.FREQUENTIST_IDS)
        player.play(FAMILY.draw(rng))
    assert schemes == [Scheme.FREQUENTIST_IDS] * 8 + [Scheme.V_IDS] * 2


@pytest.mark.parametrize("name", ["REML-UCB", "REML-Greedy", "REML-IDS", "HB-UCB", "HB-Greedy"])
def test_better_policies_have_references_of_their_own(name: str) -> None:
    """That play alike and know the prior."""
    row = ROSTER[name]
    assert ROSTER[row.reference].policy == row.policy and row.reference == f"K{name.split('-')[1]}"


# ---- W-decorrelation


def test_decorrelation_is_its_definition() -> None:
    """M = I - W A, Q = W W', and the estimate is c + W (x - A c), with w from M before its step."""
    rng = RNG(1)
    actions, rewards, ridge = rng.standard_normal((9, 3)), rng.standard_normal(9), 0.7
    left, told, square = decorrelate(actions, rewards, ridge)
    w = np.zeros((3, 9))
    for t, a in enumerate(actions):
        before = np.eye(3) - w[:, :t] @ actions[:t]
        w[:, t] = before @ a / (ridge + a @ a)
    np.testing.assert_allclose(left, np.eye(3) - w @ actions, atol=1e-13)
    np.testing.assert_allclose(told, w @ rewards, atol=1e-13)
    np.testing.assert_allclose(square, w @ w.T, atol=1e-13)


def with_steps(tasks: int, seed: int = 0) -> list[Finished]:
    """Planted tasks with their steps."""
    rng, found = RNG(seed), []
    for theta in TRUTH.sample(rng, tasks):
        rows = rng.standard_normal((15, 2))
        rewards = rows @ theta + SETTING.noise_sd * rng.standard_normal(15)
        found.append(Finished(rows.T @ rows, rows.T @ rewards, 15, 1.0, (rows, rewards)))
    return found


@pytest.mark.parametrize("centre", ["ols", "past"])
def test_decorrelated_moments_find_a_planted_prior(centre: str) -> None:
    """From 300 tasks of independent actions, within 0.3 as for the other learners."""
    found = after(Decorrelated(centre), with_steps(300))
    assert np.abs(found.prior.mean - TRUTH.mean).max() < 0.3
    assert found.raw_cov is not None and np.abs(found.raw_cov - TRUTH.cov).max() < 0.3
    assert after(Decorrelated(centre), with_steps(11)).status is bm.Status.TOO_FEW_TASKS


def test_the_ridge_is_a_quantile_of_past_eigenvalues() -> None:
    """15% of the smallest eigenvalues over ln T, settled when the tasks have grown by a tenth; kept
    when there are more tasks than the setting tells."""
    tasks, setting = with_steps(40), replace(SETTING, tasks=30)
    lowest = [float(np.linalg.eigvalsh(task.gram)[0]) for task in tasks]
    learner, settled, found = Decorrelated(first=4), [], []
    memory, due = learner.start(setting), 4
    for n, task in enumerate(tasks, start=1):
        memory = learner.observe(memory, task)
        found.append(memory.ridges.settled[2])
        if n == due and n <= 30:
            settled.append(n)
            due = int(np.ceil(1.1 * n + 0.1))
        ridge = np.quantile(lowest[: settled[-1]], 0.15) / np.log(15) if settled else 0.0
        assert found[-1] == pytest.approx(ridge, rel=1e-12)
    assert settled == [4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 23, 26, 29]
    assert len(set(found)) > 5 and memory.state.tasks[0] == 36


def test_decorrelation_needs_every_step() -> None:
    """It is given them by the simulator, and by ask and tell: to the same prior."""
    with pytest.raises(InputError, match="needs every step of a task"):
        after(Decorrelated(), planted(1))
    row = replace(ROSTER["W-MTS"], learner=Decorrelated(first=2), warmup=0)
    players = [bm.Player(row, FAMILY.setting(8), random_seed=2) for _ in range(2)]
    rng = RNG(5)
    for _ in range(8):
        task = FAMILY.draw(rng)
        one, two = (player.start_task().prior.cov for player in players)
        np.testing.assert_allclose(one, two, rtol=1e-9)
        players[0].play(task)
        for step, actions in enumerate(task.actions):
            k = players[1].ask(actions.T)
            noise = FAMILY.noise_sd * task.noise[step]
            players[1].tell(float(actions.T[k] @ task.theta + noise))
        players[1].end_task()
    assert players[0]._memory.state.tasks[0] == 6 == players[1]._memory.state.tasks[0]
