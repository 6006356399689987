"""Agents that learn the prior by likelihood from all steps."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents.learners import Finished
from bayesmeta.agents.roster import ROSTER
from bayesmeta.simulation.simulator import simulate_run

pytestmark = pytest.mark.slow


def feed(
    learner: bm.agents.Likelihood, tasks: int, seed: int = 0, horizon: int = 20
) -> tuple[list[bm.PriorEstimate], Any]:
    """The estimates after each of many tasks of the paper's family, all steps at random."""
    family = bm.paper_family(dim=3, horizon=horizon)
    setting, rng = family.setting(tasks), np.random.default_rng(seed)
    memory, found = learner.start(setting), []
    for _ in range(tasks):
        task = family.draw(rng)
        rows = task.actions[:, :, 0]
        rewards = rows @ task.theta + task.noise
        finished = Finished(rows.T @ rows, rows.T @ rewards, len(rows), float(rewards @ rewards))
        memory = learner.observe(memory, finished)
        found.append(learner.estimate(memory, setting, rng))
    return found, memory


def fits(found: list[bm.PriorEstimate]) -> list[int]:
    """How many tasks there were at each refit."""
    return [i + 2 for i, (one, two) in enumerate(pairwise(found)) if one is not two]


@pytest.mark.parametrize("restricted", [True, False])
def test_the_last_refit_is_the_optimum(restricted: bool) -> None:
    """Warm starts end where a fit from scratch does, whatever the estimates before."""
    found, memory = feed(bm.agents.Likelihood(restricted=restricted), 150)
    refits = fits(found)
    n = refits[-1]
    stats = bm.TaskStatistics(memory.gram[:n], memory.moment[:n])
    scratch = bm.fit_prior(stats, bm.paper_family().noise_sd, "reml" if restricted else "ml")
    np.testing.assert_allclose(found[-1].prior.cov, scratch.prior.cov, atol=1e-4)


def test_refits_are_few_enough_for_a_linear_cost() -> None:
    """Tasks grow by a factor between refits, so tasks fitted in all are a multiple of the tasks."""
    found, _ = feed(bm.agents.Likelihood(growth=1.3), 400)
    changed = fits(found)
    assert sum(changed) <= 400 * 1.3 / 0.3 + sum(range(12))
    later = np.array([n for n in changed if n > 20])
    assert (later[1:] >= later[:-1] * 1.29).all()


def test_it_leaves_the_boundary() -> None:
    """Few tasks may put an eigenvalue at zero; with more it comes back near the truth."""
    found, _ = feed(bm.agents.Likelihood(restricted=False, growth=1.05), 600, seed=3, horizon=200)
    smallest = [np.linalg.eigvalsh(one.prior.cov)[0] for one in found[3:]]
    assert min(smallest[:40]) < 1e-6
    truth = np.linalg.eigvalsh(bm.paper_family(dim=3).prior.cov)[0]
    assert smallest[-1] > truth / 2


def test_status_and_first_tasks() -> None:
    """Nothing to learn from one task; a singular optimum is said."""
    found, _ = feed(bm.agents.Likelihood(), 12, seed=3)
    assert found[0].status is bm.Status.TOO_FEW_TASKS
    assert {one.status for one in found[1:]} <= {bm.Status.OK, bm.Status.BOUNDARY}
    with pytest.raises(bm.InputError, match="growth must be greater than 1"):
        bm.agents.Likelihood(growth=1.0)


@pytest.mark.parametrize("name", bm.agents.OURS)
def test_ours_learn_the_prior_faster_than_the_papers_best(name: str) -> None:
    """Two runs of 400 tasks, fixed seeds: closer to the mean, and less regret, than All-MTS."""
    family = bm.paper_family()
    rows = bm.agents.find_agents([name, "All-MTS", "KTS"])
    for seed in (1, 2):
        run = simulate_run(family, rows, tasks=400, seed=seed)
        regret = run["regret"].sum(axis=1)
        assert regret[2] < regret[0] < regret[1]
        assert run["mean_error"][0, -1] < run["mean_error"][1, -1]


def test_a_likelihood_player_can_be_pickled() -> None:
    """Between tasks, with all it remembers."""
    family = bm.paper_family(dim=2, horizon=10)
    row = replace(ROSTER["REML-TS"], warmup=2)
    player, rng = bm.Player(row, family.setting(20), random_seed=4), np.random.default_rng(0)
    for _ in range(6):
        player.start_task()
        player.play(family.draw(rng))
    twin = pickle.loads(pickle.dumps(player))
    task = family.draw(rng)
    np.testing.assert_array_equal(player.start_task().prior.cov, twin.start_task().prior.cov)
    np.testing.assert_array_equal(player.play(task).chosen, twin.play(task).chosen)


def test_oracles_with_a_scaled_covariance() -> None:
    """KTS with its prior covariance times c, and what is refused."""
    setting = bm.paper_family().setting(5)
    prior = ROSTER["KTS_x0.05"].learner.start(setting).prior
    np.testing.assert_allclose(prior.cov, 0.05 * bm.paper_family().prior.cov)
    with pytest.raises(bm.InputError, match="scale must be at least 0"):
        bm.agents.Given(scale=-1.0)


@pytest.mark.parametrize("agent", ["REML-TS", "ML-TS"])
@pytest.mark.parametrize(("arms", "horizon"), [(3, 1), (6, 3)])
def test_tasks_that_show_little_are_played_through(agent: str, arms: int, horizon: int) -> None:
    """K arms and fewer steps: until all have been seen there is no estimate, and that is said."""
    family = bm.TaskFamily(
        bm.GaussianPrior(np.zeros(arms), np.eye(arms)), bm.unit_vectors(arms), 1.0, horizon
    )
    row = replace(bm.ROSTER[agent], warmup=0)
    player = bm.Player(row, family.setting(40), random_seed=2)
    rng = np.random.default_rng(1)
    statuses = []
    for _ in range(40):
        statuses.append(player.start_task().status)
        player.play(family.draw(rng))
    assert statuses[0] is bm.Status.TOO_FEW_TASKS
    assert statuses[-1] in (bm.Status.OK, bm.Status.BOUNDARY)
