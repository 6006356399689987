"""The alignment of means by noise, and what Theorem 1 makes of it (lines 1259-1985)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.edges import Edge, Where, all_edges
from bayesmeta.claims.verdict import Claim, Level, Point, at_most, equal
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.theory import alignment
from bayesmeta.theory.alignment import symmetric_power
from bayesmeta.theory.constants import largest_m, linear_in_log, m_tilde, m_tilde_of
from bayesmeta.theory.regime import Regime

SECTION = "mean alignment"


def _learners(
    level: Level, name: str
) -> Iterator[tuple[Where, GaussianPrior, GaussianPrior, Array, Array, Array]]:
    """Prior in use, true prior, actions, noise and theta. B <= sigma^2 Sigma_*^-1 <= V/4 whatever
    the prior in use, so V - B is positive definite; and the priors are far enough apart for a
    dropped term to show."""
    rng = level.rng(name)
    for d in (1, 2, 5, 10):
        for case in range(level.pick(3, 15)):
            sigma = (1e-4, 0.3, 3.0)[case % 3]
            actions = rng.standard_normal((2 * d + 4, d))
            low = float(np.linalg.eigvalsh(actions.T @ actions)[0])
            half = rng.standard_normal((d, d))
            true = half @ half.T + 0.1 * np.eye(d)
            true *= 4 * sigma**2 / (low * float(np.linalg.eigvalsh(true)[0]))
            way = rng.standard_normal((d, 1 if case % 2 else d))
            more = 0.3 * true if case % 3 == 2 else (way @ way.T) * float(np.trace(true)) / d
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
        actions = rng.standard_normal((tau, d)) if tau > 1 else np.ones((1, 1))
        gram = actions.T @ actions
        s = actions.T @ (sigma * rng.standard_normal(tau)) if tau > 1 else np.zeros(1)
        square = float(s @ np.linalg.solve(gram, s))
        count = tau if power == "tau" else d
        variance = sigma**2 if scaled else 1.0
        printed = -0.5 * (square / variance + count * math.log(two * math.pi * variance))
        printed -= 0.5 * float(np.linalg.slogdet(gram)[1])
        law = alignment.noise_log_density(s, gram, sigma)
        where: Where = {"d": d, "tau": tau, "sigma": sigma}
        if tau == 1:
            where |= {"A": 1.0, "S": 0.0, "log density": law, "log density as printed": printed}
        points.append(equal(where, abs(printed - law), 1e-8))
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
    for edge in filter(keep, all_edges(level, corrected)):
        left = edge.shift**2 / edge.aligned
        right = factor * edge.c_s * edge.total / edge.dim
        if corrected:
            right *= edge.sigma**2 / (1 - edge.c_s * edge.cov / edge.dim)
        point = at_most(edge.where, left, right, 1e-9)
        points.append(point._replace(label="" if edge.cov else "sigma^2"))
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
    for edge in filter(keep, all_edges(level, corrected)):
        bound = edge.action_min * edge.dim * (1.0 if whole else 0.5)
        if corrected:
            bound *= 1 - share * edge.c_s * edge.cov / edge.dim
        points.append(at_most(edge.where, -edge.aligned, -bound, 1e-9))
    return points


def largest_log_ratio(edge: Edge) -> float:
    """The largest log p(S) - log p(S^K) within E_xi under the law of the model, N(0, sigma^2 V)."""
    g = edge.shift / (edge.sigma * math.sqrt(edge.aligned))
    turn = math.sqrt(1 + edge.gap / edge.aligned)
    far = math.sqrt(5 * edge.dim * edge.log)
    way = np.full(edge.dim, edge.sigma * math.sqrt(edge.aligned / edge.dim))  # of norm sigma
    gram = edge.aligned * np.eye(edge.dim)
    return alignment.noise_log_ratio(far * way, (g + turn * far) * way, gram, edge.sigma)


def _density_point(edge: Edge, right: float) -> Point:
    left, most = largest_log_ratio(edge), math.log1p(right)
    return Point(edge.where, left, most + 1e-9 * max(left, most), logs=True)


def density_ratio(
    level: Level, six: float = 6.0, keep: Callable[[Edge], bool] = _all
) -> list[Point]:
    """The ratio is at most 1 + 6 sqrt(c_xi^2 c_s) sqrt(f_m delta) + 6 (sqrt(c_xi^2 c_s c_1 d) +
    c_xi^2 c_s) sqrt(f_s delta), line 1805; it is used with c_xi^2 c_s for 6 c_xi^2 c_s."""
    points = []
    for edge in filter(keep, all_edges(level)):
        c2 = edge.c_xi() ** 2 * edge.c_s
        root = math.sqrt(c2 * edge.c_1 * edge.dim)
        right = six * math.sqrt(c2) * edge.mean + six * (root + c2) * edge.cov
        points.append(_density_point(edge, right))
    return points


def density_ratio_corrected(level: Level, six: float = 6.0) -> list[Point]:
    """Step (c), from which both follow, with c_xi without its sigma, in M as well: at most 1 +
    6 sqrt(c_xi^2 c_s delta (f_m + c_1 d f_s)) + c_xi^2 c_s sqrt(f_s delta)."""
    points = []
    for edge in all_edges(level, corrected=True):
        c = edge.c_xi(corrected=True)
        right = six * c * math.sqrt(edge.c_s * edge.total) + c**2 * edge.c_s * edge.cov
        points.append(_density_point(edge, right))
    return points


def good_event_product(level: Level, twelve: float = 12.0, eleven: float = 11.0) -> list[Point]:
    """(1 + p)(1 + q) <= 1 + k_1, with p = c_s tau sqrt(f_s delta) <= 1; and 2/11 + 9/11 = 1."""
    points = []
    for edge in all_edges(level):
        c2 = edge.c_xi() ** 2 * edge.c_s
        p = edge.c_s * edge.tau * edge.cov
        root = math.sqrt(c2 * edge.c_1 * edge.dim)
        q = 6 * math.sqrt(c2) * edge.mean + (6 * root + c2) * edge.cov
        k_1 = twelve * math.sqrt(c2) * edge.mean
        k_1 += (edge.c_s * edge.tau + twelve * root + 2 * c2) * edge.cov
        points.append(at_most(edge.where, p + q + p * q, k_1, 1e-9))
    for p in (0.0, 0.5, 1.0):
        points.append(at_most({"p": p}, (1 + p) / eleven + 9 / 11, 1.0))
    p, q = 1.0, 0.3  # tight at p = 1
    points.append(at_most({"p": p, "q": q}, p + q + p * q, p + 2 * q * twelve / 12))
    return points


def delta_demands(level: Level, corrected: bool = False, three: float = 3.0) -> list[Point]:
    """(i)-(iv) for delta <= 1/M, read as <=; (iii) follows from (iv)."""
    points = []
    for edge in all_edges(level, corrected):
        c, c_s = edge.c_xi(corrected), edge.c_s
        inner = c * math.sqrt(c_s * edge.total)
        four = three * inner + c**2 * c_s * edge.cov / 2
        points.append(at_most({**edge.where, "demand": "iv"}, four, 1.0, 1e-6))
        points.append(at_most({**edge.where, "demand": "ii"}, c_s * edge.tau * edge.cov, 1.0, 1e-9))
        points.append(at_most({**edge.where, "demand": "i"}, c_s * edge.cov, edge.dim, 1e-9))
        left = math.sqrt(c_s * edge.total)
        points.append(at_most({**edge.where, "demand": "iii"}, left, c * edge.dim, 1e-9))
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
    """delta <= 1 / M-tilde implies delta (a ln^p(1/delta) + b) <= 1; and so for M(delta) itself."""
    points = []
    for p in (1, 2, 3):
        for a in (p**-p, 1.0, 50.0, 1e6):
            for b in (1e-3, 1.0, 1e3, 1e6):
                for less in level.pick((1.0, 1e3), (1.0, 1.5, 10.0, 1e3, 1e10)):
                    bound = m_tilde(a, b, p)
                    delta = 1 / ((bound if raised else bound ** (1 / p)) * less)
                    left = delta * (a * math.log(1 / delta) ** p + b) if delta < 1 else math.inf
                    points.append(at_most({"p": p, "a": a, "b": b, "delta": delta}, left, 1.0))
    for d, sigma, low in product((1, 2, 5, 10), (1e-4, 1.0, 3.0), (1e-3, 1.0)):
        regime = Regime.of(
            dim=d,
            horizon=1000,
            tasks=2,
            noise_sd=sigma,
            radius=1.0,
            action_min=1 / (d + 2),
            prior_min=low,
            prior_max=low,
            mean_norm=1.0,
        )
        delta = 1 / m_tilde_of(regime)
        log = math.log(1 / delta)
        tau, fm, fs = (one[0] + one[1] * log for one in linear_in_log(regime))
        left = delta * largest_m(regime, tau, fm, fs, delta)
        where = {"d": d, "sigma": sigma, "Sigma_*": low, "of": "M(delta)", "delta": delta}
        points.append(at_most(where, left, 1.0))
    return points


def _one(edge: Edge) -> bool:
    return edge.sigma == 1


def _below_one(edge: Edge) -> bool:
    return edge.sigma == 0.9 and edge.cov == 0


def _right_covariance(edge: Edge) -> bool:
    return edge.cov == 0


_THEOREM_1 = (
    "Theorem 1 survives, for laws of alignment-density-corrected, where sigma >= 1, and for all "
    "sigma with 5 ln(dT/delta) for c_xi^2."
)

CLAIMS = (
    Claim(
        "alignment-mean",
        SECTION,
        "1276-1445",
        "I",
        "mu-tilde and S^K(S^M) bring both learners to the same mean",
        alignment_mean,
        {"B (theta - mu) dropped": partial(alignment_mean, dropped=True)},
    ),
    Claim(
        "noise-density",
        SECTION,
        "1494, 1586, 1607, 1829-1851",
        "I",
        "S given A has density exp(-|S|^2_{V^-1}/2) / sqrt((2 pi)^tau det V)",
        noise_density,
        {"pi for 2 pi, where d = tau": partial(noise_density, cases=_SQUARE, two=1.0)},
        "The law is N(0, sigma^2 V) in d dimensions, as line 1390 says: sigma^2 and the "
        "dimension are lost at line 1494. The constants cancel between two such densities, the "
        "missing 1/sigma^2 in the exponent does not: see density-ratio and theorem-1.",
        partial(noise_density, cases=_SQUARE),
        survives="The lost constants cancel in the ratio of two such densities; the lost "
        "1/sigma^2 does not. " + _THEOREM_1,
        sides="difference of the logarithms of printed and true density at a point; rounding",
    ),
    Claim(
        "noise-density-corrected",
        SECTION,
        "1494",
        "I",
        "S given A has density exp(-|S|^2_{V^-1}/(2 sigma^2)) / sqrt((2 pi sigma^2)^d det V)",
        partial(noise_density, power="d", scaled=True),
        {"tau for d": partial(noise_density, scaled=True)},
    ),
    Claim(
        "noise-jacobian",
        SECTION,
        "1570",
        "D",
        "|det J_S| >= 1",
        noise_jacobian,
        {"V^K - B": partial(noise_jacobian, sign=-1)},
    ),
    Claim(
        "shift-bound",
        SECTION,
        "1670-1698",
        "D",
        "|G|^2 in the norm of (V^K)^-1 is at most 2 c_s delta (f_m + c_1 d f_s) / d",
        shift_bound,
        {"0.5 for 2, where sigma = 0.9": partial(shift_bound, factor=0.5, keep=_below_one)},
        "Two slips. Step (c), line 1688, loses sigma^2: 2 sigma^4 / (lambda_min^2 lambda_A d/2) "
        "is 2 sigma^2 c_s / d. And E_v bounds V, not V^K = V - B (see aligned-gram). Units tell: "
        "the left side changes with those of rewards, the right does not.",
        partial(shift_bound, keep=_below_one),
        survives="density-ratio survives as printed for sigma >= 1, and with 5 ln(dT/delta) "
        "for c_xi^2 for all sigma. " + _THEOREM_1,
        sides="|G|^2; its bound",
    ),
    Claim(
        "shift-bound-corrected",
        SECTION,
        "1670-1698",
        "D",
        "the same times sigma^2 / (1 - c_s sqrt(f_s delta) / d)",
        partial(shift_bound, corrected=True),
        {"1.9 for 2": partial(shift_bound, corrected=True, factor=1.9)},
        "The printed lines with aligned-gram-corrected.",
    ),
    Claim(
        "aligned-gram",
        SECTION,
        "1688-1760",
        "D",
        "lambda_min(V^K) >= lambda_A d / 2 where lines 1687 and 1752 use it",
        aligned_gram,
        {"without its factor 1/2": partial(aligned_gram, whole=True, keep=_right_covariance)},
        "E_v speaks of V = V^K + B. Step (a) at line 1304 then drops E_v altogether, and over "
        "all V^K > 0 the ratio has no bound; keep E_v until it is bounded.",
        partial(aligned_gram, keep=_right_covariance),
        survives="density-ratio-corrected: the lost factor is at most 1.19, which its slack "
        "covers.",
        sides="-lambda_min(V^K); -lambda_A d / 2, so that lambda_min is the smaller",
    ),
    Claim(
        "aligned-gram-corrected",
        SECTION,
        "1688-1760",
        "D",
        "lambda_min(V^K) >= (lambda_A d / 2)(1 - c_s sqrt(f_s delta) / d)",
        partial(aligned_gram, corrected=True),
        {"half of c_s": partial(aligned_gram, corrected=True, share=0.5)},
        "Weyl, with |B| <= sigma^2 sqrt(f_s delta) / lambda_min^2.",
    ),
    Claim(
        "density-ratio",
        SECTION,
        "1582-1810",
        "D",
        "the ratio of the densities of S and S^K is at most 1 + 6 sqrt(c_xi^2 c_s) sqrt(f_m "
        "delta) + 6 (sqrt(c_xi^2 c_s c_1 d) + c_xi^2 c_s) sqrt(f_s delta)",
        density_ratio,
        {"0.5 for 6, where sigma = 1": partial(density_ratio, six=0.5, keep=_one)},
        "Under the law the model implies the exponent has 1 / sigma^2 (line 1494 lost it). So "
        "the claim fails for small sigma, from about 0.6 down (as line 1885 uses it, from about "
        "0.97 down); for sigma >= 1 it follows from the corrected one.",
        partial(density_ratio, keep=_one),
        survives=_THEOREM_1,
        sides="the largest ratio; its bound",
    ),
    Claim(
        "density-ratio-corrected",
        SECTION,
        "1582-1810",
        "D",
        "the ratio is at most 1 + 6 sqrt(c^2 c_s delta (f_m + c_1 d f_s)) + c^2 c_s sqrt(f_s "
        "delta), c^2 = 5 ln(dT/delta) for c_xi^2, in M as well, where V >= lambda_A d / 2",
        density_ratio_corrected,
        {"0.9 for 6": partial(density_ratio_corrected, six=0.9)},
        "With c^2 = 5 ln(dT/delta), u = c sqrt(c_s (f_m + c_1 d f_s) delta) and v = c^2 c_s "
        "sqrt(f_s delta) / 2, delta <= 1/M says 18 u^2 + 2 v^2 <= 1. Since c^2 >= 5 ln 6, kappa "
        "= 1 / (1 - c_s sqrt(f_s delta) / d) <= 1.1875, and the exponent is at most "
        "kappa (c_s (…) / d + sqrt(2) u + v) <= 1.711 u + 1.1875 v. exp of that less 1 + 6u + 2v "
        "is convex, and not positive at the corners of u <= 1/sqrt(18), v <= 1/sqrt(2).",
    ),
    Claim(
        "good-event-product",
        SECTION,
        "1874-1905",
        "D",
        "(1 + c_s tau sqrt(f_s delta)) (1 + …) <= 1 + k_1, and the constants add to c_bad",
        good_event_product,
        {
            "11 for 12": partial(good_event_product, twelve=11.0),
            "10 for 11 under c_bad": partial(good_event_product, eleven=10.0),
        },
        "k_1 = p + 2q and pq <= q; tight at p = 1. The 6 c_xi^2 c_s of line 1805 is a misprint "
        "for c_xi^2 c_s.",
    ),
    Claim(
        "delta-demands",
        SECTION,
        "1906-1965",
        "D",
        "(i)-(iv) follow from delta <= 1/M, and (iii) from (iv)",
        lambda level: [*demand_four(level), *delta_demands(level)],
        {"9 for 18 in M": lambda level: demand_four(level, 9.0)},
        "(iv) holds, tightly. (iii) fails for small sigma: (iv) gives sqrt(c_s (…)) <= 1 / (3 "
        "c_xi), which is at most c_xi d only if 3 d c_xi^2 >= 1. (ii) holds as <=, not as < as "
        "printed, at delta = 1/M; so does (i) for d = tau = 1.",
        demand_four,
        survives="Theorem 1 with 5 ln(dT/delta) for c_xi^2, where (iii) holds, for laws of "
        "alignment-density-corrected.",
        sides="sqrt(c_s (f_m + c_1 d f_s) delta); c_xi d, demand (iii)",
    ),
    Claim(
        "delta-demands-corrected",
        SECTION,
        "1906-1965",
        "D",
        "(i)-(iv), (i) and (ii) with <=, follow from delta <= 1/M with 5 ln(dT/delta) for c_xi^2",
        lambda level: [*demand_four(level), *delta_demands(level, corrected=True)],
        {
            "9 for 18 in M": lambda level: demand_four(level, 9.0),
            "5 for 3 in (iv)": partial(delta_demands, corrected=True, three=5.0),
            "sigma in c_xi": delta_demands,
        },
        "(iii) from (iv): 3 d c^2 >= 15 ln 3 > 1.",
    ),
    Claim(
        "log-bound",
        SECTION,
        "3617",
        "D",
        "x >= 4 a ln(2a) + 2b implies x >= a ln x + b",
        log_bound,
        {"0.5 b for 2b": partial(log_bound, two=0.5)},
    ),
    Claim(
        "m-tilde",
        SECTION,
        "1966-1985",
        "D",
        "delta <= 1 / M-tilde implies delta <= 1 / M(delta)",
        m_tilde_suffices,
        {"not raised to p": partial(m_tilde_suffices, raised=False)},
        "The sentence of line 809, that M-tilde >= M, is false as delta goes to 0 (M grows "
        "without bound); only the implication is used.",
    ),
)
"""Checks of this section."""
