"""The auxiliary lemmas on matrices (lines 2348-2440 and 3415-3615)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.verdict import Check, Claim, Level, Point, at_most, equal, ordered
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


def _order(where: Where, smaller: Array, larger: Array, rounding: float = 1e-10) -> Point:
    """smaller <= larger as matrices."""
    scale = max(float(np.abs(larger).max()), float(np.abs(smaller).max()))
    return ordered(where, float(np.linalg.eigvalsh(larger - smaller)[0]), scale, rounding)


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
        points += [equal({**where, "form": k}, _gap(*pair), 1e-6) for k, pair in enumerate(sides)]
    return points


def kronecker_root(level: Level, both: bool = True) -> list[Point]:
    """(A x B)^1/2 = A^1/2 x B^1/2, singular matrices included; roots to half the digits there."""
    points = []
    for where, rng in _cases(level, "kronecker-root"):
        d = where["d"]
        if d > 5 and where["case"] > 1:
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


def _traces(matrix: Array, powers: int = 10) -> Array:
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
        if where["case"] % 2 and d > 1:  # B in the null space of A
            away = np.linalg.svd(a)[0][:, max(1, d // 2) :]
            b = away @ positive(rng, away.shape[1]) @ away.T
        product = a @ b @ positive(rng, d) if three else a @ b
        scale = float(np.abs(a).max() * np.abs(b).max())
        points.append(ordered(where, float(np.trace(product)), scale))
    return points


def _wider(rng: np.random.Generator, d: int, rank: int | None = None) -> tuple[Array, Array]:
    """A >= B, their difference of rank one or full; B of this rank."""
    b = positive(rng, d, rank)
    return b + positive(rng, d, rank=1 if rng.random() < 0.5 else d), b


def inverse_order(level: Level, reverse: bool = False) -> list[Point]:
    """A >= B iff B^-1 >= A^-1: also where A >= B fails, in one direction, the inverses fail."""
    points = []
    for where, rng in _cases(level, "inverse-order"):
        a, b = _wider(rng, where["d"])
        first, second = np.linalg.inv(a), np.linalg.inv(b)
        if reverse:
            first, second = second, first
        points.append(_order(where, first, second))
        unit = np.linalg.qr(rng.standard_normal((where["d"], 1)))[0][:, 0]
        least = 1 / float(unit @ np.linalg.solve(b, unit))  # B - t u u' > 0 for t < least
        short = b - 0.5 * least * np.outer(unit, unit)
        gap = np.linalg.inv(short) - np.linalg.inv(b)
        scale = float(np.abs(np.linalg.inv(short)).max())
        points.append(
            ordered({**where, "way": "not wider"}, float(np.linalg.eigvalsh(gap)[-1]), scale)
        )
    return points


def root_order(level: Level, power: float = 0.5) -> list[Point]:
    """A >= B implies A^1/2 >= B^1/2 (Loewner), B singular or not; squares do not."""
    points = []
    for where, rng in _cases(level, "root-order"):
        d = where["d"]
        a, b = _wider(rng, d, max(1, d // 2) if where["case"] % 2 else None)
        points.append(_order(where, symmetric_power(b, power), symmetric_power(a, power), 1e-7))
    return points


def _unitary(rng: np.random.Generator, d: int) -> Array:
    both = rng.standard_normal((2, d, d))
    made: Array = np.linalg.qr(both[0] + 1j * both[1])[0]
    return made


def determinant_sum(level: Level, opposite: bool = False) -> list[Point]:
    """prod(lambda_j(A) + lambda_j(B)) <= det(A + B), both in decreasing order (Fiedler): Hermitian
    matrices with lambda_min(A) + lambda_min(B) > 0, B negative (as it is used) or not."""
    points = []
    for where, rng in _cases(level, "determinant-sum"):
        d = where["d"]
        values = np.sort(10.0 ** rng.uniform(-1.5, 1.5, d))
        others = np.sort(10.0 ** rng.uniform(-1.5, 1.5, d))
        if where["case"] % 2:  # -B with B < lambda_min(A)
            others = -0.99 * values[0] * others[::-1] / others[-1]
        one, two = _unitary(rng, d), _unitary(rng, d)
        total = (one * values) @ one.conj().T + (two * others) @ two.conj().T
        paired = values + (others[::-1] if opposite else others)
        left, right = float(np.log(paired).sum()), float(np.linalg.slogdet(total)[1])
        points.append(Point(where, left, right + 1e-9 * d, logs=True))
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
        parts = rng.standard_normal((4, d, d))
        skew, b = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
        inner = positive(rng, d, spread=1.0) + 2 * (skew - skew.conj().T)  # real part positive
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


def b_bound_literal(level: Level, covs: tuple[float, ...] = (2.0, 0.5)) -> list[Point]:
    """The same without Sigma-hat >= Sigma_*, in one dimension: sigma = Sigma_* = 1."""
    return [
        at_most(
            {"d": 1, "sigma": 1.0, "Sigma_*": 1.0, "Sigma-hat": cov}, abs(1 - 1 / cov), abs(cov - 1)
        )
        for cov in covs
    ]


def _norm_of_gap(true: Array, more: Array) -> float:
    """|Sigma_*^-1 D (Sigma_* + D)^-1|: the difference of the inverses, without cancellation."""
    return float(np.linalg.norm(np.linalg.solve(true, more) @ np.linalg.inv(true + more), 2))


def _claim(
    name: str, lines: str, kind: str, text: str, check: Check, **mutations: Callable[..., Any]
) -> Claim:
    named = {key.replace("_", " "): value for key, value in mutations.items()}
    return Claim(name, SECTION, lines, kind, text, check, named)


CLAIMS = (
    _claim(
        "kronecker",
        "2348-2388",
        "I",
        "vec(ABC) = (C' x A) vec B, and its companions",
        kronecker,
        C_not_transposed=partial(kronecker, transposed=False),
    ),
    _claim(
        "kronecker-root",
        "2390-2405",
        "I",
        "(A x B)^1/2 = A^1/2 x B^1/2 for A, B PSD",
        kronecker_root,
        one_root_dropped=partial(kronecker_root, both=False),
    ),
    _claim(
        "root-inverse",
        "2407-2438",
        "I",
        "vec dA^1/2 = (A^1/2 (+) A^1/2)^-1 vec dA for A positive definite",
        root_inverse,
        as_if_commuting=partial(root_inverse, commuting=True),
    ),
    _claim(
        "determinant-minkowski",
        "2440",
        "D",
        "|det(A + B)| >= |det A| + |det B| where Re eig(B^-1 A) >= 0 and the size is 2 or more",
        determinant_minkowski,
        size_1=partial(determinant_minkowski, least=1),
    ),
    _claim(
        "eigenvalue-inequality",
        "3415",
        "D",
        "|A| <= sqrt(lambda_max(B)) |A|_{B^-1}",
        eigenvalue_inequality,
        smallest_eigenvalue=partial(eigenvalue_inequality, which=0),
        B_for_its_inverse=partial(eigenvalue_inequality, inverse=False),
    ),
    _claim(
        "nonzero-eigenvalues",
        "3498",
        "I",
        "AB and BA share their nonzero eigenvalues",
        nonzero_eigenvalues,
        another_matrix=partial(nonzero_eigenvalues, transposed=True),
    ),
    _claim(
        "product-eigenvalues",
        "3504",
        "I",
        "eig(AB) = eig(A^1/2 B A^1/2) for A, B PSD",
        product_eigenvalues,
        half_the_root=partial(product_eigenvalues, half=True),
    ),
    _claim(
        "product-trace",
        "3524",
        "D",
        "Tr AB >= 0 for A, B PSD",
        product_trace,
        three_factors=partial(product_trace, three=True),
    ),
    _claim(
        "inverse-order",
        "3541",
        "D",
        "A >= B iff B^-1 >= A^-1 for A, B positive definite",
        inverse_order,
        reversed=partial(inverse_order, reverse=True),
    ),
    _claim(
        "root-order",
        "3547",
        "D",
        "A >= B implies A^1/2 >= B^1/2",
        root_order,
        squares=partial(root_order, power=2.0),
    ),
    _claim(
        "determinant-sum",
        "3553",
        "D",
        "prod(lambda_j(A) + lambda_j(B)) <= det(A + B), equally ordered",
        determinant_sum,
        opposite_order=partial(determinant_sum, opposite=True),
    ),
    _claim(
        "b-bound",
        "3566-3606",
        "D",
        "|B| <= sigma^2 / lambda_min(Sigma_*)^2 |Sigma-hat - Sigma_*| (under E_s)",
        b_bound,
        wrong_exponent=partial(b_bound, power=1.0),
    ),
    Claim(
        "b-bound-literal",
        SECTION,
        "3566-3606",
        "D",
        "the same without Sigma-hat >= Sigma_*, as it stands",
        b_bound_literal,
        {"at Sigma-hat = 1/2 alone": partial(b_bound_literal, covs=(0.5,))},
        "The lemma names no condition. The proof bounds |Sigma-hat^-1| by |Sigma_*^-1|, which is "
        "E_s.",
        partial(b_bound_literal, covs=(2.0,)),
        survives="Everything: it is used under E_s only.",
        sides="|B|; its bound",
    ),
    _claim(
        "exponent-bound",
        "3609",
        "D",
        "e^x <= 1 + 2x for x in [0, 1]",
        exponent_bound,
        smaller_factor=partial(exponent_bound, factor=1.7),
    ),
)
"""Checks of this section."""
