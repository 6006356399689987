"""What the kernels that play a task take and return."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.jit import kernel


class Choosing(NamedTuple):
    """How a policy chooses: its ``Scheme`` and the numbers some schemes need."""

    scheme: Any
    quantiles: Any
    """width of Bayes-UCB at every step; 0 for other schemes"""
    ridge: Any
    norm_bound: Any
    delta: Any
    randomised: Any
    """frequentist schemes: V = ridge I at the start, |theta| <= norm_bound, level 1 - delta"""
    points: Any
    """V-IDS: a point of the unit cube for each pair of posterior draws, flat; none: independent"""


class Plan(NamedTuple):
    """When a task of ``horizon`` steps explores: a ``Rule`` and its numbers."""

    rule: Any
    tau: Any
    threshold: Any
    horizon: Any


class Belief(NamedTuple):
    """The posterior N(mean, root' root) of theta, updated in place, and the noise variance."""

    mean: Any
    root: Any
    variance: Any


class Sums(NamedTuple):
    """The gram V and the moment A'x of some steps of a task."""

    gram: Any
    moment: Any


class State(NamedTuple):
    """What a task under way has come to: the belief, the sums of its steps (of its opening
    exploration alone where the agent does not keep the others), those of its opening."""

    belief: Belief
    sums: Sums
    opening: Sums


SETTINGS = np.dtype(
    [
        ("scheme", np.int64),
        ("ridge", np.float64),
        ("norm_bound", np.float64),
        ("delta", np.float64),
        ("randomised", np.bool_),
        ("points", np.int64),
        ("rule", np.int64),
        ("tau", np.int64),
        ("threshold", np.float64),
        ("horizon", np.int64),
        ("keep", np.bool_),
        ("variance", np.float64),
        ("start", np.int64),
        ("width", np.int64),
    ],
    align=True,
)
"""All numbers of an agent in a row: those of ``Choosing`` and ``Plan``, whether it needs the
statistics of all steps, the variance of its noise; its normals are the (horizon, width) from
``start`` on, of ``Agents.points`` as many are its own."""

TOTALS = np.dtype(
    [
        ("regret", np.float64),
        ("explored", np.int64),
        ("opening", np.int64),
        ("energy", np.float64),
        ("opening_energy", np.float64),
    ]
)
"""A task played through by an agent, in a row: regret, steps that explored, length of the opening
exploration, sums of squared rewards of all steps and of the opening."""


class Agents(NamedTuple):
    """Several agents that meet one task; the agent is the first axis of every array.

    Flat and with rows of numbers, since every tuple and every array that comes from Python costs
    time, and a task is played in a quarter of a millisecond.
    """

    settings: Any
    quantiles: Any
    points: Any
    normals: Any
    """one after another, see ``SETTINGS``"""
    mean: Any
    root: Any
    gram: Any
    moment: Any
    opening_gram: Any
    opening_moment: Any
    chosen: Any
    taken: Any
    rewards: Any
    totals: Any


class Work(NamedTuple):
    """Space to work in, so that a step allocates nothing."""

    scores: Any
    sample: Any
    action: Any
    left: Any
    gain: Any
    square: Any


@kernel
def work_space(d, count):
    """For ``count`` actions in d dimensions."""
    return Work(
        np.empty(count), np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty((d, d))
    )
