"""The collapsed likelihood of many tasks and all that its gradients need, several tasks at a time.

The sums over tasks of s, s s' and W give every gradient: sum(s) for mu, (sum(s s') - sum(W))/2 for
Sigma. The posterior of theta_j is N(mu + Sigma s_j, Sigma - Sigma W_j Sigma). Tasks whose grams are
well conditioned go by ``regular`` or ``panels``; the others, and all where digits would be lost, by
``general``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.general import (
    add_scores,
    add_weights,
    factorise,
    inner_matrix,
    residuals,
)
from bayesmeta.kernels.jit import helper, inlined, kernel
from bayesmeta.kernels.lanes import WIDTH
from bayesmeta.kernels.layout import LANES, MANY, Chunk, EachTask, Lanes, Parameters, Sums
from bayesmeta.kernels.panels import by_panels, panels, slot_of
from bayesmeta.kernels.regular import PIVOT, add_inverse, factorise_sum

INFLATED = 1e2
"""A gram V is well conditioned where no V_ii (V^-1)_ii is larger: V^-1 then lacks two digits at
most, and so does what is made of it."""


@helper
def _space(d):
    rows, columns = panels(d)
    return Lanes(
        acc=np.empty(LANES),
        pivots=np.empty(LANES),
        logs=np.empty(LANES),
        quad=np.empty(LANES),
        least=np.empty(LANES),
        present=np.empty(LANES),
        w=np.empty((d, LANES)),
        y=np.empty((d, LANES)),
        s=np.empty((d, LANES)),
        x=np.empty((d, d, LANES)),
        m=np.empty((d, d, LANES)),
        panels=np.empty(WIDTH * (4 * rows * columns + 16)),
    )


@helper
def _no_sums(d, lanes):
    p = d * (d + 1) // 2
    return Sums(
        logs=np.zeros(lanes),
        quad=np.zeros(lanes),
        scores=np.zeros((d, lanes)),
        squares=np.zeros((p, lanes)),
        weights=np.zeros((p, lanes)),
    )


@helper
def _no_panels(d):
    """Sums of matrices in panels."""
    rows, columns = panels(d)
    return Sums(
        logs=np.zeros(0),
        quad=np.zeros(0),
        scores=np.zeros((4 * rows, WIDTH)),
        squares=np.zeros((4 * rows * columns, WIDTH)),
        weights=np.zeros((4 * rows * columns, WIDTH)),
    )


@helper
def _move(some, total, add):
    """Add sums to others, or do not; they are zero then."""
    for i in range(some.scores.shape[0]):
        for k in range(WIDTH):
            total.scores[i, k] += some.scores[i, k] if add else 0.0
            some.scores[i, k] = 0.0
    for i in range(some.weights.shape[0]):
        for k in range(WIDTH):
            total.weights[i, k] += some.weights[i, k] if add else 0.0
            total.squares[i, k] += some.squares[i, k] if add else 0.0
            some.weights[i, k] = some.squares[i, k] = 0.0


@helper
def _with_panels(rows, others, d):
    """Sums of lower triangles, and of others in panels."""
    out, own, row = _added(rows), _added(others), 0
    columns = panels(d)[1]
    for i in range(d):
        for j in range(i + 1):
            out[row] += own[slot_of(i, j, columns)]
            row += 1
    return out


@helper
def _added(rows):
    """Sums of all rows, as ``rows.sum(axis=1)``, which takes numba seconds to compile."""
    out = np.zeros(rows.shape[0])
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            out[i] += rows[i, k]
    return out


@helper
def covariance(root):
    """L L' of the lower triangle of ``root``, the same bits on any number of threads."""
    d = root.shape[0]
    cov = np.empty((d, d))
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for q in range(j + 1):
                total += root[i, q] * root[j, q]
            cov[i, j] = cov[j, i] = total
    return cov


@inlined
def _by_inverse(chunk, at, cov, first, lanes, slopes, sums, each):
    """Try the way of ``regular`` or ``panels``; whether all tasks kept their digits.

    The sums are those of ``panels``, if ``slopes`` are wanted; ``regular`` adds to its own later.
    """
    present, least, logs, quad = lanes.present, lanes.least, lanes.logs, lanes.quad
    good = first < chunk.residuals.shape[0]
    if good:
        for k in range(LANES):
            present[k] = 1.0 if first + k < chunk.regular else 0.0
        if at.mean.shape[0] < MANY:
            factorise_sum(chunk, at, cov, first, lanes)
        else:
            by_panels(chunk, at, cov, first, lanes, slopes, sums, each)
        for k in range(LANES):
            if present[k] == 0.0:
                logs[k] = 0.0
                quad[k] = 0.0
            elif not least[k] >= PIVOT:
                good = False
    return good


@kernel
def estep(chunk, at, each):
    """``sums_of_tasks``, compiled on its own."""
    return sums_of_tasks(chunk, at, each)


@inlined
def sums_of_tasks(chunk, at, each):
    """``Sums`` over the tasks of a chunk; s and W of every task are left in ``each``.

    The stages take their arrays out of the tuples before they loop: so every loop over lanes
    becomes vector instructions.
    """
    d, n = chunk.moments.shape
    lanes, cov, sums = _space(d), covariance(at.root), _no_sums(d, LANES)
    some, all_panels = _no_panels(d), _no_panels(d)
    for first in range(0, n, LANES):
        good = _by_inverse(chunk, at, cov, first, lanes, True, some, each)
        if d >= MANY and first < chunk.residuals.shape[0]:
            _move(some, all_panels, good)
        if good and d < MANY:
            add_inverse(at, first, lanes, sums, each)
        elif not good:
            residuals(chunk, at, first, lanes)
            inner_matrix(chunk, at, first, lanes)
            factorise(at, lanes, True)
            add_scores(lanes, first, sums, each)
            add_weights(chunk, at, first, lanes, sums, each)
        for k in range(LANES):
            sums.logs[k] += lanes.logs[k]
            sums.quad[k] += lanes.quad[k]
    return Sums(
        sums.logs.sum(),
        sums.quad.sum(),
        _added(sums.scores) + _added(all_panels.scores)[:d],
        _with_panels(sums.squares, all_panels.squares, d),
        _with_panels(sums.weights, all_panels.weights, d),
    )


@inlined
def estep_value(chunk, at, each):
    """The sums of log|M| and of the quadratic form alone, the same bits as those of ``estep``.

    The two of every task, added up, are left in ``each`` (n,), unless that has no entries.
    """
    d, n = chunk.moments.shape
    lanes, cov = _space(d), covariance(at.root)
    logs, quad, none = np.zeros(LANES), np.zeros(LANES), np.empty((0, 0))
    unused, tasks = Sums(logs, quad, none, none, none), EachTask(none, none)
    for first in range(0, n, LANES):
        if not _by_inverse(chunk, at, cov, first, lanes, False, unused, tasks):
            residuals(chunk, at, first, lanes)
            inner_matrix(chunk, at, first, lanes)
            factorise(at, lanes, False)
        for k in range(LANES):
            logs[k] += lanes.logs[k]
            quad[k] += lanes.quad[k]
        if each.size:
            for k in range(LANES):
                each[first + k] = lanes.logs[k] + lanes.quad[k]
    return logs.sum(), quad.sum()


class Inverted(NamedTuple):
    """Tasks side by side, padded to whole lanes: V, A'x, V^-1, b = V^-1 A'x; b'Vb, log|V|, and how
    well conditioned V is, the largest V_ii (V^-1)_ii, NaN where it has no inverse."""

    grams: Any
    moments: Any
    inverses: Any
    estimates: Any
    fitted: Any
    logs: Any
    inflation: Any


@kernel
def inverted(gram, moment):
    """Invert the grams of tasks (n, d, d) with moments (n, d)."""
    tasks, d = moment.shape
    n, p = -(-tasks // LANES) * LANES, d * (d + 1) // 2
    grams, moments = np.zeros((p, n)), np.zeros((d, n))
    for k in range(tasks):
        row = 0
        for i in range(d):
            moments[i, k] = moment[k, i]
            for j in range(i + 1):
                grams[row, k] = gram[k, i, j]
                row += 1
    each = EachTask(np.empty((d, n)), np.empty((p, n)))
    fitted, logs, inflation, zeros = np.empty(n), np.empty(n), np.empty(n), np.zeros(n)
    # S is V where Sigma is 0 and V stands in for its inverse
    at = Parameters(np.zeros(d), np.zeros((d, d)), 1.0)
    chunk = Chunk(grams, moments, zeros, grams, moments, zeros, zeros, n)
    lanes, sums = _space(d), _no_sums(d, LANES)
    lanes.present[:] = 1.0
    for first in range(0, n, LANES):
        factorise_sum(chunk, at, at.root, first, lanes)
        add_inverse(at, first, lanes, sums, each)
        for k in range(LANES):
            fitted[first + k] = lanes.quad[k]
            logs[first + k] = lanes.logs[k]
            inflation[first + k] = 0.0
        for i in range(d):
            diagonal = i * (i + 3) // 2
            for k in range(LANES):
                own = grams[diagonal, first + k] * each.weights[diagonal, first + k]
                if not own <= inflation[first + k]:  # NaN included
                    inflation[first + k] = own
    return Inverted(grams, moments, each.weights, each.scores, fitted, logs, inflation)


class Moved(NamedTuple):
    """Sums over tasks at a mean moved to its best: s s', and W C C'W."""

    squares: Any
    spread: Any


@kernel
def second_pass(each, shift, root, spreads):
    """At a mean moved by ``shift``: sums of s s' and of W C C'W, where C = ``root``, upper
    triangular; those of every task are left in ``spreads`` (p, n), unless that has no entries.

    The scores move with the mean, s - W shift; W C C'W is what integrating the mean out adds to
    the gradient (restricted likelihood, with C C' the covariance of the mean). A ``root`` without
    columns leaves it out.
    """
    scores, weights = each
    d, n = scores.shape
    p, keep = weights.shape[0], spreads.size > 0
    acc, s, z = np.empty(LANES), np.empty((d, LANES)), np.empty((d, d, LANES))
    sum_ss, sum_z = np.zeros((p, LANES)), np.zeros((p, LANES))
    columns = root.shape[1]
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
            for j in range(columns):  # z = W C
                for k in range(LANES):
                    acc[k] = 0.0
                for q in range(j + 1):
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
                for q in range(columns):
                    for k in range(LANES):
                        acc[k] += z[i, q, k] * z[j, q, k]
                for k in range(LANES):
                    sum_z[row, k] += acc[k]
                if keep:
                    for k in range(LANES):
                        spreads[row, first + k] = acc[k]
                row += 1
    return Moved(_added(sum_ss), _added(sum_z))
