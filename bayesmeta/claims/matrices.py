"""The auxiliary lemmas on matrices (lines 2348-2440 and 3415-3615)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.verdict import Check, Claim, Level, Point, at_most, equal
from bayesmeta.theory.alignment import symmetric_power

SECTION = "auxiliary matrix lemmas"
Where = dict[str, Any]


def positive(
    rng: np.random.Generator, d: int, rank: int | None = None, spread: float = 3.0
) -> Array:
    """A positive (semi)definite matrix whose eigenvalues span ``spread`` decades."""
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = 10.0 ** rng.uniform(-spread / 2, spread / 2, d)
    values[: d - (d if rank is None else rank)] = 0.0
    made: Array = (basis * values) @ basis.T
    return (made + made.T) / 2


def _cases(level: Level, name: str, least: int = 1) -> Iterator[tuple[Where, np.random.Generator]]:
    rng = level.rng(name)
    for d in (1, 2, 5, 10):
        for k in range(level.pick(3, 25)):
            if d >= least:
                yield {"d": d, "case": k}, rng


def _gap(left: Array, right: Array) -> float:
    scale = max(float(np.abs(left).max()), float(np.abs(right).max()), 1e-300)
    return float(np.abs(left - right).max()) / scale


def _order(smaller: Array, larger: Array) -> tuple[float, float]:
    """How far smaller <= larger fails, as left and right sides."""
    gap = np.linalg.eigvalsh(larger - smaller)
    return -float(gap[0]), 1e-10 * max(float(np.abs(larger).max()), float(np.abs(smaller).max()))


def eigenvalue_inequality(level: Level, which: int = -1, inverse: bool = True) -> list[Point]:
    """|A| <= sqrt(lambda_max(B)) |A|_{B^-1}, tight along the top eigenvector."""
    points = []
    for where, rng in _cases(level, "eigenvalue-inequality"):
        b = positive(rng, where["d"])
        values, vectors = np.linalg.eigh(b)
        weight = np.linalg.inv(b) if inverse else b
        for a in (vectors[:, -1], vectors[:, 0], rng.standard_normal(where["d"])):
            right = np.sqrt(values[which] * (a @ weight @ a))
            points.append(at_most(where, float(np.linalg.norm(a)), float(right), 1e-9))
    return points


def _vec(matrix: Array) -> Array:
    return matrix.ravel(order="F")


def kronecker(level: Level, transposed: bool = True) -> list[Point]:
    """vec(ABC) in its three forms; mixed sums and products, transposes, inverses."""
    points = []
    for where, rng in _cases(level, "kronecker"):
        d, n = where["d"], where["d"] + 2
        a, b, c = rng.standard_normal((n, d)), *rng.standard_normal((2, d, d))
        whole, turned = _vec(a @ b @ c), c.T if transposed else c
        sides = [
            (whole, np.kron(turned, a) @ _vec(b)),
            (whole, np.kron(np.eye(d), a @ b) @ _vec(c)),
            (whole, np.kron((b @ c).T, np.eye(n)) @ _vec(a)),
            (np.kron(a, b) @ np.kron(a.T, c), np.kron(a @ a.T, b @ c)),
            (np.kron(a, b).T, np.kron(a.T, b.T)),
            (np.kron(a, b + c), np.kron(a, b) + np.kron(a, c)),
            (np.linalg.inv(np.kron(b, c)), np.kron(np.linalg.inv(b), np.linalg.inv(c))),
        ]
        points += [equal({**where, "form": k}, _gap(*pair), 1e-6) for k, pair in enumerate(sides)]
    return points


def kronecker_root(level: Level, both: bool = True) -> list[Point]:
    """(A x B)^1/2 = A^1/2 x B^1/2, singular matrices included; roots to half the digits there."""
    points = []
    for where, rng in _cases(level, "kronecker-root"):
        d = where["d"]
        if d > 5:
            continue
        a = positive(rng, d, rank=max(d - where["case"] % 2, 1), spread=1.0)
        b = positive(rng, d, spread=1.0)
        right = np.kron(symmetric_power(a, 0.5), symmetric_power(b, 0.5) if both else b)
        whole = np.kron(a, b)
        points.append(
            equal(where, _gap(symmetric_power(whole.astype(float), 0.5), right.astype(float)), 1e-6)
        )
    return points


def root_inverse(level: Level, commuting: bool = False) -> list[Point]:
    """vec d(A^1/2) = (A^1/2 + A^1/2 as a Kronecker sum)^-1 vec dA, by central differences."""
    points = []
    for where, rng in _cases(level, "root-inverse"):
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
        points.append(equal(where, _gap(_vec(slope), right), 1e-4))
    return points


def _traces(matrix: Array, powers: int = 4) -> Array:
    """Traces of powers, scaled: eigenvalues with multiplicity, without sorting complex numbers."""
    matrix = matrix / max(float(np.abs(np.linalg.eigvals(matrix)).max()), 1e-300)
    return np.array([np.trace(np.linalg.matrix_power(matrix, k)) for k in range(1, powers + 1)])


def nonzero_eigenvalues(level: Level, transposed: bool = False) -> list[Point]:
    """AB and BA have the same eigenvalues but for zeros, whose numbers differ by n - m."""
    points = []
    for where, rng in _cases(level, "nonzero-eigenvalues"):
        m, n = where["d"], where["d"] + 2
        a, b = rng.standard_normal((m, n)), rng.standard_normal((n, m))
        first, other = a @ b, a.T @ a if transposed else b @ a
        points.append(equal(where, _gap(_traces(first), _traces(other)), 1e-8))
        zeros = int((np.abs(np.linalg.eigvals(b @ a)) < 1e-9 * np.abs(b @ a).max()).sum())
        points.append(equal({**where, "zeros": zeros}, float(zeros != n - m), 0.5))
    return points


def product_eigenvalues(level: Level, half: bool = False) -> list[Point]:
    """AB, BA, A^1/2 B A^1/2 and B^1/2 A B^1/2 have the same eigenvalues, A and B PSD."""
    points = []
    for where, rng in _cases(level, "product-eigenvalues"):
        d = where["d"]
        a = positive(rng, d, rank=max(d - where["case"] % 2, 1), spread=1.5)
        b = positive(rng, d, spread=1.5)
        root, other = symmetric_power(a, 0.5), symmetric_power(b, 0.5)
        first = root @ b if half else a @ b
        for k, matrix in enumerate((b @ a, root @ b @ root, other @ a @ other)):
            size = abs(np.trace(first) - np.trace(matrix)) / max(abs(np.trace(matrix)), 1e-300)
            gap = max(_gap(_traces(first), _traces(matrix)), float(size))
            points.append(equal({**where, "form": k}, gap, 1e-7))
    return points


def product_trace(level: Level, three: bool = False) -> list[Point]:
    """Tr AB >= 0 for A and B PSD; 0 where their ranges are orthogonal."""
    points = []
    for where, rng in _cases(level, "product-trace"):
        d = where["d"]
        a, b = (positive(rng, d, rank=max(1, d // 2)) for _ in range(2))
        product = a @ b @ positive(rng, d) if three else a @ b
        scale = float(np.abs(a).max() * np.abs(b).max())
        points.append(Point(where, -float(np.trace(product)), 1e-10 * scale))
    return points


def _wider(rng: np.random.Generator, d: int) -> tuple[Array, Array]:
    """A >= B, their difference of rank one or full."""
    b = positive(rng, d)
    return b + positive(rng, d, rank=1 if rng.random() < 0.5 else d), b


def inverse_order(level: Level, reverse: bool = False) -> list[Point]:
    """A >= B iff B^-1 >= A^-1."""
    points = []
    for where, rng in _cases(level, "inverse-order"):
        a, b = _wider(rng, where["d"])
        first, second = np.linalg.inv(a), np.linalg.inv(b)
        if reverse:
            first, second = second, first
        points.append(Point(where, *_order(first, second)))
        low, limit = _order(np.linalg.inv(second), np.linalg.inv(first))
        points.append(Point({**where, "way": "back"}, low, 1e3 * limit))
    return points


def root_order(level: Level, power: float = 0.5) -> list[Point]:
    """A >= B implies A^1/2 >= B^1/2 (Loewner); squares do not."""
    points = []
    for where, rng in _cases(level, "root-order", least=2):
        a, b = _wider(rng, where["d"])
        points.append(Point(where, *_order(symmetric_power(b, power), symmetric_power(a, power))))
    return points


def determinant_sum(level: Level, opposite: bool = False) -> list[Point]:
    """prod(lambda_j(A) + lambda_j(B)) <= det(A + B), both in decreasing order (Fiedler)."""
    points = []
    for where, rng in _cases(level, "determinant-sum"):
        d = where["d"]
        a, b = positive(rng, d), positive(rng, d)
        values = np.linalg.eigvalsh(b)
        paired = np.linalg.eigvalsh(a) + (values[::-1] if opposite else values)
        left, right = float(np.log(paired).sum()), float(np.linalg.slogdet(a + b)[1])
        points.append(at_most(where, left, right, 1e-9))
    return points


def determinant_minkowski(level: Level, least: int = 2) -> list[Point]:
    """|det(A + B)| >= |det A| + |det B| where eigenvalues of B^-1 A have real parts >= 0, size 2 or
    more; equal at A = rotation by 90 degrees, B = I."""
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    both = float(np.linalg.det(turn + np.eye(2)))
    points = [at_most({"d": 2, "case": "a quarter turn"}, 2.0, both, 1e-9)]
    if least < 2:  # size 1, lambda = i: |1 + i| < 2
        points = [at_most({"d": 1}, 2.0, float(abs(1 + 1j)))]
    for where, rng in _cases(level, "determinant-minkowski", least=2):
        d = where["d"]
        skew = rng.standard_normal((d, d))
        inner = positive(rng, d, spread=1.0) + 2 * (skew - skew.T)  # its real part is positive
        b = rng.standard_normal((d, d))
        a = b @ inner
        left = abs(np.linalg.det(a)) + abs(np.linalg.det(b))
        points.append(at_most(where, float(left), float(abs(np.linalg.det(a + b))), 1e-9))
    return points


def exponent_bound(level: Level, factor: float = 2.0) -> list[Point]:
    """e^x <= 1 + 2x on [0, 1]."""
    grid = np.linspace(0, 1, level.pick(21, 2001))
    return [at_most({"x": float(x)}, float(np.exp(x)), float(1 + factor * x)) for x in grid]


def b_bound(level: Level, power: float = 2.0) -> list[Point]:
    """|sigma^2 (Sigma_*^-1 - Sigma-hat^-1)| <= sigma^2 / lambda_min^2 |Sigma-hat - Sigma_*|, where
    Sigma-hat >= Sigma_* (E_s)."""
    points = []
    for where, rng in _cases(level, "b-bound"):
        d = where["d"]
        for sigma in (1e-4, 3.0):
            for size in (1e-6, 1.0, 1e3):
                low = float(10.0 ** rng.uniform(-2, 2))
                true = low * np.eye(d) if where["case"] == 0 else positive(rng, d)
                low = float(np.linalg.eigvalsh(true)[0])
                more = positive(rng, d, rank=1 if where["case"] % 2 else d, spread=1.0)
                more = np.eye(d) if where["case"] == 0 else more / np.linalg.norm(more, 2)
                more = size * low * more
                left = _norm_of_gap(true, more) * sigma**2
                right = sigma**2 / low**power * float(np.linalg.norm(more, 2))
                points.append(
                    at_most({**where, "sigma": sigma, "deviation": size}, left, right, 1e-9)
                )
    return points


def _norm_of_gap(true: Array, more: Array) -> float:
    """|Sigma_*^-1 D (Sigma_* + D)^-1|: the difference of the inverses, without cancellation."""
    return float(np.linalg.norm(np.linalg.solve(true, more) @ np.linalg.inv(true + more), 2))


def _claim(
    name: str, lines: str, kind: str, text: str, check: Check, **mutations: Callable[..., Any]
) -> Claim:
    named = {key.replace("_", " "): value for key, value in mutations.items()}
    return Claim(name, SECTION, lines, kind, text, check, named)


CLAIMS = (
    _claim("kronecker", "2348-2388", "I", "vec(ABC) = (C' x A) vec B, and its companions",
           kronecker, C_not_transposed=partial(kronecker, transposed=False)),
    _claim("kronecker-root", "2390-2405", "I", "(A x B)^1/2 = A^1/2 x B^1/2 for A, B PSD",
           kronecker_root, one_root_dropped=partial(kronecker_root, both=False)),
    _claim("root-inverse", "2407-2438", "I",
           "vec dA^1/2 = (A^1/2 (+) A^1/2)^-1 vec dA for A positive definite",
           root_inverse, as_if_commuting=partial(root_inverse, commuting=True)),
    _claim("determinant-minkowski", "2440", "D",
           "|det(A + B)| >= |det A| + |det B| where Re eig(B^-1 A) >= 0 and the size is 2 or more",
           determinant_minkowski, size_1=partial(determinant_minkowski, least=1)),
    _claim("eigenvalue-inequality", "3415", "D", "|A| <= sqrt(lambda_max(B)) |A|_{B^-1}",
           eigenvalue_inequality, smallest_eigenvalue=partial(eigenvalue_inequality, which=0),
           B_for_its_inverse=partial(eigenvalue_inequality, inverse=False)),
    _claim("nonzero-eigenvalues", "3498", "I", "AB and BA share their nonzero eigenvalues",
           nonzero_eigenvalues, another_matrix=partial(nonzero_eigenvalues, transposed=True)),
    _claim("product-eigenvalues", "3504", "I", "eig(AB) = eig(A^1/2 B A^1/2) for A, B PSD",
           product_eigenvalues, half_the_root=partial(product_eigenvalues, half=True)),
    _claim("product-trace", "3524", "D", "Tr AB >= 0 for A, B PSD",
           product_trace, three_factors=partial(product_trace, three=True)),
    _claim("inverse-order", "3541", "D", "A >= B iff B^-1 >= A^-1 for A, B positive definite",
           inverse_order, reversed=partial(inverse_order, reverse=True)),
    _claim("root-order", "3547", "D", "A >= B implies A^1/2 >= B^1/2",
           root_order, squares=partial(root_order, power=2.0)),
    _claim("determinant-sum", "3553", "D",
           "prod(lambda_j(A) + lambda_j(B)) <= det(A + B), equally ordered",
           determinant_sum, opposite_order=partial(determinant_sum, opposite=True)),
    _claim("b-bound", "3566-3606", "D",
           "|B| <= sigma^2 / lambda_min(Sigma_*)^2 |Sigma-hat - Sigma_*| (under E_s)",
           b_bound, wrong_exponent=partial(b_bound, power=1.0)),
    _claim("exponent-bound", "3609", "D", "e^x <= 1 + 2x for x in [0, 1]",
           exponent_bound, smaller_factor=partial(exponent_bound, factor=1.7)),
)  # fmt: skip
"""Checks of this section."""
