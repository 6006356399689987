"""The way of ``regular`` for many features: four tasks at a time, with sums kept in registers.

A group of ``WIDTH`` tasks has its matrix to itself, small enough to stay near the processor, and
four sums that share a factor are formed together, so that a number loaded serves more than once.
R takes the lower triangle of the matrix, with 1 / R_jj on its diagonal, and R'^-1 the upper one.
"""

from __future__ import annotations

import math

from numba import int64

from bayesmeta.kernels.address import stage
from bayesmeta.kernels.jit import helper, inlined
from bayesmeta.kernels.lanes import (
    WIDTH,
    add_product,
    load,
    number_of,
    pointer,
    spread,
    square_root,
    store,
    where_greater,
)
from bayesmeta.kernels.layout import CHUNK, EACH_TASK, LANES, MATRIX, PARAMETERS, SPACE, SUMS

GROUPS = LANES // WIDTH


@inlined
def _four(first, last):
    """Four places in a row; those beyond the last are the last one again."""
    return first, min(first + 1, last), min(first + 2, last), min(first + 3, last)


@helper
def _column(m, base, d, j, least):
    """Column j of R, from the columns before it; its pivot, and the least part that a pivot was of
    its entry so far."""
    zero, one = spread(0.0), spread(1.0)
    pivot = inverse = one
    for i in range(j, d, 4):
        r0, r1, r2, r3 = _four(i, d - 1)
        a0 = a1 = a2 = a3 = zero
        for q in range(j):
            b = load(m, base, j * d + q)
            a0 = add_product(a0, load(m, base, r0 * d + q), b)
            a1 = add_product(a1, load(m, base, r1 * d + q), b)
            a2 = add_product(a2, load(m, base, r2 * d + q), b)
            a3 = add_product(a3, load(m, base, r3 * d + q), b)
        s0, s1 = load(m, base, r0 * d + j), load(m, base, r1 * d + j)
        s2, s3 = load(m, base, r2 * d + j), load(m, base, r3 * d + j)
        if i == j:
            pivot = s0 - a0
            part = pivot / s0
            least = where_greater(part, least, least, part)  # NaN stays
            inverse = one / square_root(pivot)
            store(m, base, r0 * d + j, inverse)
        else:
            store(m, base, r0 * d + j, (s0 - a0) * inverse)
        if r1 > r0:
            store(m, base, r1 * d + j, (s1 - a1) * inverse)
        if r2 > r1:
            store(m, base, r2 * d + j, (s2 - a2) * inverse)
        if r3 > r2:
            store(m, base, r3 * d + j, (s3 - a3) * inverse)
    return pivot, least


@stage(CHUNK, PARAMETERS, MATRIX, int64, SPACE)
def factorise_many(chunk, at, cov, first, lanes):
    """R in place of S for ``LANES`` tasks; y; log|M|, the quadratic form, and the least part that a
    pivot is of its entry."""
    mean, tau, tasks = at.mean, at.tau, chunk.inverses.shape[1]
    d = mean.shape[0]
    inverses, estimates, m = pointer(chunk.inverses), pointer(chunk.estimates), pointer(lanes.m)
    ys, logs, quad, lows = pointer(lanes.y), lanes.logs, lanes.quad, pointer(lanes.least)
    for group in range(GROUPS):
        place, base = first + group * WIDTH, group * d * d * WIDTH
        row = 0
        for i in range(d):
            for j in range(i + 1):
                entry = load(inverses, row * tasks + place, 0) + spread(tau * cov[i, j])
                store(m, base, i * d + j, entry)
                row += 1
        for k in range(WIDTH):
            logs[group * WIDTH + k] = chunk.logs[place + k]
        least = product = spread(1.0)
        length = spread(0.0)
        for j in range(d):
            pivot, least = _column(m, base, d, j, least)
            product = product * pivot
            if j % 4 == 3 or j == d - 1:  # before the product overflows
                for k in range(WIDTH):
                    logs[group * WIDTH + k] += math.log(number_of(product, k))
                product = spread(1.0)
            y = load(estimates, j * tasks + place, 0) - spread(mean[j])
            for q in range(j):
                y = y - load(m, base, j * d + q) * load(ys, group * d * WIDTH, q)
            y = y * load(m, base, j * d + j)
            store(ys, group * d * WIDTH, j, y)
            length = add_product(length, y, y)
        store(lows, group * WIDTH, 0, least)
        for k in range(WIDTH):
            quad[group * WIDTH + k] = tau * (chunk.residuals[place + k] + number_of(length, k))


@helper
def _invert(m, base, d):
    """R'^-1 above R: entry (j, i) is minus the sum of R_iq times entry (j, q), over R_ii."""
    zero = spread(0.0)
    for i in range(1, d):
        inverse = zero - load(m, base, i * d + i)
        for j in range(0, i, 4):
            c0, c1, c2, c3 = _four(j, i - 1)
            a0 = a1 = a2 = a3 = zero
            for q in range(c0, c3):  # where the four begin
                b = load(m, base, i * d + q)
                a0 = add_product(a0, load(m, base, c0 * d + q), b)
                if q >= c1:
                    a1 = add_product(a1, load(m, base, c1 * d + q), b)
                if q >= c2:
                    a2 = add_product(a2, load(m, base, c2 * d + q), b)
            for q in range(c3, i):
                b = load(m, base, i * d + q)
                a0 = add_product(a0, load(m, base, c0 * d + q), b)
                a1 = add_product(a1, load(m, base, c1 * d + q), b)
                a2 = add_product(a2, load(m, base, c2 * d + q), b)
                a3 = add_product(a3, load(m, base, c3 * d + q), b)
            store(m, base, c0 * d + i, a0 * inverse)
            store(m, base, c1 * d + i, a1 * inverse)
            store(m, base, c2 * d + i, a2 * inverse)
            store(m, base, c3 * d + i, a3 * inverse)


@stage(PARAMETERS, int64, SPACE, SUMS, EACH_TASK)
def add_inverse_many(at, first, lanes, sums, each):
    """s = tau R'^-1 y and W = tau R'^-1 R^-1 of the tasks that are ``present``, added up in lanes
    of their own."""
    d, tau, keep = at.mean.shape[0], at.tau, each.weights.size > 0
    m, ys, there = pointer(lanes.m), pointer(lanes.y), pointer(lanes.present)
    tasks, ss = each.weights.shape[1], pointer(lanes.s)
    scores, weights = pointer(each.scores), pointer(each.weights)
    total_s, squares, total_w = pointer(sums.scores), pointer(sums.squares), pointer(sums.weights)
    zero = spread(0.0)
    for group in range(GROUPS):
        place, base = first + group * WIDTH, group * d * d * WIDTH
        factor = load(there, group * WIDTH, 0) * spread(tau)
        _invert(m, base, d)
        row = 0
        for i in range(d):
            s = zero
            for q in range(i, d):
                s = add_product(s, load(m, base, i * d + q), load(ys, group * d * WIDTH, q))
            s = s * factor
            store(ss, 0, i, s)
            store(total_s, 0, i, load(total_s, 0, i) + s)
            if keep:
                store(scores, i * tasks + place, 0, s)
            for j in range(0, i + 1, 4):
                c0, c1, c2, c3 = _four(j, i)
                a0 = a1 = a2 = a3 = zero
                for q in range(i, d):
                    b = load(m, base, i * d + q)
                    a0 = add_product(a0, load(m, base, c0 * d + q), b)
                    a1 = add_product(a1, load(m, base, c1 * d + q), b)
                    a2 = add_product(a2, load(m, base, c2 * d + q), b)
                    a3 = add_product(a3, load(m, base, c3 * d + q), b)
                _add(total_w, squares, ss, row + c0, c0, a0 * factor, s)
                if c1 > c0:
                    _add(total_w, squares, ss, row + c1, c1, a1 * factor, s)
                if c2 > c1:
                    _add(total_w, squares, ss, row + c2, c2, a2 * factor, s)
                if c3 > c2:
                    _add(total_w, squares, ss, row + c3, c3, a3 * factor, s)
                if keep:
                    store(weights, (row + c0) * tasks + place, 0, a0 * factor)
                    store(weights, (row + c1) * tasks + place, 0, a1 * factor)
                    store(weights, (row + c2) * tasks + place, 0, a2 * factor)
                    store(weights, (row + c3) * tasks + place, 0, a3 * factor)
            row += i + 1


@inlined
def _add(total_w, squares, ss, row, j, weight, s):
    """Entry (i, j) of W and of s s' to their sums."""
    store(total_w, 0, row, load(total_w, 0, row) + weight)
    store(squares, 0, row, add_product(load(squares, 0, row), s, load(ss, 0, j)))
