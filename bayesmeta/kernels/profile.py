"""The likelihood of a covariance and a noise variance, the mean at its best or integrated out."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.estep import covariance, estep, second_pass
from bayesmeta.kernels.jit import helper, kernel
from bayesmeta.kernels.linalg import upper_root

_LOG_2PI = math.log(2 * math.pi)


class Best(NamedTuple):
    """The best mean: whether there is one, the information on it (the sum of W), how far it is, a
    root C of its covariance, upper triangular, and half of log|sum of W|."""

    fine: Any
    information: Any
    shift: Any
    root: Any
    logs: Any


class Profile(NamedTuple):
    """A log-likelihood with the mean moved by ``shift`` to its best, and its gradients in Sigma
    (symmetric) and in log sigma^2; not ``fine`` where numbers have too few digits for it."""

    fine: Any
    value: Any
    shift: Any
    gradient: Any
    noise: Any
    information: Any


@kernel
def best_mean(sums):
    """One step of Newton's from where the sums are taken."""
    d = sums.scores.shape[0]
    information, shift, logs = np.empty((d, d)), np.zeros(d), 0.0
    _fill(sums.weights, information)
    root = best_root(information)
    for j in range(d):
        logs -= math.log(root[j, j])
        along = 0.0
        for i in range(j + 1):
            along += root[i, j] * sums.scores[i]
        for i in range(j + 1):
            shift[i] += root[i, j] * along
    return Best(math.isfinite(logs), information, shift, root, logs)


@kernel
def best_root(information):
    """The upper triangular C with C C' = information^-1; NaN where it has no inverse."""
    d = information.shape[0]
    upper, root = np.zeros((d, d)), np.zeros((d, d))
    if not upper_root(information, upper):
        return np.full((d, d), np.nan)
    for j in range(d):  # root = upper^-1, column by column
        root[j, j] = 1.0 / upper[j, j]
        for i in range(j - 1, -1, -1):
            total = 0.0
            for q in range(i + 1, j + 1):
                total += upper[i, q] * root[q, j]
            root[i, j] = -total / upper[i, i]
    return root


@kernel
def at_best(sums, best, moved, at, steps, restricted):
    """``Profile`` from the sums of all tasks, and those at the best mean."""
    d = best.shift.shape[0]
    quad, cov = sums.quad, covariance(at.root)
    for i in range(d):
        quad -= best.shift[i] * sums.scores[i]
    value = -0.5 * (steps * (_LOG_2PI - math.log(at.tau)) + sums.logs + quad)
    noise = quad - steps
    if restricted:
        value += 0.5 * d * _LOG_2PI - best.logs
        noise += d
    gradient = np.empty((d, d))
    _fill(moved.squares - sums.weights + moved.spread, gradient)
    gradient *= 0.5
    noise -= 2 * np.sum(cov * gradient)
    return Profile(best.fine, value, best.shift, gradient, 0.5 * noise, best.information)


@kernel
def profile(chunk, at, steps, restricted, each):
    """The same where all tasks are in one chunk; W and s of every task are left in ``each``."""
    sums = estep(chunk, at, each)
    best = best_mean(sums)
    root = best.root if restricted else best.root[:, :0].copy()
    moved = second_pass(each, best.shift, root, np.empty((0, 0)))
    return at_best(sums, best, moved, at, steps, restricted)


@helper
def _fill(triangle, out):
    row = 0
    for i in range(out.shape[0]):
        for j in range(i + 1):
            out[i, j] = out[j, i] = triangle[row]
            row += 1
