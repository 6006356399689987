"""The same for tasks whose grams have been inverted, in half of d^3 multiplications a task.

In the symbols of ``general``, with b = V^-1 A'x the least squares estimate, S = V^-1 + tau Sigma =
R R' and y = R^-1 (b - mu),

    W_j = tau S^-1,   s_j = tau S^-1 (b - mu),   log|M| = log|S| + log|V|,
    quadratic form = tau (|x - A b|^2 + |y|^2)

Digits are lost where S is ill conditioned: where Sigma is large in one direction, and not in
another. Each pivot of S, beside the entry it comes from, tells how many.
"""

from __future__ import annotations

import math

from numba import int64

from bayesmeta.kernels.address import stage
from bayesmeta.kernels.jit import inlined
from bayesmeta.kernels.layout import CHUNK, EACH_TASK, LANES, MATRIX, PARAMETERS, SPACE, SUMS

PIVOT = 1e-6
"""The least part of its entry that a pivot of S may be. Sigma must be that uneven, beside noise,
for a smaller one, and then the general way, though slower, errs as little or less."""


@inlined
def _add_products(one, i, two, j, first, last, acc):
    """Add the sum of one[i, q] two[j, q] over q, four at a time: ``acc`` is read less often."""
    fours = first + (last - first) // 4 * 4
    for q in range(first, fours, 4):
        for k in range(LANES):
            acc[k] += (one[i, q, k] * two[j, q, k] + one[i, q + 1, k] * two[j, q + 1, k]) + (
                one[i, q + 2, k] * two[j, q + 2, k] + one[i, q + 3, k] * two[j, q + 3, k]
            )
    for q in range(fours, last):
        for k in range(LANES):
            acc[k] += one[i, q, k] * two[j, q, k]


@stage(CHUNK, PARAMETERS, MATRIX, int64, SPACE)
def factorise_sum(chunk, at, cov, first, lanes):
    """R in place of S, with 1 / R_jj on the diagonal; y; log|M|, the quadratic form, and the least
    part that a pivot is of its entry."""
    inverses, estimates, mean, tau = chunk.inverses, chunk.estimates, at.mean, at.tau
    acc, pivots, logs, quad = lanes.acc, lanes.pivots, lanes.logs, lanes.quad
    least, y, m = lanes.least, lanes.y, lanes.m
    d = mean.shape[0]
    row = 0
    for i in range(d):
        for j in range(i + 1):
            spread = tau * cov[i, j]
            for k in range(LANES):
                m[i, j, k] = inverses[row, first + k] + spread
            row += 1
    for k in range(LANES):
        pivots[k] = 1.0
        least[k] = 1.0
        logs[k] = chunk.logs[first + k]
        quad[k] = tau * chunk.residuals[first + k]
    for j in range(d):
        for k in range(LANES):
            acc[k] = 0.0
        _add_products(m, j, m, j, 0, j, acc)
        for k in range(LANES):
            acc[k] = m[j, j, k] - acc[k]
            least[k] = min(least[k], acc[k] / m[j, j, k])
            pivots[k] *= acc[k]
            m[j, j, k] = 1.0 / math.sqrt(acc[k])
        if j % 4 == 3 or j == d - 1:  # before the product overflows
            for k in range(LANES):
                logs[k] += math.log(pivots[k])
                pivots[k] = 1.0
        for i in range(j + 1, d):
            for k in range(LANES):
                acc[k] = 0.0
            _add_products(m, i, m, j, 0, j, acc)
            for k in range(LANES):
                m[i, j, k] = (m[i, j, k] - acc[k]) * m[j, j, k]
        for k in range(LANES):  # entry j of y
            acc[k] = estimates[j, first + k] - mean[j]
        for q in range(j):
            for k in range(LANES):
                acc[k] -= m[j, q, k] * y[q, k]
        for k in range(LANES):
            y[j, k] = acc[k] * m[j, j, k]
            quad[k] += tau * y[j, k] * y[j, k]


@stage(PARAMETERS, int64, SPACE, SUMS, EACH_TASK)
def add_inverse(at, first, lanes, sums, each):
    """T' = R'^-1, in x; s = tau T'y and W = tau T'T of the tasks that are ``present``."""
    acc, y, s, m, x, present = lanes.acc, lanes.y, lanes.s, lanes.m, lanes.x, lanes.present
    total_s, squares, total_w = sums.scores, sums.squares, sums.weights
    scores, weights = each.scores, each.weights
    d, tau, keep = y.shape[0], at.tau, each.weights.size > 0
    for j in range(d):
        for k in range(LANES):
            x[j, j, k] = m[j, j, k]
        for i in range(j + 1, d):
            for k in range(LANES):
                acc[k] = 0.0
            _add_products(m, i, x, j, j, i, acc)
            for k in range(LANES):
                x[j, i, k] = -acc[k] * m[i, i, k]
    row = 0
    for i in range(d):
        for k in range(LANES):
            acc[k] = 0.0
        for q in range(i, d):
            for k in range(LANES):
                acc[k] += x[i, q, k] * y[q, k]
        for k in range(LANES):
            s[i, k] = tau * acc[k] * present[k]
            total_s[i, k] += s[i, k]
        if keep:
            for k in range(LANES):
                scores[i, first + k] = s[i, k]
        for j in range(i + 1):
            for k in range(LANES):
                acc[k] = 0.0
            _add_products(x, i, x, j, i, d, acc)
            for k in range(LANES):
                acc[k] *= tau * present[k]
                total_w[row, k] += acc[k]
            for k in range(LANES):
                squares[row, k] += s[i, k] * s[j, k]
            if keep:
                for k in range(LANES):
                    weights[row, first + k] = acc[k]
            row += 1
