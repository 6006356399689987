"""The events of the proof: of theta, of the gram, of the noise (lines 196-220, 1457, 3353)."""

from __future__ import annotations

import math
from functools import partial

from scipy.special import comb, erfc
from scipy.stats import chi2

from bayesmeta.claims.verdict import Claim, Level, Point, exact

SECTION = "events"
DIMS = (1, 2, 5, 10)


def _grid(level: Level) -> list[tuple[int, int, float]]:
    """d, T and delta, from the largest that Theorem 1 allows (1/M <= 1/3) down."""
    horizons = level.pick((2, 200), (2, 10, 200, 10_000))
    deltas = level.pick((1 / 3, 1e-4), (1 / 3, 0.1, 1e-2, 1e-4, 1e-8, 1e-16))
    return [(d, t, delta) for d in DIMS for t in horizons for delta in deltas]


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


def event_noise(level: Level, factor: float = 5.0) -> list[Point]:
    """P(|S|_{V^-1} > c_xi sqrt(d)) < delta / (dT) given the actions: |S|^2 / sigma^2 is chi-squared
    with d degrees of freedom, whatever the actions are."""
    points = []
    for d, horizon, delta in _grid(level):
        log = math.log(d * horizon / delta)
        fail = float(chi2.sf(factor * d * log, d))
        points.append(exact({"d": d, "T": horizon, "delta": delta}, fail, delta / (d * horizon)))
    return points


CLAIMS = (
    Claim(
        "event-theta",
        SECTION,
        "196, 785",
        "P",
        "P(E_theta) > 1 - delta/(dT)",
        event_theta,
        {
            "1.5 for 2": partial(event_theta, factor=1.5),
            "dT for d^2 T": partial(event_theta, power=1),
        },
        "erfc(y) < exp(-y^2) gives it for every delta with d^2 T > delta.",
    ),
    Claim(
        "event-gram",
        SECTION,
        "3353-3380",
        "P",
        "after tau steps, P(E_v) >= 1 - delta/(dT)",
        event_gram,
        {"1/2 for 8": partial(event_gram, constant=0.5)},
        "Tropp's bound gives it for every law, tau rounded up or down. The constant 8 is slack: "
        "the slowest law looked at needs about 1. Actions must be drawn anew at every step.",
    ),
    Claim(
        "event-gram-meta",
        SECTION,
        "2692, 2705",
        "P",
        "E_v holds in all tasks up to N with probability 1 - 1/(dNT)",
        event_gram_meta,
        {
            "1/2 for 8": partial(event_gram_meta, constant=0.5),
            "N for N^2, 1 for 8": partial(event_gram_meta, constant=1.0, power=1),
        },
    ),
    Claim(
        "event-noise",
        SECTION,
        "1457-1467",
        "P",
        "P(|S|_{V^-1} <= c_xi sqrt d | A) > 1 - delta/(dT)",
        event_noise,
        {"1 for 5": partial(event_noise, factor=1.0)},
        "Exact law: sigma^2 times a chi-squared variable; the constant 2 would do for delta <= "
        "1/3.",
    ),
)
"""Checks of this section."""
