"""Algorithm 1: one task of one agent, with all its randomness drawn beforehand."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.choose import (
    THOMPSON,
    best_action,
    choose,
    explore,
    posterior_draw,
    uniform,
)
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.linalg import (
    has_full_rank,
    smallest_eigenvalue_at_least,
    update_posterior,
)

NO_EXPLORATION, FIRST_STEPS, UNTIL_EIGENVALUE, RESCUE = range(4)


@kernel
def explores(rule, tau, threshold, step, horizon, started, gram, variance, work):
    """Whether step ``step`` (from 0) explores; ``started`` says that all steps so far did.

    The eigenvalue rule explores until the first time lambda_min(V / sigma^2) >= threshold and
    never again; the rescue explores in the last d steps while the gram is singular.
    """
    if rule == FIRST_STEPS:
        return step < tau
    if rule == UNTIL_EIGENVALUE:
        if not started:
            return False
        if step < gram.shape[0]:
            return True
        return not smallest_eigenvalue_at_least(gram, threshold * variance, work)
    if rule == RESCUE:
        return step >= horizon - gram.shape[0] and not has_full_rank(gram, work)
    return False


@kernel
def accumulate(action, reward, gram, moment):
    """Add one step to the statistics of a task (the upper triangle of the gram)."""
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
def ball_action(policy, radius, exploring, mean, root, draws, step, sample, action):
    """The action taken when the whole ball is on offer: the argmax is radius theta / |theta|.

    Exploration is uniform in the ball: a direction from the normals, a radius from the uniform.
    """
    d = mean.shape[0]
    if exploring:
        sample[:] = draws[step, :d]
        length = radius * uniform(draws, step) ** (1.0 / d)
    else:
        length = radius
        if policy == THOMPSON:
            posterior_draw(mean, root, draws, step, 0, sample)
        else:
            sample[:] = mean
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
def play(
    policy, options, quantiles, rule, tau, threshold, keep,
    theta, actions, radius, best, noise, draws, variance,
    mean, root, gram, moment, early_gram, early_moment, chosen, taken, rewards, totals,
):  # fmt: skip
    """Play one task.

    ``actions`` is (steps, d, K), (1, d, K) for a fixed set, and has K = 0 where the whole ball of
    ``radius`` is on offer; ``best`` is the highest mean reward of each set. ``mean`` and ``root``
    enter as the prior and leave as the posterior. ``early_gram`` and ``early_moment`` receive the
    statistics of the exploration that opens the task, ``gram`` and ``moment`` those of all steps
    if ``keep`` (which the rescue rule needs), else the same. ``chosen`` (indices, where there are
    any), ``taken`` (the actions) and ``rewards`` receive every step; ``totals`` the regret, the
    length of the opening exploration, all exploration steps, and the sums of squared rewards of
    the opening exploration and of all steps.
    """
    horizon = noise.shape[0]
    sets, d, count = actions.shape
    scores, sample = np.empty(count), np.empty(d)
    left, gain, action = np.empty(d), np.empty(d), np.empty(d)
    work = np.empty((d, d))
    gram[:], moment[:], early_gram[:], early_moment[:] = 0.0, 0.0, 0.0, 0.0
    sd = math.sqrt(variance)
    regret, energy, early_energy = 0.0, 0.0, 0.0
    opening, explored = 0, 0
    started, may_explore = True, rule != NO_EXPLORATION
    for step in range(horizon):
        row = min(step, sets - 1)
        exploring = may_explore and explores(
            rule, tau, threshold, step, horizon, started, gram, variance, work
        )
        if exploring:
            explored += 1
        elif started:
            started, may_explore = False, rule == RESCUE
            opening, early_energy = step, energy
            early_gram[:], early_moment[:] = gram, moment
        if count == 0:
            ball_action(policy, radius, exploring, mean, root, draws, step, sample, action)
        else:
            if exploring:
                k = explore(draws, step, count)
            elif policy == THOMPSON:
                # as ``choose`` does, spared the call: it is too large to be inlined
                posterior_draw(mean, root, draws, step, 0, sample)
                k = best_action(actions, row, sample, scores)
            else:
                k = choose(
                    policy, options, quantiles[step], mean, root,
                    actions, row, draws, step, variance, scores, sample,
                )  # fmt: skip
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
        opening, early_energy = horizon, energy
        early_gram[:], early_moment[:] = gram, moment
    mirror(gram)
    mirror(early_gram)
    totals[0], totals[1], totals[2] = regret, opening, explored
    totals[3], totals[4] = early_energy, energy


@kernel
def play_all(
    policies, options, quantiles, rules, taus, thresholds, keeps,
    theta, actions, radius, best, noise, draws, starts, widths, variance,
    means, roots, grams, moments, early_grams, early_moments,
    chosen, taken, rewards, totals,
):  # fmt: skip
    """Play one task with several agents, one after another, in one call.

    All arrays but the task's have the agent as first axis. The normals of agent i fill
    (steps, widths[i]) entries of ``draws`` from starts[i] on. Coming back to Python between agents
    would cost as much as playing them.
    """
    horizon = noise.shape[0]
    for i in range(policies.shape[0]):
        own = draws[starts[i] : starts[i] + horizon * widths[i]].reshape((horizon, widths[i]))
        play(
            policies[i], options[i], quantiles[i], rules[i], taus[i], thresholds[i], keeps[i],
            theta, actions, radius, best, noise, own, variance,
            means[i], roots[i], grams[i], moments[i], early_grams[i], early_moments[i],
            chosen[i], taken[i], rewards[i], totals[i],
        )  # fmt: skip
