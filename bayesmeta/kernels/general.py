"""The collapsed likelihood of a few tasks with any grams, singular ones included.

With theta_j integrated out, the rewards x_j = A_j theta_j + noise of task j are Gaussian with mean
A_j mu and covariance Omega_j = sigma^2 I + A_j Sigma A_j'. Write tau = 1 / sigma^2, Sigma = L L',
M = I + tau L'VL = R R' and X = tau V L R'^-1. Then, without inverting V or Sigma,

    W_j = A'Omega^-1 A          = tau V - X X'               (information on mu)
    s_j = A'Omega^-1 (x - A mu) = w - X y,  w = tau (A'x - V mu),  y = R^-1 L'w
    log|Omega_j| = log|M| - count log tau,   quadratic form = tau |x - A mu|^2 - |y|^2

in 1.8 d^3 multiplications a task.
"""

from __future__ import annotations

import math

from numba import boolean, int64

from bayesmeta.kernels.address import stage
from bayesmeta.kernels.layout import CHUNK, EACH_TASK, LANES, PARAMETERS, SPACE, SUMS


@stage(CHUNK, PARAMETERS, int64, SPACE)
def residuals(chunk, at, first, lanes):
    """w = tau (A'x - V mu), and tau |x - A mu|^2 = tau (x'x - mu'A'x) - mu'w."""
    grams, moments, energy = chunk.grams, chunk.moments, chunk.energy
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


@stage(CHUNK, PARAMETERS, int64, SPACE)
def inner_matrix(chunk, at, first, lanes):
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


@stage(PARAMETERS, SPACE, boolean)
def factorise(at, lanes, slopes):
    """R in place of M, with 1 / R_jj on the diagonal; y = R^-1 L'w; the logarithm of |M| and the
    quadratic form; with ``slopes`` also X = x R'^-1 in place of x."""
    root = at.root
    acc, pivots, logs, quad, w = lanes.acc, lanes.pivots, lanes.logs, lanes.quad, lanes.w
    y, x, m = lanes.y, lanes.x, lanes.m
    d = root.shape[0]
    for k in range(LANES):
        pivots[k] = 1.0
        logs[k] = 0.0
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
        if slopes:
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


@stage(SPACE, int64, SUMS, EACH_TASK)
def add_scores(lanes, first, sums, each):
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


@stage(CHUNK, PARAMETERS, int64, SPACE, SUMS, EACH_TASK)
def add_weights(chunk, at, first, lanes, sums, each):
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
