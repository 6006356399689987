"""The events E_m and E_s of the estimated prior, eq. (77)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.stats import chi2

from bayesmeta.checks import Array
from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import DIMS, Level, Point, bracketed, counted, exact
from bayesmeta.claims.wishart import deviation, explored_inverses, first_n


@claim(
    id="event-mean",
    constant=("three", 3.0),
    proof="the paper",
    kind=Kind.PROBABILITY,
    section=Section.PRIOR_ESTIMATION,
    where="eq. (77) and the proof of Lemma 1, Appendix D.1",
    quote="with η_n = 1/(dnT) … P(E_m(MQB_τ)) ≥ 1 - 1/(dnT)",
    statement="P(E_m | E_v) >= 1 - 1/(dnT)",
    lines="2692, 2855-2895",
    mutations={"1 for 3": {"three": 1.0}},
    remark="True as it is used, with eta = 1/(dnT); see event-mean-literal.",
)
def event_mean(level: Level, three: float = 3.0) -> list[Point]:
    """P(E_m fails | E_v) <= 1 / (dnT), at its tightest: no noise, Sigma_* = lambda_max I, where
    (n - 1)|mu-hat - mu_*|^2 / lambda_max is chi-squared with d degrees of freedom."""
    points = []
    for d in DIMS:
        for horizon in (1, 200, 10_000):
            for n in level.pick((2, 10**6), (2, 10, 100, 10**4, 10**6)):
                log = math.log(d * n * horizon)
                fail = float(chi2.sf(three * (d + log), d))
                points.append(exact({"d": d, "n": n, "T": horizon}, fail, 1 / (d * n * horizon)))
    return points


@claim(
    id="event-mean-literal",
    reading_of="event-mean",
    where="lemma “Mean estimation error”, Appendix D.2",
    quote="For every η_n > 0 and for every instance n > 1, P(E_m(MQB_τ) | E_v(MQB_τ)) ≥ 1 - η_n",
    statement="P(E_m | E_v) >= 1 - eta for every eta > 0, as it stands",
    lines="2855-2859",
    mutations={"1 for 3, at eta = 0.1": {"three": 1.0, "etas": (0.1,)}},
    holds_at={"etas": (0.1,)},
    remark="E_m contains ln(dnT), not ln(1/eta): a slip of wording.",
    survives="Everything: the lemma is used with eta = 1/(dnT) only.",
    sides="P(E_m fails); eta",
)
def event_mean_literal(
    level: Level, three: float = 3.0, etas: tuple[float, ...] = (0.1, 0.01)
) -> list[Point]:
    """P(E_m fails | E_v) <= eta for every eta > 0, at d = 1, n = 2, T = 1."""
    fail = float(chi2.sf(three * (1 + math.log(2)), 1))
    return [exact({"d": 1, "n": 2, "T": 1, "eta": eta}, fail, eta) for eta in etas]


def wishart_events(level: Level, constant: float = 50.0) -> list[Point]:
    """P(E_s fails | E_v) <= 6 / (dnT) for n > 5d + 2 ln(dnT), in logarithms: W_n - Sigma_* leaves
    [0, 2s] where an eigenvalue of Sigma-hat - Sigma_* leaves [-s, s]."""
    points = []
    for d in DIMS:
        for horizon in level.pick((1, 200), (1, 200, 10_000)):
            first = next(
                n for n in range(5 * d, 10**6) if n > 5 * d + 2 * math.log(d * n * horizon)
            )
            for n in (first, first_n(d, horizon), 10**4, 10**6):
                log = math.log(d * n * horizon)
                far = constant * math.sqrt((5 * d + 2 * log) / (n - 1))
                low, high = deviation(d, n - 2, far)
                where = {"d": d, "T": horizon, "n": n}
                points.append(bracketed(where, low, high, math.log(6) - log, logs=True))
    return points


def estimates(theta: Array, inverse: Array, sigma: float) -> Array:
    """Sigma-hat, eq. (11), of many runs: from their least squares estimates (runs, tasks, d) and
    the inverse grams of these."""
    centred = theta - theta.mean(axis=1, keepdims=True)
    cov: Array = np.einsum("rni,rnj->rij", centred, centred) / (theta.shape[1] - 1)
    cov -= sigma**2 * inverse.mean(axis=1)
    return cov


def simulated_events(level: Level, constant: float = 50.0) -> list[Point]:
    """E_s counted, with noise and unequal grams: tau = 2d actions from the unit ball given E_v,
    Sigma_* = lambda_max I; and T = 1, where counting can reach 6 / (dnT)."""
    rng = level.rng("event-covariance")
    points = []
    times = level.pick(1000, 10_000)
    for d, n in ((1, 13), (2, 20), (5, 40))[: level.pick(2, 3)]:
        for sigma in level.pick((1.0,), (1e-3, 0.3, 1.0, 3.0)):
            inverse = explored_inverses(rng, d, 2 * d, times * (n - 1))
            inverse = inverse.reshape(times, n - 1, d, d)
            root = np.linalg.cholesky(np.eye(d) + sigma**2 * inverse)
            theta = np.einsum("rnij,rnj->rni", root, rng.standard_normal((times, n - 1, d)))
            cov = estimates(theta, inverse, sigma)
            each = 2 * sigma**2 * (d + 2) / d + 1  # lambda_A = 1 / (d + 2)
            s = constant * each * math.sqrt((5 * d + 2 * math.log(d * n)) / (n - 1))
            off = np.linalg.eigvalsh(cov - np.eye(d))
            fails = int(((off[:, 0] < -s) | (off[:, -1] > s)).sum())
            where = {"d": d, "n": n, "T": 1, "sigma": sigma, "tau": 2 * d, "counted": True}
            points.append(counted(where, fails, times, 6 / (d * n), level.size))
    return points


@claim(
    id="event-covariance",
    constant=("constant", 50.0),
    proof="ours",
    kind=Kind.PROBABILITY,
    section=Section.PRIOR_ESTIMATION,
    where="eq. (77) and the proof of Lemma 1, Appendix D.1",
    quote="for n > 5d + 2ln(dnT), with η_n = 1/(dnT) … P(E_s(MQB_τ)) ≥ 1 - 6/(dnT)",
    statement="P(E_s | E_v) >= 1 - 6/(dnT) for n > 5d + 2 ln(dnT)",
    lines="2692, 3199-3268",
    mutations={
        "0.3 for 50": partial(wishart_events, constant=0.3),
        "0.02 for 50, counted": partial(simulated_events, constant=0.02),
    },
    remark=(
        "True as it is used, although its proof passes through the false term B: see "
        "covariance-error. Off E_s the widened estimate need not be positive definite, "
        "and the algorithm is then undefined."
    ),
)
def event_covariance(level: Level, constant: float = 50.0) -> list[Point]:
    """By the law of the estimate without noise, and counted with noise."""
    return [*wishart_events(level, constant), *simulated_events(level, constant)]


@claim(
    id="event-covariance-literal",
    reading_of="event-covariance",
    where="lemma “Covariance estimation error”, Appendix D.3.3",
    quote=(
        "For every η_n > 0 and for every instance n > 5d + 2ln(1/η_n), P(E_s(MQB_τ) | "
        "E_v(MQB_τ)) ≥ 1 - 6η_n"
    ),
    statement="P(E_s | E_v) >= 1 - 6 eta for every eta with n > 5d + 2 ln(1/eta), as it stands",
    lines="3199-3205",
    mutations={"1 for 50, at n = 100": {"constant": 1.0, "sizes": (100,)}},
    holds_at={"sizes": (100,)},
    remark="As for event-mean-literal: a slip of wording.",
    survives="Everything: the lemma is used with eta = 1/(dnT) only.",
    sides="P(E_s fails); 6 eta",
)
def event_covariance_literal(
    level: Level, constant: float = 50.0, sizes: tuple[int, ...] = (100, 20_000)
) -> list[Point]:
    """P(E_s fails | E_v) <= 6 eta for every eta with n > 5d + 2 ln(1/eta), d = 1 and T = 1: the
    smallest such eta. Below: the density is decreasing, so a unit interval has at least its end."""
    points = []
    for n in sizes:
        log = (n - 5) / 2 * (1 - 1e-9)
        far = constant * math.sqrt((5 + 2 * math.log(n)) / (n - 1))
        low = float(chi2.logpdf((n - 2) * (1 + far) + 1, n - 2))
        _, high = deviation(1, n - 2, far)
        where = {"d": 1, "T": 1, "n": n, "ln(1/eta)": log}
        points.append(bracketed(where, low, max(low, high), math.log(6) - log, logs=True))
    return points
