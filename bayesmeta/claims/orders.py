"""The auxiliary lemmas on the order of matrices and on B, Appendix F."""

from __future__ import annotations

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.drawn import drawn_cases, ordering, positive
from bayesmeta.claims.verdict import Level, Point, at_most, ordered
from bayesmeta.theory.alignment import symmetric_power


def _wider(rng: np.random.Generator, d: int, rank: int | None = None) -> tuple[Array, Array]:
    """A >= B, their difference of rank one or full; B of this rank."""
    b = positive(rng, d, rank)
    return b + positive(rng, d, rank=1 if rng.random() < 0.5 else d), b


@claim(
    id="inverse-order",
    proof="Horn and Johnson (2012)",
    kind=Kind.INEQUALITY,
    section=Section.MATRICES,
    where="lemma from Horn and Johnson, Corollary 7.74.(a), Appendix F",
    quote="A ⪰ B iff B⁻¹ ⪰ A⁻¹",
    statement="A >= B iff B^-1 >= A^-1 for A, B positive definite",
    lines="3541",
    mutations={"reversed": {"reverse": True}},
)
def inverse_order(level: Level, reverse: bool = False) -> list[Point]:
    """A >= B iff B^-1 >= A^-1; the converse by matrices where A >= B fails in one direction."""
    points = []
    for where, rng in drawn_cases(level, "inverse-order"):
        a, b = _wider(rng, where["d"])
        first, second = np.linalg.inv(a), np.linalg.inv(b)
        if reverse:
            first, second = second, first
        points.append(ordering(where, first, second))
        unit = np.linalg.qr(rng.standard_normal((where["d"], 1)))[0][:, 0]
        least = 1 / float(unit @ np.linalg.solve(b, unit))  # B - t u u' > 0 for t < least
        short = b - 0.5 * least * np.outer(unit, unit)
        gap = np.linalg.inv(short) - np.linalg.inv(b)
        scale = float(np.abs(np.linalg.inv(short)).max())
        points.append(
            ordered({**where, "way": "not wider"}, float(np.linalg.eigvalsh(gap)[-1]), scale)
        )
    return points


@claim(
    id="root-order",
    proof="Horn and Johnson (2012)",
    kind=Kind.INEQUALITY,
    section=Section.MATRICES,
    where="lemma from Horn and Johnson, Corollary 7.74.(b), Appendix F",
    quote="If A ≻ 0, B ⪰ 0 and A ⪰ B, then A^{1/2} ⪰ B^{1/2}",
    statement="A >= B implies A^1/2 >= B^1/2",
    lines="3547",
    mutations={"squares": {"power": 2.0}},
)
def root_order(level: Level, power: float = 0.5) -> list[Point]:
    """A >= B implies A^1/2 >= B^1/2 (Loewner), B singular or not; squares do not."""
    points = []
    for where, rng in drawn_cases(level, "root-order"):
        d = where["d"]
        a, b = _wider(rng, d, max(1, d // 2) if where["case"] % 2 else None)
        points.append(ordering(where, symmetric_power(b, power), symmetric_power(a, power), 1e-7))
    return points


def _unitary(rng: np.random.Generator, d: int) -> Array:
    both = rng.standard_normal((2, d, d))
    made: Array = np.linalg.qr(both[0] + 1j * both[1])[0]
    return made


@claim(
    id="determinant-sum",
    proof="Bhatia (1997)",
    kind=Kind.INEQUALITY,
    section=Section.MATRICES,
    where="lemma from Bhatia, Exercise VI.7.2, Appendix F",
    quote="If λ_min(A) + λ_min(B) > 0, then ∏_j (λ_j(A) + λ_j(B)) ≤ det(A + B)",
    statement="prod(lambda_j(A) + lambda_j(B)) <= det(A + B), equally ordered",
    lines="3553",
    mutations={"opposite order": {"opposite": True}},
)
def determinant_sum(level: Level, opposite: bool = False) -> list[Point]:
    """prod(lambda_j(A) + lambda_j(B)) <= det(A + B), both in decreasing order (Fiedler): Hermitian
    matrices with lambda_min(A) + lambda_min(B) > 0, B negative (as it is used) or not."""
    points = []
    for where, rng in drawn_cases(level, "determinant-sum"):
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


def _norm_of_gap(true: Array, more: Array) -> float:
    """|Sigma_*^-1 D (Sigma_* + D)^-1|: the difference of the inverses, without cancellation."""
    return float(np.linalg.norm(np.linalg.solve(true, more) @ np.linalg.inv(true + more), 2))


@claim(
    id="b-bound",
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.MATRICES,
    where="lemma “B bound”, Appendix F",
    quote="‖B‖ ≤ (σ²/λ_min²) ‖Σ̂ - Σ_*‖",
    statement="|B| <= sigma^2 / lambda_min(Sigma_*)^2 |Sigma-hat - Sigma_*| (under E_s)",
    lines="3566-3606",
    mutations={"wrong exponent": {"power": 1.0}},
)
def b_bound(level: Level, power: float = 2.0) -> list[Point]:
    """|sigma^2 (Sigma_*^-1 - Sigma-hat^-1)| <= sigma^2 / lambda_min^2 |Sigma-hat - Sigma_*|, where
    Sigma-hat >= Sigma_* (E_s)."""
    points = []
    for where, rng in drawn_cases(level, "b-bound"):
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


@claim(
    id="b-bound-literal",
    reading_of="b-bound",
    statement="the same without Sigma-hat >= Sigma_*, as it stands",
    mutations={"at Sigma-hat = 1/2 alone": {"covs": (0.5,)}},
    holds_at={"covs": (2.0,)},
    remark=(
        "The lemma names no condition. The proof bounds |Sigma-hat^-1| by "
        "|Sigma_*^-1|, which is E_s."
    ),
    survives="Everything: it is used under E_s only.",
    sides="|B|; its bound",
)
def b_bound_literal(level: Level, covs: tuple[float, ...] = (2.0, 0.5)) -> list[Point]:
    """The same without Sigma-hat >= Sigma_*, in one dimension: sigma = Sigma_* = 1."""
    return [
        at_most(
            {"d": 1, "sigma": 1.0, "Sigma_*": 1.0, "Sigma-hat": cov}, abs(1 - 1 / cov), abs(cov - 1)
        )
        for cov in covs
    ]


@claim(
    id="exponent-bound",
    constant=("factor", 2.0),
    proof="ours",
    kind=Kind.INEQUALITY,
    section=Section.MATRICES,
    where="lemma “Exponent bound”, Appendix F",
    quote="For any x ∈ [0, 1], eˣ ≤ 1 + 2x",
    statement="e^x <= 1 + 2x for x in [0, 1]",
    lines="3609",
    mutations={"smaller factor": {"factor": 1.7}},
)
def exponent_bound(level: Level, factor: float = 2.0) -> list[Point]:
    """e^x <= 1 + 2x on [0, 1]."""
    grid = np.linspace(0, 1, level.pick(21, 2001))
    return [at_most({"x": float(x)}, float(np.exp(x)), float(1 + factor * x)) for x in grid]
