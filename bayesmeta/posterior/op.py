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

import math
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numba import float64
from numba.core.types import NamedTuple as NamedTupleType
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key
from pytensor.tensor.rewriting.basic import register_canonicalize, register_specialize

from bayesmeta.checks import Array
from bayesmeta.kernels.address import by_address
from bayesmeta.kernels.collapsed import Data, value_alone, value_and_gradients
from bayesmeta.kernels.jit import STAMP
from bayesmeta.kernels.layout import CHUNK, MATRIX, Chunk
from bayesmeta.posterior.taskdata import TaskData, likelihood, likelihood_value, task_data
from bayesmeta.statistics import TaskStatistics

RANKS = (1, 2, 0, 2, 2, 1, 2, 2, 1, 1, 0, 2, 0)
"""Of mean, root, noise_sd and ``TaskData``."""


def _only_value(mean: Array, root: Array, noise_sd: float, data: TaskData) -> tuple[float]:
    return (likelihood_value(mean, root, noise_sd, data),)


class CollapsedLikelihood(Op):
    """log p(rewards | mu, L L', sigma), theta integrated out; and its gradients, as outputs.

    Inputs: mu (d,), L (d, d), of which the lower triangle is read, sigma, and ``TaskData``. The
    gradients are computed with the value, so that differentiating costs nothing more; without
    ``gradients`` the value is the only output, and costs less.
    """

    __props__ = ("gradients",)

    def __init__(self, gradients: bool = True) -> None:
        self.gradients = gradients

    def make_node(self, *inputs: Any) -> Apply:
        """Mean, root, noise_sd, and the arrays of ``TaskData``."""
        variables = [pt.as_tensor(value).astype("float64") for value in inputs]
        ranks = tuple(variable.type.ndim for variable in variables)
        if ranks != RANKS:
            raise TypeError(
                "the collapsed likelihood takes a mean (d,), a root (d, d), a scalar noise_sd and "
                f"the {len(TaskData._fields)} arrays of TaskData; got ranks {ranks}"
            )
        d = variables[0].type.shape[0]
        _agree([variable.type.shape for variable in variables])
        vector, matrix = (pt.TensorType("float64", (d,) * rank)() for rank in (1, 2))
        outputs = [pt.dscalar(), vector, matrix, pt.dscalar()]
        return Apply(self, variables, outputs if self.gradients else outputs[:1])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Run the kernel from Python."""
        _agree([np.shape(value) for value in inputs])
        mean, root, noise_sd, *arrays = map(np.ascontiguousarray, inputs)
        compute = likelihood if self.gradients else _only_value
        found = compute(mean, root, noise_sd.item(), TaskData(*arrays))
        for storage, value in zip(output_storage, found, strict=True):
            storage[0] = np.asarray(value)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable[Any, Any]]:
        """The gradients are there already, or come from the Op that has them."""
        above = cotangents[0]
        slopes = (outputs if self.gradients else _with_gradients(*inputs))[1:]
        constant = [disconnected_type() for _ in TaskData._fields]
        return [*[above * slope for slope in slopes], *constant]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Only the value can be differentiated, in mean, root and noise_sd."""
        others = [False] * (len(node.outputs) - 1)
        return [[True, *others]] * 3 + [[False, *others]] * len(TaskData._fields)

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        """Scalars, and shapes of what the gradients are in."""
        return [(), shapes[0], shapes[1], ()][: len(node.outputs)]


def _size(shape: tuple[int | None, ...]) -> int | None:
    """How many entries an array has, as far as it is known."""
    known = [length for length in shape if length is not None]
    return math.prod(known) if len(known) == len(shape) else None


def _agree(shapes: list[tuple[int | None, ...]]) -> None:
    """Refuse a mean and a root of another dimension than the data's, as far as it is known."""
    (d,), root, _, *data = shapes
    (p, n), (dim, others), (energy,), inverses, estimates, (left,), (logs,), _, frame, _ = data
    wanted = None if dim is None else dim * (dim + 1) // 2
    pairs = [(d, dim), (root[0], dim), (root[1], dim), (frame[0], dim), (frame[1], dim)]
    pairs += [(p, wanted), (others, n), (energy, n), (logs, left)]
    pairs += [(_size(inverses), _size((wanted, left))), (_size(estimates), _size((dim, left)))]
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise ValueError(
            f"the tasks have {dim} features, but the mean has shape ({d},) and the root {root}; "
            "both must have as many"
        )


_ARGUMENTS = (float64[::1], MATRIX, float64, NamedTupleType((CHUNK, MATRIX, float64), Data))
"""What the kernels are called with, as numba's types."""


@register_funcify_default_op_cache_key(CollapsedLikelihood)
def _compiled(op: CollapsedLikelihood, node: Any = None, **kwargs: Any) -> tuple[Any, int]:
    """The same for numba; the kernels' source is part of the key under which it is kept."""

    @numba_njit
    def ready(mean, root, noise_sd, arrays):  # type: ignore[no-untyped-def]
        grams, moments, energy, inverses, estimates, residuals, logs, regular, frame, steps = arrays
        d, n = moments.shape
        r, p = residuals.shape[0], d * (d + 1) // 2
        same = mean.shape[0] == d and root.shape == (d, d) and frame.shape == (d, d)
        same = same and grams.shape == (p, n) and energy.shape[0] == n
        same = same and inverses.size == p * r and estimates.size == d * r
        if not same or logs.shape[0] != r or r > n:
            raise ValueError("mean, root and task data of the collapsed likelihood do not fit")
        chunk = Chunk(
            np.ascontiguousarray(grams),
            np.ascontiguousarray(moments),
            np.ascontiguousarray(energy),
            np.ascontiguousarray(inverses),
            np.ascontiguousarray(estimates),
            np.ascontiguousarray(residuals),
            np.ascontiguousarray(logs),
            int(regular.item()),
        )
        data = Data(chunk, np.ascontiguousarray(frame), steps.item())
        return np.ascontiguousarray(mean), np.ascontiguousarray(root), noise_sd.item(), data

    kernel: Any = by_address(value_and_gradients if op.gradients else value_alone, _ARGUMENTS)
    kernel.stage.ready()
    if op.gradients:

        @numba_njit
        def collapsed(mean, root, noise_sd, *arrays):  # type: ignore[no-untyped-def]
            found = kernel(*ready(mean, root, noise_sd, arrays))
            return np.asarray(found.value), found.mean, found.root, np.asarray(found.noise_sd)
    else:

        @numba_njit
        def collapsed(mean, root, noise_sd, *arrays):  # type: ignore[no-untyped-def]
            return np.asarray(kernel(*ready(mean, root, noise_sd, arrays)))

    return collapsed, int(STAMP[:12], 16) + op.gradients


_with_gradients, _without = CollapsedLikelihood(), CollapsedLikelihood(gradients=False)


@register_canonicalize
@register_specialize
@node_rewriter([CollapsedLikelihood])
def value_with_gradients(fgraph: Any, node: Apply) -> list[Variable[Any, Any]] | None:
    """Where gradients are computed as well, take the value that comes with them."""
    if node.op.gradients:
        return None
    for other, _ in fgraph.clients[node.inputs[0]]:
        if other.op == _with_gradients and other.inputs == node.inputs:
            return [other.outputs[0]]
    return None


def task_likelihood(
    mean: Any, root: Any, noise_sd: Any, data: TaskStatistics | TaskData
) -> Variable[Any, Any]:
    """Log-likelihood of all tasks under N(mean, root root') and noise, as a PyTensor scalar.

    ``root`` is a lower Cholesky factor. ``data`` may hold PyTensor variables (``pm.Data``).
    """
    laid_out = task_data(data) if isinstance(data, TaskStatistics) else data
    value: Variable[Any, Any] = _without(mean, root, noise_sd, *laid_out)
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
