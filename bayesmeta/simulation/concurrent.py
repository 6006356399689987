"""Concurrent tasks in round-robin with one hyper-posterior: HierTS and HierBayesUCB."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.agents.hyper import Hyper
from bayesmeta.checks import Array, InputError, one_of, whole
from bayesmeta.environment import TaskFamily
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.codes import Use
from bayesmeta.kernels.hyper import HyperState, evidence, task_prior
from bayesmeta.streams import ENVIRONMENT, stream


def play_concurrent(
    family: TaskFamily,
    *,
    tasks: int,
    at_once: int | None = None,
    policy: str = "thompson",
    learner: Hyper | None = None,
    random_seed: int = 0,
) -> Array:
    """Regret of tasks that run side by side, each step of each learning from all of them.

    Tasks are the family's, drawn as ``simulate`` draws them. ``at_once`` of them run together, step
    by step in turn, and the next ones start when they have ended. Every task is played from the
    hyper-posterior of mu_* given all other tasks as they stand, and its own data: Algorithm 1 of
    Guan and Xiong (2024), whose draw of mu, then theta, is this in law.

    Parameters
    ----------
    family : TaskFamily
        With a hyper-prior and finitely many actions.
    tasks : int
        How many (m).
    at_once : int, optional
        How many run together (L); all where None.
    policy : {"thompson", "bayes-ucb"}
        HierTS, or HierBayesUCB of width sqrt(2 ln(tasks x horizon)).
    learner : Hyper, optional
        What it is told; ``Hyper("marginal")`` where None.
    random_seed : int
        Keys all randomness.

    Returns
    -------
    array, shape (tasks, horizon)
        Regret of every step.

    Examples
    --------
    >>> family = bm.arms_family(arms=2, horizon=20)
    >>> bm.simulation.play_concurrent(family, tasks=6, at_once=3).shape
    (6, 20)
    """
    tasks = whole("tasks", tasks, least=1)
    group = tasks if at_once is None else whole("at_once", at_once, least=1)
    one_of("policy", policy, ("thompson", "bayes-ucb"))
    if family.actions.count is None:
        raise InputError("concurrent tasks need finitely many actions; draw a finite set")
    family, d = family.in_run(random_seed), family.dim
    learner = Hyper("marginal") if learner is None else learner
    state, told = learner.start(family.setting(tasks))
    width = math.sqrt(2 * math.log(tasks * family.horizon))
    shared, own = stream(random_seed, ENVIRONMENT), stream(random_seed, f"concurrent {policy}")
    regret = np.empty((tasks, family.horizon))
    for first in range(0, tasks, group):
        drawn = [family.draw(shared) for _ in range(min(group, tasks - first))]
        data = [(np.zeros((d, d)), np.zeros(d)) for _ in drawn]
        said = [HyperState(np.zeros((d, d)), np.zeros(d)) for _ in drawn]
        for step in range(family.horizon):
            for i, task in enumerate(drawn):
                gram, moment = data[i]
                others = _sum([state, *said[:i], *said[i + 1 :]])
                mean, cov, root = task_prior(int(Use.MARGINAL), others, told, np.zeros(d))
                prior = GaussianPrior.trusted(mean, cov, root.T)
                m, c = prior.trusted_posterior(gram, moment, family.noise_sd)
                row = min(step, len(task.actions) - 1)
                actions = task.actions[row].T
                earned = task.earned[row].T if task.earned.size else actions
                if policy == "thompson":
                    scores = earned @ GaussianPrior(m, c).sample(own)
                else:
                    squares = np.einsum("ki,ij,kj->k", earned, c, earned).clip(min=0.0)
                    scores = earned @ m + width * np.sqrt(squares)
                k = int(np.argmax(scores))
                action, values = actions[k], earned @ task.theta
                regret[first + i, step] = values.max() - values[k]
                reward = action @ task.theta + family.noise_sd * task.noise[step]
                gram += np.outer(action, action)
                moment += action * reward
                said[i] = HyperState(*evidence(gram, moment, told.variance, told.root))
        state = _sum([state, *said])
    return regret


def _sum(parts: list[HyperState]) -> HyperState:
    """What several tasks say of mu_*, one after another."""
    precision, shift = parts[0].precision.copy(), parts[0].shift.copy()
    for part in parts[1:]:
        precision += part.precision
        shift += part.shift
    return HyperState(precision, shift)
