"""Sums of products of the rows of tasks, and the ranks of those sums."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.jit import kernel

CLEAR = 1e-4
"""A pivot of a gram in own lengths that is larger is none that rounding leaves."""
EPS = float(np.finfo(float).eps)


class RowSums(NamedTuple):
    """A'A (n, d, d), A'x (n, d), the number of rows and x'x (n,) of n tasks."""

    gram: Any
    moment: Any
    count: Any
    energy: Any


@kernel
def sums_of_rows(index, rewards, rows, tasks):
    """``RowSums`` of rows that belong to the tasks in ``index``, added in their order."""
    d = rows.shape[1]
    gram, moment = np.zeros((tasks, d, d)), np.zeros((tasks, d))
    count, energy = np.zeros(tasks), np.zeros(tasks)
    for row in range(index.shape[0]):
        j, reward = index[row], rewards[row]
        count[j] += 1.0
        energy[j] += reward * reward
        for a in range(d):
            one = rows[row, a]
            moment[j, a] += one * reward
            for b in range(a + 1):
                gram[j, a, b] += one * rows[row, b]
    for j in range(tasks):
        for a in range(d):
            for b in range(a):
                gram[j, b, a] = gram[j, a, b]
    return RowSums(gram, moment, count, energy)


class Ranked(NamedTuple):
    """Of every task: the rank of its gram, -1 where that is in doubt, and what least squares
    explains of its rewards' squares."""

    rank: Any
    fitted: Any


@kernel
def ranked(grams, moments, count):
    """Eliminate features of grams (n, d, d) in own lengths, the largest pivot first. The rank is
    clear where every pivot is either large, or no more than additions leave of 0."""
    n, d = moments.shape
    rank, fitted = np.empty(n, dtype=np.int64), np.zeros(n)
    m, w, length, rest = np.empty((d, d)), np.empty(d), np.empty(d), np.empty(d, dtype=np.bool_)
    for k in range(n):
        for i in range(d):
            rest[i] = True
            length[i] = math.sqrt(grams[k, i, i]) if grams[k, i, i] > 0.0 else 1.0
            w[i] = moments[k, i] / length[i]
            for j in range(i + 1):
                m[i, j] = m[j, i] = grams[k, i, j] / length[i] / length[j]
        rank[k] = d
        for step in range(d):
            p = -1
            for i in range(d):
                if rest[i] and (p < 0 or m[i, i] > m[p, p]):
                    p = i
            if not m[p, p] > CLEAR:
                rank[k] = step
                for i in range(d):
                    if rest[i] and not abs(m[i, i]) <= EPS * max(count[k], 8.0):
                        rank[k] = -1
                break
            rest[p] = False
            fitted[k] += w[p] * w[p] / m[p, p]
            for i in range(d):
                if rest[i]:
                    ratio = m[i, p] / m[p, p]
                    w[i] -= ratio * w[p]
                    for j in range(d):
                        if rest[j]:
                            m[i, j] -= ratio * m[p, j]
    return Ranked(rank, fitted)
