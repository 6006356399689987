"""The alignment of means by noise, and what Theorem 1 makes of it (lines 1259-1985)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal

from bayesmeta.checks import Array
from bayesmeta.claims.verdict import Claim, Level, Point, at_most, equal
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.theory import alignment
from bayesmeta.theory.alignment import symmetric_power
from bayesmeta.theory.constants import m_tilde

SECTION = "mean alignment"
Where = dict[str, Any]


def _learners(
    level: Level, name: str
) -> Iterator[tuple[Where, GaussianPrior, GaussianPrior, Array, Array, Array]]:
    """Prior in use, true prior, actions, noise and theta, with V - B positive definite and the
    priors far enough apart for a dropped term to show."""
    rng = level.rng(name)
    for d in (1, 2, 5, 10):
        for case in range(level.pick(3, 15)):
            sigma = (1e-4, 0.3, 3.0)[case % 3]
            actions = rng.standard_normal((2 * d + 4, d))
            low = float(np.linalg.eigvalsh(actions.T @ actions)[0])
            half = rng.standard_normal((d, d))
            true = half @ half.T + 0.1 * np.eye(d)
            true *= 4 * sigma**2 / (low * float(np.linalg.eigvalsh(true)[0]))
            more = 0.3 * true
            mean = rng.standard_normal(d) * sigma
            used = GaussianPrior(mean + sigma * rng.standard_normal(d), true + more)
            theta = mean + np.linalg.cholesky(true) @ rng.standard_normal(d)
            noise = sigma * rng.standard_normal(len(actions))
            where = {"d": d, "sigma": sigma, "case": case}
            yield where, used, GaussianPrior(mean, true), actions, noise, theta


def alignment_mean(level: Level, dropped: bool = False) -> list[Point]:
    """mu-tilde and S^K(S^M) make the means equal after tau steps."""
    points = []
    for where, used, true, actions, noise, theta in _learners(level, "alignment-mean"):
        sigma, gram = where["sigma"], actions.T @ actions
        moved = alignment.aligned_actions(actions, alignment.covariance_gap(used, true, sigma))
        other, s = moved.T @ moved, moved.T @ noise
        mine, _ = alignment.posterior_after(used, sigma, gram, actions.T @ noise, theta)
        tilde = alignment.aligned_mean(used, true, sigma, actions, noise, theta)
        between, _ = alignment.posterior_after(
            GaussianPrior(tilde, true.cov), sigma, other, s, theta
        )
        shifted = alignment.aligned_noise(used, true, sigma, other, s, theta)
        if dropped:
            shifted = shifted - alignment.covariance_gap(used, true, sigma) @ (theta - true.mean)
        theirs, _ = alignment.posterior_after(true, sigma, other, shifted, theta)
        scale = float(np.abs(mine).max()) + float(np.sqrt(np.linalg.norm(true.cov, 2)))
        off = max(float(np.abs(mine - between).max()), float(np.abs(mine - theirs).max())) / scale
        points.append(equal(where, off, 1e-6))
    return points


_CASES = ((1, 1, 1.0), (1, 1, 0.01), (1, 2, 1.0), (2, 4, 1.0), (2, 4, 3.0), (5, 9, 0.3))
_SQUARE = ((1, 1, 1.0), (2, 2, 1.0))  # d = tau and sigma = 1, where nothing is lost


def noise_density(
    level: Level,
    power: str = "tau",
    scaled: bool = False,
    cases: tuple[tuple[int, int, float], ...] = _CASES,
    two: float = 2.0,
) -> list[Point]:
    """The density written for S given the actions against that of N(0, sigma^2 V), the law of
    A' Xi: printed exp(-|S|^2/2) / sqrt((2 pi)^tau det V)."""
    rng = level.rng("noise-density")
    points = []
    for d, tau, sigma in cases:
        actions = rng.standard_normal((tau, d))
        gram = actions.T @ actions
        s = actions.T @ (sigma * rng.standard_normal(tau))
        square = float(s @ np.linalg.solve(gram, s))
        count = tau if power == "tau" else d
        variance = sigma**2 if scaled else 1.0
        printed = -0.5 * (square / variance + count * math.log(two * math.pi * variance))
        printed -= 0.5 * float(np.linalg.slogdet(gram)[1])
        law = float(multivariate_normal.logpdf(s, np.zeros(d), sigma**2 * gram))
        points.append(equal({"d": d, "tau": tau, "sigma": sigma}, abs(printed - law), 1e-8))
    return points


def noise_jacobian(level: Level, sign: int = 1) -> list[Point]:
    """|det J_S| = (det(V^K + B) / det V^K)^1/2 >= 1."""
    points = []
    for where, used, true, actions, _, _ in _learners(level, "noise-jacobian"):
        gap = alignment.covariance_gap(used, true, where["sigma"])
        gram = actions.T @ actions - gap  # V^K
        low = float(np.linalg.eigvalsh(gram)[0])
        near = gap * min(1.0, 0.5 * low / float(np.linalg.norm(gap, 2)))
        turn = symmetric_power(gram + sign * near, 0.5) @ symmetric_power(gram, -0.5)
        points.append(at_most(where, 1.0, float(np.exp(np.linalg.slogdet(turn)[1])), 1e-9))
    return points


@dataclass(frozen=True)
class Edge:
    """A single dimension at the edge of all events: Sigma_* = ``low``, V = lambda_A / 2,
    |mu-hat - mu_*| = ``mean`` = sqrt(f_m delta), Sigma-hat - Sigma_* = ``cov`` = sqrt(f_s delta).
    """

    sigma: float
    low: float
    action_min: float
    tau: int
    horizon: int
    delta: float
    mean: float
    cov: float

    @property
    def where(self) -> Where:
        return {"d": 1, "sigma": self.sigma, "Sigma_*": self.low, "lambda_A": self.action_min,
                "tau": self.tau, "T": self.horizon, "delta": self.delta,
                "mean deviation": self.mean, "covariance deviation": self.cov}  # fmt: skip

    @property
    def c_s(self) -> float:
        return 2 * self.sigma**2 / (self.low**2 * self.action_min)

    @property
    def log(self) -> float:
        return math.log(self.horizon / self.delta)

    @property
    def total(self) -> float:
        """f_m delta + c_1 d f_s delta."""
        return self.mean**2 + 2 / self.low * self.log * self.cov**2

    def c_xi(self, corrected: bool = False) -> float:
        """As printed, or without sigma, which makes M and k_1 free of units."""
        return (1.0 if corrected else self.sigma) * math.sqrt(5 * self.log)

    def delta_m(self, corrected: bool = False) -> float:
        """delta M: at most 1 where Theorem 1 speaks."""
        square = self.c_xi(corrected) ** 2 * self.c_s
        first = (self.c_s * self.tau * self.cov) ** 2
        second = 18 * square * (self.total + square * self.cov**2 / 36)
        return max(3 * self.delta, first, second)

    @property
    def gap(self) -> float:
        return self.sigma**2 * self.cov / (self.low * (self.low + self.cov))

    @property
    def aligned(self) -> float:
        """V^K = V - B."""
        return self.action_min / 2 - self.gap

    @property
    def shift(self) -> float:
        """G with theta at the edge of E_theta, on the side that makes it large."""
        far = math.sqrt(2 * self.log)
        return self.sigma**2 / (self.low + self.cov) * self.mean + self.gap * far * math.sqrt(
            self.low
        )


def _edges(level: Level, corrected: bool = False) -> list[Edge]:
    """From the simple to the rest, each as far from the truth as delta <= 1/M allows."""
    found = []
    for sigma in (1.0, 3.0, 0.9, 0.5, 0.1, 0.05, 1e-2, 1e-4):
        for low in level.pick((1.0, 1e-3), (1.0, 1e-1, 1e-3, 1e-5)):
            for tau, horizon in ((8, 10), (1, 2), (2, 3)):
                for share in level.pick((0.0, 0.7), (0.0, 0.3, 0.7, 0.95)):
                    for delta in level.pick((1 / 3,), (1 / 3, 1e-3)):
                        edge = _at_the_edge(sigma, low, tau, horizon, delta, share, corrected)
                        if edge is not None:
                            found.append(edge)
    return found


def _at_the_edge(
    sigma: float, low: float, tau: int, horizon: int, delta: float, share: float, corrected: bool
) -> Edge | None:
    """Deviations of covariance (``share`` of what is allowed alone) and mean with delta M = 1."""

    def with_(mean: float, cov: float) -> Edge:
        return Edge(sigma, low, 1 / 3, tau, horizon, delta, mean, cov)

    def allowed(edge: Edge) -> bool:
        return edge.delta_m(corrected) <= 1 + 1e-12

    if not allowed(with_(0.0, 0.0)):
        return None
    cov = share * _largest(lambda s: allowed(with_(0.0, s)), low) if share else 0.0
    mean = _largest(lambda m: allowed(with_(m, cov)), sigma)
    edge = with_(mean * (1 - 1e-9), cov)
    return edge if edge.aligned > 0 else None


def _largest(holds: Callable[[float], bool], top: float) -> float:
    """The largest number for which ``holds``, which does at 0 and then no more."""
    while holds(top):
        top *= 10
    low, high = 0.0, top
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _all(edge: Edge) -> bool:
    return True


def shift_bound(
    level: Level,
    corrected: bool = False,
    factor: float = 2.0,
    keep: Callable[[Edge], bool] = _all,
) -> list[Point]:
    """|G|^2_{(V^K)^-1} <= 2 c_s delta (f_m + c_1 d f_s) / d; corrected: times sigma^2 kappa with
    kappa = 1 / (1 - c_s sqrt(f_s delta) / d)."""
    points = []
    for edge in filter(keep, _edges(level, corrected)):
        left = edge.shift**2 / edge.aligned
        right = factor * edge.c_s * edge.total
        if corrected:
            right *= edge.sigma**2 / (1 - edge.c_s * edge.cov)
        points.append(at_most(edge.where, left, right, 1e-9))
    return points


def aligned_gram(
    level: Level,
    corrected: bool = False,
    share: float = 1.0,
    whole: bool = False,
    keep: Callable[[Edge], bool] = _all,
) -> list[Point]:
    """lambda_min(V^K) >= lambda_A d / 2, where it is used; corrected: times 1 - c_s sqrt(f_s
    delta) / d."""
    points = []
    for edge in filter(keep, _edges(level, corrected)):
        bound = edge.action_min if whole else edge.action_min / 2
        if corrected:
            bound *= 1 - share * edge.c_s * edge.cov
        points.append(at_most(edge.where, -edge.aligned, -bound, 1e-9))
    return points


def largest_log_ratio(edge: Edge) -> float:
    """The largest log p(S) - log p(S^K) within E_xi under the law of the model, N(0, sigma^2 V)."""
    g = edge.shift / (edge.sigma * math.sqrt(edge.aligned))
    turn = math.sqrt(1 + edge.gap / edge.aligned)
    far = math.sqrt(5 * edge.log)
    return g * g / 2 + g * turn * far + (turn**2 - 1) * far**2 / 2


def density_ratio(
    level: Level,
    corrected: bool = False,
    factor: float = 6.0,
    keep: Callable[[Edge], bool] = _all,
) -> list[Point]:
    """The ratio is at most 1 + 6 sqrt(c_xi^2 c_s delta (f_m + c_1 d f_s)) + c_xi^2 c_s sqrt(f_s
    delta), as it is used; corrected: c_xi without its sigma, in M as well."""
    points = []
    for edge in filter(keep, _edges(level, corrected)):
        c = edge.c_xi(corrected)
        right = factor * c * math.sqrt(edge.c_s * edge.total) + c**2 * edge.c_s * edge.cov
        left, most = largest_log_ratio(edge), math.log1p(right)
        points.append(Point(edge.where, left, most + 1e-9 * max(left, most), logs=True))
    return points


def good_event_product(level: Level, twelve: float = 12.0) -> list[Point]:
    """(1 + p)(1 + q) <= 1 + k_1, with p = c_s tau sqrt(f_s delta) <= 1; and 2/11 + 9/11 = 1."""
    points = []
    for edge in _edges(level):
        c2 = edge.c_xi() ** 2 * edge.c_s
        p = edge.c_s * edge.tau * edge.cov
        c_1 = 2 / edge.low * edge.log
        q = 6 * math.sqrt(c2) * edge.mean + (6 * math.sqrt(c2 * c_1) + c2) * edge.cov
        k_1 = twelve * math.sqrt(c2) * edge.mean
        k_1 += (edge.c_s * edge.tau + twelve * math.sqrt(c2 * c_1) + 2 * c2) * edge.cov
        points.append(at_most(edge.where, p + q + p * q, k_1, 1e-9))
    for p in (0.0, 0.5, 1.0):
        points.append(at_most({"p": p}, (1 + p) / 11 + 9 / 11, 1.0))
    p, q = 1.0, 0.3  # tight at p = 1
    points.append(at_most({"p": p, "q": q}, p + q + p * q, p + 2 * q * twelve / 12))
    return points


def delta_demands(level: Level, corrected: bool = False, eighteen: float = 18.0) -> list[Point]:
    """(i)-(iv) for delta <= 1/M, read as <=; (iii) follows from (iv)."""
    points = []
    for edge in _edges(level, corrected):
        c, c_s = edge.c_xi(corrected), edge.c_s
        inner = c * math.sqrt(c_s * edge.total)
        four = 3 * inner + c**2 * c_s * edge.cov / 2
        points.append(at_most({**edge.where, "demand": "iv"}, four, math.sqrt(18 / eighteen), 1e-6))
        points.append(at_most({**edge.where, "demand": "ii"}, c_s * edge.tau * edge.cov, 1.0, 1e-9))
        points.append(at_most({**edge.where, "demand": "i"}, c_s * edge.cov, 1.0, 1e-9))
        left = math.sqrt(c_s * edge.total)
        points.append(at_most({**edge.where, "demand": "iii"}, left, c, 1e-9))
    return points


def demand_four(level: Level, eighteen: float = 18.0) -> list[Point]:
    """(iv) where it is tight: both parts of the square equal, 18 (x^2 + y^2 / 36 …) = 1."""
    x = 1 / math.sqrt(2 * eighteen)  # 18 x^2 = 1/2
    y = math.sqrt(0.5 * 36 / eighteen)  # 18 y^2 / 36 = 1/2
    return [at_most({"x": x, "y": y}, 3 * x + y / 2, 1.0)]


def log_bound(level: Level, two: float = 2.0) -> list[Point]:
    """x >= 4 a ln(2a) + 2b implies x >= a ln x + b, for a >= 1 and b > 0."""
    points = []
    for a in (1.0, 1.5, 10.0, 1e4, 1e8):
        for b in (1e-12, 1.0, 1e4, 1e8):
            for stretch in level.pick((1.0, 2.0), (1.0, 1.01, 2.0, 10.0, 1e6)):
                x = stretch * (4 * a * math.log(2 * a) + two * b)
                points.append(at_most({"a": a, "b": b, "x": x}, a * math.log(x) + b, x))
    return points


def m_tilde_suffices(level: Level, raised: bool = True) -> list[Point]:
    """delta <= 1 / M-tilde implies delta (a ln^p(1/delta) + b) <= 1."""
    points = []
    for p in (1, 2, 3):
        for a in (p**-p, 1.0, 50.0, 1e6):
            for b in (1e-3, 1.0, 1e3, 1e6):
                for less in level.pick((1.0, 1e3), (1.0, 1.5, 10.0, 1e3, 1e10)):
                    bound = m_tilde(a, b, p)
                    delta = 1 / ((bound if raised else bound ** (1 / p)) * less)
                    left = delta * (a * math.log(1 / delta) ** p + b) if delta < 1 else math.inf
                    points.append(at_most({"p": p, "a": a, "b": b, "delta": delta}, left, 1.0))
    return points


def _one(edge: Edge) -> bool:
    return edge.sigma == 1


def _below_one(edge: Edge) -> bool:
    return edge.sigma == 0.9 and edge.cov == 0


def _right_covariance(edge: Edge) -> bool:
    return edge.cov == 0


CLAIMS = (
    Claim("alignment-mean", SECTION, "1276-1445", "I",
          "mu-tilde and S^K(S^M) bring both learners to the same mean", alignment_mean,
          {"B (theta - mu) dropped": partial(alignment_mean, dropped=True)}),
    Claim("noise-density", SECTION, "1494, 1586, 1607, 1829-1851", "I",
          "S given A has density exp(-|S|^2_{V^-1}/2) / sqrt((2 pi)^tau det V)", noise_density,
          {"pi for 2 pi, where d = tau": partial(noise_density, cases=_SQUARE, two=1.0)},
          "The law is N(0, sigma^2 V) in d dimensions, as line 1390 says: sigma^2 and the "
          "dimension are lost at line 1494. The constants cancel between two such densities, the "
          "missing 1/sigma^2 in the exponent does not: see density-ratio and theorem-1.",
          partial(noise_density, cases=_SQUARE),
          survives="The lost constants cancel in the ratio of two such densities; the lost "
          "1/sigma^2 does not. Theorem 1 survives for sigma >= 1, and for all sigma with 5 "
          "ln(dT/delta) for c_xi^2.",
          sides="difference of the logarithms of printed and true density at a point; rounding"),
    Claim("noise-density-corrected", SECTION, "1494", "I",
          "S given A has density exp(-|S|^2_{V^-1}/(2 sigma^2)) / sqrt((2 pi sigma^2)^d det V)",
          partial(noise_density, power="d", scaled=True),
          {"tau for d": partial(noise_density, scaled=True)}),
    Claim("noise-jacobian", SECTION, "1570", "D", "|det J_S| >= 1", noise_jacobian,
          {"V^K - B": partial(noise_jacobian, sign=-1)}),
    Claim("shift-bound", SECTION, "1670-1698", "D",
          "|G|^2 in the norm of (V^K)^-1 is at most 2 c_s delta (f_m + c_1 d f_s) / d", shift_bound,
          {"0.5 for 2, where sigma = 0.9": partial(shift_bound, factor=0.5, keep=_below_one)},
          "Two slips. Step (c), line 1688, loses sigma^2: 2 sigma^4 / (lambda_min^2 lambda_A d/2) "
          "is 2 sigma^2 c_s / d. And E_v bounds V, not V^K = V - B (see aligned-gram). Units tell: "
          "the left side changes with those of rewards, the right does not.",
          partial(shift_bound, keep=_below_one),
          survives="density-ratio survives as printed for sigma >= 1, and with 5 ln(dT/delta) "
          "for c_xi^2 for all sigma; so does Theorem 1.",
          sides="|G|^2; its bound"),
    Claim("shift-bound-corrected", SECTION, "1670-1698", "D",
          "the same times sigma^2 / (1 - c_s sqrt(f_s delta) / d)",
          partial(shift_bound, corrected=True),
          {"1.9 for 2": partial(shift_bound, corrected=True, factor=1.9)},
          "The printed lines with aligned-gram-corrected."),
    Claim("aligned-gram", SECTION, "1688-1760", "D",
          "lambda_min(V^K) >= lambda_A d / 2 where lines 1687 and 1752 use it", aligned_gram,
          {"without its factor 1/2": partial(aligned_gram, whole=True, keep=_right_covariance)},
          "E_v speaks of V = V^K + B. Step (a) at line 1304 then drops E_v altogether, and over "
          "all V^K > 0 the ratio has no bound; keep E_v until it is bounded.",
          partial(aligned_gram, keep=_right_covariance),
          survives="density-ratio-corrected: the lost factor is at most 1.19, which its slack "
          "covers.",
          sides="-lambda_min(V^K); -lambda_A d / 2, so that lambda_min is the smaller"),
    Claim("aligned-gram-corrected", SECTION, "1688-1760", "D",
          "lambda_min(V^K) >= (lambda_A d / 2)(1 - c_s sqrt(f_s delta) / d)",
          partial(aligned_gram, corrected=True),
          {"half of c_s": partial(aligned_gram, corrected=True, share=0.5)},
          "Weyl, with |B| <= sigma^2 sqrt(f_s delta) / lambda_min^2."),
    Claim("density-ratio", SECTION, "1582-1810", "D",
          "the ratio of the densities of S and S^K is at most "
          "1 + 6 sqrt(c_xi^2 c_s) (…) + c_xi^2 c_s sqrt(f_s delta)", density_ratio,
          {"0.5 for 6, where sigma = 1": partial(density_ratio, factor=0.5, keep=_one)},
          "Under the law the model implies the exponent has 1 / sigma^2 (line 1494 lost it), so "
          "the claim fails for sigma < 1; for sigma >= 1 it follows from the corrected one.",
          partial(density_ratio, keep=_one),
          survives="Theorem 1 survives for sigma >= 1, and for all sigma with 5 ln(dT/delta) for "
          "c_xi^2.",
          sides="the largest ratio; its bound"),
    Claim("density-ratio-corrected", SECTION, "1582-1810", "D",
          "the same with 5 ln(dT/delta) for c_xi^2, in M as well, where V >= lambda_A d / 2",
          partial(density_ratio, corrected=True),
          {"0.9 for 6": partial(density_ratio, corrected=True, factor=0.9)},
          "With c^2 = 5 ln(dT/delta), u = c sqrt(c_s (f_m + c_1 d f_s) delta) and v = c^2 c_s "
          "sqrt(f_s delta) / 2, delta <= 1/M says 18 u^2 + 2 v^2 <= 1. Since c^2 >= 5 ln 6, kappa "
          "= 1 / (1 - c_s sqrt(f_s delta) / d) <= 1.1875, and the exponent is at most "
          "kappa (c_s (…) / d + sqrt(2) u + v) <= 1.711 u + 1.1875 v. exp of that less 1 + 6u + 2v "
          "is convex, 0 at 0 and negative on the arc, hence nowhere positive."),
    Claim("good-event-product", SECTION, "1874-1905", "D",
          "(1 + c_s tau sqrt(f_s delta)) (1 + …) <= 1 + k_1, and the constants add to c_bad",
          good_event_product, {"11 for 12": partial(good_event_product, twelve=11.0)},
          "k_1 = p + 2q and pq <= q; tight at p = 1. The 6 c_xi^2 c_s of line 1805 is a misprint "
          "for c_xi^2 c_s."),
    Claim("delta-demands", SECTION, "1906-1965", "D",
          "(i)-(iv) follow from delta <= 1/M, and (iii) from (iv)",
          lambda level: [*demand_four(level), *delta_demands(level)],
          {"9 for 18": lambda level: demand_four(level, 9.0)},
          "(iv) holds, tightly. (iii) fails for small sigma: (iv) gives sqrt(c_s (…)) <= 1 / (3 "
          "c_xi), which is at most c_xi d only if 3 d c_xi^2 >= 1. (i) and (ii) hold as <=, not as "
          "<, at delta = 1/M.", demand_four,
          survives="Theorem 1 with 5 ln(dT/delta) for c_xi^2, where (iii) holds.",
          sides="sqrt(c_s (f_m + c_1 d f_s) delta); c_xi d, demand (iii)"),
    Claim("delta-demands-corrected", SECTION, "1906-1965", "D",
          "the same with 5 ln(dT/delta) for c_xi^2", partial(delta_demands, corrected=True),
          {"9 for 18": lambda level: demand_four(level, 9.0)},
          "3 c^2 >= 15 ln 3 > 1."),
    Claim("log-bound", SECTION, "3617", "D", "x >= 4 a ln(2a) + 2b implies x >= a ln x + b",
          log_bound, {"0.5 b for 2b": partial(log_bound, two=0.5)}),
    Claim("m-tilde", SECTION, "1966-1985", "D",
          "delta <= 1 / M-tilde implies delta <= 1 / M(delta)",
          m_tilde_suffices, {"not raised to p": partial(m_tilde_suffices, raised=False)},
          "The sentence of line 809, that M-tilde >= M, is false as delta goes to 0 (M grows "
          "without bound); only the implication is used."),
)  # fmt: skip
"""Checks of this section."""
