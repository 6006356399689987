"""The auxiliary tail bounds, Appendix F, by exact laws where they are tight."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx, logsumexp
from scipy.stats import binom, chi2, norm

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import Level, Point, at_most, exact


@claim(
    id="matrix-chernoff",
    constant=("two", 2.0),
    proof="Tropp (2015)",
    kind=Kind.PROBABILITY,
    section=Section.TAILS,
    where="lemma “Matrix Chernoff”, Appendix F",
    quote="P(λ_min(∑X_k) ≤ t λ_min(∑E[X_k])) ≤ d exp(-(1-t)² λ_min(∑E[X_k]) / (2L))",
    statement="P(lambda_min <= t mu_min) <= d exp(-(1 - t)^2 mu_min / (2L))",
    lines="3338-3350",
    mutations={"1 for 2": {"two": 1.0}},
    remark="Tropp (2015), Theorem 5.1.1.",
)
def matrix_chernoff(level: Level, two: float = 2.0) -> list[Point]:
    """P(lambda_min(sum) <= t mu_min) <= d exp(-(1 - t)^2 mu_min / (2 L)), t in [0, 1).

    d = 1: sums of Bernoulli variables, whose law is binomial. d > 1: one of d directions a step,
    whose smallest eigenvalue is 0 until all are met (inclusion and exclusion).
    """
    points = []
    for n, p in level.pick(
        ((1000, 0.5), (10**6, 1e-3)), ((20, 0.5), (1000, 0.5), (10**4, 0.1), (10**6, 1e-3))
    ):
        for t in (0.0, 0.1, 0.5, 0.9):
            left = float(binom.logcdf(math.floor(t * n * p), n, p))
            right = -((1 - t) ** 2) * n * p / two
            where = {"d": 1, "n": n, "p": p, "t": t}
            points.append(Point(where, left, right + 1e-9 * abs(right), logs=True))
    for d in (2, 5, 10):
        for n in (2 * d, 6 * d, 20 * d):
            missed = sum(
                (-1) ** (j + 1) * math.comb(d, j) * (1 - j / d) ** n for j in range(1, d + 1)
            )
            allowed = d * math.exp(-n / d / two)
            points.append(exact({"d": d, "n": n, "t": 0.0}, max(missed, 0.0), allowed))
    return points


@claim(
    id="matrix-hoeffding",
    constant=("eight", 8.0),
    proof="Tropp (2012)",
    kind=Kind.PROBABILITY,
    section=Section.TAILS,
    where="lemma “Matrix Hoffeding”, Appendix F",
    quote="P(λ_max(∑X_j) ≥ δ) ≤ d exp(-δ²/(8s²)) where s² ≜ ‖∑A_j²‖",
    statement="P(lambda_max(sum) >= t) <= d exp(-t^2 / (8 s^2))",
    lines="3438-3458",
    mutations={"1 for 8": {"eight": 1.0}},
    remark="True with 2 in place of 8 as well (Mackey et al. 2014).",
)
def matrix_hoeffding(level: Level, eight: float = 8.0) -> list[Point]:
    """P(lambda_max(sum X_k) >= t) <= d exp(-t^2 / (8 s^2)), X_k^2 <= A_k^2, s^2 = |sum A_k^2|:
    signs times the identity are as large as can be, and binomial."""
    points = []
    for d in (1, 2, 10):
        for n in level.pick((100,), (10, 100, 1000)):
            for times in (0.5, 1.0, 2.0, 4.0):
                threshold = times * math.sqrt(n)  # in units of s
                heads = math.ceil((n + threshold) / 2 - 1e-9)
                fail = float(binom.sf(heads - 1, n, 0.5))
                allowed = d * math.exp(-(times**2) / eight)
                points.append(exact({"d": d, "n": n, "t/s": times}, fail, allowed))
    return points


@claim(
    id="vector-tail",
    constant=("two", 2.0),
    proof="Hsu, Kakade and Zhang (2012)",
    kind=Kind.PROBABILITY,
    section=Section.TAILS,
    where="lemma “Concentration bound sub-Gaussian vector”, Appendix F",
    quote="P(‖AX‖² > σ²(Tr(Σ) + 2√(Tr(Σ²)δ) + 2‖Σ‖δ)) ≤ e^{-δ}",
    statement=(
        "P(|Ax|^2 > s^2 (Tr S + 2 sqrt(Tr(S^2) t) + 2 |S| t)) <= exp(-t) for sub-Gaussian x"
    ),
    lines="3460-3475",
    mutations={"1 for 2 before t": {"two": 1.0}},
    remark="Hsu, Kakade and Zhang (2012).",
)
def vector_tail(level: Level, two: float = 2.0) -> list[Point]:
    """P(|A x|^2 > s^2 (Tr S + 2 sqrt(Tr(S^2) t) + 2 |S| t)) <= exp(-t), S = A'A, for s-sub-Gaussian
    x: a Gaussian one. With A = I, as the paper uses it, |x|^2 is chi-squared; with two different
    eigenvalues a sum of two, integrated numerically."""
    points = []
    for d in (1, 2, 5, 10):
        for t in np.geomspace(0.01, 300, level.pick(8, 60)):
            fail = float(chi2.logsf(d + 2 * math.sqrt(d * t) + two * t, d))
            points.append(Point({"d": d, "t": float(t)}, fail, -float(t), logs=True))
    z = np.linspace(-12, 12, 20_001)
    weight = norm.logpdf(z) + math.log(z[1] - z[0])
    for other in (0.5, 0.1, 1e-3):
        for d in (2, 5, 10):  # eigenvalues 1 (d - 1 times) and ``other``
            for t in np.geomspace(0.01, 100, level.pick(4, 15)):
                root = math.sqrt((d - 1 + other**2) * t)
                far = d - 1 + other + 2 * root + two * t
                rest = chi2.logsf(np.maximum(far - other * z * z, 0.0), d - 1)
                where = {"d": d, "t": float(t), "eigenvalues": [1.0, other]}
                fail = float(logsumexp(weight + rest))
                points.append(Point(where, fail, -float(t), logs=True))
    return points


@claim(
    id="gaussian-tail",
    constant=("upper", 1.0),
    proof="Feller (1968)",
    kind=Kind.PROBABILITY,
    section=Section.TAILS,
    where="lemma “Gaussian tail bounds”, eqs. (84)-(85), Appendix F",
    quote="(1/√2π)(1/t - 1/t³) e^{-t²/2} < P(z > t) ≤ (1/√2π)(1/t) e^{-t²/2}",
    statement="(1/t - 1/t^3) phi(t) <= P(Z > t) <= phi(t) / t",
    lines="3477-3495",
    mutations={"1/t^3 dropped": {"cube": 0.0}, "0.9 above": {"upper": 0.9}},
)
def gaussian_tail(level: Level, cube: float = 1.0, upper: float = 1.0) -> list[Point]:
    """(1/t - 1/t^3) phi(t) <= P(Z > t) <= phi(t) / t, by Mills' ratio, which does not underflow."""
    points = []
    for t in np.geomspace(0.1, 500, level.pick(12, 200)):
        mills = math.sqrt(math.pi / 2) * float(erfcx(t / math.sqrt(2)))
        points.append(at_most({"t": float(t), "side": "below"}, 1 / t - cube / t**3, mills, 1e-12))
        points.append(at_most({"t": float(t), "side": "above"}, mills, upper / t, 1e-12))
    return points
