"""W-decorrelation of least squares from adaptively chosen actions (Deshpande et al. 2018)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.jit import kernel

SEEN, DUE, RIDGE = 0, 1, 2


class Ridges(NamedTuple):
    """What the ridge of the next task is settled by, updated in place."""

    settled: Any
    """tasks seen, after how many it is settled again, and the ridge, 0 before the first"""
    lowest: Any
    """the smallest eigenvalues of their grams; where it is full the ridge stays"""


@kernel
def decorrelate(actions, rewards, ridge):
    """M = I - W A, u = W x and Q = W W' after all steps of a task, where column t of W is
    w = M a / (ridge + |a|^2), M being that of the steps before: a martingale transform.

    The estimate from any centre c is M c + u = c + W (x - A c), with covariance about sigma^2 Q.
    """
    steps, d = actions.shape
    left, told, square = np.eye(d), np.zeros(d), np.zeros((d, d))
    w = np.empty(d)
    for t in range(steps):
        norm = ridge
        for i in range(d):
            norm += actions[t, i] * actions[t, i]
        for i in range(d):
            w[i] = 0.0
            for j in range(d):
                w[i] += left[i, j] * actions[t, j]
            w[i] /= norm
        for i in range(d):
            told[i] += w[i] * rewards[t]
            for j in range(d):
                left[i, j] -= w[i] * actions[t, j]
                square[i, j] += w[i] * w[j]
    return left, told, square


@kernel
def settle(ridges, gram, logs):
    """Add one task, and settle the ridge where that is due: the 15% quantile of the smallest
    eigenvalues over ``logs``; due again when the tasks have grown by a tenth."""
    settled, lowest = ridges
    seen = int(settled[SEEN])
    if seen >= lowest.shape[0]:
        return
    lowest[seen] = max(np.linalg.eigvalsh(gram)[0], 0.0)
    settled[SEEN] = seen = seen + 1
    if seen >= settled[DUE]:
        settled[DUE] = math.ceil(1.1 * seen + 0.1)
        settled[RIDGE] = np.quantile(lowest[:seen], 0.15) / logs
