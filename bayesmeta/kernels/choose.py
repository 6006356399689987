"""The line "play" of Algorithm 1: which of finitely many actions each policy takes.

Every function reads the belief, the actions and the randomness of the step, and returns an index;
it writes to work space only. Row ``step`` of ``draws`` holds the step's standard normals: M d of
them for a policy with M posterior draws. The last, through the normal distribution function, is the
step's uniform number; it is one more where both are used. ``actions`` is (sets, d, K) and ``row``
the set on offer; whole arrays with an index, since a slice costs more than a step. ``earned`` has
the features of what actions earn, where that is not the reward observed: they say how good an
action is, ``actions`` how much it tells.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.codes import Scheme
from bayesmeta.kernels.jit import inlined, kernel
from bayesmeta.kernels.lookahead import look_ahead
from bayesmeta.kernels.points import shifted_normals


@kernel
def uniform(draws, step):
    """The step's uniform number in [0, 1): the last normal through its distribution function."""
    return min(0.5 * math.erfc(-draws[step, draws.shape[1] - 1] / math.sqrt(2.0)), 1.0 - 1e-16)


@kernel
def explore(draws, step, count):
    """An action chosen uniformly from the step's set."""
    return min(int(uniform(draws, step) * count), count - 1)


@inlined
def _posterior_draw(d, mean, root, draws, step, first, sample):
    for i in range(d):
        sample[i] = mean[i]
    for i in range(d):
        z = draws[step, first + i]
        for j in range(i, d):
            sample[j] += z * root[i, j]


@kernel
def posterior_draw(mean, root, draws, step, first, sample):
    """sample = mean + L z, a draw of theta; z starts at column ``first`` of row ``step``."""
    d = mean.shape[0]
    if d == 2:
        _posterior_draw(2, mean, root, draws, step, first, sample)
    elif d == 3:
        _posterior_draw(3, mean, root, draws, step, first, sample)
    elif d == 4:
        _posterior_draw(4, mean, root, draws, step, first, sample)
    elif d == 5:
        _posterior_draw(5, mean, root, draws, step, first, sample)
    else:
        _posterior_draw(d, mean, root, draws, step, first, sample)


@inlined
def _best_action(d, actions, row, theta, scores):
    count = actions.shape[2]
    for k in range(count):
        scores[k] = 0.0
    for i in range(d):
        weight = theta[i]
        for k in range(count):
            scores[k] += weight * actions[row, i, k]
    top = scores[0]
    for k in range(1, count):
        top = max(top, scores[k])
    best = 0  # a second look costs less than a branch that no processor can foresee
    while scores[best] < top:
        best += 1
    return best


@kernel
def best_action(actions, row, theta, scores):
    """argmax of a' theta, the first where several tie."""
    d = theta.shape[0]
    if d == 2:
        return _best_action(2, actions, row, theta, scores)
    if d == 3:
        return _best_action(3, actions, row, theta, scores)
    if d == 4:
        return _best_action(4, actions, row, theta, scores)
    if d == 5:
        return _best_action(5, actions, row, theta, scores)
    return _best_action(d, actions, row, theta, scores)


@kernel
def squared_widths(root, actions, row):
    """a' Sigma_t a for every action of the set."""
    _, d, count = actions.shape
    part, total = np.empty(count), np.zeros(count)
    for i in range(d):
        for k in range(count):
            part[k] = 0.0
        for j in range(i, d):
            weight = root[i, j]
            for k in range(count):
                part[k] += weight * actions[row, j, k]
        for k in range(count):
            total[k] += part[k] * part[k]
    return total


@kernel
def optimistic(belief, actions, row, width, scores):
    """argmax of a' mean + width sqrt(a' Sigma_t a)."""
    best_action(actions, row, belief.mean, scores)
    squares = squared_widths(belief.root, actions, row)
    best = 0
    for k in range(actions.shape[2]):
        scores[k] += width * math.sqrt(squares[k])
        if scores[k] > scores[best]:
            best = k
    return best


@kernel
def confidence_width(choosing, belief):
    """The width of a confidence set, sqrt(beta_t) / sigma, where sqrt(beta_t) is
    sigma sqrt(logdet(V/ridge) + 2 ln(1/delta)) + sqrt(ridge) norm_bound.

    The belief of a frequentist policy starts from N(0, sigma^2/ridge I), so that
    Sigma_t = sigma^2 V^-1 with V = ridge I + gram, and |a| in the norm of V^-1 is
    sqrt(a' Sigma_t a) / sigma.
    """
    ridge, variance, root = choosing.ridge, belief.variance, belief.root
    logdet = 0.0
    for i in range(root.shape[0]):
        logdet += math.log(variance / ridge / (root[i, i] * root[i, i]))
    sd = math.sqrt(variance)
    # rounding can leave the log-determinant of an untouched prior a hair below zero
    spread = sd * math.sqrt(max(logdet, 0.0) - 2.0 * math.log(choosing.delta))
    return (spread + math.sqrt(ridge) * choosing.norm_bound) / sd


@kernel
def smallest_ratio(gap, information):
    """argmin of gap^2 / information; an action known to be best (gap 0) wins whatever it informs,
    and where no action informs, the smallest gap does."""
    closest = 0
    for k in range(1, gap.shape[0]):
        if gap[k] < gap[closest]:
            closest = k
    best, lowest = closest, math.inf
    if gap[closest] > 0.0:
        for k in range(gap.shape[0]):
            if information[k] > 0.0:
                ratio = gap[k] * gap[k] / information[k]
                if ratio < lowest:
                    best, lowest = k, ratio
    return best


@kernel
def pareto_front(gap, information, first):
    """The actions that no other is better than, in order.

    One with a larger gap and no more information than another, or less information and no smaller
    gap, is in no law that minimises (E gap)^2 / E information: giving its weight to the other
    lowers the ratio. (Rounding may see them as equal where that weight is next to 0.) Action
    ``first`` comes before all others, since it leaves few of them.
    """
    count = gap.shape[0]
    found = np.empty(count, dtype=np.int64)
    size = 0
    for k in range(count):
        if not _better(gap, information, first, k):
            found[size] = k
            size += 1
    kept = 0
    beaten = np.zeros(size, dtype=np.bool_)
    for a in range(size):
        for b in range(size):
            beaten[a] |= _better(gap, information, found[b], found[a])
    for a in range(size):
        if not beaten[a]:
            found[kept] = found[a]
            kept += 1
    return found[:kept]


@kernel
def _better(gap, information, one, other):
    """Whether an action has the smaller gap or the more information, and neither is worse."""
    if gap[one] > gap[other] or information[one] < information[other]:
        return False
    return gap[one] < gap[other] or information[one] > information[other]


@kernel
def two_point(gap, information, u):
    """Sample the law on actions that minimises (E gap)^2 / E information.

    Some minimiser has at most two actions in its support (Russo and Van Roy, Proposition 6). On a
    pair the ratio is convex in the weight q of the first, with its stationary point at
    q = gap_j / (gap_i - gap_j) - 2 info_j / (info_i - info_j).
    """
    first = smallest_ratio(gap, information)
    second, weight = first, 1.0
    if not (gap[first] > 0.0 and information[first] > 0.0):
        return first
    lowest = gap[first] * gap[first] / information[first]
    front = pareto_front(gap, information, first)
    for a in range(front.shape[0]):
        for b in range(a + 1, front.shape[0]):
            i, j = front[a], front[b]
            dg = gap[i] - gap[j]
            di = information[i] - information[j]
            if dg == 0.0 or di == 0.0:
                continue
            q = gap[j] / dg - 2.0 * information[j] / di
            if not 0.0 < q < 1.0:
                continue
            mean_information = q * information[i] + (1.0 - q) * information[j]
            if not mean_information > 0.0:
                continue
            mean_gap = q * gap[i] + (1.0 - q) * gap[j]
            ratio = mean_gap * mean_gap / mean_information
            if ratio < lowest:
                lowest, first, second, weight = ratio, i, j, q
    return first if u < weight else second


@kernel
def v_ids(points, belief, actions, earned, row, draws, step, work):
    """Variance-based IDS of Russo and Van Roy from M posterior draws.

    gap_a = E max_b b' theta - a' E theta and v_a = sum_b p(b) (a' (E[theta | b best] - E theta))^2,
    all expectations over the draws. Where there are ``points``, they are ``shifted_normals``.
    """
    _, d, count = actions.shape
    normals, at = draws, step
    size = (draws.shape[1] - 1) // d
    if points.shape[0] > 0:
        normals, at = shifted_normals(points, d, draws, step), 0
        size = 2 * points.shape[0] // d
    mean, root, sample, scores = belief.mean, belief.root, work.sample, work.scores
    times_best = np.zeros(count)
    sums = np.zeros((count, d))
    centre = np.zeros(d)
    highest = 0.0
    for m in range(size):
        posterior_draw(mean, root, normals, at, m * d, sample)
        k = best_action(earned, row, sample, scores)
        highest += scores[k]
        times_best[k] += 1.0
        for i in range(d):
            sums[k, i] += sample[i]
            centre[i] += sample[i]
    for i in range(d):
        centre[i] /= size
    spread = np.zeros((d, d))
    for k in range(count):
        if times_best[k] > 0.0:
            for i in range(d):
                sums[k, i] = sums[k, i] / times_best[k] - centre[i]
            for i in range(d):
                for j in range(d):
                    spread[i, j] += times_best[k] / size * sums[k, i] * sums[k, j]
    gap = np.empty(count)
    information = np.empty(count)
    for k in range(count):
        value = 0.0
        variance = 0.0
        for i in range(d):
            value += earned[row, i, k] * centre[i]
            for j in range(d):
                variance += actions[row, i, k] * spread[i, j] * actions[row, j, k]
        gap[k] = max(highest / size - value, 0.0)
        information[k] = variance
    return two_point(gap, information, uniform(draws, step))


@kernel
def frequentist_ids(choosing, belief, actions, earned, weighted, row, u, scores):
    """The IDS of Kirschner and Krause: gap = max UCB - LCB, information = ln(1 + |a|^2_{V^-1})."""
    count = actions.shape[2]
    width = confidence_width(choosing, belief)
    best_action(earned, row, belief.mean, scores)
    gap = np.empty(count)
    information = np.empty(count)
    highest = -math.inf
    squares = squared_widths(belief.root, earned, row)
    told = squared_widths(belief.root, actions, row) if weighted else squares
    for k in range(count):
        information[k] = math.log1p(told[k] / belief.variance)
        reach = width * math.sqrt(squares[k])
        gap[k] = reach - scores[k]
        highest = max(highest, scores[k] + reach)
    for k in range(count):
        gap[k] += highest
    if choosing.randomised:
        return two_point(gap, information, u)
    return smallest_ratio(gap, information)


@kernel
def choose(choosing, belief, actions, earned, draws, step, work):
    """The action a policy takes of those on offer at the step; a single set stays on offer.

    ``earned`` is without entries where what is earned is the reward.
    """
    row, weighted = min(step, actions.shape[0] - 1), earned.shape[0] > 0
    aims = earned if weighted else actions
    if choosing.scheme == Scheme.THOMPSON:
        posterior_draw(belief.mean, belief.root, draws, step, 0, work.sample)
        return best_action(aims, row, work.sample, work.scores)
    if choosing.scheme == Scheme.GREEDY:
        return best_action(aims, row, belief.mean, work.scores)
    if choosing.scheme == Scheme.BAYES_UCB:
        return optimistic(belief, aims, row, choosing.quantiles[step], work.scores)
    if choosing.scheme == Scheme.OFUL:
        width = confidence_width(choosing, belief)
        return optimistic(belief, aims, row, width, work.scores)
    if choosing.scheme == Scheme.V_IDS:
        return v_ids(choosing.points, belief, actions, aims, row, draws, step, work)
    if choosing.scheme in (Scheme.KNOWLEDGE_GRADIENT, Scheme.TWO_STEPS):
        best_action(actions, row, belief.mean, work.scores)
        rewarded = choosing.scheme == Scheme.TWO_STEPS
        return look_ahead(belief, actions, row, draws, step, rewarded, work.scores)
    u = uniform(draws, step)
    return frequentist_ids(choosing, belief, actions, aims, weighted, row, u, work.scores)
