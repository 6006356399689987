"""Climbing a likelihood from many places quickly: BFGS without leaving compiled code."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.layout import EachTask, Parameters
from bayesmeta.kernels.profile import profile


class Problem(NamedTuple):
    """Which likelihood: statistics of tasks, how many rewards there are, the noise variance (0
    where it is free), the least it may be, whether the mean is integrated out, and how many
    features differ between tasks: the first, Sigma being 0 in the rows of the others."""

    chunk: Any
    steps: Any
    variance: Any
    least: Any
    restricted: Any
    own: Any


class Goal(NamedTuple):
    """A place that a climb may lead to: its log-likelihood, Sigma (of the features that differ) and
    log sigma^2, and how far from these a place is next to it, about half a standard error."""

    value: Any
    cov: Any
    noise: Any
    cov_reach: Any
    noise_reach: Any


BELOW = 0.1
"""Log-likelihood by which a climb is below a ``Goal`` when it has as good as arrived."""


def nowhere(own: int) -> Goal:
    """A goal that no climb comes near."""
    none = np.zeros((own, own))
    return Goal(math.inf, none, 0.0, none, 0.0)


@kernel
def _near(goal, problem, x, value):
    """Whether a climb, which only rises, can lead to the goal alone: it is as high but for
    ``BELOW``, and within reach."""
    if not value > goal.value - BELOW:
        return False
    own = problem.own
    for i in range(own):
        for j in range(i + 1):
            total, one, two = 0.0, i * (i + 1) // 2, j * (j + 1) // 2
            for q in range(j + 1):
                total += x[one + q] * x[two + q]
            if not abs(total - goal.cov[i, j]) <= goal.cov_reach[i, j]:
                return False
    if problem.variance > 0.0:
        return True
    return abs(max(x[-1], math.log(problem.least)) - goal.noise) <= goal.noise_reach


@kernel
def height(problem, x, gradient):
    """The log-likelihood with the mean at its best, and its gradient in ``x``: the lower triangle
    of a root of Sigma and, where it is free, log sigma^2. NaN where it cannot be computed."""
    (d, n), own = problem.chunk.moments.shape, problem.own
    root, row = np.zeros((d, d)), 0
    for i in range(own):
        for j in range(i + 1):
            root[i, j] = x[row]
            row += 1
    variance = problem.variance if problem.variance > 0.0 else max(math.exp(x[row]), problem.least)
    each = EachTask(np.empty((d, n)), np.empty((d * (d + 1) // 2, n)))
    at = Parameters(np.zeros(d), root, 1.0 / variance)
    found = profile(problem.chunk, at, problem.steps, problem.restricted, each)
    row = 0
    for i in range(own):
        for j in range(i + 1):
            total = 0.0
            for q in range(j, own):
                total += found.gradient[i, q] * root[q, j]
            gradient[row] = 2 * total
            row += 1
    if problem.variance <= 0.0:
        gradient[row] = found.noise if variance > problem.least else 0.0
    return found.value if found.fine else math.nan


@kernel
def ascend(problem, x, steps, least, goal):
    """Climb from ``x``, in place, by BFGS with halved steps; the value there, and whether that is
    next to the goal.

    Ends after ``steps``, or when one gains less than ``least``, or next to the goal.
    """
    p = x.shape[0]
    gradient, other = np.zeros(p), np.zeros(p)
    value = height(problem, x, gradient)
    if not math.isfinite(value):
        return -math.inf, False
    inverse, fresh = np.eye(p), True
    for _ in range(steps):
        step = inverse @ gradient
        promise = step @ gradient
        if not promise > 0.0:
            inverse, fresh = np.eye(p), True
            step, promise = gradient.copy(), gradient @ gradient
        if not promise > 0.0:
            break
        length, reached = 1.0, math.nan
        if fresh:
            length = min(1.0, math.sqrt(x @ x + 1.0) / math.sqrt(promise))
        for _ in range(40):
            place = x + length * step
            reached = height(problem, place, other)
            if reached >= value + 1e-4 * length * promise:
                break
            reached = math.nan
            length *= 0.5
        if not math.isfinite(reached):
            if fresh:
                break
            inverse, fresh = np.eye(p), True
            continue
        turn = gradient - other
        curve = length * (step @ turn)
        if curve > 1e-14 * math.sqrt((turn @ turn) * (step @ step)) * length:
            if fresh:
                inverse *= curve / (turn @ turn)
            _update(inverse, step, turn, length, curve)
            fresh = False
        gain = reached - value
        x[:], gradient[:], value = x + length * step, other, reached
        if _near(goal, problem, x, value):
            return value, True
        if gain < least:
            break
    return value, False


@kernel
def _update(inverse, step, turn, length, curve):
    """BFGS: the inverse curvature after a move by ``length`` times ``step``, in O(p^2)."""
    p = step.shape[0]
    along = inverse @ turn
    factor = (1.0 + (turn @ along) / curve) * length * length / curve
    for i in range(p):
        for j in range(p):
            inverse[i, j] += factor * step[i] * step[j] - length / curve * (
                along[i] * step[j] + step[i] * along[j]
            )
