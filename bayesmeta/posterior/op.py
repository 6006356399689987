"""The likelihood of all tasks with theta integrated out, as one PyTensor Op with its gradients.

    import pymc as pm
    from bayesmeta.posterior.op import task_likelihood

    with pm.Model():
        mu, root, sigma = ...
        pm.Potential("tasks", task_likelihood(mu, root, sigma, stats))

The Op runs a compiled kernel, serially, in any backend that calls Python and, through its dispatch,
inside numba: chains may run side by side without fighting for threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

from bayesmeta.checks import Array
from bayesmeta.estimators.likelihood import pack
from bayesmeta.kernels.collapsed import ValueAndGradients, value_and_gradients
from bayesmeta.kernels.estep import Chunk
from bayesmeta.kernels.jit import STAMP
from bayesmeta.statistics import TaskStatistics


class TaskData(NamedTuple):
    """Statistics laid out for the kernel: lower triangles of grams (p, n), moments (d, n), sums of
    squares (n,), and the number of all rewards."""

    grams: Array
    moments: Array
    energy: Array
    steps: Array


def task_data(stats: TaskStatistics) -> TaskData:
    """Lay out; without ``count`` and ``energy`` the likelihood lacks a constant factor."""
    packed = pack(stats, np.eye(stats.dim))
    grams, moments, energy = (
        np.concatenate([chunk[i] for chunk in packed.chunks], axis=-1) for i in range(3)
    )
    return TaskData(grams, moments, energy, np.asarray(packed.steps))


def likelihood(mean: Array, root: Array, noise_sd: float, data: TaskData) -> ValueAndGradients:
    """The kernel's log-likelihood and its gradients, as numbers."""
    chunk = Chunk(data.grams, data.moments, data.energy)
    found: ValueAndGradients = value_and_gradients(mean, root, noise_sd, chunk, data.steps.item())
    return found


def likelihood_value(mean: Array, root: Array, noise_sd: float, data: TaskData) -> float:
    """The log-likelihood alone."""
    return float(likelihood(mean, root, noise_sd, data).value)


class CollapsedLikelihood(Op):
    """log p(rewards | mu, L L', sigma), theta integrated out; and its gradients, as outputs.

    Inputs: mu (d,), L (d, d), of which the lower triangle is read, sigma, and ``TaskData``. The
    gradients are computed with the value, so that differentiating costs nothing more.
    """

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Mean, root, noise_sd, grams, moments, energy, steps."""
        variables = [pt.as_tensor(value).astype("float64") for value in inputs]
        ranks = [variable.type.ndim for variable in variables]
        if ranks != [1, 2, 0, 2, 2, 1, 0]:
            raise TypeError(
                "the collapsed likelihood takes a mean (d,), a root (d, d), a scalar noise_sd and "
                f"the four arrays of TaskData; got ranks {ranks}"
            )
        d = variables[0].type.shape[0]
        _agree([variable.type.shape for variable in variables])
        vector, matrix = (pt.TensorType("float64", (d,) * rank)() for rank in (1, 2))
        outputs = [pt.dscalar(), vector, matrix, pt.dscalar()]
        return Apply(self, variables, outputs)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Run the kernel from Python."""
        _agree([np.shape(value) for value in inputs])
        mean, root, noise_sd, *data = map(np.ascontiguousarray, inputs)
        found = likelihood(mean, root, noise_sd.item(), TaskData(*data))
        for storage, value in zip(output_storage, found, strict=True):
            storage[0] = np.asarray(value)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable[Any, Any]]:
        """The gradients are there already."""
        above = cotangents[0]
        return [*[above * outputs[i] for i in (1, 2, 3)], *[disconnected_type() for _ in range(4)]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Only the value can be differentiated, in mean, root and noise_sd."""
        return [[True, False, False, False]] * 3 + [[False] * 4] * 4

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        """Scalars, and shapes of what the gradients are in."""
        return [(), shapes[0], shapes[1], ()]


def _agree(shapes: list[tuple[int | None, ...]]) -> None:
    """Refuse a mean and a root of another dimension than the data's, as far as it is known."""
    (d,), root, _, (p, n), (dim, _), (energy,), _ = shapes
    wanted = None if dim is None else dim * (dim + 1) // 2
    pairs = [(d, dim), (root[0], dim), (root[1], dim), (p, wanted), (energy, n)]
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise ValueError(
            f"the tasks have {dim} features, but the mean has shape ({d},) and the root {root}; "
            "both must have as many"
        )


@register_funcify_default_op_cache_key(CollapsedLikelihood)
def _compiled(op: CollapsedLikelihood, node: Any = None, **kwargs: Any) -> tuple[Any, int]:
    """The same for numba; the kernels' source is part of the key under which it is kept."""

    @numba_njit
    def collapsed(mean, root, noise_sd, grams, moments, energy, steps):  # type: ignore[no-untyped-def]
        d, n = moments.shape
        same = mean.shape[0] == d and root.shape[0] == d and root.shape[1] == d
        if not same or grams.shape != (d * (d + 1) // 2, n) or energy.shape[0] != n:
            raise ValueError("mean, root and task data of the collapsed likelihood do not fit")
        chunk = Chunk(
            np.ascontiguousarray(grams), np.ascontiguousarray(moments), np.ascontiguousarray(energy)
        )
        found = value_and_gradients(
            np.ascontiguousarray(mean),
            np.ascontiguousarray(root),
            noise_sd.item(),
            chunk,
            steps.item(),
        )
        return np.asarray(found.value), found.mean, found.root, np.asarray(found.noise_sd)

    return collapsed, int(STAMP[:12], 16)


_op = CollapsedLikelihood()


def task_likelihood(
    mean: Any, root: Any, noise_sd: Any, data: TaskStatistics | TaskData
) -> Variable[Any, Any]:
    """Log-likelihood of all tasks under N(mean, root root') and noise, as a PyTensor scalar.

    ``root`` is a lower Cholesky factor. ``data`` may hold PyTensor variables (``pm.Data``).
    """
    laid_out = task_data(data) if isinstance(data, TaskStatistics) else data
    value: Variable[Any, Any] = _op(mean, root, noise_sd, *laid_out)[0]
    return value


def plain_likelihood(
    mean: Any, root: Any, noise_sd: Any, gram: Any, moment: Any, energy: Any, steps: Any
) -> Variable[Any, Any]:
    """The same written in PyTensor alone, from (n, d, d) and (n, d) statistics."""
    tau = 1 / noise_sd**2
    inner = pt.eye(root.shape[0]) + tau * (root.T @ gram @ root)
    # by determinants and solves: numba has no batched gradient of a Cholesky factor
    logs = pt.log(pt.linalg.det(inner)).sum()
    w = tau * (moment - gram @ mean)
    along = (w @ root)[..., None]
    gain = (along * pt.linalg.solve(inner, along, b_ndim=2)).sum()
    quad = tau * (energy.sum() - 2 * (moment @ mean).sum() + ((gram @ mean) @ mean).sum())
    value: Variable[Any, Any] = -0.5 * (
        steps * pt.log(2 * np.pi * noise_sd**2) + logs + quad - gain
    )
    return value
