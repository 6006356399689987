"""The tails of the estimates of a task and of the mean, Appendix D.2."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import Level, Point, at_most


def _log_moment(s: float, sigma: float, a: float, event: bool = True) -> float:
    """log E[exp(s rho) | E_v] for one action uniform on [-a, a]: E[exp(s^2 sigma^2 / (2 A^2))] with
    |A| >= a/sqrt(6), by the midpoint rule."""
    edge = a / math.sqrt(6) if event else 1e-3 * a
    grid = edge + (a - edge) * (np.arange(100_000) + 0.5) / 100_000
    return float(logsumexp((s * sigma / grid) ** 2 / 2) - math.log(len(grid)))


def _tilts(level: Level) -> list[tuple[float, float, float, float]]:
    """s in units of the standard deviation, sigma, a and Sigma_* = lambda_max."""
    scales = level.pick((0.1, 3.0, 100.0), (0.01, 0.1, 1.0, 3.0, 10.0, 100.0))
    cases = level.pick(
        ((1.0, 1.0, 1.0), (1e-4, 0.01, 1.0)),
        ((1.0, 1.0, 1.0), (1e-4, 0.01, 1.0), (3.0, 1000.0, 1e-3), (1e-4, 1.0, 1e3)),
    )
    return [
        (s / math.sqrt(6 * sigma**2 / a**2 + top), sigma, a, top)
        for sigma, a, top in cases
        for s in scales
    ]


@claim(
    id="subgaussian-task",
    constant=("two", 2.0),
    proof="the paper",
    kind=Kind.EXPECTATION,
    section=Section.LEAST_SQUARES,
    where=(
        "lemmas “Sub-Gaussianity of the inner instance error” and “… of the single "
        "instance error”, Appendix D.2"
    ),
    quote=(
        "ρ_j is a √(2σ²/(λ_A d)) sub-Gaussian vector; θ̂_j - μ_* is a √(2σ²/(λ_A d) + "
        "λ_max) sub-Gaussian vector"
    ),
    statement=(
        "given E_v, rho is sqrt(2 sigma^2/(lambda_A d)) sub-Gaussian, theta-hat - mu_* is sqrt(s2)"
    ),
    lines="2770-2852",
    mutations={"1 for 2": {"two": 1.0}, "without E_v": {"event": False}},
    remark=(
        "Sharp as s grows, for a single action. With tau of eq. (8) loose by a factor "
        "of about 16 ln(d^2 N^2 T), since V is then about tau lambda_A."
    ),
)
def subgaussian_task(level: Level, two: float = 2.0, event: bool = True) -> list[Point]:
    """log E[exp(s rho)] <= s^2/2 2 sigma^2/(lambda_A d), and with theta - mu_* added s^2/2 s2,
    given E_v; d = 1 and a single action, where nothing averages out."""
    points = []
    for s, sigma, a, top in _tilts(level):
        inner, bound = _log_moment(s, sigma, a, event), two * sigma**2 * 3 / a**2
        where = {"d": 1, "tau": 1, "s": s, "sigma": sigma, "a": a, "Sigma_*": top}
        points.append(at_most(where, inner, s * s / 2 * bound))
        both = inner + s * s / 2 * top
        points.append(at_most({**where, "of": "theta-hat - mu_*"}, both, s * s / 2 * (bound + top)))
    return points


@claim(
    id="subgaussian-mean",
    constant=("two", 2.0),
    proof="the paper",
    kind=Kind.EXPECTATION,
    section=Section.LEAST_SQUARES,
    where="proof of the lemma “Mean estimation error”, Appendix D.2",
    quote="μ̂_n - μ_* is a √((2σ² + λ_A λ_max d)/(λ_A d(n-1))) sub-Gaussian vector",
    statement="given E_v, mu-hat - mu_* is sqrt(s2/(n-1)) sub-Gaussian",
    lines="2855-2890",
    mutations={"1 for 2": {"two": 1.0}, "n for n - 1": {"late": 0}},
)
def subgaussian_mean(level: Level, late: int = 1, two: float = 2.0) -> list[Point]:
    """log E[exp(s (mu-hat - mu_*))] <= s^2 s2 / (2(n-1)), given E_v: n - 1 independent tasks, each
    tilted by s / (n - 1)."""
    points = []
    for tilt, sigma, a, top in _tilts(level):
        for n in level.pick((2, 1000), (2, 10, 1000, 10**6)):
            s = tilt * math.sqrt(n - 1)
            each = s / (n - 1)
            left = (n - 1) * (_log_moment(each, sigma, a) + each**2 / 2 * top)
            right = s**2 / 2 * (two * sigma**2 * 3 / a**2 + top) / (n - late)
            where = {"d": 1, "n": n, "s": s, "sigma": sigma, "a": a, "Sigma_*": top}
            points.append(at_most(where, left, right, 1e-9))
    return points
