"""The inverse of a lower triangle as a PyTensor Op: numba compiles its loops in a second, where
PyTensor's general inverse with its gradient takes it a minute and a half."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key


class LowerInverse(Op):
    """The inverse of the lower triangle of a matrix."""

    __props__ = ()
    gufunc_signature = "(d,d)->(d,d)"

    def make_node(self, *inputs: Any) -> Apply:
        """A matrix."""
        (matrix,) = inputs
        lower = pt.as_tensor(matrix).astype("float64")
        return Apply(self, [lower], [lower.type()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """By NumPy."""
        output_storage[0][0] = np.tril(np.linalg.inv(np.tril(inputs[0])))

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable[Any, Any]]:
        """d inverse = -inverse d(lower) inverse."""
        inverse = outputs[0].T
        return [-pt.tril(inverse @ cotangents[0] @ inverse)]

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        """That of the matrix."""
        return [shapes[0]]


@register_funcify_default_op_cache_key(LowerInverse)
def _compiled(op: LowerInverse, node: Any = None, **kwargs: Any) -> tuple[Any, int]:
    """By forward substitution, column by column; the number changes when the loops do."""

    @numba_njit
    def inverse(lower):  # type: ignore[no-untyped-def]
        d = lower.shape[0]
        out = np.zeros((d, d))
        for j in range(d):
            out[j, j] = 1.0 / lower[j, j]
            for i in range(j + 1, d):
                total = 0.0
                for q in range(j, i):
                    total += lower[i, q] * out[q, j]
                out[i, j] = -total / lower[i, i]
        return out

    return inverse, 1


lower_inverse = LowerInverse()
