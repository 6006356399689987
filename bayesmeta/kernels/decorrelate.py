"""W-decorrelation of least squares from adaptively chosen actions (Deshpande et al. 2018)."""

from __future__ import annotations

import numpy as np

from bayesmeta.kernels.jit import kernel


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
