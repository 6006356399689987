"""A compiled log-density as a function that nutpie calls without Python, so that chains run side by
side: each call through Python waits for its lock, and there are ten and more for every draw.

Data are handed over as addresses and shapes; the log-density is called by its address, so that none
of it is compiled again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numpy.typing import NDArray

from bayesmeta.checks import Array

in_llvm: Any = intrinsic
_c: Any = numba.cfunc
_NUMBERS, _PLACES = types.CPointer(types.float64), types.CPointer(types.int64)
_DENSITY = types.int64(types.uint64, _NUMBERS, _NUMBERS, _NUMBERS, _PLACES)
_EXPAND = types.int64(types.uint64, types.uint64, _NUMBERS, _NUMBERS, _PLACES)
_POINT = types.Array(types.float64, 1, "C")
RECOVERABLE = 1
"""What a log-density answers where it is not finite: a trajectory diverges there."""


class Callback(NamedTuple):
    """A log-density for nutpie with what it needs: where its ``data`` are, and their shapes."""

    density: Any
    expand: Any
    places: NDArray[np.int64]
    data: tuple[Array, ...]


def as_callback(function: Any, data: Sequence[Any]) -> Callback:
    """Of a compiled function of a point and data that returns a value and its gradient."""
    arrays = tuple(np.require(one, requirements=["C", "A", "W"]) for one in data)
    places = [number for one in arrays for number in (one.ctypes.data, *one.shape)]
    kinds = tuple(map(numba.typeof, arrays))
    return Callback(_density(function, kinds), _copied(), np.array(places, np.int64), arrays)


@functools.cache
def _density(function: Any, kinds: tuple[Any, ...]) -> Any:
    """nutpie's way to the value and the gradient at a point."""
    given = (types.BaseTuple.from_types((_POINT, *kinds)),)
    function.compile(given)
    call = _by_address(function.overloads[given])

    def density(size, point, gradient, value, places):  # type: ignore[no-untyped-def]
        fine, found = call(size, point, places)
        if not fine:
            return RECOVERABLE
        value[0] = found[0].item()
        bad = not np.isfinite(value[0])
        for i in range(size):
            gradient[i] = found[1][i]
            bad = bad or not np.isfinite(gradient[i])
        return RECOVERABLE if bad else 0

    return _c(_DENSITY)(density)


@functools.cache
def _copied() -> Any:
    """nutpie's way from a point to what is kept of it: the point."""

    def expand(size, kept, point, out, places):  # type: ignore[no-untyped-def]
        for i in range(size):
            out[i] = point[i]
        return 0 if kept == size else -1

    return _c(_EXPAND)(expand)


def _by_address(compiled: Any) -> Any:
    """What calls a compiled function, which takes a tuple of a point and data: whether it raised
    nothing, and its value."""
    sig = compiled.signature
    where = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)

    def code(context: Any, builder: Any, own: Any, args: Any) -> Any:
        size, point, places = args
        first, *rest = sig.args[0].types
        arrays, at = [_array(context, builder, first, point, [size])], 0
        for kind in rest:
            numbers = [_entry(builder, places, at + i) for i in range(1 + kind.ndim)]
            arrays.append(_array(context, builder, kind, numbers[0], numbers[1:]))
            at += 1 + kind.ndim
        given = context.make_tuple(builder, sig.args[0], arrays)
        called = context.call_conv.get_function_type(sig.return_type, sig.args)
        address = context.get_constant(types.intp, where)
        status, out = context.call_conv.call_function(
            builder,
            builder.inttoptr(address, called.as_pointer()),
            sig.return_type,
            sig.args,
            [given],
        )
        return context.make_tuple(builder, own.return_type, [status.is_ok, out])

    def call(typing: Any, size: Any, point: Any, places: Any) -> Any:
        return types.Tuple((types.boolean, sig.return_type))(size, point, places), code

    return in_llvm(call)


def _entry(builder: Any, places: Any, i: int) -> Any:
    """A number of ``places``."""
    return builder.load(builder.gep(places, [ir.Constant(ir.IntType(64), i)]))


def _array(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    """An array of this kind, one row after the other, that lies at an address."""
    array = make_array(kind)(context, builder)
    width = context.get_constant(types.intp, context.get_abi_sizeof(array.data.type.pointee))
    strides: list[Any] = []
    stride = width
    for length in reversed(shape):
        strides.insert(0, stride)
        stride = builder.mul(stride, length)
    if isinstance(address.type, ir.IntType):
        address = builder.inttoptr(address, array.data.type)
    populate_array(array, address, shape, strides, width, None)
    return array._getvalue()
