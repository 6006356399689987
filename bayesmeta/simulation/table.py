"""Rows of the roster played on a complete table of rewards, without a model of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.player import Player
from bayesmeta.agents.roster import find_agents
from bayesmeta.checks import Array, InputError, array, of_type, whole
from bayesmeta.environment import Bounds, Setting
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.codes import Rule
from bayesmeta.streams import stream

if TYPE_CHECKING:
    import xarray as xr


def replay(
    rewards: ArrayLike,
    features: ArrayLike,
    agents: Agent | str | Iterable[Agent | str],
    *,
    noise_sd: float,
    told: GaussianPrior,
    horizon: int | None = None,
    random_seed: int = 0,
) -> xr.Dataset:
    """Play rows of the roster on tasks whose rewards of all actions are known.

    An action can be taken once in a task, and its reward is read off the table, so that what a row
    earns is what it would have earned: nothing is modelled or reweighted. Tasks come in random
    order, the same for all rows.

    Parameters
    ----------
    rewards : array_like, shape (n, K)
        Of every action in every task, complete.
    features : array_like, shape (K, d)
        Of the actions.
    agents : Agent, str, or iterable of them
        Rows, or names of rows in the roster. Those measured against a reference come without it.
    noise_sd : float
        sigma, as agents are told.
    told : GaussianPrior
        The prior that rows play with which know one, such as that fitted to the whole table. Of it
        the others are told bounds: its covariance, with |mean|^2 / d added to the upper one, so
        that N(0, bound I) reaches theta.
    horizon : int, optional
        Steps of a task; half the actions where None.
    random_seed : int
        Keys the order of tasks and the randomness of agents.

    Returns
    -------
    xarray.Dataset
        ``reward`` (agent, task, step), in the order played; ``best`` (task, step), the largest
        rewards of each task in falling order; ``row`` (task), which row of the table it was.

    Examples
    --------
    >>> rewards = np.random.default_rng(0).normal(size=(6, 4)) + [0, 1, 2, 3]
    >>> prior = bm.GaussianPrior([0.0, 1.0, 2.0, 3.0], 0.1 * np.eye(4))
    >>> found = bm.simulation.replay(rewards, np.eye(4), ["KTS", "UKTS"], noise_sd=1, told=prior)
    >>> dict(found.reward.sizes)
    {'agent': 2, 'task': 6, 'step': 2}
    """
    import xarray as xr

    table = array("rewards", rewards, (None, None))
    of_type("told", told, GaussianPrior, "use GaussianPrior(mean, cov)")
    actions = array("features", features, (table.shape[1], told.dim))
    if len(table) == 0 or len(actions) < 2:
        raise InputError(
            f"rewards have shape {table.shape}; give at least one task and two actions"
        )
    steps = len(actions) // 2 if horizon is None else whole("horizon", horizon, least=1)
    if steps > len(actions):
        raise InputError(
            f"horizon {steps} is more than the {len(actions)} actions, each of which can be taken "
            "once; give a shorter one"
        )
    given = [agents] if isinstance(agents, (Agent, str)) else list(agents)
    rows = [find_agents(row)[0] if isinstance(row, str) else row for row in given]
    for row in rows:
        of_type("agent", row, Agent, "give a row or the name of one")
        for rule in (row.exploration, row.warmup_exploration):
            if rule is not None and rule.rule in (Rule.EACH_ACTION, Rule.TWO_ENDS):
                raise InputError(
                    f"agent {row.name!r} explores by the places of its actions, which change as "
                    "they are taken; give it another exploration rule"
                )
    if len({row.name for row in rows}) < len(rows) or not rows:
        raise InputError("agents must be rows of different names, at least one")
    setting = _setting(actions, steps, len(table), noise_sd, told)
    order = stream(random_seed, "replay").permutation(len(table))
    earned = [
        _played(Player(row, setting, random_seed=random_seed), table[order], actions)
        for row in rows
    ]
    best = -np.sort(-table[order], axis=1)[:, :steps]
    return xr.Dataset(
        {
            "reward": (("agent", "task", "step"), np.array(earned)),
            "best": (("task", "step"), best),
        },
        coords={
            "agent": [row.name for row in rows],
            "task": np.arange(1, len(table) + 1),
            "step": np.arange(1, steps + 1),
            "row": ("task", order),
        },
    )


def _setting(
    actions: Array, steps: int, tasks: int, noise_sd: float, told: GaussianPrior
) -> Setting:
    """What agents are told."""
    d, values = told.dim, np.linalg.eigvalsh(told.cov)
    length = float(np.linalg.norm(told.mean))
    spread = float(values[-1]) + length**2 / d
    if not spread > 0:
        raise InputError("told has no mean and no covariance; give a prior of the parameters")
    bounds = Bounds(
        radius=float(np.linalg.norm(actions, axis=1).max()),
        action_min=max(float(np.linalg.eigvalsh(actions.T @ actions / len(actions))[0]), 0.0),
        prior_min=max(float(values[0]), 1e-6 * spread),
        prior_max=spread,
        mean_norm=length,
    )
    return Setting(d, steps, tasks, noise_sd, bounds, told)


def _played(player: Player, table: Array, actions: Array) -> Array:
    """What a player earns, (tasks, steps)."""
    earned = np.empty((len(table), player.setting.horizon))
    for n, rewards in enumerate(table):
        player.start_task()
        left = list(range(len(actions)))
        for step in range(player.setting.horizon):
            k = left.pop(player.ask(actions[left]))
            earned[n, step] = rewards[k]
            player.tell(float(rewards[k]))
        player.end_task()
    return earned
