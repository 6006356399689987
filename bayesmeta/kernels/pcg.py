"""NumPy's PCG64 and its ziggurats inside a kernel: the bits of ``Generator``, in half the time.

A ``Generator`` given to numba calls the bit generator through a pointer for every number; here its
state is carried in registers. A *source* of random numbers is either: a ``Generator``, or the state
of one as four words, which ``draw_with`` takes out and puts back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import overload
from numba.np.random import _constants as tables

from bayesmeta.kernels.jit import kernel
from bayesmeta.kernels.lanes import in_llvm

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
"""Of the generator x <- a x + c modulo 2^128 (O'Neill's PCG XSL RR 128/64)."""
NORMAL_INSIDE, NORMAL_WIDTH, NORMAL_HEIGHT = (
    tables.ki_double.astype(np.int64),
    tables.wi_double,
    tables.fi_double,
)
EXPONENTIAL_INSIDE, EXPONENTIAL_WIDTH, EXPONENTIAL_HEIGHT = (
    tables.ke_double.astype(np.int64),
    tables.we_double,
    tables.fe_double,
)
NORMAL_END, NORMAL_INVERSE_END = tables.ziggurat_nor_r, tables.ziggurat_nor_inv_r
EXPONENTIAL_END = tables.ziggurat_exp_r
FEW = 1000
"""Numbers that NumPy draws in the time that calling a kernel with a state takes."""


def draw_with(rng: np.random.Generator, drawing: Callable[..., Any], *rest: Any) -> None:
    """Call ``drawing(source, *rest)`` with the fastest source for a generator."""
    bits = rng.bit_generator
    compiled = hasattr(drawing, "py_func")
    if type(bits) is not np.random.PCG64 or not compiled:
        drawing(rng, *rest)
        return
    whole = bits.state
    numbers = whole["state"]
    words = [part for name in ("state", "inc") for part in divmod(numbers[name], 2**64)]
    source = np.array(words, dtype=np.uint64)
    drawing(source, *rest)
    numbers["state"] = int(source[0]) << 64 | int(source[1])
    bits.state = whole


@in_llvm
def _next(typing, high, low, add_high, add_low):  # pragma: no cover - compiled
    """The next state, high and low word, and the 64 bits it gives."""
    word = types.uint64

    def code(context, builder, sig, args):
        single, double = ir.IntType(64), ir.IntType(128)
        half = ir.Constant(double, 64)

        def wide(first, second):
            shifted = builder.shl(builder.zext(first, double), half)
            return builder.or_(shifted, builder.zext(second, double))

        product = builder.mul(wide(args[0], args[1]), ir.Constant(double, MULTIPLIER))
        state = builder.add(product, wide(args[2], args[3]))
        high = builder.trunc(builder.lshr(state, half), single)
        low = builder.trunc(state, single)
        mixed, turn = builder.xor(high, low), builder.lshr(high, ir.Constant(single, 58))
        kind = ir.FunctionType(single, [single] * 3)
        rotate = cgutils.get_or_insert_function(builder.module, kind, "llvm.fshr.i64")
        bits = builder.call(rotate, [mixed, mixed, turn])
        return context.make_tuple(builder, sig.return_type, [high, low, bits])

    return types.UniTuple(word, 3)(word, word, word, word), code


@kernel
def _bits(source):
    source[0], source[1], bits = _next(source[0], source[1], source[2], source[3])
    return bits


@kernel
def _uniform(source):
    return np.int64(_bits(source) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _split_normal(bits):
    """Layer, place in it, and the signed number."""
    layer = np.int64(bits & np.uint64(0xFF))
    place = np.int64((bits >> np.uint64(9)) & np.uint64(0x000FFFFFFFFFFFFF))
    # a factor: half of the guesses at a branch on the sign would be wrong
    sign = 1 - np.int64((bits >> np.uint64(7)) & np.uint64(2))
    return layer, place, sign * (place * NORMAL_WIDTH[layer])


@kernel
def _split_exponential(bits):
    layer = np.int64((bits >> np.uint64(3)) & np.uint64(0xFF))
    place = np.int64(bits >> np.uint64(11))
    return layer, place, place * EXPONENTIAL_WIDTH[layer]


@kernel
def _outer_normal(source, layer, place, x):
    """Go on with a normal that is not inside its layer: one in a hundred."""
    while True:
        if layer == 0:
            while True:
                beyond = -NORMAL_INVERSE_END * np.log1p(-_uniform(source))
                hhalf = -np.log1p(-_uniform(source))
                if hhalf + hhalf > beyond * beyond:
                    far = NORMAL_END + beyond
                    return -far if (place >> 8) & 1 else far
        top, bottom = NORMAL_HEIGHT[layer - 1], NORMAL_HEIGHT[layer]
        if (top - bottom) * _uniform(source) + bottom < math.exp(-0.5 * x * x):
            return x
        layer, place, x = _split_normal(_bits(source))
        if place < NORMAL_INSIDE[layer]:
            return x


@kernel
def _outer_exponential(source, layer, x):
    while True:
        if layer == 0:
            return EXPONENTIAL_END - np.log1p(-_uniform(source))
        top, bottom = EXPONENTIAL_HEIGHT[layer - 1], EXPONENTIAL_HEIGHT[layer]
        if (top - bottom) * _uniform(source) + bottom < math.exp(-x):
            return x
        layer, place, x = _split_exponential(_bits(source))
        if place < EXPONENTIAL_INSIDE[layer]:
            return x


def fill_normals(source, out):
    """Fill a flat array with standard normals, those of ``Generator.standard_normal``."""
    out[:] = source.standard_normal(out.shape[0])


def fill_exponentials(source, out):
    """Fill a flat array with those of ``Generator.standard_exponential``."""
    out[:] = source.standard_exponential(out.shape[0])


@overload(fill_normals)
def _fill_normals(source, out):
    def called(source, out):
        for n in range(out.shape[0]):
            out[n] = source.standard_normal()

    def carried(source, out):
        high, low, add_high, add_low = source[0], source[1], source[2], source[3]
        for n in range(out.shape[0]):
            high, low, bits = _next(high, low, add_high, add_low)
            layer, place, x = _split_normal(bits)
            if place >= NORMAL_INSIDE[layer]:
                source[0], source[1] = high, low
                x = _outer_normal(source, layer, place, x)
                high, low = source[0], source[1]
            out[n] = x
        source[0], source[1] = high, low

    return carried if isinstance(source, types.Array) else called


@overload(fill_exponentials)
def _fill_exponentials(source, out):
    def called(source, out):
        for n in range(out.shape[0]):
            out[n] = source.standard_exponential()

    def carried(source, out):
        high, low, add_high, add_low = source[0], source[1], source[2], source[3]
        for n in range(out.shape[0]):
            high, low, bits = _next(high, low, add_high, add_low)
            layer, place, x = _split_exponential(bits)
            if place >= EXPONENTIAL_INSIDE[layer]:
                source[0], source[1] = high, low
                x = _outer_exponential(source, layer, x)
                high, low = source[0], source[1]
            out[n] = x
        source[0], source[1] = high, low

    return carried if isinstance(source, types.Array) else called


@kernel
def _normals(source, out):
    fill_normals(source, out)


def draw_normals(rng: np.random.Generator, out: Any) -> None:
    """Fill a flat array with normals of a generator."""
    if len(out) < FEW:
        rng.standard_normal(out=out)
    else:
        draw_with(rng, _normals, out)
