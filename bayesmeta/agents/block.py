"""Several tasks in one call: what is played, learned, and noted."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from bayesmeta.environment import Task
from bayesmeta.estimators.moments import (
    MomentState,
    observe,
    observe_decorrelated,
    usable,
    widened,
)
from bayesmeta.kernels import centre, hyper
from bayesmeta.kernels.centre import CentreSums
from bayesmeta.kernels.codes import Memory
from bayesmeta.kernels.decorrelate import RIDGE, Ridges, settle
from bayesmeta.kernels.hyper import HyperState, HyperTold
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.play import play_all


class Learning(NamedTuple):
    """How agents come by their priors within a block; the agent is the first axis."""

    mean: Any
    root: Any
    """the prior of the first task, kept by those that do not learn within a block"""
    all_steps: Any
    """whether an agent learns from all steps of a task, or from its opening exploration"""
    memory: Any
    """what it adds tasks to (``codes.Memory``)"""
    estimates: Any
    """whether its next prior is made of that"""
    use: Any
    """what becomes of a hyper-posterior (``codes.Use``); whether steps are pooled for a centre, or
    estimates decorrelated from the past mean"""
    constant: Any
    variance: Any
    floor: Any
    """of eq. (12), of the noise, and of eigenvalues that had to be raised"""
    ridge: Any
    logs: Any
    """the ridge of a centre; ln T of decorrelation"""
    reach: Any
    """what trace and squared mean of a prior may come to"""
    states: MomentState
    ridges: Ridges
    centre_sums: CentreSums
    hyper_states: HyperState
    hyper_told: HyperTold
    normals: Any
    """(task, agent, d), what priors of later tasks are drawn with"""

    @classmethod
    def of(cls, tasks: int, agents: int, dim: int, room: int) -> Self:
        """Space for some agents, and for the tasks of a block; ``room`` for those of ridges."""
        square, vector = (agents, dim, dim), (agents, dim)
        return cls(
            mean=np.empty(vector),
            root=np.empty(square),
            all_steps=np.zeros(agents, dtype=np.bool_),
            memory=np.full(agents, int(Memory.OTHER)),
            estimates=np.zeros(agents, dtype=np.bool_),
            use=np.zeros(agents, dtype=np.int64),
            constant=np.zeros(agents),
            variance=np.zeros(agents),
            floor=np.zeros(agents),
            ridge=np.zeros(agents),
            logs=np.zeros(agents),
            reach=np.zeros(agents),
            states=MomentState(
                np.zeros((agents, 2)), np.zeros(vector), np.zeros(square), np.zeros(square)
            ),
            ridges=Ridges(np.zeros((agents, 3)), np.zeros((agents, room))),
            centre_sums=CentreSums(np.zeros((agents, 1)), np.zeros(vector), np.zeros(square)),
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
def _centre_of(learning, i):
    sums = learning.centre_sums
    return CentreSums(sums.tasks[i], sums.vector[i], sums.gram[i])


@kernel
def _hyper_of(learning, i):
    states, told = learning.hyper_states, learning.hyper_told
    return HyperState(states.precision[i], states.shift[i]), HyperTold(
        told.variance[i], told.cov[i], told.root[i], told.centre[i], told.hyper_root[i]
    )


@kernel
def _estimate(agents, learning, notes, n, i, horizon):
    """Settle the prior of an agent as its learner's ``estimate`` does; whether it is within
    reach."""
    memory, use, told = learning.memory[i], learning.use[i], learning.hyper_told
    raised, passed_over = False, 0.0
    if memory == Memory.HYPER:
        state, own = _hyper_of(learning, i)
        mean, cov, root = hyper.task_prior(use, state, own, learning.normals[n, i])
        raw = cov
    elif memory == Memory.CENTRE:
        mean = centre.centre_of(_centre_of(learning, i), learning.ridge[i], use == 1)
        cov, raw, root = told.cov[i], told.cov[i], told.root[i]
    else:
        moments = _state_of(learning.states, i)
        mean, passed_over = moments.mean, moments.tasks[1]
        if memory == Memory.MEAN:
            cov, raw, root = told.cov[i], told.cov[i], told.root[i]
        else:
            cov, raw = widened(moments, learning.variance[i], horizon, learning.constant[i])
            cholesky, raised = usable(cov, learning.floor[i])
            root = cholesky.T
    agents.mean[i], agents.root[i] = mean, root
    notes.mean[n, i], notes.cov[n, i], notes.raw_cov[n, i] = mean, cov, raw
    notes.raised[n, i], notes.passed_over[n, i] = raised, passed_over
    return np.trace(cov) + (mean * mean).sum() <= 2.0 * learning.reach[i]


@kernel
def _observe(agents, learning, i, gram, moment):
    """Add a task to what the kernel keeps of an agent, as its learner's ``observe`` does."""
    memory, use = learning.memory[i], learning.use[i]
    if memory == Memory.HYPER:
        state, told = _hyper_of(learning, i)
        hyper.observe(state, told, gram, moment)
    elif memory == Memory.CENTRE:
        centre.observe(_centre_of(learning, i), gram, moment, learning.ridge[i], use == 1)
    elif memory == Memory.DECORRELATED:
        state, actions, rewards = _state_of(learning.states, i), agents.taken[i], agents.rewards[i]
        ridges = Ridges(learning.ridges.settled[i], learning.ridges.lowest[i])
        ridge = ridges.settled[RIDGE]
        observe_decorrelated(state, gram, moment, actions, rewards, ridge, use == 1)
        settle(ridges, gram, learning.logs[i])
    else:
        observe(_state_of(learning.states, i), gram, moment)


@kernel
def play_block(agents, tasks, learning, notes, traced):
    """Play tasks with agents that stand at the first of them; returns how many were played.

    ``tasks`` is an ``environment.Task`` whose arrays have a leading axis, and the normals of an
    agent's tasks follow one another; every step of a task can be ``traced`` until the next. It
    stops before a prior that is out of all bounds.
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
            if learning.memory[i] == Memory.OTHER:
                notes.gram[n, i], notes.moment[n, i] = gram, moment
            else:
                _observe(agents, learning, i, gram, moment)
    return tasks.theta.shape[0]
