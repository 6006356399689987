"""Widening: add what the covariance estimate may be short of, eq. (12)."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.jit import kernel


@kernel
def widening_radius(n, dim, horizon, constant):
    """s = c_w sqrt((5d + 2 ln(d n T)) / (n - 1)) before the n-th task, eq. (12)."""
    return constant * math.sqrt((5 * dim + 2 * math.log(dim * n * horizon)) / (n - 1))


@kernel
def raise_eigenvalues(cov, floor):
    """Raise the eigenvalues of ``cov`` below ``floor`` to it, in place; return its upper root.

    The root (root' root = cov) comes from the eigenvalues, so a floor of 0, which leaves ``cov``
    singular, or one lost to rounding, does no harm.
    """
    values, vectors = np.linalg.eigh(cov)
    raised = np.maximum(values, floor)
    lifted = (vectors * raised) @ vectors.T
    cov[:] = (lifted + lifted.T) / 2
    _, root = np.linalg.qr(np.ascontiguousarray((vectors * np.sqrt(raised)).T))
    for i in range(root.shape[0]):
        if root[i, i] < 0.0:
            root[i] = -root[i]
    return root
