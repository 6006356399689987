"""The auxiliary lemmas on Kronecker products, Appendix C.4.3."""

from __future__ import annotations

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.drawn import drawn_cases, positive, relative_gap
from bayesmeta.claims.verdict import Level, Point, equal
from bayesmeta.theory.alignment import symmetric_power


def _vec(matrix: Array) -> Array:
    return matrix.ravel(order="F")


@claim(
    id="kronecker",
    proof="textbook",
    kind=Kind.IDENTITY,
    section=Section.MATRICES,
    where="lemmas “Vectorization” and “Kronecker properties”, eqs. (66)-(69), Appendix C.4.3",
    quote="vec(ABC) = (Cᵀ ⊗ A) vec(B)",
    statement="vec(ABC) = (C' x A) vec B, and its companions",
    lines="2348-2388",
    mutations={"C not transposed": {"transposed": False}},
)
def kronecker(level: Level, transposed: bool = True) -> list[Point]:
    """vec(ABC) in its three forms; mixed sums and products, transposes, inverses."""
    points = []
    for where, rng in drawn_cases(level, "kronecker"):
        d, n = where["d"], where["d"] + 2
        (a, e), (b, c) = rng.standard_normal((2, n, d)), rng.standard_normal((2, d, d))
        whole, turned = _vec(a @ b @ c), c.T if transposed else c
        sides = [
            (whole, np.kron(turned, a) @ _vec(b)),
            (whole, np.kron(np.eye(d), a @ b) @ _vec(c)),
            (whole, np.kron((b @ c).T, np.eye(n)) @ _vec(a)),
            (np.kron(a, b) @ np.kron(a.T, c), np.kron(a @ a.T, b @ c)),
            (np.kron(a, b).T, np.kron(a.T, b.T)),
            (np.kron(a + e, b + c), np.kron(a, b) + np.kron(a, c) + np.kron(e, b) + np.kron(e, c)),
            (np.linalg.inv(np.kron(b, c)), np.kron(np.linalg.inv(b), np.linalg.inv(c))),
        ]
        points += [
            equal({**where, "form": k}, relative_gap(*pair), 1e-6) for k, pair in enumerate(sides)
        ]
    return points


@claim(
    id="kronecker-root",
    proof="the paper",
    kind=Kind.IDENTITY,
    section=Section.MATRICES,
    where="lemma “Square root of Kronecker product”, Appendix C.4.3",
    quote="(A ⊗ B)^{1/2} = A^{1/2} ⊗ B^{1/2}",
    statement="(A x B)^1/2 = A^1/2 x B^1/2 for A, B PSD",
    lines="2390-2405",
    mutations={"one root dropped": {"both": False}},
)
def kronecker_root(level: Level, both: bool = True) -> list[Point]:
    """(A x B)^1/2 = A^1/2 x B^1/2, singular matrices included; roots to half the digits there."""
    points = []
    for where, rng in drawn_cases(level, "kronecker-root"):
        d = where["d"]
        if d > 5 and where["case"] > 1:
            continue
        a = positive(rng, d, rank=max(d - where["case"] % 2, 1), spread=1.0)
        b = positive(rng, d, spread=1.0)
        right = np.kron(symmetric_power(a, 0.5), symmetric_power(b, 0.5) if both else b)
        whole = np.kron(a, b)
        points.append(
            equal(
                where,
                relative_gap(symmetric_power(whole.astype(float), 0.5), right.astype(float)),
                1e-6,
            )
        )
    return points


@claim(
    id="root-inverse",
    proof="the paper",
    kind=Kind.IDENTITY,
    section=Section.MATRICES,
    where="lemma “Square root vectorization”, Appendix C.4.3",
    quote="vec(dA^{1/2}) = (A^{1/2} ⊕ A^{1/2})⁻¹ vec(dA)",
    statement="vec dA^1/2 = (A^1/2 (+) A^1/2)^-1 vec dA for A positive definite",
    lines="2407-2438",
    mutations={"as if commuting": {"commuting": True}},
)
def root_inverse(level: Level, commuting: bool = False) -> list[Point]:
    """vec d(A^1/2) = (A^1/2 + A^1/2 as a Kronecker sum)^-1 vec dA, by central differences."""
    points = []
    for where, rng in drawn_cases(level, "root-inverse"):
        d = where["d"]
        a, way = positive(rng, d, spread=1.0), rng.standard_normal((d, d))
        way, step = way + way.T, 1e-5
        ends = [symmetric_power(a + sign * step * way, 0.5) for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step)
        root = symmetric_power(a, 0.5)
        total = np.kron(root, np.eye(d)) + np.kron(np.eye(d), root)
        right = np.linalg.solve(total, _vec(way))
        if commuting:
            right = _vec(0.5 * np.linalg.inv(root) @ way)
        points.append(equal(where, relative_gap(_vec(slope), right), 1e-4))
    return points
