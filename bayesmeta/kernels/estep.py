"""The collapsed likelihood of many tasks and all that its gradients need, several tasks at a time.

With theta_j integrated out, the rewards x_j = A_j theta_j + noise of task j are Gaussian with mean
A_j mu and covariance Omega_j = sigma^2 I + A_j Sigma A_j'. Write tau = 1 / sigma^2, Sigma = L L',
M = I + tau L'VL = R R' and X = tau V L R'^-1. Then, without inverting V or Sigma,

    W_j = A'Omega^-1 A          = tau V - X X'               (information on mu)
    s_j = A'Omega^-1 (x - A mu) = w - X y,  w = tau (A'x - V mu),  y = R^-1 L'w
    log|Omega_j| = log|M| - count log tau,   quadratic form = tau |x - A mu|^2 - |y|^2

and the sums of s, s s' and W over tasks give every gradient: sum(s) for mu, (sum(s s') - sum(W))/2
for Sigma. The posterior of theta_j is N(mu + Sigma s_j, Sigma - Sigma W_j Sigma).

Arrays hold tasks along their last axis, matrices as their lower triangles row by row, so that the
innermost loops run over neighbouring tasks and become vector instructions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.jit import inlined, kernel

LANES = 64
"""Tasks handled together; arrays are padded with empty tasks, which add nothing, to a multiple."""


class Chunk(NamedTuple):
    """Statistics of n tasks: grams (p, n), moments (d, n), sums of squared rewards (n,)."""

    grams: Any
    moments: Any
    energy: Any


class Parameters(NamedTuple):
    """Where the likelihood is asked for: mu, the lower root L of Sigma, and tau = 1 / sigma^2."""

    mean: Any
    root: Any
    tau: Any


class EachTask(NamedTuple):
    """s (d, n) and W (p, n) of every task; arrays without entries where they are not wanted."""

    scores: Any
    weights: Any


class Sums(NamedTuple):
    """Sums over tasks of log|M|, the quadratic form, s, s s' and W (lower triangles)."""

    logs: Any
    quad: Any
    scores: Any
    squares: Any
    weights: Any


class _Lanes(NamedTuple):
    """Space for ``LANES`` tasks, in the symbols of the first lines of this module."""

    acc: Any
    pivots: Any
    quad: Any
    w: Any
    y: Any
    s: Any
    x: Any
    m: Any


@kernel
def estep(chunk, at, each):
    """``Sums`` over the tasks of a chunk; s and W of every task are left in ``each``.

    The stages are inlined, and take their arrays out of the tuples before they loop: so every loop
    over lanes becomes vector instructions.
    """
    d, n = chunk.moments.shape
    p = chunk.grams.shape[0]
    lanes = _Lanes(
        acc=np.empty(LANES),
        pivots=np.empty(LANES),
        quad=np.empty(LANES),
        w=np.empty((d, LANES)),
        y=np.empty((d, LANES)),
        s=np.empty((d, LANES)),
        x=np.empty((d, d, LANES)),
        m=np.empty((d, d, LANES)),
    )
    sums = Sums(
        logs=np.zeros(LANES),
        quad=np.zeros(LANES),
        scores=np.zeros((d, LANES)),
        squares=np.zeros((p, LANES)),
        weights=np.zeros((p, LANES)),
    )
    for first in range(0, n, LANES):
        _residuals(chunk, at, first, lanes)
        _inner_matrix(chunk, at, first, lanes)
        _factorise(at, lanes, sums)
        _add_scores(lanes, first, sums, each)
        _add_weights(chunk, at, first, lanes, sums, each)
    return Sums(
        sums.logs.sum(),
        sums.quad.sum(),
        sums.scores.sum(axis=1),
        sums.squares.sum(axis=1),
        sums.weights.sum(axis=1),
    )


@inlined
def _residuals(chunk, at, first, lanes):
    """w = tau (A'x - V mu), and tau |x - A mu|^2 = tau (x'x - mu'A'x) - mu'w."""
    grams, moments, energy = chunk
    mean, tau = at.mean, at.tau
    acc, quad, w = lanes.acc, lanes.quad, lanes.w
    d = mean.shape[0]
    for k in range(LANES):
        quad[k] = tau * energy[first + k]
    for i in range(d):
        for k in range(LANES):
            acc[k] = moments[i, first + k]
            quad[k] -= tau * mean[i] * acc[k]
        for j in range(d):
            row = i * (i + 1) // 2 + j if i >= j else j * (j + 1) // 2 + i
            for k in range(LANES):
                acc[k] -= grams[row, first + k] * mean[j]
        for k in range(LANES):
            w[i, k] = tau * acc[k]
            quad[k] -= mean[i] * w[i, k]


@inlined
def _inner_matrix(chunk, at, first, lanes):
    """x = tau V L, for now, and the lower triangle of M = I + L'x."""
    grams, root, tau = chunk.grams, at.root, at.tau
    acc, x, m = lanes.acc, lanes.x, lanes.m
    d = root.shape[0]
    for i in range(d):
        for j in range(d):
            for k in range(LANES):
                acc[k] = 0.0
            for q in range(j, d):
                row = i * (i + 1) // 2 + q if i >= q else q * (q + 1) // 2 + i
                factor = tau * root[q, j]
                for k in range(LANES):
                    acc[k] += grams[row, first + k] * factor
            for k in range(LANES):
                x[i, j, k] = acc[k]
    for j in range(d):
        for i in range(j, d):
            for k in range(LANES):
                acc[k] = 1.0 if i == j else 0.0
            for q in range(i, d):
                for k in range(LANES):
                    acc[k] += root[q, i] * x[q, j, k]
            for k in range(LANES):
                m[i, j, k] = acc[k]


@inlined
def _factorise(at, lanes, sums):
    """R in place of M, with 1 / R_jj on the diagonal; X = x R'^-1 in place of x; y = R^-1 L'w."""
    root, logs, quads = at.root, sums.logs, sums.quad
    acc, pivots, quad, w = lanes.acc, lanes.pivots, lanes.quad, lanes.w
    y, x, m = lanes.y, lanes.x, lanes.m
    d = root.shape[0]
    for k in range(LANES):
        pivots[k] = 1.0
    for j in range(d):  # column j of R
        for q in range(j):
            for k in range(LANES):
                m[j, j, k] -= m[j, q, k] * m[j, q, k]
        for k in range(LANES):
            pivots[k] *= m[j, j, k]
            m[j, j, k] = 1.0 / math.sqrt(m[j, j, k])
        if j % 4 == 3 or j == d - 1:  # before the product overflows
            for k in range(LANES):
                logs[k] += math.log(pivots[k])
                pivots[k] = 1.0
        for i in range(j + 1, d):
            for q in range(j):
                for k in range(LANES):
                    m[i, j, k] -= m[i, q, k] * m[j, q, k]
            for k in range(LANES):
                m[i, j, k] *= m[j, j, k]
        for i in range(d):  # column j of X
            for q in range(j):
                for k in range(LANES):
                    x[i, j, k] -= x[i, q, k] * m[j, q, k]
            for k in range(LANES):
                x[i, j, k] *= m[j, j, k]
        for k in range(LANES):  # entry j of y
            acc[k] = 0.0
        for q in range(j, d):
            for k in range(LANES):
                acc[k] += root[q, j] * w[q, k]
        for q in range(j):
            for k in range(LANES):
                acc[k] -= m[j, q, k] * y[q, k]
        for k in range(LANES):
            y[j, k] = acc[k] * m[j, j, k]
            quad[k] -= y[j, k] * y[j, k]
    for k in range(LANES):
        quads[k] += quad[k]


@inlined
def _add_scores(lanes, first, sums, each):
    """s = w - X y."""
    w, y, s, x = lanes.w, lanes.y, lanes.s, lanes.x
    total, scores = sums.scores, each.scores
    d, keep = w.shape[0], scores.size > 0
    for i in range(d):
        for k in range(LANES):
            s[i, k] = w[i, k]
        for j in range(d):
            for k in range(LANES):
                s[i, k] -= x[i, j, k] * y[j, k]
        for k in range(LANES):
            total[i, k] += s[i, k]
        if keep:
            for k in range(LANES):
                scores[i, first + k] = s[i, k]


@inlined
def _add_weights(chunk, at, first, lanes, sums, each):
    """W = tau V - X X', and s s'."""
    grams, tau = chunk.grams, at.tau
    acc, s, x = lanes.acc, lanes.s, lanes.x
    squares, total, weights = sums.squares, sums.weights, each.weights
    d, keep = s.shape[0], weights.size > 0
    row = 0
    for i in range(d):
        for j in range(i + 1):
            for k in range(LANES):
                acc[k] = tau * grams[row, first + k]
            for q in range(d):
                for k in range(LANES):
                    acc[k] -= x[i, q, k] * x[j, q, k]
            for k in range(LANES):
                total[row, k] += acc[k]
            for k in range(LANES):
                squares[row, k] += s[i, k] * s[j, k]
            if keep:
                for k in range(LANES):
                    weights[row, first + k] = acc[k]
            row += 1


class Moved(NamedTuple):
    """Sums over tasks at a mean moved to its best: s s', and W C C'W."""

    squares: Any
    spread: Any


@kernel
def second_pass(each, shift, root):
    """At a mean moved by ``shift``: sums of s s' and of W C C'W, where C = ``root``.

    The scores move with the mean, s - W shift; W C C'W is what integrating the mean out adds to
    the gradient (restricted likelihood, with C C' the covariance of the mean).
    """
    scores, weights = each
    d, n = scores.shape
    p = weights.shape[0]
    acc, s, z = np.empty(LANES), np.empty((d, LANES)), np.empty((d, d, LANES))
    sum_ss, sum_z = np.zeros((p, LANES)), np.zeros((p, LANES))
    for first in range(0, n, LANES):
        for i in range(d):
            for k in range(LANES):
                acc[k] = scores[i, first + k]
            for j in range(d):
                row = i * (i + 1) // 2 + j if i >= j else j * (j + 1) // 2 + i
                for k in range(LANES):
                    acc[k] -= weights[row, first + k] * shift[j]
            for k in range(LANES):
                s[i, k] = acc[k]
            for j in range(d):  # z = W C
                for k in range(LANES):
                    acc[k] = 0.0
                for q in range(j, d):
                    row = i * (i + 1) // 2 + q if i >= q else q * (q + 1) // 2 + i
                    for k in range(LANES):
                        acc[k] += weights[row, first + k] * root[q, j]
                for k in range(LANES):
                    z[i, j, k] = acc[k]
        row = 0
        for i in range(d):
            for j in range(i + 1):
                for k in range(LANES):
                    sum_ss[row, k] += s[i, k] * s[j, k]
                for k in range(LANES):
                    acc[k] = 0.0
                for q in range(d):
                    for k in range(LANES):
                        acc[k] += z[i, q, k] * z[j, q, k]
                for k in range(LANES):
                    sum_z[row, k] += acc[k]
                row += 1
    return Moved(sum_ss.sum(axis=1), sum_z.sum(axis=1))
