"""Tasks played for their data: what an agent's steps leave behind for an estimator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.player import Player
from bayesmeta.checks import Array
from bayesmeta.environment import TaskFamily
from bayesmeta.statistics import TaskStatistics
from bayesmeta.streams import ENVIRONMENT, stream


def steps_of(
    family: TaskFamily, row: Agent, tasks: int, seed: int, *, opening: bool = False
) -> Iterator[tuple[Array, Array]]:
    """Actions (steps, d) and rewards (steps,) of task after task; with ``opening`` those of its
    forced exploration only."""
    family = family.in_run(seed)
    player = Player(row, family.setting(tasks), random_seed=seed)
    rng = stream(seed, ENVIRONMENT)
    for _ in range(tasks):
        player.start_task()
        outcome = player.play(family.draw(rng))
        last = outcome.explored if opening else len(outcome.rewards)
        yield outcome.taken[:last], outcome.rewards[:last]


def statistics_of(
    family: TaskFamily, row: Agent, tasks: int, seed: int, *, opening: bool = False
) -> TaskStatistics:
    """Their statistics, counts and energies included."""
    d = family.dim
    gram, moment = np.empty((tasks, d, d)), np.empty((tasks, d))
    count, energy = np.empty(tasks), np.empty(tasks)
    for j, (actions, rewards) in enumerate(steps_of(family, row, tasks, seed, opening=opening)):
        gram[j], moment[j] = actions.T @ actions, actions.T @ rewards
        count[j], energy[j] = len(rewards), rewards @ rewards
    return TaskStatistics(gram, moment, count, energy)
