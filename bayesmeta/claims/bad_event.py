"""The regret when E_theta fails, Appendix C.5."""

from __future__ import annotations

import math

from scipy.stats import norm

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import Level, Point, at_most


def _conditional_square(d: int, ell: float) -> float:
    """E[Z_i^2 | E_theta fails], exactly: some |Z_j| > t = sqrt(2 ell), Z independent normals."""
    t = math.sqrt(2 * ell)
    tail = 2 * float(norm.sf(t))
    log_inside = math.log1p(-tail)
    kept = -2 * t * float(norm.pdf(t)) - tail  # E[Z^2; |Z| <= t] - 1
    fail = -math.expm1(d * log_inside)
    rest = -math.expm1((d - 1) * log_inside) - math.exp((d - 1) * log_inside) * kept
    return rest / fail


@claim(
    id="bad-event-moment",
    kind=Kind.EXPECTATION,
    section=Section.THEOREMS,
    where="proof of the lemma on the bad event, below eq. (74), Appendix C.5",
    quote="E[Z_i² | Z_i² > z] ≤ 4z for z ≜ √(2ln(d²T/δ))",
    statement="E[Z_i^2 | E_theta fails] <= 4 sqrt(2 ln(d^2 T/delta))",
    lines="2500-2585",
    mutations={"2 for 4, where 4 does": {"four": 2.0, "ells": (2.0,)}},
    holds_at={"ells": (2.0,)},
    remark=(
        "E_theta says Z_i^2 <= z^2 with z = sqrt(2 ln(d^2 T/delta)); the proof, above "
        "eq. (72), takes z for the threshold."
    ),
    survives=(
        "The lemma on the bad event survives with its constants, and so does Theorem 1's c_bad."
    ),
    sides="the conditional moment; its bound",
)
def bad_event_moment(level: Level, four: float = 4.0, ells: tuple[float, ...] = ()) -> list[Point]:
    """E[Z_i^2 | E_theta fails] <= 4 sqrt(2 ln(d^2 T/delta)), as printed."""
    points = []
    for d in (1, 2, 5, 10):
        many = (1.8, 2.0, 3.0, 6.397, 10.0, 20.0, 30.0, 100.0)
        for ell in ells or level.pick((2.0, 6.397, 30.0), many):
            left = _conditional_square(d, ell)
            points.append(
                at_most({"d": d, "ln(d^2 T/delta)": ell}, left, four * math.sqrt(2 * ell))
            )
    return points


@claim(
    id="bad-event-moment-corrected",
    proof="ours",
    corrects="bad-event-moment",
    statement="E[Z_i^2 | E_theta fails] <= 1 + (2 ln(d^2 T/delta) + 1)/d",
    mutations={"1 dropped": {"one": 0.0}},
)
def bad_event_moment_corrected(level: Level, one: float = 1.0) -> list[Point]:
    """E[Z_i^2 | E_theta fails] <= 1 + (2 ell + 1)/d, ell = ln(d^2 T/delta) >= 1.

    Proof: let J be the first coordinate beyond t = sqrt(2 ell). Those before it have second moments
    of at most 1, those after it of 1, and E[Z^2 | |Z| > t] = 1 + t phi(t)/Q(t) <= t^2 + 2. Their
    sum is at most 2 ell + d + 1, and the coordinates are exchangeable.
    """
    points = []
    for d in (1, 2, 5, 10):
        for ell in level.pick((1.0, 10.0, 100.0), (1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0)):
            right = 1 + (2 * ell + one) / d
            points.append(at_most({"d": d, "ell": ell}, _conditional_square(d, ell), right))
    return points


@claim(
    id="bad-event",
    constant=("four", 4.0),
    proof="ours",
    kind=Kind.EXPECTATION,
    section=Section.THEOREMS,
    where="lemma “Expected maximal regret incurred during a single instance”, Appendix C.5",
    quote="E_θ[max {R(μ, Σ, T)} | Ē_θ] ≤ c_bad √d T / 11",
    statement="E[max R | E_theta fails] <= c_bad sqrt(d) T / 11",
    lines="2451-2610",
    mutations={"2 for 4": {"four": 2.0}},
    remark=(
        "True by the corrected moment, where ell = ln(d^2 T/delta) >= 1, which delta "
        "<= 1/3 gives: 2 ell + d + 1 <= 4 d ell. The lemma states no condition on "
        "delta: see bad-event-literal."
    ),
)
def bad_event(level: Level, four: float = 4.0) -> list[Point]:
    """E[|theta| | E_theta fails] - m <= sqrt(d) sqrt(4 lambda_max ln(d^2 T/delta)), which is what
    the lemma says of 2aT|theta| with m = 0; by the exact second moment (first for d = 1)."""
    points = []
    for d in (1, 2, 5, 10):
        for horizon in (1, 2, 200, 10_000):
            for delta in level.pick((1 / 3, 1e-6), (1 / 3, 1e-2, 1e-6, 1e-12)):
                points.append(_largest_regret(d, horizon, delta, four))
    return points


def _largest_regret(d: int, horizon: int, delta: float, four: float) -> Point:
    ell = math.log(d * d * horizon / delta)
    t = math.sqrt(2 * ell)
    left = math.sqrt(d * _conditional_square(d, ell))
    if d == 1:
        left = math.exp(float(norm.logpdf(t) - norm.logsf(t)))
    where = {"d": d, "T": horizon, "delta": delta}
    return at_most(where, left, math.sqrt(d * four * ell))


@claim(
    id="bad-event-literal",
    reading_of="bad-event",
    statement="the same for every delta < 1, as it stands",
    mutations={"2 for 4, delta = 1/3": {"four": 2.0, "deltas": ((2, 1 / 3),)}},
    holds_at={"deltas": ((2, 1 / 3), (2, 0.99), (1, 0.49))},
    remark=(
        "The lemma states no condition on delta. In one dimension it fails for T = 2 and "
        "delta > 0.9923, and for T = 1 and delta > 0.496."
    ),
    survives="Everything: it is used with delta <= 1/M <= 1/3, and tau < T makes T >= 2.",
    sides="E[|theta| | E_theta fails], mu_* = 0, Sigma_* = 1; its bound",
)
def bad_event_literal(
    level: Level,
    four: float = 4.0,
    deltas: tuple[tuple[int, float], ...] = ((2, 0.9923), (2, 0.9924), (1, 0.495), (1, 0.497)),
) -> list[Point]:
    """T and delta at both sides of where it begins to fail."""
    return [_largest_regret(1, horizon, delta, four) for horizon, delta in deltas]
