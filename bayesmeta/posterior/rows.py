"""A weighted sum of the rows of a matrix, as a PyTensor Op of two plain loops.

PyTensor's own products of matrices call BLAS, whose bits depend on its threads, and sums of
products written out keep a second matrix of all the products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key


class SumOfRows(Op):
    """The sum of w_i times row i of a matrix; it has no gradient."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Weights and matrix."""
        return Apply(self, [pt.as_tensor(value) for value in inputs], [pt.dvector()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """By NumPy."""
        output_storage[0][0] = np.einsum("i,ij->j", *inputs)

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        """That of a row."""
        return [(shapes[1][1],)]


sum_of_rows = SumOfRows()


@register_funcify_default_op_cache_key(SumOfRows)
def _compiled(op: SumOfRows, node: Any = None, **kwargs: Any) -> tuple[Any, int]:
    @numba_njit
    def summed(weights, matrix):  # type: ignore[no-untyped-def]
        out = np.zeros(matrix.shape[1])
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                out[j] += weights[i] * matrix[i, j]
        return out

    return summed, 1
