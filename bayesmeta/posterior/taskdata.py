"""Statistics laid out for the kernel of the collapsed likelihood, and its values as numbers.

What draws without a PyMC model needs of the likelihood; ``op`` has the same for PyTensor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.estimators.likelihood import lay_out
from bayesmeta.kernels.collapsed import Data, ValueAndGradients, value_alone, value_and_gradients
from bayesmeta.kernels.layout import Chunk
from bayesmeta.statistics import TaskStatistics

RIDGE = 1e-10
"""What of each feature's sum of squares is added to that of all tasks, where features may depend on
each other, before it says in which coordinates to compute."""


class TaskData(NamedTuple):
    """Statistics laid out for the kernel, as in ``bayesmeta.kernels.layout.Chunk``, in coordinates
    ``frame`` @ theta, and the number of all rewards."""

    grams: Array
    moments: Array
    energy: Array
    inverses: Array
    estimates: Array
    residuals: Array
    logs: Array
    regular: Array
    frame: Array
    steps: Array


def task_data(stats: TaskStatistics) -> TaskData:
    """Lay out; without ``count`` and ``energy`` the likelihood lacks a constant factor.

    In coordinates in which an average task's gram is nearly the identity, so that features with a
    far origin cost no digits; the change to them is lower triangular, as roots of Sigma are.
    """
    total = stats.gram.sum(axis=0) / max(len(stats), 1)
    own = np.where(np.diag(total) > 0, np.diag(total), 1.0)
    scaled = total / np.sqrt(np.outer(own, own)) + RIDGE * np.eye(stats.dim)
    np.fill_diagonal(scaled, 1.0 + RIDGE)
    upper = np.linalg.cholesky(scaled[::-1, ::-1])[::-1, ::-1]  # times its transpose is ``scaled``
    frame = np.ascontiguousarray((upper * np.sqrt(own)[:, None]).T)
    chunk = lay_out(stats, np.linalg.inv(frame), slice(None))
    steps = 0.0 if stats.count is None else float(stats.count.sum())
    return TaskData(*chunk[:-1], np.asarray(float(chunk.regular)), frame, np.asarray(steps))


def likelihood(mean: Array, root: Array, noise_sd: float, data: TaskData) -> ValueAndGradients:
    """The kernel's log-likelihood and its gradients, as numbers."""
    found: ValueAndGradients = value_and_gradients(mean, root, noise_sd, _as_given(data))
    return found


def likelihood_value(mean: Array, root: Array, noise_sd: float, data: TaskData) -> float:
    """The log-likelihood alone, for less."""
    return float(value_alone(mean, root, noise_sd, _as_given(data)))


def _as_given(data: TaskData) -> Data:
    """What the kernel takes."""
    chunk = Chunk(*data[:7], int(data.regular.item()))
    return Data(chunk, data.frame, data.steps.item())
