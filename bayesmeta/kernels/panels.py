"""The way of ``regular`` for many features: four tasks at a time, with sums kept in registers.

``WIDTH`` tasks are handled at a time, one a lane, and their matrix stays near the processor. It is
cut into panels of four rows; of a panel, the four rows of a column lie next to each other. All work
is sums of products of a panel with two rows of another, eight sums at a time. R takes the places
below the diagonal, with 1 / R_jj on it, and later R'^-1 those on it and above.
"""

from __future__ import annotations

import math

from numba import boolean, int64

from bayesmeta.kernels.address import stage
from bayesmeta.kernels.jit import helper, inlined
from bayesmeta.kernels.lanes import (
    WIDTH,
    add_product,
    exponent,
    load,
    mantissa,
    number_of,
    pointer,
    spread,
    square_root,
    store,
    where_greater,
)
from bayesmeta.kernels.layout import CHUNK, EACH_TASK, LANES, MATRIX, PARAMETERS, SPACE, SUMS

_LOG_2 = math.log(2.0)


@helper
def panels(d):
    """How many panels d features have, and the columns of each: an even number."""
    return (d + 3) // 4, d + d % 2


@helper
def slot_of(i, j, columns):
    """Where entry (i, j) of a matrix is."""
    return (i // 4 * columns + j) * 4 + i % 4


@inlined
def _sums_of_products(m, panel, pair, first, last):
    """Of the rows of a panel with a pair of rows, over columns ``first`` to ``last``, an even
    number; the panel and the pair are given by their slots in column 0."""
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = spread(0.0)
    for q in range(first, last, 2):
        for k in range(2):
            at = 4 * (q + k)
            one, two = load(m, 0, pair + at), load(m, 0, pair + at + 1)
            r0, r1 = load(m, 0, panel + at), load(m, 0, panel + at + 1)
            a0, b0 = add_product(a0, r0, one), add_product(b0, r0, two)
            a1, b1 = add_product(a1, r1, one), add_product(b1, r1, two)
            r2, r3 = load(m, 0, panel + at + 2), load(m, 0, panel + at + 3)
            a2, b2 = add_product(a2, r2, one), add_product(b2, r2, two)
            a3, b3 = add_product(a3, r3, one), add_product(b3, r3, two)
    return (a0, a1, a2, a3), (b0, b1, b2, b3)


@helper
def _sum_of(inverses, estimates, group, tau, cov, mean, d, m, z):
    """S of a group of tasks, the identity where the columns go on, and b - mu."""
    count, columns = panels(d)
    zero, row, own = spread(0.0), group * (d * (d + 1) // 2), group * d
    for i in range(4 * count):
        slot = slot_of(i, 0, columns)
        if i < d:
            for j in range(i + 1):
                entry = load(inverses, 0, row) + spread(tau * cov[i * d + j])
                store(m, 0, slot + 4 * j, entry)
                row += 1
            store(z, 0, i, load(estimates, 0, own + i) - spread(mean[i]))
        else:
            for j in range(columns):
                store(m, 0, slot + 4 * j, spread(1.0) if i == j else zero)
            store(z, 0, i, zero)


@helper
def _factorise(m, z, y, d):
    """R in place of S and y = R^-1 z; |S| as a product and a power of two, |y|^2, and the least
    part that a pivot is of its entry."""
    count, columns = panels(d)
    zero, one = spread(0.0), spread(1.0)
    product, powers, length, least = one, zero, zero, one
    for j in range(0, columns, 2):
        own = j // 4
        pair = slot_of(j, 0, columns)
        p0 = p1 = turn = i0 = i1 = y0 = y1 = zero
        for panel in range(own, count):
            start = panel * columns * 4
            (a0, a1, a2, a3), (b0, b1, b2, b3) = _sums_of_products(m, start, pair, 0, j)
            here = start + 4 * j
            a0, a1 = load(m, 0, here) - a0, load(m, 0, here + 1) - a1
            a2, a3 = load(m, 0, here + 2) - a2, load(m, 0, here + 3) - a3
            b0, b1 = load(m, 0, here + 4) - b0, load(m, 0, here + 5) - b1
            b2, b3 = load(m, 0, here + 6) - b2, load(m, 0, here + 7) - b3
            if panel == own:
                e0, e1 = load(m, 0, pair + 4 * j), load(m, 0, pair + 4 * j + 5)
                if j % 4 == 0:
                    p0, below, p1 = a0, a1, b1
                else:
                    p0, below, p1 = a2, a3, b3
                v0 = one / p0
                p1 = p1 - below * v0 * below
                v1 = one / p1
                i0, i1 = square_root(v0), square_root(v1)
                turn = below * i0
                y0 = load(z, 0, j) * i0
                y1 = (load(z, 0, j + 1) - turn * y0) * i1
                store(y, 0, j, y0)
                store(y, 0, j + 1, y1)
                length = add_product(add_product(length, y0, y0), y1, y1)
                product = mantissa(p0) * mantissa(p1) * product
                powers = powers + exponent(p0) + exponent(p1)
                part = p0 / e0
                least = where_greater(part, least, least, part)  # NaN stays
                part = p1 / e1
                least = where_greater(part, least, least, part)
            a, b = _store_pair(m, here, (a0, a1, a2, a3), (b0, b1, b2, b3), i0, turn, i1)
            if panel == own:
                store(m, 0, pair + 4 * j, i0)
                store(m, 0, pair + 4 * j + 5, i1)
            _to(z, 4 * panel, a, zero - y0)
            _to(z, 4 * panel, b, zero - y1)
    return product, powers, length, least


@helper
def _invert(m, d):
    """R'^-1 = U on and above the diagonal, from U R' = I, a panel after the other.

    The block of a panel on the diagonal is moved behind the matrix before U takes its place.
    """
    count, columns = panels(d)
    behind, zero = 4 * count * columns, spread(0.0)
    for panel in range(count):
        start, first = 4 * panel * columns, 4 * panel
        for k in range(4 * min(4, columns - first)):
            store(m, 0, behind + k, load(m, 0, start + 4 * first + k))
        for j in range(first, columns, 2):
            pair = slot_of(j, 0, columns) if j >= first + 4 else behind + j % 4 - 4 * first
            (a0, a1, a2, a3), (b0, b1, b2, b3) = _sums_of_products(m, start, pair, first, j)
            i0, turn = load(m, 0, pair + 4 * j), load(m, 0, pair + 4 * j + 1)
            i1 = load(m, 0, pair + 4 * j + 5)
            above = spread(1.0 if j == first else 0.0)
            below = spread(1.0 if j == first + 2 else 0.0)
            a0, a1, a2, a3 = above - a0, zero - a1, below - a2, zero - a3
            b0, b1, b2, b3 = zero - b0, above - b1, zero - b2, below - b3
            _store_pair(m, start + 4 * j, (a0, a1, a2, a3), (b0, b1, b2, b3), i0, turn, i1)


@inlined
def _store_pair(m, here, a, b, i0, turn, i1):
    """Two columns of a panel, solved for by the pair of rows 1 / i0; turn, 1 / i1 of R; and what
    they are."""
    a0, a1, a2, a3 = a[0] * i0, a[1] * i0, a[2] * i0, a[3] * i0
    b0, b1 = (b[0] - a0 * turn) * i1, (b[1] - a1 * turn) * i1
    b2, b3 = (b[2] - a2 * turn) * i1, (b[3] - a3 * turn) * i1
    store(m, 0, here, a0)
    store(m, 0, here + 1, a1)
    store(m, 0, here + 2, a2)
    store(m, 0, here + 3, a3)
    store(m, 0, here + 4, b0)
    store(m, 0, here + 5, b1)
    store(m, 0, here + 6, b2)
    store(m, 0, here + 7, b3)
    return (a0, a1, a2, a3), (b0, b1, b2, b3)


@helper
def _add(m, y, s, d, factor, scores, squares, weights):
    """s = U y and W = U U', times ``factor``, and s s', to their sums."""
    count, columns = panels(d)
    one = spread(1.0)
    for panel in range(count):
        start, first = 4 * panel * columns, 4 * panel
        s0 = s1 = s2 = s3 = spread(0.0)
        for q in range(first, columns):
            at, along = start + 4 * q, load(y, 0, q)
            s0 = add_product(s0, load(m, 0, at), along)
            s1 = add_product(s1, load(m, 0, at + 1), along)
            s2 = add_product(s2, load(m, 0, at + 2), along)
            s3 = add_product(s3, load(m, 0, at + 3), along)
        own = s0 * factor, s1 * factor, s2 * factor, s3 * factor
        _put(s, first, own)
        _to(scores, first, own, one)
        for j in range(0, min(first + 4, columns), 2):
            here = start + 4 * j
            a, b = _sums_of_products(m, start, slot_of(j, 0, columns), first, columns)
            _to(weights, here, a, factor)
            _to(weights, here + 4, b, factor)
            _to(squares, here, own, load(s, 0, j))
            _to(squares, here + 4, own, load(s, 0, j + 1))


@inlined
def _put(array, here, four):
    """Write four from a slot on."""
    store(array, 0, here, four[0])
    store(array, 0, here + 1, four[1])
    store(array, 0, here + 2, four[2])
    store(array, 0, here + 3, four[3])


@inlined
def _to(total, here, four, factor):
    """Add four, times a factor, to what is from a slot on."""
    store(total, 0, here, add_product(load(total, 0, here), four[0], factor))
    store(total, 0, here + 1, add_product(load(total, 0, here + 1), four[1], factor))
    store(total, 0, here + 2, add_product(load(total, 0, here + 2), four[2], factor))
    store(total, 0, here + 3, add_product(load(total, 0, here + 3), four[3], factor))


@helper
def _keep(m, s, d, factor, tasks, place, scores, weights):
    """s and W of every task."""
    _, columns = panels(d)
    row = 0
    for i in range(d):
        store(scores, i * tasks + place, 0, load(s, 0, i))
        for j in range(i + 1):
            one, two, total = slot_of(i, 0, columns), slot_of(j, 0, columns), spread(0.0)
            for q in range(i // 4 * 4, columns):
                total = add_product(total, load(m, 0, one + 4 * q), load(m, 0, two + 4 * q))
            store(weights, row * tasks + place, 0, total * factor)
            row += 1


@stage(CHUNK, PARAMETERS, MATRIX, int64, SPACE, boolean, SUMS, EACH_TASK)
def by_panels(chunk, at, cov, first, lanes, slopes, sums, each):
    """log|M|, the quadratic form, and the least part that a pivot is of its entry, of every task;
    with ``slopes``, what those that are ``present`` add to the sums, which are in panels."""
    d, tau, keep = at.mean.shape[0], at.tau, each.weights.size > 0
    kept = each.weights.shape[1]
    inverses, estimates = pointer(chunk.inverses), pointer(chunk.estimates)
    logs, residuals = pointer(chunk.logs), pointer(chunk.residuals)
    covs, mean = pointer(cov), pointer(at.mean)
    m, z, y, s = pointer(lanes.panels), pointer(lanes.w), pointer(lanes.y), pointer(lanes.s)
    least, present = pointer(lanes.least), pointer(lanes.present)
    own_logs, quad = pointer(lanes.logs), pointer(lanes.quad)
    scores, squares, weights = pointer(sums.scores), pointer(sums.squares), pointer(sums.weights)
    each_score, each_weight = pointer(each.scores), pointer(each.weights)
    for group in range(0, LANES, WIDTH):
        place = first + group
        _sum_of(inverses, estimates, place // WIDTH, tau, covs, mean, d, m, z)
        product, powers, length, part = _factorise(m, z, y, d)
        store(least, group, 0, part)
        for k in range(WIDTH):
            log = math.log(number_of(product, k)) + _LOG_2 * number_of(powers, k)
            own_logs[group + k] = logs[place + k] + log
            quad[group + k] = tau * (residuals[place + k] + number_of(length, k))
        if slopes:
            factor = load(present, group, 0) * spread(tau)
            _invert(m, d)
            _add(m, y, s, d, factor, scores, squares, weights)
            if keep:
                _keep(m, s, d, factor, kept, place, each_score, each_weight)
