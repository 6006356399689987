"""Statistics laid out for the kernel of the collapsed likelihood, and its values as numbers.

What draws without a PyMC model needs of the likelihood; ``op`` has the same for PyTensor.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array
from bayesmeta.estimators.likelihood import laid_out
from bayesmeta.kernels.collapsed import (
    Data,
    ValueAndGradients,
    value_alone,
    value_and_gradients,
    value_of_each,
)
from bayesmeta.kernels.layout import Chunk
from bayesmeta.statistics import TaskStatistics

RIDGE = 1e-10
"""What of each feature's sum of squares is added to that of all tasks, where features may depend on
each other, before it says in which coordinates to compute."""

_BLOCK = 64
"""Priors that a thread takes at a time."""


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
    """Lay out; without ``count`` and ``energy`` the likelihood lacks a constant factor."""
    return _laid_out(stats)[0]


def _laid_out(stats: TaskStatistics) -> tuple[TaskData, NDArray[np.intp]]:
    """The same, and where each task is.

    In coordinates in which an average task's gram is nearly the identity, so that features with a
    far origin cost no digits; the change to them is lower triangular, as roots of Sigma are.
    """
    total = stats.gram.sum(axis=0) / max(len(stats), 1)
    own = np.where(np.diag(total) > 0, np.diag(total), 1.0)
    scaled = total / np.sqrt(np.outer(own, own)) + RIDGE * np.eye(stats.dim)
    np.fill_diagonal(scaled, 1.0 + RIDGE)
    upper = np.linalg.cholesky(scaled[::-1, ::-1])[::-1, ::-1]  # times its transpose is ``scaled``
    frame = np.ascontiguousarray((upper * np.sqrt(own)[:, None]).T)
    chunk, places = laid_out(stats, np.linalg.inv(frame), slice(None))
    steps = 0.0 if stats.count is None else float(stats.count.sum())
    data = TaskData(*chunk[:-1], np.asarray(float(chunk.regular)), frame, np.asarray(steps))
    return data, places


def likelihood(mean: Array, root: Array, noise_sd: float, data: TaskData) -> ValueAndGradients:
    """The kernel's log-likelihood and its gradients, as numbers."""
    found: ValueAndGradients = value_and_gradients(mean, root, noise_sd, _as_given(data))
    return found


def likelihood_value(mean: Array, root: Array, noise_sd: float, data: TaskData) -> float:
    """The log-likelihood alone, for less."""
    return float(value_alone(mean, root, noise_sd, _as_given(data)))


def likelihood_of_each(
    stats: TaskStatistics, means: Array, roots: Array, noise_sds: Array, cores: int
) -> Array:
    """The log-likelihood of every task under every prior (s, n), priors side by side.

    Means are (s, d), lower roots of Sigma (s, d, d), and noise (s,); ``stats`` have a count.
    """
    data, places = _laid_out(stats)
    given, out = _as_given(data), np.empty((len(means), len(stats)))
    steps = np.asarray(stats.count, dtype=float)
    constants = steps * np.log(2 * np.pi * noise_sds[:, None] ** 2)

    def block(first: int) -> None:
        each = np.empty(given.chunk.moments.shape[1])
        for s in range(first, min(first + _BLOCK, len(means))):
            value_of_each(means[s], roots[s], float(noise_sds[s]), given, each)
            out[s] = -0.5 * (constants[s] + each[places])

    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(block, range(0, len(means), _BLOCK)))
    return out


def _as_given(data: TaskData) -> Data:
    """What the kernel takes."""
    chunk = Chunk(*data[:7], int(data.regular.item()))
    return Data(chunk, data.frame, data.steps.item())
