"""What finished tasks say of the mean of their prior, N(mu, S), where S is known.

A task with gram V and moment b of noise variance s^2 multiplies the density of mu by that of
Lambda = (S + s^2 V^-1)^-1 and shift = Lambda theta_OLS, both of which exist for singular V and S,
too: with V = F'F and b = F'u they are F' M^-1 F and F' M^-1 u, where M = s^2 I + F S F'. Nothing is
subtracted, so that no digit is lost where the noise is small.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.codes import SINGULAR, Use
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.linalg import upper_root


class HyperState(NamedTuple):
    """What all tasks so far say of mu, updated in place: sums of Lambda and of shift."""

    precision: Any
    shift: Any


class HyperTold(NamedTuple):
    """What a learner is told: the variance of the noise, S with its upper root, mean and upper root
    of the hyper-prior."""

    variance: Any
    cov: Any
    root: Any
    centre: Any
    hyper_root: Any


@kernel
def compressed(gram, moment):
    """At most d rows F and rewards u that have the gram F'F and the moment F'u.

    Cholesky's factor with pivots, each feature in its own length; rows beyond the rank are 0.
    """
    d = gram.shape[0]
    rest, rows, rewards = gram.copy(), np.zeros((d, d)), np.zeros(d)
    left = moment.copy()
    for r in range(d):
        best, most = -1, SINGULAR * 1e-3 * d
        for i in range(d):
            if gram[i, i] > 0.0 and rest[i, i] > most * gram[i, i]:
                best, most = i, rest[i, i] / gram[i, i]
        if best < 0:
            break
        pivot = math.sqrt(rest[best, best])
        for j in range(d):
            rows[r, j] = rest[best, j] / pivot
        rewards[r] = left[best] / pivot
        for i in range(d):
            left[i] -= rows[r, i] * rewards[r]
            for j in range(d):
                rest[i, j] -= rows[r, i] * rows[r, j]
        for i in range(d):
            rest[i, best] = rest[best, i] = 0.0
        left[best] = 0.0
    return rows, rewards


@kernel
def halved(upper, matrix):
    """Solve upper' X = matrix."""
    d, columns = matrix.shape
    out = np.empty((d, columns))
    for i in range(d):
        for j in range(columns):
            total = matrix[i, j]
            for k in range(i):
                total -= upper[k, i] * out[k, j]
            out[i, j] = total / upper[i, i]
    return out


@kernel
def evidence(gram, moment, variance, root):
    """Lambda and shift of one task, where ``root`` is an upper root of S; NaN where numbers leave
    the range of floating point."""
    d = gram.shape[0]
    rows, rewards = compressed(gram, moment)
    seen = rows @ root.T
    outer = seen @ seen.T
    for i in range(d):
        outer[i, i] += variance
    upper = np.zeros((d, d))
    if not upper_root(outer, upper):
        return np.full((d, d), np.nan), np.full(d, np.nan)
    half = halved(upper, rows)
    told = halved(upper, rewards.copy().reshape(d, 1))
    return half.T @ half, (half.T @ told)[:, 0]


@kernel
def posterior_of_mean(precision, shift, centre, root):
    """The posterior of mu ~ N(``centre``, root' root) given the sums over tasks of Lambda and of
    shift: its mean, and H where its covariance is H'H. NaN where numbers leave floating point."""
    d = centre.shape[0]
    inner = root @ precision @ root.T
    for i in range(d):
        inner[i, i] += 1.0
    upper = np.zeros((d, d))
    if not upper_root(inner, upper):
        return np.full(d, np.nan), np.full((d, d), np.nan)
    half = halved(upper, root)
    return centre + half.T @ (half @ (shift - precision @ centre)), half


@kernel
def root_of_sum(root, half):
    """The upper root of root' root + half' half, by one rotation a number: where ``half`` is 0, the
    bits of ``root``."""
    d = root.shape[0]
    out, extra = root.copy(), half.copy()
    for r in range(d):
        for k in range(d):
            if extra[r, k] == 0.0:
                continue
            length = math.sqrt(out[k, k] * out[k, k] + extra[r, k] * extra[r, k])
            c, s = out[k, k] / length, extra[r, k] / length
            for j in range(k, d):
                one, other = out[k, j], extra[r, j]
                out[k, j] = c * one + s * other
                extra[r, j] = c * other - s * one
    return out


@kernel
def task_prior(use, state, told, normals):
    """Mean, covariance and upper root of the prior of the next task; see ``codes.Use``."""
    mean, half = posterior_of_mean(state.precision, state.shift, told.centre, told.hyper_root)
    if use == Use.MARGINAL:
        return mean, told.cov + half.T @ half, root_of_sum(told.root, half)
    if use == Use.DRAW:
        mean = mean + half.T @ normals
    return mean, told.cov.copy(), told.root.copy()


@kernel
def observe(state, told, gram, moment):
    """Add one task to the sums."""
    precision, shift = evidence(gram, moment, told.variance, told.root)
    state.precision[:] += precision
    state.shift[:] += shift
