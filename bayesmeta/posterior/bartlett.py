"""A root of an inverse-Wishart matrix from Bartlett's factor, as PyTensor Ops of a few plain loops.

PyTensor's own products and inverses of matrices call LAPACK and BLAS, which numba takes a minute
and a half to compile into a model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key


class InverseRoot(Op):
    """R = (U F)'^-1, lower, of upper triangular U and F, in F."""

    __props__ = ()
    gufunc_signature = "(d,d),(d,d)->(d,d)"

    def make_node(self, *inputs: Any) -> Apply:
        """U, a constant, and F."""
        return Apply(self, [pt.as_tensor(value) for value in inputs], [pt.dmatrix()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """By NumPy."""
        upper, factor = inputs
        output_storage[0][0] = np.ascontiguousarray(np.linalg.inv(upper @ factor).T)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable[Any, Any]]:
        """In F alone."""
        upper, (root,), (above,) = inputs[0], outputs, cotangents
        return [pt.zeros_like(upper), _slope(upper, root, above)]

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        """That of F."""
        return [shapes[1]]


class _Slope(Op):
    """- U'R G'R, of which the upper triangle is the gradient in F, where G is that in R."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """U, R and G."""
        return Apply(self, [pt.as_tensor(value) for value in inputs], [pt.dmatrix()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """By NumPy."""
        upper, root, above = inputs
        output_storage[0][0] = -np.triu(upper.T @ root @ np.tril(above).T @ root)

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        """That of R."""
        return [shapes[1]]


inverse_root, _slope = InverseRoot(), _Slope()


@register_funcify_default_op_cache_key(InverseRoot)
def _compiled_root(op: InverseRoot, node: Any = None, **kwargs: Any) -> tuple[Any, int]:
    @numba_njit
    def root_of(upper, factor):  # type: ignore[no-untyped-def]
        d = upper.shape[0]
        both, root = np.zeros((d, d)), np.zeros((d, d))
        for i in range(d):
            for q in range(i, d):
                for j in range(q, d):
                    both[i, j] += upper[i, q] * factor[q, j]
        for j in range(d):  # row j of R is column j of (U F)^-1
            root[j, j] = 1.0 / both[j, j]
            for i in range(j - 1, -1, -1):
                total = 0.0
                for q in range(i + 1, j + 1):
                    total += both[i, q] * root[j, q]
                root[j, i] = -total / both[i, i]
        return root

    return root_of, 1


@register_funcify_default_op_cache_key(_Slope)
def _compiled_slope(op: _Slope, node: Any = None, **kwargs: Any) -> tuple[Any, int]:
    @numba_njit
    def slope_of(upper, root, above):  # type: ignore[no-untyped-def]
        d = upper.shape[0]
        left, right, out = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
        for i in range(d):
            for j in range(d):
                for q in range(j, i + 1):
                    left[i, j] += upper[q, i] * root[q, j]
                for q in range(max(i, j), d):
                    right[i, j] += above[q, i] * root[q, j]
        for i in range(d):
            for q in range(i + 1):
                for j in range(i, d):
                    out[i, j] -= left[i, q] * right[q, j]
        return out

    return slope_of, 1
