"""What four agents do alike at a step, each in a lane of its own (``lanes``).

The numbers of a group lie from ``base`` on of a pointer, in slots of ``WIDTH``, one an agent:
single numbers first, then vectors and matrices of d features, the matrices' upper triangles. It is
one pointer, since the compiler then knows that slots do not overlap; and pointers throughout, since
an array counts its references whenever it is handed on, in a tenth of the time of a step.
"""

from __future__ import annotations

import math

from bayesmeta.kernels.jit import inlined, kernel
from bayesmeta.kernels.lanes import gather, load, spread, square_root, store, where_greater

REGRET, ENERGY, VARIANCE, COUNTS, EARNED = 0, 1, 2, 3, 4
"""Sums of regret and squared rewards, the variance of the noise, 1 where a step enters the sums;
what the action taken earns on average, where that is not its reward."""
MEAN = 5
"""The first slot of the posterior mean; the others follow it."""


@kernel
def moment_slot(d):
    return MEAN + d


@kernel
def action_slot(d):
    """The action taken at this step."""
    return MEAN + 2 * d


@kernel
def work_slot(d):
    """Space for two vectors."""
    return MEAN + 3 * d


@kernel
def root_slot(d):
    """The upper root of the posterior covariance."""
    return MEAN + 5 * d


@kernel
def gram_slot(d):
    return MEAN + 5 * d + d * d


@kernel
def slots(d):
    """How many a group has."""
    return MEAN + 5 * d + 2 * d * d


@inlined
def _thompson(d, group, base, actions, first, count, normals, z0, z1, z2, z3):
    sample, roots = work_slot(d), root_slot(d)
    for i in range(d):
        store(group, base, sample + i, load(group, base, MEAN + i))
    for i in range(d):
        z = gather(normals, z0 + i, z1 + i, z2 + i, z3 + i)
        for j in range(i, d):
            drawn = load(group, base, sample + j) + z * load(group, base, roots + i * d + j)
            store(group, base, sample + j, drawn)
    best, top = spread(0.0), spread(-math.inf)
    for k in range(count):
        score = spread(0.0)
        for i in range(d):
            weight = load(group, base, sample + i)
            score = score + weight * spread(actions[first + i * count + k])
        best = where_greater(score, top, spread(float(k)), best)
        top = where_greater(score, top, score, top)
    return best


@kernel
def thompson(d, group, base, actions, first, count, normals, z0, z1, z2, z3):
    """``choose.posterior_draw`` and ``choose.best_action`` in every lane.

    The normals of a lane start at ``z0`` and so on, the set on offer at ``first``.
    """
    if d == 2:
        return _thompson(2, group, base, actions, first, count, normals, z0, z1, z2, z3)
    if d == 3:
        return _thompson(3, group, base, actions, first, count, normals, z0, z1, z2, z3)
    if d == 4:
        return _thompson(4, group, base, actions, first, count, normals, z0, z1, z2, z3)
    if d == 5:
        return _thompson(5, group, base, actions, first, count, normals, z0, z1, z2, z3)
    return _thompson(d, group, base, actions, first, count, normals, z0, z1, z2, z3)


@kernel
def fetch(d, group, base, actions, first, count, picked, i):
    """Bring the actions picked by agents ``i`` to ``i + 3`` to their lanes."""
    for row in range(d):
        start = first + row * count
        action = gather(
            actions,
            start + picked[i],
            start + picked[i + 1],
            start + picked[i + 2],
            start + picked[i + 3],
        )
        store(group, base, action_slot(d) + row, action)


@kernel
def earn(d, group, base, earned, first, count, picked, i, theta):
    """What the actions picked by agents ``i`` to ``i + 3`` earn on average."""
    total = spread(0.0)
    for row in range(d):
        start = first + row * count
        feature = gather(
            earned,
            start + picked[i],
            start + picked[i + 1],
            start + picked[i + 2],
            start + picked[i + 3],
        )
        total = total + spread(theta[row]) * feature
    store(group, base, EARNED, total)


@inlined
def _take(d, group, base, counting, weighted, theta, best, noise):
    mean, action, left, gain = MEAN, action_slot(d), work_slot(d), work_slot(d) + d
    moment, grams, roots = moment_slot(d), gram_slot(d), root_slot(d)
    value = spread(0.0)
    for i in range(d):
        value = value + spread(theta[i]) * load(group, base, action + i)
    variance = load(group, base, VARIANCE)
    reward = value + square_root(variance) * spread(noise)
    if weighted:
        value = load(group, base, EARNED)
    store(group, base, REGRET, load(group, base, REGRET) + (spread(best) - value))
    store(group, base, ENERGY, load(group, base, ENERGY) + reward * reward)
    if counting:
        counts, half = load(group, base, COUNTS), spread(0.5)
        for i in range(d):
            one, old = load(group, base, action + i), load(group, base, moment + i)
            store(group, base, moment + i, where_greater(counts, half, old + one * reward, old))
            for j in range(i, d):
                other, old = load(group, base, action + j), load(group, base, grams + i * d + j)
                new = where_greater(counts, half, old + one * other, old)
                store(group, base, grams + i * d + j, new)
    residual = reward
    for i in range(d):
        residual = residual - load(group, base, action + i) * load(group, base, mean + i)
        total = spread(0.0)
        for j in range(i, d):
            entry = load(group, base, roots + i * d + j)
            total = total + entry * load(group, base, action + j)
        store(group, base, left + i, total)
        store(group, base, gain + i, spread(0.0))
    alpha = variance
    for i in range(d - 1, -1, -1):
        f = load(group, base, left + i)
        before = alpha
        alpha = before + f * f
        inverse = spread(1.0) / square_root(before * alpha)
        shrink, mix = before * inverse, f * inverse
        for j in range(i, d):
            entry, right = load(group, base, roots + i * d + j), load(group, base, gain + j)
            store(group, base, roots + i * d + j, shrink * entry - mix * right)
            store(group, base, gain + j, right + f * entry)
    residual = residual / alpha
    for i in range(d):
        new = load(group, base, mean + i) + load(group, base, gain + i) * residual
        store(group, base, mean + i, new)
    return reward


@kernel
def take(d, group, base, counting, weighted, theta, best, noise):
    """Let every lane take its action: the reward, which enters regret, sums and posterior.

    As ``linalg.update_posterior`` and ``play.accumulate`` do one by one; the sums only where some
    lane is ``counting``. Where ``weighted``, regret is in what ``earn`` has found.
    """
    if d == 2:
        return _take(2, group, base, counting, weighted, theta, best, noise)
    if d == 3:
        return _take(3, group, base, counting, weighted, theta, best, noise)
    if d == 4:
        return _take(4, group, base, counting, weighted, theta, best, noise)
    if d == 5:
        return _take(5, group, base, counting, weighted, theta, best, noise)
    return _take(d, group, base, counting, weighted, theta, best, noise)
