"""The three terms of the error of the covariance estimate, eq. (80)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom, chi2

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.poles import (
    DENSITY,
    LEAST,
    log_below,
    log_inverse_at_least,
    steps_of,
)
from bayesmeta.claims.verdict import DIMS, Level, Point, bracketed, counted, exact
from bayesmeta.claims.wishart import deviation, explored_inverses, first_n


@claim(
    id="term-a",
    constant=("constant", 32.0),
    proof="ours",
    kind=Kind.PROBABILITY,
    section=Section.COVARIANCE_ESTIMATION,
    where="Term A in the proof of the lemma “Covariance estimation error”, Appendix D.3.3",
    quote=(
        "‖(1/(n-1)) ∑_j (θ̂_j - μ_*)(θ̂_j - μ_*)ᵀ - Σ‖ ≤ 32 (2σ² + λ_A λ_max d)/(λ_A "
        "d) √((5d + 2ln(1/η_n))/(n-1))"
    ),
    statement="term A is at most 32 s2 sqrt((5d + 2 ln(1/eta))/(n-1)) with probability 1 - 2 eta",
    lines="3211-3219",
    mutations={"0.5 for 32": {"constant": 0.5}},
    remark="Sigma read as its expectation given E_v: without an event E[V^-1] may be infinite.",
)
def term_a(level: Level, constant: float = 32.0) -> list[Point]:
    """|(1/(n-1)) sum (theta-hat - mu)(…)' - Sigma| <= 32 s2 sqrt((5d + 2 ln(1/eta))/(n-1)) with
    probability 1 - 2 eta, n > 5d + 2 ln(1/eta), in logarithms of probabilities."""
    points = []
    for d in DIMS:
        for log in level.pick((2.0, 14.0), (1.0, 2.0, 7.0, 14.0, 30.0, 75.0)):
            for times in level.pick((1.0, 1000.0), (1.0, 2.0, 10.0, 1000.0, 1e4)):
                n = math.floor(times * (5 * d + 2 * log)) + 1
                far = constant * math.sqrt((5 * d + 2 * log) / (n - 1))
                low, high = deviation(d, n - 1, far)
                where = {"d": d, "n": n, "ln(1/eta)": log}
                points.append(bracketed(where, low, high, math.log(2) - log, logs=True))
    return points


@claim(
    id="term-b",
    kind=Kind.PROBABILITY,
    section=Section.COVARIANCE_ESTIMATION,
    where="Term B in the proof of the lemma “Covariance estimation error”, Appendix D.3.3",
    quote=(
        "‖(1/(n-1)) ∑_j (μ̂_n - μ_*)(μ̂_n - μ_*)ᵀ - Σ/(n-1)‖ ≤ 32 (2σ² + λ_A λ_max "
        "d)/(λ_A d(n-1)) √((5d + 2ln(1/η_n))/(n-1))"
    ),
    statement=(
        "term B is at most 32 s2/(n-1) sqrt((5d + 2 ln(1/eta))/(n-1)) with probability 1 - 6 eta"
    ),
    lines="3220-3227",
    mutations={"1 for 32, at the first n": {"constant": 1.0, "first": True}},
    holds_at={"first": True},
    remark=(
        "The paragraph below the lemma “Empirical covariance bounds” applies it to n - "
        "1 copies of one vector, mu-hat - mu. (n-1) times the left side does not "
        "shrink: it is |Y Y' - Sigma| for a single Gaussian Y. It fails where the "
        "paper uses it: with eta = 1/(dnT), for d = 5 and 10 at the first n that Lemma "
        "M-QB allows."
    ),
    survives=(
        "covariance-error, event-covariance and Lemma M-QB survive with their printed "
        "constants, and so does their use for Theorem 2."
    ),
    sides="probability of exceeding the bound; 6 eta",
)
def term_b(level: Level, constant: float = 32.0, first: bool = False) -> list[Point]:
    """|(mu-hat - mu)(…)' - Sigma/(n-1)| <= 32 s2/(n-1) sqrt((5d + 2 ln(1/eta))/(n-1)) with
    probability 1 - 6 eta (which is printed for the three terms together), n > 5d + 2 ln(1/eta).

    Exactly, without noise and Sigma_* = lambda_max I: the left side is lambda_max/(n-1) times
    max(|chi2_d - 1|, 1) (the 1 for d > 1 only).
    """
    points = []
    used = [(d, t, first_n(d, t)) for t in (200, 10_000) for d in reversed(DIMS)]
    used += [(d, 200, n) for d in DIMS for n in (10**4, 10**6)]
    smallest = [(1, 46), (2, 47), (5, 54), (10, 71)]  # n, with eta as small as they allow
    if first:
        smallest, used = [], [(d, 200, first_n(d, 200)) for d in (1, 2)]
    cases = [(d, n, 1 / (d * n * t)) for d, t, n in used]
    cases += [(d, n, math.exp(-(n - 5 * d) / 2 * (1 - 1e-9))) for d, n in smallest]
    for d, n, eta in cases:
        far = constant * math.sqrt((5 * d - 2 * math.log(eta)) / (n - 1))
        fail = 1.0
        if d == 1 or far >= 1:
            fail = float(chi2.sf(1 + far, d))
            fail += float(chi2.cdf(1 - far, 1)) if d == 1 and far < 1 else 0.0
        where = {"d": d, "n": n, "eta": eta, "sigma": "0, nearly", "Sigma_*": "lambda_max I"}
        points.append(exact(where, fail, 6 * eta))
    return points


@claim(
    id="term-b-corrected",
    constant=("two", 2.0),
    proof="ours",
    corrects="term-b",
    statement=(
        "term B is at most s2 (d + 2 sqrt(d ln(1/eta)) + 2 ln(1/eta))/(n-1) with "
        "probability 1 - eta"
    ),
    mutations={"0.5 for 2": {"two": 0.5}},
)
def term_b_corrected(level: Level, two: float = 2.0) -> list[Point]:
    """At most s2 (d + 2 sqrt(d L) + 2L) / (n - 1) with probability 1 - eta, L = ln(1/eta), n >= 2.

    Proof: with Y = sqrt(n-1)(mu-hat - mu), |Y Y' - C| <= max(|Y|^2, |C|), C <= s2 I, and the
    vector tail bound for |Y|^2, which is no smaller than s2.
    """
    points = []
    for d in DIMS:
        for eta in level.pick((0.1, 1e-6), (0.9, 0.5, 0.1, 1e-3, 1e-6, 1e-12)):
            log = -math.log(eta)
            far = d + 2 * math.sqrt(d * log) + two * log
            fail = float(chi2.sf(1 + far if d == 1 else far, d))
            points.append(exact({"d": d, "eta": eta}, fail, eta))
    return points


@claim(
    id="term-c",
    constant=("four", 4.0),
    proof="the paper",
    kind=Kind.PROBABILITY,
    section=Section.COVARIANCE_ESTIMATION,
    where="lemma “Covariance estimation error - Term C”, Appendix D.3.2",
    quote=(
        "with probability greater than 1 - δ, ‖(σ²/(n-1)) (∑_j V_{j,τ}⁻¹ - ∑_j "
        "E[V_{j,τ}⁻¹])‖ ≤ 4 σ²/(λ_A d) √((2ln d + 2ln(2/δ))/(n-1))"
    ),
    statement=(
        "term C is at most 4 sigma^2/(lambda_A d) sqrt((2 ln d + 2 ln(2/delta))/(n-1)) "
        "with probability 1 - delta given E_v"
    ),
    lines="3159-3196",
    mutations={"0.8 for 4": {"four": 0.8}},
    remark=(
        "As its proof and its use have it, given E_v and with E[V^-1 | E_v]; the "
        "statement itself names no event (see term-c-literal). It is not needed: given "
        "the actions, term C cancels against a part of term A."
    ),
)
def term_c(level: Level, four: float = 4.0) -> list[Point]:
    """For a law under which V^-1 varies as much as E_v lets it, exactly; and for uniform actions,
    counted."""
    return [*_term_c_extreme(level, four), *_term_c_uniform(level, four)]


def _term_c_extreme(level: Level, four: float) -> list[Point]:
    """d = 1, one action, whose square is just above lambda_A/2 half of the time and else so large
    that V^-1 is 1e-3 times as much (blurred, a law of Assumption 1): the sum is binomial."""
    points = []
    for n in level.pick((1001, 10_001), (51, 1001, 10_001, 10**6 + 1)):
        for delta in level.pick((1e-3, 1e-12), (0.1, 1e-3, 1e-6, 1e-12)):
            far = four * math.sqrt(2 * math.log(2 / delta) / (n - 1))  # in units of 1/lambda_A
            spread = 2 * (1 - 1e-3)
            heads = math.floor((n - 1) * (0.5 + far / spread)) + 1
            fail = 2 * float(binom.sf(heads - 1, n - 1, 0.5))
            where = {"d": 1, "tau": 1, "n": n, "delta": delta, "V^-1": "one of two values"}
            points.append(exact(where, fail, delta))
    return points


def _term_c_uniform(level: Level, four: float) -> list[Point]:
    """sigma^2 |mean of V^-1 - E[V^-1 | E_v]| <= 4 sigma^2/(lambda_A d) sqrt((2 ln d + 2
    ln(2/delta))/(n-1)) with probability 1 - delta given E_v, where the bound is tightest:
    as few actions as possible, and n so large that bounded terms could break it."""
    rng = level.rng("term-c")
    points = []
    for d, steps in level.pick(((1, 1),), ((1, 1), (2, 2), (5, 15))):
        for n in level.pick((101,), (51, 101, 301)):
            times = level.pick(1000, 4000 if d < 5 else 500)
            inverse = explored_inverses(rng, d, steps, times * (n - 1))
            mean = math.sqrt(6) if d == 1 else np.trace(inverse.mean(axis=0)) / d
            each = inverse.reshape(times, n - 1, d, d).mean(axis=1)
            off = np.linalg.norm(each - mean * np.eye(d), 2, axis=(1, 2))
            for delta in (0.5, 0.1):
                log = 2 * math.log(d) + 2 * math.log(2 / delta)
                far = four * (d + 2) / d * math.sqrt(log / (n - 1))
                where = {"d": d, "tau": steps, "n": n, "delta": delta}
                fails = int((off > far).sum())
                points.append(counted(where, fails, len(off), delta, level.size))
    return points


@claim(
    id="term-c-literal",
    reading_of="term-c",
    statement="the same without an event, as it stands",
    mutations={"a single action": {"pole": False, "steps": 1}},
    holds_at={"pole": False},
    remark=(
        "For laws of Assumption 1 with a pole at 0 E[V^-1] is infinite for every tau, "
        "and so is the left side, always. (For uniform actions it fails only for tiny "
        "delta: the bound grows like sqrt(ln(1/delta)), while V^-1 has polynomial "
        "tails.)"
    ),
    survives="Everything: the lemma is used given E_v only (and can be done without).",
    sides="probability of exceeding the bound; delta",
)
def term_c_literal(level: Level, pole: bool = True, steps: int | None = None) -> list[Point]:
    """The same without an event, as it stands: d = 1, n = 2, tau of eq. (8) with N = 2, T = 2000.

    Uniform actions on [-1, 1]: P(V <= v) is the volume of a ball in tau dimensions, E[V^-1] < 1; it
    holds for moderate delta. Under the law of ``poles`` E[V^-1] is infinite, and the left side
    always is, too. Here by a y that will do.
    """
    tau = steps_of(1 / 3) if steps is None else steps
    points = []
    for log in (10.0, 100.0):
        far = 4 * 3 * math.sqrt(2 * (math.log(2) + log))
        fail = tau / 2 * math.log(math.pi / (far + 1)) - gammaln(tau / 2 + 1)
        fail -= tau * math.log(2)
        where = {"d": 1, "f_A": "uniform on [-1, 1]", "tau": tau, "n": 2, "ln(1/delta)": log}
        points.append(Point(where, float(fail), -log, logs=True))
    if pole:
        tau, delta = steps_of(LEAST), 0.5
        mean = log_inverse_at_least(tau, 5000.0)
        far = math.log(4 / LEAST * math.sqrt(2 * math.log(2 / delta)))
        near = log_below(tau, mean - 1)  # of V^-1 > E[V^-1]/e
        where = {
            "d": 1,
            "f_A": DENSITY,
            "tau": tau,
            "n": 2,
            "delta": delta,
            "ln E[V^-1], at least": mean,
        }
        fails = -math.expm1(near) if mean > far + 1 else 0.0
        points.append(exact(where, fails, delta))
    return points
