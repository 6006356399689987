"""The events of the proof: of theta, of the gram, of the noise, eqs. (5) and (41)."""

from __future__ import annotations

import math

from scipy.special import comb, erfc
from scipy.stats import chi2

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import DIMS, Level, Point, exact


def _grid(level: Level) -> list[tuple[int, int, float]]:
    """d, T and delta, from the largest that Theorem 1 allows (1/M <= 1/3) down."""
    horizons = level.pick((2, 200), (2, 10, 200, 10_000))
    deltas = level.pick((1 / 3, 1e-4), (1 / 3, 0.1, 1e-2, 1e-4, 1e-8, 1e-16))
    return [(d, t, delta) for d in DIMS for t in horizons for delta in deltas]


@claim(
    id="event-theta",
    constant=("factor", 2.0),
    proof="ours",
    kind=Kind.PROBABILITY,
    section=Section.EVENTS,
    where="event E_θ of eq. (5), Section 3; its probability in Appendix C",
    quote="we have that P(E_θ) > 1 - δ/(dT)",
    statement="P(E_theta) > 1 - delta/(dT)",
    lines="196, 785",
    mutations={"1.5 for 2": {"factor": 1.5}, "dT for d^2 T": {"power": 1}},
    remark="erfc(y) < exp(-y^2) gives it for every delta with d^2 T > delta.",
)
def event_theta(level: Level, factor: float = 2.0, power: int = 2) -> list[Point]:
    """P(|Sigma^-1/2 (theta - mu)|_inf^2 > 2 ln(d^2 T / delta)) < delta / (dT), by the exact law:
    d independent standard normals."""
    points = []
    for d, horizon, delta in _grid(level):
        log = math.log(d**power * horizon / delta)
        fail = -math.expm1(d * math.log1p(-erfc(math.sqrt(factor * log / 2))))
        points.append(exact({"d": d, "T": horizon, "delta": delta}, fail, delta / (d * horizon)))
    return points


def coupon_failure(d: int, share: float, steps: int) -> float:
    """P(some direction is never tried) for the law that plays ± a e_i with probability share / d
    each and 0 otherwise: a law with lambda_A = share a^2 / d that is slow to explore."""
    total = 0.0
    for j in range(1, d + 1):
        total -= (
            (-1) ** j * comb(d, j) * math.exp(steps * math.log1p(-j * share / d))
            if (j * share < d)
            else 0.0
        )
    return max(total, 0.0)


def small_failure(share: float, steps: int) -> float:
    """P(V < lambda_A / 2) in one dimension for the law that plays ± a seldom, and otherwise actions
    just so small that all of them together are not enough; lambda_A = share a^2."""
    rest = share / (2 * steps) * (1 - 1e-9)
    return math.exp(steps * math.log1p(-(share - rest) / (1 - rest)))


@claim(
    id="event-gram",
    constant=("constant", 8.0),
    proof="the paper",
    kind=Kind.PROBABILITY,
    section=Section.EVENTS,
    where="lemma “Minimum eigenvalue of Gram matrix”, Appendix F",
    quote="For τ = max{d, (8a²/λ_A) ln(d²T/δ)}, … P(E_v) ≥ 1 - δ/(dT)",
    statement="after tau steps, P(E_v) >= 1 - delta/(dT)",
    lines="3353-3380",
    mutations={"1/2 for 8": {"constant": 0.5}},
    remark=(
        "Tropp's bound gives it for every law, tau rounded up or down. The constant 8 "
        "is slack: the slowest law looked at needs about 1. Actions must be drawn anew "
        "at every step."
    ),
)
def event_gram(level: Level, constant: float = 8.0) -> list[Point]:
    """P(lambda_min(V) < lambda_A d / 2) <= delta / (dT) after tau steps, whole ones: exactly, for
    laws that are slow to explore (blurred, they have densities that do not grow with the norm on
    their supports; see ``coupon_failure`` and, for d = 1, ``small_failure``)."""
    points = []
    for d, horizon, delta in _grid(level):
        for share in level.pick((0.05,), (0.01, 0.05, 0.5, 0.99)):
            log = math.log(d * d * horizon / delta)
            steps = math.floor(max(d, constant * d / share * log))  # a^2 / lambda_A = d / share
            where = {"d": d, "T": horizon, "delta": delta, "lambda_A d / a^2": share}
            fail = coupon_failure(d, share, steps)
            if d == 1:
                fail = max(fail, small_failure(share, steps))
            points.append(exact(where, fail, delta / (d * horizon)))
    return points


@claim(
    id="event-gram-meta",
    constant=("constant", 8.0),
    proof="the paper",
    kind=Kind.PROBABILITY,
    section=Section.EVENTS,
    where="proof of Lemma 1, Appendix D.1",
    quote=(
        "Using the union bound … with δ = 1/N² for all instances up to the n-th "
        "instance, P(E_v(MQB_τ)) ≥ 1 - 1/(dNT)"
    ),
    statement="E_v holds in all tasks up to N with probability 1 - 1/(dNT)",
    lines="2692, 2705",
    mutations={"1/2 for 8": {"constant": 0.5}, "N for N^2, 1 for 8": {"constant": 1.0, "power": 1}},
)
def event_gram_meta(level: Level, constant: float = 8.0, power: int = 2) -> list[Point]:
    """The same for all tasks up to n = N, with delta = 1/N^2: at most 1 / (dNT)."""
    points = []
    for d in DIMS:
        for horizon in (2, 200):
            for tasks in level.pick((2, 10_000), (1, 2, 10, 1000, 10_000, 10**6)):
                steps = math.floor(
                    max(d, constant * d / 0.05 * math.log(d**2 * tasks**power * horizon))
                )
                each = coupon_failure(d, 0.05, steps)
                fail = -math.expm1(tasks * math.log1p(-each)) if each < 1 else 1.0
                allowed = 1 / (d * tasks * horizon)
                points.append(exact({"d": d, "T": horizon, "N": tasks}, fail, allowed))
    return points


@claim(
    id="event-noise",
    constant=("factor", 5.0),
    proof="ours",
    kind=Kind.PROBABILITY,
    section=Section.EVENTS,
    where="eqs. (41)-(42), Appendix C.2.2",
    quote="E_ξ ≜ {‖S_τ‖_{(V^K)⁻¹} ≤ c_ξ √d}; P(E_ξ | A^K_τ) > 1 - δ/(dT)",
    statement="P(|S|_{V^-1} <= c_xi sqrt d | A) > 1 - delta/(dT)",
    lines="1457-1467",
    mutations={"1 for 5": {"factor": 1.0}},
    remark=(
        "Exact law: sigma^2 times a chi-squared variable; the constant 2 would do for delta <= 1/3."
    ),
)
def event_noise(level: Level, factor: float = 5.0) -> list[Point]:
    """P(|S|_{V^-1} > c_xi sqrt(d)) < delta / (dT) given the actions: |S|^2 / sigma^2 is chi-squared
    with d degrees of freedom, whatever the actions are."""
    points = []
    for d, horizon, delta in _grid(level):
        log = math.log(d * horizon / delta)
        fail = float(chi2.sf(factor * d * log, d))
        points.append(exact({"d": d, "T": horizon, "delta": delta}, fail, delta / (d * horizon)))
    return points
