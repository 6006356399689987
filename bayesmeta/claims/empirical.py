"""The lemma on empirical covariances, Appendix D.3.1, for independent and repeated rows."""

from __future__ import annotations

import math
from functools import partial

from scipy.stats import chi2

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import DIMS, Level, Point, bracketed, exact
from bayesmeta.claims.wishart import deviation


def independent_rows(level: Level, constant: float = 32.0) -> list[Point]:
    """P(|S - Sigma| >= 32 s^2 max(sqrt(l), l)) <= delta, l = (5d + 2 ln(2/delta)) / n, for
    independent Gaussian rows, n S / s^2 Wishart: exactly in d = 1, else bounded."""
    points = []
    for d in DIMS:
        for n in level.pick((20, 1000), (1, 5, 20, 100, 1000, 10**5, 10**6)):
            for delta in level.pick((0.5, 1e-3), (0.99, 0.5, 0.1, 1e-3, 1e-12)):
                ratio = (5 * d + 2 * math.log(2 / delta)) / n
                low, high = deviation(d, n, constant * max(math.sqrt(ratio), ratio))
                where = {"d": d, "n": n, "delta": delta}
                points.append(bracketed(where, low, high, math.log(delta), logs=True))
    return points


def repeated_rows(level: Level) -> list[Point]:
    """The same lemma for one row repeated n times, as it is used for term B."""
    points = []
    for n, delta in ((69, 1e-6), (524, 1e-2), (10**6, 0.5)):
        far = 32 * math.sqrt((5 + 2 * math.log(2 / delta)) / n)
        fail = float(chi2.sf(1 + far, 1)) + (float(chi2.cdf(1 - far, 1)) if far < 1 else 0.0)
        points.append(exact({"d": 1, "n": n, "delta": delta, "rows": "identical"}, fail, delta))
    return points


@claim(
    id="empirical-covariance",
    proof="ours",
    kind=Kind.PROBABILITY,
    section=Section.COVARIANCE_ESTIMATION,
    where="lemma “Empirical covariance bounds”, Appendix D.3.1",
    quote=(
        "For any row-wise σ sub-Gaussian random matrix X … P(‖Σ̂ - Σ‖ ≥ 32σ² max{√((5d "
        "+ 2ln(2/δ))/n), (5d + 2ln(2/δ))/n}) ≤ δ"
    ),
    statement=(
        "P(|S - Sigma| >= 32 s^2 max(sqrt(l), l)) <= delta for matrices with independent "
        "sub-Gaussian rows"
    ),
    lines="2965-2985",
    mutations={"0.5 for 32": {"constant": 0.5}, "rows repeated": repeated_rows},
    constant=("constant", 32.0),
    remark=(
        "As the cited theorem means it, for independent rows; the lemma does not say so "
        "(empirical-covariance-literal), and the paper uses it for repeated rows, which "
        "is the slip of term-b. Z^2 - E Z^2 is sub-exponential with 16 s^2; Bernstein, "
        "and a net of 9^d points."
    ),
)
def empirical_covariance(level: Level, constant: float = 32.0) -> list[Point]:
    """The lemma for independent rows."""
    return independent_rows(level, constant)


@claim(
    id="empirical-covariance-literal",
    reading_of="empirical-covariance",
    statement="the same for rows that need not be independent, as it stands",
    mutations={"0.5 for 32, rows independent": partial(independent_rows, constant=0.5)},
    holds_at=independent_rows,
    remark="One row, repeated: nothing averages.",
    survives="Term A, whose rows are independent. Its use for term B does not survive.",
    sides="probability of exceeding the bound; delta",
)
def empirical_covariance_literal(level: Level) -> list[Point]:
    """The lemma for one row repeated n times."""
    return repeated_rows(level)
