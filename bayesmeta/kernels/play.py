"""Algorithm 1: one task, with all its randomness drawn beforehand.

What runs at every step takes bare arrays: taking an array out of a tuple counts references, and
would cost half as much as the step.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.choose import (
    choose,
    explore,
    posterior_draw,
    times,
    uniform,
    width_of,
)
from bayesmeta.kernels.codes import Rule, Scheme
from bayesmeta.kernels.group import (
    COUNTS,
    ENERGY,
    MEAN,
    REGRET,
    VARIANCE,
    action_slot,
    earn,
    fetch,
    gram_slot,
    moment_slot,
    optimistic,
    root_slot,
    slots,
    take,
    thompson,
)
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.lanes import WIDTH, load, number_of, pointer
from bayesmeta.kernels.linalg import has_full_rank, smallest_eigenvalue_at_least
from bayesmeta.kernels.tuples import Belief, Choosing, Plan, work_space

ABREAST = (Scheme.THOMPSON, Scheme.GREEDY, Scheme.BAYES_UCB, Scheme.OFUL)
"""Schemes that the lanes of a group follow together."""


@kernel
def explores(plan, step, started, gram, variance, count, square):
    """Whether step ``step`` (from 0) explores; ``started`` says that all steps so far did, and
    ``count`` is the number of actions on offer.

    The eigenvalue rule explores until the first time lambda_min(V / sigma^2) >= threshold and
    never again; the rescue explores in the last d steps while the gram is singular; each action is
    taken once in as many steps as there are actions. Two ends is the eigenvalue rule, too, with the
    first and the last action alone.
    """
    if plan.rule == Rule.EACH_ACTION:
        return step < count
    if plan.rule == Rule.FIRST_STEPS:
        return step < plan.tau
    if plan.rule in (Rule.UNTIL_EIGENVALUE, Rule.TWO_ENDS):
        if not started:
            return False
        if step < gram.shape[0]:
            return True
        return not smallest_eigenvalue_at_least(gram, plan.threshold * variance, square)
    if plan.rule == Rule.RESCUE:
        return step >= plan.horizon - gram.shape[0] and not has_full_rank(gram, square)
    return False


@kernel
def explored(rule, draws, row, step, count):
    """The action that step ``step`` explores; its randomness is row ``row`` of ``draws``."""
    if rule == Rule.EACH_ACTION:
        return step
    if rule == Rule.TWO_ENDS:
        return 0 if uniform(draws, row) < 0.5 else count - 1
    return explore(draws, row, count)


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
def _matrix_of(group, base, slot, lane, out):
    """Copy a lane's matrix, and its mirror image, to an array of its own."""
    d = out.shape[0]
    for i in range(d):
        for j in range(i, d):
            out[i, j] = out[j, i] = group[base + WIDTH * (slot + i * d + j) + lane]


@kernel
def _vector_of(group, base, slot, lane, out):
    for i in range(out.shape[0]):
        out[i] = group[base + WIDTH * (slot + i) + lane]


@kernel
def _root_of(group, base, lane, out):
    """Copy a lane's root to an array of its own, whose lower triangle is 0."""
    d = out.shape[0]
    for i in range(d):
        for j in range(i, d):
            out[i, j] = group[base + WIDTH * (root_slot(d) + i * d + j) + lane]


@kernel
def _enter(agents, group):
    """Bring the agents' priors to their lanes; lanes left over hold numbers that do no harm."""
    number, d = agents.mean.shape
    group[:] = 0.0
    size = WIDTH * slots(d)
    for lane in range(group.shape[0] // size * WIDTH):
        place = lane // WIDTH * size + lane % WIDTH
        group[place + WIDTH * VARIANCE] = 1.0
        if lane < number:
            group[place + WIDTH * VARIANCE] = agents.settings[lane].variance
            group[place + WIDTH * COUNTS] = 1.0
            for i in range(d):
                group[place + WIDTH * (MEAN + i)] = agents.mean[lane, i]
                for j in range(i, d):
                    group[place + WIDTH * (root_slot(d) + i * d + j)] = agents.root[lane, i, j]


@kernel
def _close_opening(agents, agent, group, base, lane, step):
    """The opening exploration has ended after ``step`` steps."""
    d = agents.mean.shape[1]
    totals = agents.totals[agent]
    totals.opening, totals.opening_energy = step, group[base + WIDTH * ENERGY + lane]
    _matrix_of(group, base, gram_slot(d), lane, agents.opening_gram[agent])
    _vector_of(group, base, moment_slot(d), lane, agents.opening_moment[agent])


@kernel
def _leave(agents, agent, group, base, lane):
    """Bring posterior and sums of a lane back to its agent."""
    d = agents.mean.shape[1]
    totals = agents.totals[agent]
    totals.regret = group[base + WIDTH * REGRET + lane]
    totals.energy = group[base + WIDTH * ENERGY + lane]
    _vector_of(group, base, MEAN, lane, agents.mean[agent])
    _root_of(group, base, lane, agents.root[agent])
    _matrix_of(group, base, gram_slot(d), lane, agents.gram[agent])
    _vector_of(group, base, moment_slot(d), lane, agents.moment[agent])


@kernel
def _width(agents, agent, group, base, lane, step):
    """How many posterior deviations an optimistic lane adds: those of OFUL's confidence set, or of
    Bayes-UCB; 0 is greedy."""
    own, d = agents.settings[agent], agents.mean.shape[1]
    if own.scheme != Scheme.OFUL:
        return agents.quantiles[agent, step]
    logdet, product, start = 0.0, 1.0, own.variance / own.ridge
    for i in range(d):
        root = group[base + WIDTH * (root_slot(d) + i * (d + 1)) + lane]
        logdet, product = times(logdet, product, start / (root * root))
    return width_of(logdet + math.log(product), own.ridge, own.variance, own.norm_bound, own.delta)


@kernel
def _alone(agents, agent, group, base, lane, task, step, started, picked, belief, gram, work):
    """What a lane does by itself at a step: it opens, explores, or follows a scheme of its own.

    Writes the index of its action to ``picked``, or the action to the lane where the whole ball is
    on offer; returns whether its opening goes on.
    """
    own, totals = agents.settings[agent], agents.totals[agent]
    d, count = task.actions.shape[1:]
    plan = Plan(own.rule, own.tau, own.threshold, own.horizon)
    exploring = False
    if own.rule == Rule.RESCUE or (started and own.rule != Rule.NONE):
        _matrix_of(group, base, gram_slot(d), lane, gram)
        exploring = explores(plan, step, started, gram, own.variance, count, work.square)
    if exploring:
        totals.explored += 1
    elif started:
        _close_opening(agents, agent, group, base, lane, step)
        group[base + WIDTH * COUNTS + lane] = 1.0 if own.keep else 0.0
    horizon = task.noise.shape[0]
    end = own.start + horizon * own.width
    draws = agents.normals[own.start : end].reshape((horizon, own.width))
    if count == 0 or (own.scheme not in ABREAST and not exploring):
        mean, root, _ = belief
        _vector_of(group, base, MEAN, lane, mean)
        _root_of(group, base, lane, root)
        held = Belief(mean, root, own.variance)
        if count == 0:
            ball_action(own.scheme, task.radius, exploring, held, draws, step, work)
            for i in range(d):
                group[base + WIDTH * (action_slot(d) + i) + lane] = work.action[i]
        else:
            choosing = Choosing(
                own.scheme,
                agents.quantiles[agent],
                own.ridge,
                own.norm_bound,
                own.delta,
                own.randomised,
                agents.points[agent, : own.points],
            )
            picked[agent] = choose(choosing, held, task.actions, task.earned, draws, step, work)
    elif exploring:
        picked[agent] = explored(own.rule, draws, step, step, count)
    return started and exploring


@kernel
def _trace(d, group, base, first, count, step, room, picked, rewards, chosen, taken, earned):
    """Note what ``count`` lanes of a group did at a step, in arrays with ``room`` for steps."""
    for lane in range(count):
        place = (first + lane) * room + step
        chosen[place] = picked[first + lane]
        earned[place] = number_of(rewards, lane)
        for i in range(d):
            taken[place * d + i] = group[base + WIDTH * (action_slot(d) + i) + lane]


@kernel
def play_all(agents, task, traced):
    """Play one task with several agents, four abreast.

    ``task`` is an ``environment.Task``. The beliefs of ``agents`` enter as priors and leave as
    posteriors; sums and totals are written, and every step where it is to be ``traced``. All agents
    take a step before any takes the next, so that the processor has work while one waits.
    """
    theta, noise, actions, _, best, earned = task
    sets, d, count = actions.shape
    number, horizon = agents.settings.shape[0], noise.shape[0]
    groups, size = (number + WIDTH - 1) // WIDTH, WIDTH * slots(d)
    group = np.empty(groups * size)
    _enter(agents, group)
    lanes, offered, normals = pointer(group), pointer(actions), pointer(agents.normals)
    truth, weighted = pointer(theta), earned.shape[0] > 0
    aims = pointer(earned) if weighted else offered
    belief = Belief(np.empty(d), np.zeros((d, d)), 0.0)
    gram, work = np.empty((d, d)), work_space(d, count)
    picked = np.zeros(groups * WIDTH, dtype=np.int64)
    chosen = pointer(picked)
    room = agents.rewards.shape[1]
    traces = pointer(agents.chosen), pointer(agents.taken), pointer(agents.rewards)
    at, widths = np.zeros_like(picked), np.zeros_like(picked)
    started = np.zeros(groups * WIDTH, dtype=np.bool_)
    rescued, differs, keeps = np.zeros_like(started), np.zeros_like(started), np.zeros_like(started)
    draws, hopes, reach = np.zeros_like(started), np.zeros_like(started), np.zeros(len(started))
    reach_of = pointer(reach)
    for i in range(number):
        own = agents.settings[i]
        at[i], widths[i], started[i], keeps[i] = own.start, own.width, True, own.keep
        rescued[i] = own.rule == Rule.RESCUE
        draws[i] = count > 0 and own.scheme == Scheme.THOMPSON
        hopes[i] = count > 0 and not draws[i] and own.scheme in ABREAST
        differs[i] = not (draws[i] or hopes[i])
        agents.totals[i].explored = 0
    for step in range(horizon):
        row = min(step, sets - 1)
        first = row * d * count
        ending = step >= horizon - d
        for g in range(groups):
            base, i = g * size, g * WIDTH
            if draws[i] or draws[i + 1] or draws[i + 2] or draws[i + 3]:
                found = thompson(
                    d, lanes, base, aims, first, count, normals,
                    at[i], at[i + 1], at[i + 2], at[i + 3],
                )  # fmt: skip
                for lane in range(WIDTH):
                    picked[i + lane] = int(number_of(found, lane))
            if hopes[i] or hopes[i + 1] or hopes[i + 2] or hopes[i + 3]:
                for lane in range(WIDTH):
                    if hopes[i + lane]:
                        reach[i + lane] = _width(agents, i + lane, group, base, lane, step)
                found = optimistic(d, lanes, base, aims, first, count, load(reach_of, i, 0))
                for lane in range(WIDTH):
                    if hopes[i + lane]:
                        picked[i + lane] = int(number_of(found, lane))
            counting = False
            for lane in range(WIDTH):
                j = i + lane
                if started[j] or differs[j] or (ending and rescued[j]):
                    started[j] = _alone(
                        agents, j, group, base, lane, task, step, started[j], picked,
                        belief, gram, work,
                    )  # fmt: skip
                at[j] += widths[j]
                counting |= started[j] or keeps[j]
            if count > 0:
                fetch(d, lanes, base, offered, first, count, chosen, i)
            if weighted:
                earn(d, lanes, base, aims, first, count, chosen, i, truth)
            rewards = take(d, lanes, base, counting, weighted, truth, best[row], noise[step])
            if traced:
                _trace(
                    d, lanes, base, i, min(WIDTH, number - i), step, room, chosen, rewards,
                    *traces,
                )  # fmt: skip
    for i in range(number):
        base, lane = i // WIDTH * size, i % WIDTH
        if started[i]:
            _close_opening(agents, i, group, base, lane, horizon)
        _leave(agents, i, group, base, lane)
