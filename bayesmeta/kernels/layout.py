"""Statistics of tasks side by side, and what the kernels of the likelihood make of them.

Arrays hold tasks along their last axis, matrices as their lower triangles row by row, so that the
innermost loops run over neighbouring tasks and become vector instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import float64, int64
from numba.core.types import NamedTuple as NamedTupleType
from numba.core.types import NamedUniTuple

LANES = 64
"""Tasks handled together; arrays are padded with empty tasks, which add nothing, to a multiple."""

MANY = 8
"""Features from which on ``panels`` is quicker than ``regular``."""


class Chunk(NamedTuple):
    """Statistics of n tasks: grams (p, n), moments (d, n), sums of squared rewards (n,).

    The first r of them, whose grams V are well conditioned, come with V^-1 (p, r), least squares
    (d, r), what these leave of the sums of squares (r,), and log|V| (r,); ``regular`` says how many
    of the r are tasks, the others being empty. Of ``MANY`` features, V^-1 and least squares are of
    ``WIDTH`` tasks a row, (r / WIDTH, p WIDTH) and (r / WIDTH, d WIDTH): what is read together lies
    together.
    """

    grams: Any
    moments: Any
    energy: Any
    inverses: Any
    estimates: Any
    residuals: Any
    logs: Any
    regular: Any


class Parameters(NamedTuple):
    """Where the likelihood is asked for: mu, the lower root L of Sigma, and tau = 1 / sigma^2."""

    mean: Any
    root: Any
    tau: Any


class EachTask(NamedTuple):
    """s (d, n) and W (p, n) of every task; arrays without entries where they are not wanted."""

    scores: Any
    weights: Any


class Sums(NamedTuple):
    """Sums over tasks of log|M|, the quadratic form, s, s s' and W (lower triangles)."""

    logs: Any
    quad: Any
    scores: Any
    squares: Any
    weights: Any


class Lanes(NamedTuple):
    """Space for ``LANES`` tasks, in the symbols of the first lines of ``general``."""

    acc: Any
    pivots: Any
    logs: Any
    quad: Any
    least: Any
    present: Any
    w: Any
    y: Any
    s: Any
    x: Any
    m: Any
    panels: Any


_VECTOR, MATRIX, _CUBE = float64[::1], float64[:, ::1], float64[:, :, ::1]
CHUNK = NamedTupleType((MATRIX, MATRIX, _VECTOR, MATRIX, MATRIX, _VECTOR, _VECTOR, int64), Chunk)
PARAMETERS = NamedTupleType((_VECTOR, MATRIX, float64), Parameters)
EACH_TASK = NamedUniTuple(MATRIX, 2, EachTask)
SUMS = NamedTupleType((_VECTOR, _VECTOR, MATRIX, MATRIX, MATRIX), Sums)
SPACE = NamedTupleType((*(_VECTOR,) * 6, *(MATRIX,) * 3, _CUBE, _CUBE, _VECTOR), Lanes)
"""The types of these, and of a matrix, in compiled code; of sums before their lanes are added."""
