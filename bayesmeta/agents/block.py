"""Several tasks in one call: what is played, learned by moments, and noted."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from bayesmeta.environment import Task
from bayesmeta.estimators.moments import MomentState, observe, usable, widened
from bayesmeta.kernels import hyper
from bayesmeta.kernels.hyper import HyperState, HyperTold
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.play import play_all

BY_MOMENTS, MEAN_ALONE = -1, -2
"""Mean and covariance by moments, or the mean alone: codes beside ``codes.Use``."""


class Learning(NamedTuple):
    """How agents come by their priors within a block; the agent is the first axis."""

    mean: Any
    root: Any
    """the prior of the first task, kept by those that do not learn within a block"""
    all_steps: Any
    """whether an agent learns from all steps of a task, or from its opening exploration"""
    observes: Any
    estimates: Any
    """whether it adds tasks to its memory, and whether its next prior is made of them"""
    use: Any
    """what becomes of a hyper-posterior (``codes.Use``); of moments ``BY_MOMENTS`` and so on"""
    constant: Any
    variance: Any
    floor: Any
    """of eq. (12), of the noise, and of eigenvalues that had to be raised"""
    reach: Any
    """what trace and squared mean of a prior may come to"""
    states: MomentState
    hyper_states: HyperState
    hyper_told: HyperTold
    normals: Any
    """(task, agent, d), what priors of later tasks are drawn with"""

    @classmethod
    def of(cls, tasks: int, agents: int, dim: int) -> Self:
        """Space for some agents, and for the tasks of a block."""
        square, vector = (agents, dim, dim), (agents, dim)
        return cls(
            mean=np.empty(vector),
            root=np.empty(square),
            all_steps=np.zeros(agents, dtype=np.bool_),
            observes=np.zeros(agents, dtype=np.bool_),
            estimates=np.zeros(agents, dtype=np.bool_),
            use=np.full(agents, BY_MOMENTS),
            constant=np.zeros(agents),
            variance=np.zeros(agents),
            floor=np.zeros(agents),
            reach=np.zeros(agents),
            states=MomentState(
                np.zeros((agents, 2)), np.zeros(vector), np.zeros(square), np.zeros(square)
            ),
            hyper_states=HyperState(np.zeros(square), np.zeros(vector)),
            hyper_told=HyperTold(
                np.zeros(agents),
                np.zeros(square),
                np.zeros(square),
                np.zeros(vector),
                np.zeros(square),
            ),
            normals=np.zeros((tasks, agents, dim)),
        )


class Notes(NamedTuple):
    """What a block leaves behind, task by task and agent by agent."""

    regret: Any
    explored: Any
    mean: Any
    cov: Any
    raw_cov: Any
    raised: Any
    passed_over: Any
    """the prior, of agents that learned it after the first task of the block"""
    gram: Any
    moment: Any
    steps: Any
    energy: Any
    """the fields of ``learners.Finished``"""

    @classmethod
    def of(cls, tasks: int, agents: int, dim: int) -> Self:
        """Space for some tasks."""
        numbers, square = (tasks, agents), (tasks, agents, dim, dim)
        return cls(
            regret=np.empty(numbers),
            explored=np.empty(numbers),
            mean=np.zeros((tasks, agents, dim)),
            cov=np.zeros(square),
            raw_cov=np.zeros(square),
            raised=np.zeros(numbers),
            passed_over=np.zeros(numbers),
            gram=np.empty(square),
            moment=np.empty((tasks, agents, dim)),
            steps=np.empty(numbers, dtype=np.int64),
            energy=np.empty(numbers),
        )


@kernel
def _state_of(states, i):
    return MomentState(states.tasks[i], states.mean[i], states.scatter[i], states.inverse_grams[i])


@kernel
def _hyper_of(learning, i):
    states, told = learning.hyper_states, learning.hyper_told
    return HyperState(states.precision[i], states.shift[i]), HyperTold(
        told.variance[i], told.cov[i], told.root[i], told.centre[i], told.hyper_root[i]
    )


@kernel
def _estimate_hyper(agents, learning, notes, n, i):
    """Settle the prior of an agent with a hyper-prior, as ``Hyper.estimate`` does; whether it is
    within reach."""
    state, told = _hyper_of(learning, i)
    mean, cov, root = hyper.task_prior(learning.use[i], state, told, learning.normals[n, i])
    agents.mean[i], agents.root[i] = mean, root
    notes.mean[n, i], notes.cov[n, i], notes.raw_cov[n, i] = mean, cov, cov
    notes.raised[n, i] = notes.passed_over[n, i] = 0.0
    return np.trace(cov) + (mean * mean).sum() <= 2.0 * learning.reach[i]


@kernel
def _estimate(agents, learning, notes, n, i, horizon):
    """Settle the prior of an agent, of moments as ``Moments.estimate`` does; whether
    it is within reach."""
    if learning.use[i] >= 0:
        return _estimate_hyper(agents, learning, notes, n, i)
    state = _state_of(learning.states, i)
    if learning.use[i] == MEAN_ALONE:
        cov = learning.hyper_told.cov[i].copy()
        raw, raised = cov, False
        agents.root[i] = learning.hyper_told.root[i]
    else:
        cov, raw = widened(state, learning.variance[i], horizon, learning.constant[i])
        cholesky, raised = usable(cov, learning.floor[i])
        agents.root[i] = cholesky.T
    agents.mean[i] = state.mean
    notes.mean[n, i], notes.cov[n, i], notes.raw_cov[n, i] = state.mean, cov, raw
    notes.raised[n, i], notes.passed_over[n, i] = raised, state.tasks[1]
    return np.trace(cov) + (state.mean * state.mean).sum() <= 2.0 * learning.reach[i]


@kernel
def play_block(agents, tasks, learning, notes, traced):
    """Play tasks with agents that stand at the first of them; returns how many were played.

    ``tasks`` is an ``environment.Task`` whose arrays have a leading axis, and the normals of an
    agent's tasks follow one another; every step of the last can be ``traced``. It stops before a
    prior that is out of all bounds.
    """
    number, horizon = agents.settings.shape[0], tasks.noise.shape[1]
    for n in range(tasks.theta.shape[0]):
        if n > 0:
            for i in range(number):
                agents.settings[i].start += horizon * agents.settings[i].width
                if not learning.estimates[i]:
                    agents.mean[i], agents.root[i] = learning.mean[i], learning.root[i]
                elif not _estimate(agents, learning, notes, n, i, horizon):
                    return n
        task = Task(
            tasks.theta[n],
            tasks.noise[n],
            tasks.actions[n],
            tasks.radius,
            tasks.best[n],
            tasks.earned[n],
        )
        play_all(agents, task, traced)
        for i in range(number):
            found = agents.totals[i]
            notes.regret[n, i], notes.explored[n, i] = found.regret, found.explored
            if learning.all_steps[i]:
                gram, moment = agents.gram[i], agents.moment[i]
                notes.steps[n, i], notes.energy[n, i] = horizon, found.energy
            else:
                gram, moment = agents.opening_gram[i], agents.opening_moment[i]
                notes.steps[n, i], notes.energy[n, i] = found.opening, found.opening_energy
            if learning.observes[i] and learning.use[i] >= 0:
                state, told = _hyper_of(learning, i)
                hyper.observe(state, told, gram, moment)
            elif learning.observes[i]:
                observe(_state_of(learning.states, i), gram, moment)
            else:
                notes.gram[n, i], notes.moment[n, i] = gram, moment
    return tasks.theta.shape[0]
