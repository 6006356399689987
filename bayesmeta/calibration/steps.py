"""Statistics of the steps of tasks: of exploration drawn at once, of tasks that were played, and of
tasks chosen from a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesmeta.agents.exploration import Exploration
from bayesmeta.calibration.wrong import RIGHT, Wrong, noises, thetas
from bayesmeta.checks import Array
from bayesmeta.environment import TaskFamily
from bayesmeta.kernels.codes import Rule
from bayesmeta.statistics import TaskStatistics


def explored_at_once(
    family: TaskFamily, tau: int, tasks: int, rng: np.random.Generator, wrong: Wrong = RIGHT
) -> tuple[Array, Array]:
    """Actions (tasks, tau, d) and rewards of exploration where sets are drawn anew at every step:
    a uniform choice from independent draws of a law is a draw of the law, so no set is drawn."""
    theta = thetas(wrong, family.prior, rng, tasks)
    law: Any = family.actions
    actions = law.points(rng, tasks * tau).reshape(tasks, tau, family.dim)
    noise = family.noise_sd * noises(wrong, rng, tasks, tau)
    return actions, (actions @ theta[:, :, None])[..., 0] + noise


def explored_only(family: TaskFamily, how: Exploration, tasks: int) -> TaskFamily:
    """A family in which exploration steps have the same law and less is drawn for them: no step
    after a fixed number of them, one action on offer where sets are drawn anew at every step."""
    actions: Any = family.actions
    if getattr(actions, "redraw", "") == "step":
        actions = replace(actions, count=1)
    horizon = family.horizon
    if how.rule is Rule.FIRST_STEPS:
        horizon = how.plan(family.setting(tasks)).tau
    return replace(family, actions=actions, horizon=max(horizon, 1))


def padded(played: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Steps of tasks of different lengths in one array, zeros after their ends."""
    longest = max(len(rewards) for _, rewards in played)
    actions = np.zeros((len(played), longest, played[0][0].shape[1]))
    rewards = np.zeros((len(played), longest))
    for j, (one, own) in enumerate(played):
        actions[j, : len(own)], rewards[j, : len(own)] = one, own
    return actions, rewards


def sums_of(
    actions: Array, rewards: Array, count: NDArray[np.int64] | None = None
) -> TaskStatistics:
    """Statistics of steps; ``count`` where tasks differ in length."""
    across = actions.transpose(0, 2, 1)
    gram = across @ actions
    steps = np.full(len(actions), actions.shape[1]) if count is None else count
    return TaskStatistics.trusted(
        (gram + gram.transpose(0, 2, 1)) / 2,
        (across @ rewards[:, :, None])[..., 0],
        steps.astype(float),
        (rewards**2).sum(axis=1),
    )


def chosen(stats: TaskStatistics, places: NDArray[np.int64]) -> TaskStatistics:
    """Some tasks, perhaps more than once; without labels, which would not be unique."""
    count, energy, logs = (
        None if one is None else one[places]
        for one in (stats.count, stats.energy, stats.log_weights)
    )
    made = TaskStatistics.trusted(
        stats.gram[places],
        stats.moment[places],
        count,
        energy,
        varying=stats.varying,
        log_weights=logs,
    )
    made.__dict__.update(features=stats.features)
    return made
