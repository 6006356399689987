"""The centre of a biased regression: the mean of past ridge estimates, or one of all steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesmeta.kernels.jit import kernel


class CentreSums(NamedTuple):
    """Sums over tasks, updated in place: [how many], of ridge estimates or of moments, of grams."""

    tasks: Any
    vector: Any
    gram: Any


@kernel
def ridge_estimate(gram, moment, ridge):
    """(V + ridge I)^-1 A'x."""
    return np.linalg.solve(gram + ridge * np.eye(gram.shape[0]), moment)


@kernel
def observe(sums, gram, moment, ridge, pooled):
    """Add one task: its steps where they are ``pooled``, or else its ridge estimate."""
    sums.tasks[0] += 1
    if pooled:
        sums.vector[:] += moment
        sums.gram[:] += gram
    else:
        sums.vector[:] += ridge_estimate(gram, moment, ridge)


@kernel
def centre_of(sums, ridge, pooled):
    """One ridge regression of all steps, or the mean of the tasks' ridge estimates."""
    if pooled:
        return ridge_estimate(sums.gram, sums.vector, ridge)
    return sums.vector / sums.tasks[0]
