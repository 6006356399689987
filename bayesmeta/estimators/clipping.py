"""Covariances of moments without their negative eigenvalues."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.checks import Array


def clip(symmetric: Array) -> Array:
    """Negative eigenvalues set to zero, which depends on the units of the features."""
    sizes = np.abs(np.diag(symmetric))
    even = sizes.max() <= 1e6 * sizes.min()
    values, vectors = np.linalg.eigh(symmetric) if even else _jacobi(symmetric)
    clipped: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (clipped + clipped.T) / 2


def _jacobi(symmetric: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of a matrix whose features differ in size, by Jacobi's rotations.

    ``eigh`` rounds relative to the largest entry. Here each entry is made zero relative to the
    diagonal entries of its own row and column, so small features keep their digits.
    """
    a, vectors = symmetric.copy(), np.eye(len(symmetric))
    pairs = list(zip(*np.triu_indices(len(a), 1), strict=True))
    for _ in range(60):  # it converges quadratically, in ten or so
        turned = False
        for p, q in pairs:
            across = float(a[p, q])
            if abs(across) <= 1e-16 * math.sqrt(abs(a[p, p])) * math.sqrt(abs(a[q, q])):
                continue
            ratio = (float(a[q, q]) - float(a[p, p])) / 2 / across
            tangent = math.copysign(1.0, ratio) / (abs(ratio) + math.hypot(1.0, ratio))
            cosine = 1 / math.hypot(1.0, tangent)
            turn = cosine * np.array([[1.0, tangent], [-tangent, 1.0]])
            ends = a[p, p] - tangent * across, a[q, q] + tangent * across
            a[[p, q]] = turn.T @ a[[p, q]]
            a[:, [p, q]] = a[[p, q]].T
            a[p, p], a[q, q] = ends
            a[p, q] = a[q, p] = 0.0
            vectors[:, [p, q]] = vectors[:, [p, q]] @ turn
            turned = True
        if not turned:
            break
    return np.diag(a), vectors
