"""Small dense linear algebra without allocation, in O(d^2) a step."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.codes import SINGULAR
from bayesmeta.kernels.jit import inlined, kernel


@inlined
def _update(d, mean, root, action, reward, variance, left, gain):
    residual = reward
    for i in range(d):
        residual -= action[i] * mean[i]
        total = 0.0
        for j in range(i, d):
            total += root[i, j] * action[j]
        left[i] = total
        gain[i] = 0.0
    alpha = variance
    for i in range(d - 1, -1, -1):
        f = left[i]
        before = alpha
        alpha = before + f * f
        inverse = 1.0 / math.sqrt(before * alpha)
        shrink, mix = before * inverse, f * inverse
        for j in range(i, d):
            entry, sum_right = root[i, j], gain[j]
            root[i, j] = shrink * entry - mix * sum_right
            gain[j] = sum_right + f * entry
    residual /= alpha
    for i in range(d):
        mean[i] += gain[i] * residual


@kernel
def update_posterior(mean, root, action, reward, variance, left, gain):
    """One step of eq. (4): condition N(mean, root' root) on ``reward`` = action' theta + noise.

    Carlson's square-root update of the Cholesky factor: with f = L' a and
    alpha_i = sigma^2 + f_i^2 + ... + f_d^2, column i of the new factor is
    L_i sqrt(alpha_{i+1} / alpha_i) - (sum_{j>i} L_j f_j) f_i / sqrt(alpha_i alpha_{i+1}).
    Every alpha is a sum of positive terms, so none loses accuracy. ``left`` and ``gain`` are
    work space; on return ``gain`` is Sigma a.
    """
    d = mean.shape[0]
    if d == 2:
        _update(2, mean, root, action, reward, variance, left, gain)
    elif d == 3:
        _update(3, mean, root, action, reward, variance, left, gain)
    elif d == 4:
        _update(4, mean, root, action, reward, variance, left, gain)
    elif d == 5:
        _update(5, mean, root, action, reward, variance, left, gain)
    else:
        _update(d, mean, root, action, reward, variance, left, gain)


@kernel
def is_semidefinite(work):
    """Whether the symmetric matrix in the upper triangle of ``work``, which is overwritten, has a
    (semi-definite) Cholesky factor."""
    d = work.shape[0]
    for i in range(d):
        pivot = work[i, i]
        if not pivot >= 0.0:
            return False
        if pivot == 0.0:
            for j in range(i + 1, d):
                if work[i, j] != 0.0:
                    return False
            continue
        for j in range(i + 1, d):
            ratio = work[i, j] / pivot
            for k in range(j, d):
                work[j, k] -= ratio * work[i, k]
    return True


@kernel
def smallest_eigenvalue_at_least(matrix, bound, work):
    """Whether lambda_min(matrix) >= bound: matrix - bound I is positive semi-definite.

    Reads the upper triangle only. Exact for diagonal matrices, ties included.
    """
    d = matrix.shape[0]
    for i in range(d):
        for j in range(i, d):
            work[i, j] = matrix[i, j]
        work[i, i] -= bound
    return is_semidefinite(work)


@kernel
def has_full_rank(gram, work):
    """Whether a gram V is invertible, the one rank test of the package.

    Every feature is measured in its own length first, so that units do not matter: the test is
    lambda_min >= ``SINGULAR`` d for the matrix V_ij / sqrt(V_ii V_jj), whose trace is d. The bound
    is above the rounding that thousands of rank-one additions leave behind, and an eigenvalue below
    it would let least squares be wrong in every digit but a few. Reads the upper triangle only.
    """
    d = gram.shape[0]
    for i in range(d):
        if not gram[i, i] > 0.0:
            return False
    for i in range(d):
        own = math.sqrt(gram[i, i])
        for j in range(i + 1, d):
            work[i, j] = gram[i, j] / own / math.sqrt(gram[j, j])
        work[i, i] = 1.0 - SINGULAR * d
    return is_semidefinite(work)


@kernel
def have_full_rank(grams):
    """``has_full_rank`` for each of many grams."""
    out = np.empty(grams.shape[0], dtype=np.bool_)
    work = np.empty(grams.shape[1:])
    for j in range(grams.shape[0]):
        out[j] = has_full_rank(grams[j], work)
    return out


@kernel
def upper_root(cov, root):
    """Write the upper root of ``cov`` (root' root = cov); False if not positive definite."""
    d = cov.shape[0]
    for i in range(d):
        for j in range(i, d):
            total = cov[i, j]
            for k in range(i):
                total -= root[k, i] * root[k, j]
            if j == i:
                if not total > 0.0:
                    return False
                root[i, i] = math.sqrt(total)
            else:
                root[i, j] = total / root[i, i]
        for j in range(i):
            root[i, j] = 0.0
    return True
