"""Small dense linear algebra without allocation, in O(d^2) a step."""

from __future__ import annotations

import math

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
def smallest_eigenvalue_at_least(matrix, bound, work):
    """Whether lambda_min(matrix) >= bound: matrix - bound I has a (semi-definite) Cholesky factor.

    Reads the upper triangle only. Exact for diagonal matrices, ties included.
    """
    d = matrix.shape[0]
    for i in range(d):
        for j in range(i, d):
            work[i, j] = matrix[i, j]
        work[i, i] -= bound
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
def has_full_rank(gram, work):
    """Whether a gram is invertible: lambda_min >= 1e-12 trace.

    The bound is above the rounding that thousands of rank-one additions leave behind, and an
    eigenvalue below it would let least squares be wrong in every digit but a few.
    """
    trace = 0.0
    for i in range(gram.shape[0]):
        trace += gram[i, i]
    return trace > 0.0 and smallest_eigenvalue_at_least(gram, 1e-12 * trace, work)


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
