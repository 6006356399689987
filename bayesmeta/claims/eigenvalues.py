"""The auxiliary lemmas on eigenvalues, traces and determinants, Appendices C.4.3 and F."""

from __future__ import annotations

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.drawn import drawn_cases, positive, relative_gap
from bayesmeta.claims.verdict import Level, Point, at_most, equal, ordered
from bayesmeta.theory.alignment import symmetric_power


@claim(
    id="determinant-minkowski",
    proof="Zhan (2005)",
    kind=Kind.INEQUALITY,
    section=Section.MATRICES,
    where="last lemma of Appendix C.4.3 (Zhan)",
    quote="|det(A₁ + B₁)| ≥ |det A₁| + |det B₁|",
    statement=(
        "|det(A + B)| >= |det A| + |det B| where Re eig(B^-1 A) >= 0 and the size is 2 or more"
    ),
    lines="2440",
    mutations={"size 1": {"least": 1}},
)
def determinant_minkowski(level: Level, least: int = 2) -> list[Point]:
    """|det(A + B)| >= |det A| + |det B| where eigenvalues of B^-1 A have real parts >= 0, size 2 or
    more; equal at A = rotation by 90 degrees, B = I."""
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    both = float(np.linalg.det(turn + np.eye(2)))
    points = [at_most({"d": 2, "case": "a quarter turn"}, 2.0, both, 1e-9)]
    if least < 2:  # size 1, lambda = i: |1 + i| < 2
        points = [at_most({"d": 1}, 2.0, float(abs(1 + 1j)))]
    for where, rng in drawn_cases(level, "determinant-minkowski", least=2):
        d = where["d"]
        parts = rng.standard_normal((4, d, d))
        skew, b = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
        inner = positive(rng, d, spread=1.0) + 2 * (skew - skew.conj().T)  # real part positive
        a = b @ inner
        left = abs(np.linalg.det(a)) + abs(np.linalg.det(b))
        points.append(at_most(where, float(left), float(abs(np.linalg.det(a + b))), 1e-9))
    return points


@claim(
    id="eigenvalue-inequality",
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.MATRICES,
    where="lemma “maximal eigenvalue inequality”, Appendix F",
    quote="‖A‖ ≤ √λ_max(B) ‖A‖_{B⁻¹}",
    statement="|A| <= sqrt(lambda_max(B)) |A|_{B^-1}",
    lines="3415",
    mutations={"smallest eigenvalue": {"which": 0}, "B for its inverse": {"inverse": False}},
)
def eigenvalue_inequality(level: Level, which: int = -1, inverse: bool = True) -> list[Point]:
    """|A| <= sqrt(lambda_max(B)) |A|_{B^-1}, tight along the top eigenvector."""
    points = []
    for where, rng in drawn_cases(level, "eigenvalue-inequality"):
        b = positive(rng, where["d"])
        values, vectors = np.linalg.eigh(b)
        weight = np.linalg.inv(b) if inverse else b
        for a in (vectors[:, -1], vectors[:, 0], rng.standard_normal(where["d"])):
            right = np.sqrt(values[which] * (a @ weight @ a))
            points.append(at_most(where, float(np.linalg.norm(a)), float(right), 1e-9))
    return points


def _traces(matrix: Array, powers: int = 10) -> Array:
    """Traces of powers, scaled: eigenvalues with multiplicity, without sorting complex numbers."""
    matrix = matrix / max(float(np.abs(np.linalg.eigvals(matrix)).max()), 1e-300)
    return np.array([np.trace(np.linalg.matrix_power(matrix, k)) for k in range(1, powers + 1)])


@claim(
    id="nonzero-eigenvalues",
    proof="Horn and Johnson (2012)",
    kind=Kind.IDENTITY,
    section=Section.MATRICES,
    where="lemma “Same non-zero eigenvalues for AB and BA”, Appendix F",
    quote="the n eigenvalues of BA are the m eigenvalues of AB together with n - m zeros",
    statement="AB and BA share their nonzero eigenvalues",
    lines="3498",
    mutations={"another matrix": {"transposed": True}},
)
def nonzero_eigenvalues(level: Level, transposed: bool = False) -> list[Point]:
    """AB and BA have the same eigenvalues but for zeros, whose numbers differ by n - m."""
    points = []
    for where, rng in drawn_cases(level, "nonzero-eigenvalues"):
        m, n = where["d"], where["d"] + 2
        a, b = rng.standard_normal((m, n)), rng.standard_normal((n, m))
        first, other = a @ b, a.T @ a if transposed else b @ a
        points.append(equal(where, relative_gap(_traces(first), _traces(other)), 1e-8))
        zeros = int((np.abs(np.linalg.eigvals(b @ a)) < 1e-9 * np.abs(b @ a).max()).sum())
        points.append(equal({**where, "zeros": zeros}, float(zeros != n - m), 1e-8))
    return points


@claim(
    id="product-eigenvalues",
    proof="the paper",
    kind=Kind.IDENTITY,
    section=Section.MATRICES,
    where="lemma “Same eigenvalues for product of PSD matrices”, Appendix F",
    quote="λ_i(AB) = λ_i(A^{1/2}BA^{1/2}) = λ_i(BA) = λ_i(B^{1/2}AB^{1/2})",
    statement="eig(AB) = eig(A^1/2 B A^1/2) for A, B PSD",
    lines="3504",
    mutations={"half the root": {"half": True}},
)
def product_eigenvalues(level: Level, half: bool = False) -> list[Point]:
    """AB, BA, A^1/2 B A^1/2 and B^1/2 A B^1/2 have the same eigenvalues, A and B PSD."""
    points = []
    for where, rng in drawn_cases(level, "product-eigenvalues"):
        d = where["d"]
        a = positive(rng, d, rank=max(d - where["case"] % 2, 1), spread=1.5)
        b = positive(rng, d, spread=1.5)
        root, other = symmetric_power(a, 0.5), symmetric_power(b, 0.5)
        first = root @ b if half else a @ b
        for k, matrix in enumerate((b @ a, root @ b @ root, other @ a @ other)):
            size = abs(np.trace(first) - np.trace(matrix)) / max(abs(np.trace(matrix)), 1e-300)
            gap = max(relative_gap(_traces(first), _traces(matrix)), float(size))
            points.append(equal({**where, "form": k}, gap, 1e-7))
    return points


@claim(
    id="product-trace",
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.MATRICES,
    where="lemma “Non negative trace for product of PSD matrices”, Appendix F",
    quote="Let A and B be PSD matrices. Then, Tr(AB) ≥ 0",
    statement="Tr AB >= 0 for A, B PSD",
    lines="3524",
    mutations={"three factors": {"three": True}},
)
def product_trace(level: Level, three: bool = False) -> list[Point]:
    """Tr AB >= 0 for A and B PSD; 0 where their ranges are orthogonal."""
    points = []
    for where, rng in drawn_cases(level, "product-trace"):
        d = where["d"]
        a, b = (positive(rng, d, rank=max(1, d // 2)) for _ in range(2))
        if where["case"] % 2 and d > 1:  # B in the null space of A
            rest = d - max(1, d // 2)
            away = np.linalg.qr((np.eye(d) - np.linalg.pinv(a) @ a)[:, :rest])[0]
            b = away @ positive(rng, away.shape[1]) @ away.T
        product = a @ b @ positive(rng, d) if three else a @ b
        scale = float(np.abs(a).max() * np.abs(b).max())
        points.append(ordered(where, float(np.trace(product)), scale))
    return points
