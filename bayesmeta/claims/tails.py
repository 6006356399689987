"""The auxiliary tail bounds (lines 3338-3495), by exact laws where they are tight."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.special import erfcx, logsumexp
from scipy.stats import binom, chi2, norm

from bayesmeta.claims.verdict import Claim, Level, Point, at_most, exact

SECTION = "auxiliary tail bounds"


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


def gaussian_tail(level: Level, cube: float = 1.0, upper: float = 1.0) -> list[Point]:
    """(1/t - 1/t^3) phi(t) <= P(Z > t) <= phi(t) / t, by Mills' ratio, which does not underflow."""
    points = []
    for t in np.geomspace(0.1, 500, level.pick(12, 200)):
        mills = math.sqrt(math.pi / 2) * float(erfcx(t / math.sqrt(2)))
        points.append(at_most({"t": float(t), "side": "below"}, 1 / t - cube / t**3, mills, 1e-12))
        points.append(at_most({"t": float(t), "side": "above"}, mills, upper / t, 1e-12))
    return points


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


CLAIMS = (
    Claim(
        "matrix-chernoff",
        SECTION,
        "3338-3350",
        "P",
        "P(lambda_min <= t mu_min) <= d exp(-(1 - t)^2 mu_min / (2L))",
        matrix_chernoff,
        {"1 for 2": partial(matrix_chernoff, two=1.0)},
        "Tropp (2015), Theorem 5.1.1.",
    ),
    Claim(
        "matrix-hoeffding",
        SECTION,
        "3438-3458",
        "P",
        "P(lambda_max(sum) >= t) <= d exp(-t^2 / (8 s^2))",
        matrix_hoeffding,
        {"1 for 8": partial(matrix_hoeffding, eight=1.0)},
        "True with 2 in place of 8 as well (Mackey et al. 2014).",
    ),
    Claim(
        "vector-tail",
        SECTION,
        "3460-3475",
        "P",
        "P(|Ax|^2 > s^2 (Tr S + 2 sqrt(Tr(S^2) t) + 2 |S| t)) <= exp(-t) for sub-Gaussian x",
        vector_tail,
        {"1 for 2 before t": partial(vector_tail, two=1.0)},
        "Hsu, Kakade and Zhang (2012).",
    ),
    Claim(
        "gaussian-tail",
        SECTION,
        "3477-3495",
        "P",
        "(1/t - 1/t^3) phi(t) <= P(Z > t) <= phi(t) / t",
        gaussian_tail,
        {
            "1/t^3 dropped": partial(gaussian_tail, cube=0.0),
            "0.9 above": partial(gaussian_tail, upper=0.9),
        },
    ),
)
"""Checks of this section."""
