"""Algorithm 1: one task of one agent, with all its randomness drawn beforehand.

What runs at every step takes bare arrays: taking an array out of a tuple counts references, and
would cost half as much as the step.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.choose import best_action, choose, explore, posterior_draw, uniform
from bayesmeta.kernels.codes import Rule, Scheme
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.linalg import has_full_rank, smallest_eigenvalue_at_least, update_posterior
from bayesmeta.kernels.tuples import (
    Belief,
    Choosing,
    Conduct,
    Plan,
    State,
    Sums,
    Totals,
    Trace,
    Work,
)


@kernel
def explores(plan, step, started, gram, variance, square):
    """Whether step ``step`` (from 0) explores; ``started`` says that all steps so far did.

    The eigenvalue rule explores until the first time lambda_min(V / sigma^2) >= threshold and
    never again; the rescue explores in the last d steps while the gram is singular.
    """
    if plan.rule == Rule.FIRST_STEPS:
        return step < plan.tau
    if plan.rule == Rule.UNTIL_EIGENVALUE:
        if not started:
            return False
        if step < gram.shape[0]:
            return True
        return not smallest_eigenvalue_at_least(gram, plan.threshold * variance, square)
    if plan.rule == Rule.RESCUE:
        return step >= plan.horizon - gram.shape[0] and not has_full_rank(gram, square)
    return False


@kernel
def accumulate(action, reward, gram, moment):
    """Add one step to the sums of a task (the upper triangle of the gram)."""
    d = action.shape[0]
    for i in range(d):
        moment[i] += action[i] * reward
        for j in range(i, d):
            gram[i, j] += action[i] * action[j]


@kernel
def mirror(matrix):
    """Copy the upper triangle onto the lower."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[i, j] = matrix[j, i]


@kernel
def ball_action(scheme, radius, exploring, belief, draws, step, work):
    """Write to ``work.action`` what is taken from the whole ball: radius theta / |theta|.

    Exploration is uniform in the ball: a direction from the normals, a radius from the uniform.
    """
    sample, action = work.sample, work.action
    d = sample.shape[0]
    if exploring:
        sample[:] = draws[step, :d]
        length = radius * uniform(draws, step) ** (1.0 / d)
    else:
        length = radius
        if scheme == Scheme.THOMPSON:
            posterior_draw(belief.mean, belief.root, draws, step, 0, sample)
        else:
            sample[:] = belief.mean
    # scaled by the largest entry first, so that tiny units do not underflow when squared
    largest = 0.0
    for i in range(d):
        largest = max(largest, abs(sample[i]))
    norm = 0.0
    for i in range(d):
        action[i] = sample[i] / largest if largest > 0.0 else 0.0
        norm += action[i] * action[i]
    if norm == 0.0:
        action[0], norm = 1.0, 1.0
    for i in range(d):
        action[i] *= length / math.sqrt(norm)


@kernel
def play(conduct, task, draws, state, trace):
    """Play one task: ``Totals``.

    ``task`` is an ``environment.Task``; row t of ``draws`` holds the normals of step t. The belief
    of ``state`` enters as the prior and leaves as the posterior; sums and ``trace`` are written.
    """
    choosing, plan, keep = conduct
    (mean, root, variance), (gram, moment), opening = state
    chosen, taken, rewards = trace
    theta, noise, actions, radius, best = task
    sets, d, count = actions.shape
    scores, sample, action = np.empty(count), np.empty(d), np.empty(d)
    left, gain, square = np.empty(d), np.empty(d), np.empty((d, d))
    work = Work(scores, sample, action, left, gain, square)
    gram[:], moment[:] = 0.0, 0.0
    sd = math.sqrt(variance)
    regret, energy, opening_energy = 0.0, 0.0, 0.0
    length, explored = 0, 0
    started, may_explore = True, plan.rule != Rule.NONE
    horizon = noise.shape[0]
    for step in range(horizon):
        row = min(step, sets - 1)
        exploring = may_explore and explores(plan, step, started, gram, variance, square)
        if exploring:
            explored += 1
        elif started:
            started, may_explore = False, plan.rule == Rule.RESCUE
            length, opening_energy = step, energy
            opening.gram[:], opening.moment[:] = gram, moment
        if count == 0:
            ball_action(choosing.scheme, radius, exploring, state.belief, draws, step, work)
        else:
            if exploring:
                k = explore(draws, step, count)
            elif choosing.scheme == Scheme.THOMPSON:
                # as ``choose`` does, spared the call: it is too large to be inlined
                posterior_draw(mean, root, draws, step, 0, sample)
                k = best_action(actions, row, sample, scores)
            else:
                k = choose(choosing, state.belief, actions, draws, step, work)
            chosen[step] = k
            for i in range(d):
                action[i] = actions[row, i, k]
        value = 0.0
        for i in range(d):
            value += theta[i] * action[i]
            taken[step, i] = action[i]
        reward = value + sd * noise[step]
        regret += best[row] - value
        energy += reward * reward
        rewards[step] = reward
        if keep or started:
            accumulate(action, reward, gram, moment)
        update_posterior(mean, root, action, reward, variance, left, gain)
    if started:
        length, opening_energy = horizon, energy
        opening.gram[:], opening.moment[:] = gram, moment
    mirror(gram)
    mirror(opening.gram)
    return Totals(regret, explored, length, energy, opening_energy)


@kernel
def play_all(agents, task):
    """Play one task with several agents, one after another, in one call.

    Coming back to Python between agents would cost as much as playing them.
    """
    horizon = task.noise.shape[0]
    for i in range(agents.settings.shape[0]):
        own = agents.settings[i]
        end = own.start + horizon * own.width
        draws = agents.normals[own.start : end].reshape((horizon, own.width))
        choosing = Choosing(
            own.scheme, agents.quantiles[i], own.ridge, own.norm_bound, own.delta, own.randomised
        )
        plan = Plan(own.rule, own.tau, own.threshold, own.horizon)
        state = State(
            Belief(agents.mean[i], agents.root[i], own.variance),
            Sums(agents.gram[i], agents.moment[i]),
            Sums(agents.opening_gram[i], agents.opening_moment[i]),
        )
        trace = Trace(agents.chosen[i], agents.taken[i], agents.rewards[i])
        found = play(Conduct(choosing, plan, own.keep), task, draws, state, trace)
        totals = agents.totals[i]
        totals.regret, totals.explored, totals.opening = found.regret, found.explored, found.opening
        totals.energy, totals.opening_energy = found.energy, found.opening_energy
