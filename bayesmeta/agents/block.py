"""Several tasks in one call: what is played, learned by moments, and noted."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from bayesmeta.environment import Task
from bayesmeta.estimators.moments import MomentState, observe, usable, widened
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.play import play_all


class Learning(NamedTuple):
    """How agents come by their priors within a block; the agent is the first axis."""

    mean: Any
    root: Any
    """the prior of the first task, kept by those that do not learn by moments"""
    all_steps: Any
    """whether an agent learns from all steps of a task, or from its opening exploration"""
    observes: Any
    estimates: Any
    """whether it adds tasks to its moments, and whether its next prior is made of them"""
    constant: Any
    variance: Any
    floor: Any
    """of eq. (12), of the noise, and of eigenvalues that had to be raised"""
    reach: Any
    """what trace and squared mean of a prior may come to"""
    states: MomentState

    @classmethod
    def of(cls, agents: int, dim: int) -> Self:
        """Space for some agents."""
        square = (agents, dim, dim)
        return cls(
            mean=np.empty((agents, dim)),
            root=np.empty(square),
            all_steps=np.zeros(agents, dtype=np.bool_),
            observes=np.zeros(agents, dtype=np.bool_),
            estimates=np.zeros(agents, dtype=np.bool_),
            constant=np.zeros(agents),
            variance=np.zeros(agents),
            floor=np.zeros(agents),
            reach=np.zeros(agents),
            states=MomentState(
                np.zeros((agents, 2)), np.zeros((agents, dim)), np.zeros(square), np.zeros(square)
            ),
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
    """the prior, of agents that learned it by moments after the first task of the block"""
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
def _estimate(agents, learning, notes, n, i, horizon):
    """Settle the prior of an agent that learns by moments, as ``Moments.estimate`` does; whether
    it is within reach."""
    state = _state_of(learning.states, i)
    cov, raw = widened(state, learning.variance[i], horizon, learning.constant[i])
    cholesky, raised = usable(cov, learning.floor[i])
    agents.mean[i], agents.root[i] = state.mean, cholesky.T
    notes.mean[n, i], notes.cov[n, i], notes.raw_cov[n, i] = state.mean, cov, raw
    notes.raised[n, i], notes.passed_over[n, i] = raised, state.tasks[1]
    return np.trace(cov) + (state.mean * state.mean).sum() <= 2.0 * learning.reach[i]


@kernel
def play_block(agents, tasks, learning, notes):
    """Play tasks with agents that stand at the first of them; returns how many were played.

    ``tasks`` is an ``environment.Task`` whose arrays have a leading axis, and the normals of an
    agent's tasks follow one another. It stops before a prior that is out of all bounds.
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
        task = Task(tasks.theta[n], tasks.noise[n], tasks.actions[n], tasks.radius, tasks.best[n])
        play_all(agents, task, False)
        for i in range(number):
            found = agents.totals[i]
            notes.regret[n, i], notes.explored[n, i] = found.regret, found.explored
            if learning.all_steps[i]:
                gram, moment = agents.gram[i], agents.moment[i]
                notes.steps[n, i], notes.energy[n, i] = horizon, found.energy
            else:
                gram, moment = agents.opening_gram[i], agents.opening_moment[i]
                notes.steps[n, i], notes.energy[n, i] = found.opening, found.opening_energy
            if learning.observes[i]:
                observe(_state_of(learning.states, i), gram, moment)
            else:
                notes.gram[n, i], notes.moment[n, i] = gram, moment
    return tasks.theta.shape[0]
