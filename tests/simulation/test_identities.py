"""Identities that hold in the simulator whatever an agent does, and values measured elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import bayesmeta as bm
from bayesmeta.agents.agent import Agent
from bayesmeta.agents.ensemble import Ensemble
from bayesmeta.agents.roster import POSTERIOR, ROSTER
from bayesmeta.environment import Task
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.streams import ENVIRONMENT, stream
from tests.helpers import size


def played(
    family: bm.TaskFamily, rows: list[Agent], tasks: int, seed: int = 0
) -> Iterator[tuple[Task, np.ndarray, np.ndarray]]:
    """Task after task: itself, and (agent, step) the actions taken and the rewards."""
    players = [bm.Player(row, family.setting(tasks), random_seed=seed) for row in rows]
    together, rng = Ensemble(players), stream(seed, ENVIRONMENT)
    for _ in range(tasks):
        for player in players:
            player.start_task()
        task = family.draw(rng)
        found = together.play(task)
        yield task, found.taken, found.rewards


def test_noise_does_not_follow_actions() -> None:
    """Null: E[moment - gram theta] = 0 for every row of the roster, a martingale, however actions
    were chosen (a normal bound for the mean of each entry over tasks)."""
    rows = [row for name, row in ROSTER.items() if name not in POSTERIOR]
    rows = [replace(row, warmup=min(row.warmup_tasks(SETTING), 30)) for row in rows]
    scores = np.array(
        [
            np.einsum("nti,nt->ni", taken, rewards - taken @ task.theta)
            for task, taken, rewards in played(FAMILY, rows, 150)
        ]
    )
    z = scores.mean(axis=0) / (scores.std(axis=0, ddof=1) / np.sqrt(len(scores)))
    assert np.abs(z).max() < norm.isf(size("simulation/martingale") / 2 / z.size)
    # least squares does follow them: the estimate of the arm is what is biased
    assert z.shape == (len(rows), 2)


FAMILY = bm.arms_family(
    arms=2, hyper_sd=0.5, prior_sd=0.4, noise_sd=0.5, horizon=20, mean=[0.1, 0.0]
)
SETTING = FAMILY.setting(150)


def test_means_of_arms_are_biased_as_shin_et_al_say() -> None:
    """Two equal arms, each played once first: E[mean_k] - theta_k = -Cov(mean_k, N_k) / E N_k, to a
    normal bound for the difference, and below 0 by more than it, for Thompson sampling."""
    family = bm.arms_family(arms=2, prior_sd=0.0, noise_sd=1.0, horizon=60, mean=[0.0, 0.0])
    learner = bm.agents.Given("hyper", "marginal")
    row = Agent("arms", bm.agents.thompson(), bm.agents.each_action_once(), learner, "arms")
    counts, means = [], []
    for _, taken, rewards in played(family, [row], 2000):
        n = taken[0].sum(axis=0)
        counts.append(n)
        means.append(taken[0].T @ rewards[0] / n)
    n, m = np.array(counts), np.array(means)
    bias = m.mean(axis=0)
    said = -((m - bias) * (n - n.mean(axis=0))).mean(axis=0) / n.mean(axis=0)
    bound = norm.isf(size("simulation/martingale") / 8)
    error = (n * m).std(axis=0) / n.mean(axis=0) / np.sqrt(len(n))
    assert (np.abs(bias - said) < bound * error).all()
    assert (bias < -bound * m.std(axis=0) / np.sqrt(len(n))).all()


ROWS = ("KTS", "MarginalTS", "AdaTS", "MetaTS", "MetaMean")
REFERENCE = {
    (2, 0.5, True): (41.9, 181.8, 63.1, 103.4, 60.6),
    (2, 0.5, False): (31.0, 180.7, 52.1, 101.2, 52.4),
    (4, 1.0, True): (112.5, 381.0, 142.2, 306.6, 149.6),
    (4, 1.0, False): (29.6, 385.6, 70.8, 352.9, 84.0),
}
"""Total regret over 20 tasks of 200 steps, s_0 = 0.1, sigma = 1, by an independent script: means of
1,000 runs of ``ROWS``; (arms, s_q, whether each arm is played once first)."""


@pytest.mark.parametrize("cell", REFERENCE, ids=str)
def test_published_setting_of_metats(cell: tuple[int, float, bool]) -> None:
    """Null: the mean of our runs is that of the script's, whose standard error is taken from ours
    (a normal bound for each of the rows of all cells)."""
    arms, hyper_sd, each = cell
    family = bm.arms_family(arms=arms, hyper_sd=hyper_sd)
    rule = bm.agents.each_action_once() if each else bm.agents.no_exploration()
    rows = [replace(ROSTER[name], exploration=rule) for name in ROWS]
    runs, theirs = 60, 1000
    total = np.array(
        [simulate_run(family, rows, tasks=20, seed=s)["regret"].sum(axis=1) for s in range(runs)]
    )
    error = total.std(axis=0, ddof=1) * np.sqrt(1 / runs + 1 / theirs)
    z = (total.mean(axis=0) - np.array(REFERENCE[cell])) / error
    assert np.abs(z).max() < norm.isf(size("simulation/published-values") / 2 / (4 * len(rows)))
    # in these runs, the same tasks for all: learning pays, and a drawn mean costs
    kts, marginal, ada, meta, _ = total.mean(axis=0)
    assert kts < ada < min(meta, marginal)
