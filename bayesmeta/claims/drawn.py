"""Matrices drawn at random for the auxiliary lemmas, and how two of them are compared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.verdict import Level, Point, Where, ordered


def positive(
    rng: np.random.Generator, d: int, rank: int | None = None, spread: float = 3.0
) -> Array:
    """A positive (semi)definite matrix whose eigenvalues span ``spread`` decades."""
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = 10.0 ** rng.uniform(-spread / 2, spread / 2, d)
    values[: d - (d if rank is None else rank)] = 0.0
    made: Array = (basis * values) @ basis.T
    return (made + made.T) / 2


def drawn_cases(
    level: Level, name: str, least: int = 1
) -> Iterator[tuple[Where, np.random.Generator]]:
    rng = level.rng(name)
    for d in (1, 2, 5, 10):
        for k in range(level.pick(3, 25)):
            if d >= least:
                yield {"d": d, "case": k}, rng


def relative_gap(left: Array, right: Array) -> float:
    scale = max(float(np.abs(left).max()), float(np.abs(right).max()), 1e-300)
    return float(np.abs(left - right).max()) / scale


def ordering(where: Where, smaller: Array, larger: Array, rounding: float = 1e-10) -> Point:
    """smaller <= larger as matrices."""
    scale = max(float(np.abs(larger).max()), float(np.abs(smaller).max()))
    return ordered(where, float(np.linalg.eigvalsh(larger - smaller)[0]), scale, rounding)
