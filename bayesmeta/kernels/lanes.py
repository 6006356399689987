"""Four numbers at once: what agents do alike is done for four of them by one instruction.

A value of type ``LANES`` is a vector of ``WIDTH`` numbers. Every operation acts on each number as
it would alone, so that an agent's results have the same bits whichever agents play beside it. In
plain Python the functions below do the same with arrays; compiled, they are what follows each.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, overload, register_model

WIDTH = 4
in_llvm: Any = intrinsic
"""Numba's, as it is called: with one argument fewer than it is defined with."""


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="lanes")


LANES = _Lanes()
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_INDEX = ir.IntType(64)
_BITS = ir.VectorType(_INDEX, WIDTH)


@register_model(_Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _compiled(function: Any, result: Any, *arguments: Any) -> Callable[[Any], Any]:
    """Say what a call of ``function`` with such arguments becomes in a kernel."""

    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            same = len(args) == len(arguments)
            if same and all(map(isinstance, args, arguments)):
                return signature(result, *args)
            return None

    infer_global(function)(Template)
    register: Callable[[Any], Any] = lower_builtin(function, *arguments)
    return register


def _arithmetic(function: Any, instruction: str) -> None:
    @_compiled(function, LANES, _Lanes, _Lanes)
    def code(context, builder, sig, args):
        return getattr(builder, instruction)(*args)


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")


def add_product(total, left, right):
    """total + left * right, rounded once where the processor can."""
    return total + left * right


@_compiled(add_product, LANES, _Lanes, _Lanes, _Lanes)
def _add_product(context, builder, sig, args):
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    function = get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{WIDTH}f64")
    total, left, right = args
    return builder.call(function, [left, right, total])


def pointer(array):
    """To the numbers of an array, which must outlive it: handed on without counting references."""
    return array.reshape(-1)


@in_llvm
def _pointer(typing, array):  # pragma: no cover - compiled
    def code(context, builder, sig, args):
        return context.make_array(sig.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), code


@overload(pointer)
def _pointer_of(array):
    return lambda array: _pointer(array)


def _place(builder, data, base, slot):
    first = builder.add(base, builder.mul(slot, ir.Constant(_INDEX, WIDTH)))
    return builder.bitcast(builder.gep(data, [first]), _VECTOR.as_pointer())


def load(array, base, slot):
    """The numbers of slot ``slot`` of those that start at ``base`` of a pointer's."""
    first = base + WIDTH * slot
    return array[first : first + WIDTH].copy()


@_compiled(load, LANES, types.CPointer, types.Integer, types.Integer)
def _load(context, builder, sig, args):
    return builder.load(_place(builder, *args), align=8)


def store(array, base, slot, value):
    """Write them."""
    first = base + WIDTH * slot
    array[first : first + WIDTH] = value


@_compiled(store, types.void, types.CPointer, types.Integer, types.Integer, _Lanes)
def _store(context, builder, sig, args):
    builder.store(args[3], _place(builder, *args[:3]), align=8)
    return context.get_dummy_value()


def spread(value):
    """The same number in every lane."""
    return np.full(WIDTH, value)


@_compiled(spread, LANES, types.Float)
def _spread(context, builder, sig, args):
    empty = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(empty, args[0], ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(
        one, empty, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), None)
    )


def square_root(value):
    """Of every number."""
    return np.sqrt(value)


@_compiled(square_root, LANES, _Lanes)
def _square_root(context, builder, sig, args):
    kind = ir.FunctionType(_VECTOR, [_VECTOR])
    function = get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{WIDTH}f64")
    return builder.call(function, args)


def where_greater(left, right, then, otherwise):
    """``then`` in lanes where left > right, ``otherwise`` in the others."""
    return np.where(left > right, then, otherwise)


@_compiled(where_greater, LANES, _Lanes, _Lanes, _Lanes, _Lanes)
def _where_greater(context, builder, sig, args):
    return builder.select(builder.fcmp_ordered(">", *args[:2]), *args[2:])


def exponent(value):
    """The power of two of every number, of its size: 3 of -12, which is -1.5 * 2**3."""
    return np.frexp(value)[1] - 1.0


@_compiled(exponent, LANES, _Lanes)
def _exponent(context, builder, sig, args):
    bits = builder.lshr(builder.bitcast(args[0], _BITS), _whole(52))
    # as the last bits of 2**52 it is a number without being converted
    number = builder.or_(builder.and_(bits, _whole(0x7FF)), _whole(0x433 << 52))
    constant = ir.Constant(_VECTOR, [2.0**52 + 1023] * WIDTH)
    return builder.fsub(builder.bitcast(number, _VECTOR), constant)


def mantissa(value):
    """What is left of every number's size: 1.5 of -12; at least 1, and less than 2."""
    return 2 * np.abs(np.frexp(value)[0])


@_compiled(mantissa, LANES, _Lanes)
def _mantissa(context, builder, sig, args):
    left = builder.and_(builder.bitcast(args[0], _BITS), _whole((1 << 52) - 1))
    return builder.bitcast(builder.or_(left, _whole(0x3FF << 52)), _VECTOR)


def _whole(number):
    return ir.Constant(_BITS, [number] * WIDTH)


def gather(array, first, second, third, fourth):
    """The numbers at four places of a pointer's."""
    return array[[first, second, third, fourth]]


@_compiled(gather, LANES, types.CPointer, *[types.Integer] * WIDTH)
def _gather(context, builder, sig, args):
    data = args[0]
    out = ir.Constant(_VECTOR, ir.Undefined)
    for lane, index in enumerate(args[1:]):
        number = builder.load(builder.gep(data, [index]))
        out = builder.insert_element(out, number, ir.Constant(_INDEX, lane))
    return out


def number_of(value, lane):
    """The number of one lane."""
    return value[lane]


@_compiled(number_of, types.float64, _Lanes, types.Integer)
def _number_of(context, builder, sig, args):
    return builder.extract_element(*args)
