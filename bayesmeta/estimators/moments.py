"""The paper's estimator of the prior: a method of moments, streaming, in O(d^2) memory.

The paper writes "before the n-th instance"; here k = n - 1 is the number of tasks seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.estimators.widening import raise_eigenvalues, widening_radius
from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.linalg import has_full_rank, upper_root


class MomentState(NamedTuple):
    """All that k tasks need to leave behind, updated in place.

    ``tasks`` is [k, tasks passed over because their gram was singular], ``mean`` the running mean
    of the OLS estimates, ``scatter`` their scatter about it, ``inverse_grams`` the sum of V^-1.
    """

    tasks: Array
    mean: Array
    scatter: Array
    inverse_grams: Array


def empty(dim: int) -> MomentState:
    """No task seen yet."""
    return MomentState(np.zeros(2), np.zeros(dim), np.zeros((dim, dim)), np.zeros((dim, dim)))


@kernel
def observe(tasks, mean, scatter, inverse_grams, gram, moment):
    """Add one task; one without an invertible gram is passed over and counted.

    So k counts the tasks that could be used, and n = k + 1 in eq. (12) with it.
    """
    if not has_full_rank(gram, np.empty_like(gram)):
        tasks[1] += 1
        return
    tasks[0] += 1
    inverse = np.linalg.inv(gram)
    theta = inverse @ moment  # eq. (9), ordinary least squares
    step = theta - mean
    mean += step / tasks[0]  # eq. (10), the running mean
    scatter += np.outer(step, theta - mean)
    inverse_grams += inverse


@kernel
def covariance(tasks, mean, scatter, inverse_grams, variance):
    """Bias-corrected covariance, eq. (11): the scatter of the OLS estimates less their noise.

    With variance 0 nothing is corrected: the plain covariance of the OLS estimates.
    """
    k = tasks[0]
    estimate = scatter / (k - 1) - variance / k * inverse_grams
    return (estimate + estimate.T) / 2


@kernel
def widened(tasks, mean, scatter, inverse_grams, variance, horizon, constant, floor):
    """The covariance handed to the next task, eq. (12), and how it came about.

    Returns it, its Cholesky factor, the raw estimate of eq. (11), and whether eigenvalues had to
    be raised to ``floor`` because eq. (12) was not positive definite.
    """
    raw = covariance(tasks, mean, scatter, inverse_grams, variance)
    d = raw.shape[0]
    cov = raw + widening_radius(tasks[0] + 1, d, horizon, constant) * np.eye(d)
    root = np.empty_like(cov)
    raised = not upper_root(cov, root)
    if raised:
        root[:] = raise_eigenvalues(cov, floor)
    return cov, root.T, raw, raised


def merge(first: MomentState, second: MomentState) -> MomentState:
    """The state of the union of two groups of tasks; neither is changed."""
    tasks = first.tasks + second.tasks
    if tasks[0] == 0:
        return MomentState(tasks, *(value.copy() for value in first[1:]))
    gap = second.mean - first.mean
    share = second.tasks[0] / tasks[0]
    return MomentState(
        tasks,
        first.mean + share * gap,
        first.scatter + second.scatter + first.tasks[0] * share * np.outer(gap, gap),
        first.inverse_grams + second.inverse_grams,
    )
