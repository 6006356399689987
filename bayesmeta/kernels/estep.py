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

import numpy as np

from bayesmeta.kernels.jit import kernel

LANES = 64
"""Tasks handled together; arrays are padded with empty tasks, which add nothing, to a multiple."""


@kernel
def estep(grams, moments, energy, mean, root, tau, keep, scores, weights):
    """Sums over tasks of log|M|, the quadratic form, s, s s' and W (lower triangles).

    Where ``keep``, s and W of every task are left in ``scores`` and ``weights``.
    """
    d, n = moments.shape
    p = grams.shape[0]
    acc, pivots, quad = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    w, y, s = np.empty((d, LANES)), np.empty((d, LANES)), np.empty((d, LANES))
    x, m = np.empty((d, d, LANES)), np.empty((d, d, LANES))
    sum_log, sum_quad, sum_s = np.zeros(LANES), np.zeros(LANES), np.zeros((d, LANES))
    sum_ss, sum_w = np.zeros((p, LANES)), np.zeros((p, LANES))
    for first in range(0, n, LANES):
        for k in range(LANES):
            quad[k] = tau * energy[first + k]
        for i in range(d):  # w = tau (A'x - V mu);  tau |x - A mu|^2 = tau (x'x - mu'A'x) - mu'w
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
        for i in range(d):  # x = tau V L, for now
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
        for j in range(d):  # M = I + L'x, its lower triangle
            for i in range(j, d):
                for k in range(LANES):
                    acc[k] = 1.0 if i == j else 0.0
                for q in range(i, d):
                    for k in range(LANES):
                        acc[k] += root[q, i] * x[q, j, k]
                for k in range(LANES):
                    m[i, j, k] = acc[k]
        for k in range(LANES):
            pivots[k] = 1.0
        for j in range(d):  # column j of R in place of M, with 1 / R_jj on the diagonal
            for q in range(j):
                for k in range(LANES):
                    m[j, j, k] -= m[j, q, k] * m[j, q, k]
            for k in range(LANES):
                pivots[k] *= m[j, j, k]
                m[j, j, k] = 1.0 / math.sqrt(m[j, j, k])
            if j % 4 == 3 or j == d - 1:  # before the product overflows
                for k in range(LANES):
                    sum_log[k] += math.log(pivots[k])
                    pivots[k] = 1.0
            for i in range(j + 1, d):
                for q in range(j):
                    for k in range(LANES):
                        m[i, j, k] -= m[i, q, k] * m[j, q, k]
                for k in range(LANES):
                    m[i, j, k] *= m[j, j, k]
            for i in range(d):  # column j of X = x R'^-1, in place
                for q in range(j):
                    for k in range(LANES):
                        x[i, j, k] -= x[i, q, k] * m[j, q, k]
                for k in range(LANES):
                    x[i, j, k] *= m[j, j, k]
            for k in range(LANES):  # entry j of y = R^-1 L'w
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
            sum_quad[k] += quad[k]
        for i in range(d):  # s = w - X y
            for k in range(LANES):
                s[i, k] = w[i, k]
            for j in range(d):
                for k in range(LANES):
                    s[i, k] -= x[i, j, k] * y[j, k]
            for k in range(LANES):
                sum_s[i, k] += s[i, k]
            if keep:
                for k in range(LANES):
                    scores[i, first + k] = s[i, k]
        row = 0
        for i in range(d):  # W = tau V - X X'
            for j in range(i + 1):
                for k in range(LANES):
                    acc[k] = tau * grams[row, first + k]
                for q in range(d):
                    for k in range(LANES):
                        acc[k] -= x[i, q, k] * x[j, q, k]
                for k in range(LANES):
                    sum_w[row, k] += acc[k]
                for k in range(LANES):
                    sum_ss[row, k] += s[i, k] * s[j, k]
                if keep:
                    for k in range(LANES):
                        weights[row, first + k] = acc[k]
                row += 1
    return (
        sum_log.sum(),
        sum_quad.sum(),
        sum_s.sum(axis=1),
        sum_ss.sum(axis=1),
        sum_w.sum(axis=1),
    )


@kernel
def second_pass(scores, weights, shift, root):
    """At a mean moved by ``shift``: sums of s s' and of W C C'W, where C = ``root``.

    The scores move with the mean, s - W shift; W C C'W is what integrating the mean out adds to
    the gradient (restricted likelihood, with C C' the covariance of the mean).
    """
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
    return sum_ss.sum(axis=1), sum_z.sum(axis=1)
