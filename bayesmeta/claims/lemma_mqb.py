"""Lemma 1 (M-QB), its condition on n, and the widening that E_s needs."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.stats import chi2

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.drawn import positive
from bayesmeta.claims.events import coupon_failure
from bayesmeta.claims.verdict import DIMS, Level, Point, at_most, bracketed, ordered
from bayesmeta.claims.wishart import deviation, first_n


def _shortest(d: int, share: float) -> int:
    """The smallest T with tau < T at the first n that the lemma allows."""
    horizon = 2
    while math.ceil(8 * d / share * math.log((d * first_n(d, horizon)) ** 2 * horizon)) >= horizon:
        horizon += 1
    return horizon


@claim(
    id="lemma-mqb",
    constant=("constant", 50.0),
    proof="ours",
    kind=Kind.PROBABILITY,
    section=Section.PRIOR_ESTIMATION,
    where="Lemma 1 (MQB_τ conditions), Section 5; proved in Appendix D.1",
    quote="For every instance n > 10d + 4ln(16dT), P(E_n(MQB_τ)) ≥ 1 - 8/(dnT)",
    statement="P(E_n) >= 1 - 8/(dnT) for n > 10d + 4 ln(16dT)",
    lines="428, 2700-2726",
    mutations={
        "tau = d": {"explored": False},
        "0.3 for 50": {"constant": 0.3},
        "0.3 for 3 in f_m": {"three": 0.3},
    },
    remark=(
        "True, even with 4 for 8. The printed proof takes P(E_m | E_v) for P(E_m), "
        "which does no harm, and rests on term B, which is repaired."
    ),
)
def lemma_mqb(
    level: Level, explored: bool = True, constant: float = 50.0, three: float = 3.0
) -> list[Point]:
    """P(E_n fails) <= 8 / (dnT) for n > 10d + 4 ln(16dT): the sum of the three, E_v by a law that
    finds directions slowly (N = n, tau of eq. (8)), E_m and E_s at their tightest; T from the
    smallest with tau < T on."""
    points = []
    for d, share in product(DIMS, level.pick((0.9,), (0.05, 0.5, 0.9))):
        for horizon in (_shortest(d, share), *level.pick((10_000,), (10_000, 10**6))):
            for n in level.pick((first_n(d, horizon), 10**6), (first_n(d, horizon), 10**4, 10**6)):
                log = math.log(d * n * horizon)
                steps = math.ceil(8 * d / share * math.log(d**2 * n**2 * horizon))
                if steps >= horizon:
                    continue
                each = coupon_failure(d, share, steps if explored else d)
                gram = -math.expm1(n * math.log1p(-each)) if each < 1 else 1.0
                mean = float(chi2.sf(three * (d + log), d))
                far = constant * math.sqrt((5 * d + 2 * log) / (n - 1))
                low, high = deviation(d, n - 2, far)
                where = {"d": d, "T": horizon, "n": n, "tau": steps, "lambda_A d / a^2": share}
                most = max(gram, mean, math.exp(low))
                points.append(
                    bracketed(where, most, gram + mean + math.exp(high), 8 / (d * n * horizon))
                )
    return points


@claim(
    id="lemma-mqb-threshold",
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.PRIOR_ESTIMATION,
    where="proof of Lemma 1, Appendix D.1",
    quote="n > 10d + 4ln(16dT) implies n > 5d + 2ln(dnT)",
    statement="n > 10d + 4 ln(16dT) implies n > 5d + 2 ln(dnT)",
    lines="2712-2726",
    mutations={"5d + 2 ln(16dT)": {"four": 2.0, "ten": 5.0}},
)
def lemma_threshold(level: Level, four: float = 4.0, ten: float = 10.0) -> list[Point]:
    """n > 10d + 4 ln(16dT) implies n > 5d + 2 ln(dnT), at the first such n."""
    points = []
    for d in (*DIMS, 100):
        for horizon in level.pick((1, 200, 10**6), (1, 2, 10, 200, 10**4, 10**6, 10**12)):
            n = math.floor(ten * d + four * math.log(16 * d * horizon)) + 1
            right = 5 * d + 2 * math.log(d * n * horizon)
            points.append(at_most({"d": d, "T": horizon, "n": n}, right, n))
    return points


@claim(
    id="widening",
    constant=("share", 1.0),
    factor_of="s",
    proof="the paper",
    kind=Kind.INEQUALITY,
    section=Section.PRIOR_ESTIMATION,
    where="above eq. (12), Section 4; lemma “Σ^w ⪰ Σ_*”, Appendix F",
    quote="‖Σ̂ - Σ_*‖ ≤ s. Define Σ^w = Σ̂ + s·I, then Σ^w ⪰ Σ_* and Σ_*⁻¹ ⪰ (Σ^w)⁻¹",
    statement=(
        "|S - S_*| <= s implies S + sI >= S_*, |S + sI - S_*| <= 2s and S_*^-1 >= (S + sI)^-1"
    ),
    lines="366, 3385-3411",
    mutations={"half of s": {"share": 0.5}},
)
def widening(level: Level, share: float = 1.0) -> list[Point]:
    """|S - S_*| <= s implies S + s I >= S_*, |S + s I - S_*| <= 2s and S_*^-1 >= (S + s I)^-1."""
    rng = level.rng("widening")
    points = []
    for d in DIMS:
        for case in range(level.pick(4, 30)):
            true = positive(rng, d)
            way = rng.standard_normal((d, d))
            way = (way + way.T) / float(np.linalg.norm(way + way.T, 2))
            unit = rng.standard_normal(d)
            unit /= np.linalg.norm(unit)
            size = float(10.0 ** rng.uniform(-2, 2))
            for name, off in (
                ("random", way),
                ("down", -np.outer(unit, unit)),
                ("up", np.outer(unit, unit)),
            ):
                wide = true + size * off + share * size * np.eye(d)
                values = np.linalg.eigvalsh(wide - true)
                where = {"d": d, "case": case, "way": name}
                points.append(ordered(where, float(values[0]), size, 1e-9))
                points.append(at_most(where, float(np.abs(values).max()), 2 * size, 1e-9))
                first = np.linalg.inv(true)
                gap = np.linalg.eigvalsh(first - np.linalg.inv(wide))[0] if share == 1 else 0.0
                points.append(
                    ordered(
                        {**where, "of": "inverses"},
                        float(gap),
                        float(np.linalg.norm(first, 2)),
                        1e-8,
                    )
                )
    return points
