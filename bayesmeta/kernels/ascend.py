"""Climbing a likelihood from many places quickly: BFGS without leaving compiled code."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.estep import estep, second_pass
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.lanes import EachTask, Parameters
from bayesmeta.kernels.linalg import upper_root


class Problem(NamedTuple):
    """Which likelihood: statistics of tasks, how many rewards there are, the noise variance (0
    where it is free), the least it may be, and whether the mean is integrated out."""

    chunk: Any
    steps: Any
    variance: Any
    least: Any
    restricted: Any


@kernel
def height(problem, x, gradient):
    """The log-likelihood with the mean at its best, and its gradient in ``x``: the lower triangle
    of a root of Sigma and, where it is free, log sigma^2. NaN where it cannot be computed.

    ``bayesmeta.estimators.likelihood.evaluate`` says the same in NumPy.
    """
    chunk, steps = problem.chunk, problem.steps
    d, n = chunk.moments.shape
    root, row = np.zeros((d, d)), 0
    for i in range(d):
        for j in range(i + 1):
            root[i, j] = x[row]
            row += 1
    variance = problem.variance if problem.variance > 0.0 else max(math.exp(x[row]), problem.least)
    tasks = EachTask(np.empty((d, n)), np.empty((row, n)))
    sums = estep(chunk, Parameters(np.zeros(d), root, 1.0 / variance), tasks)
    information, upper = np.empty((d, d)), np.zeros((d, d))
    _fill(sums.weights, information)
    if not upper_root(information, upper):
        return math.nan
    inverse = np.linalg.inv(information)
    shift, lower = inverse @ sums.scores, np.zeros((d, d))
    if problem.restricted:
        if not upper_root(inverse, lower):
            return math.nan
        lower = lower.T.copy()
    moved = second_pass(tasks, shift, lower)
    quad = sums.quad - shift @ sums.scores
    value = -0.5 * (steps * math.log(2 * math.pi * variance) + sums.logs + quad)
    if problem.restricted:
        value += 0.5 * d * math.log(2 * math.pi) - np.log(np.diag(upper)).sum()
    inner, noise = np.empty((d, d)), quad - steps + (d if problem.restricted else 0.0)
    _fill(moved.squares - sums.weights + moved.spread, inner)  # twice the gradient in Sigma
    slope, row = inner @ root, 0
    for i in range(d):
        for j in range(i + 1):
            gradient[row] = slope[i, j]
            noise -= root[i, j] * slope[i, j]
            row += 1
    if problem.variance <= 0.0:
        gradient[row] = 0.5 * noise if variance > problem.least else 0.0
    return value


@kernel
def _fill(triangle, out):
    row = 0
    for i in range(out.shape[0]):
        for j in range(i + 1):
            out[i, j] = out[j, i] = triangle[row]
            row += 1


@kernel
def ascend(problem, x, steps, least):
    """Climb from ``x``, in place, by BFGS with halved steps; the value there.

    Ends after ``steps``, or when one gains less than ``least``.
    """
    p = x.shape[0]
    gradient, other = np.zeros(p), np.zeros(p)
    value = height(problem, x, gradient)
    if not math.isfinite(value):
        return -math.inf
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
            left = np.eye(p) - length * np.outer(step, turn) / curve
            inverse = left @ inverse @ left.T + length * length * np.outer(step, step) / curve
            fresh = False
        gain = reached - value
        x[:], gradient[:], value = x + length * step, other, reached
        if gain < least:
            break
    return value
