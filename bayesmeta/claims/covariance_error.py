"""The error of the covariance estimate as a whole, Appendix D.3.3."""

from __future__ import annotations

import math

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import DIMS, Level, Point, bracketed
from bayesmeta.claims.wishart import deviation


@claim(
    id="covariance-error",
    constant=("constant", 50.0),
    proof="ours",
    kind=Kind.PROBABILITY,
    section=Section.COVARIANCE_ESTIMATION,
    where="proof of the lemma “Covariance estimation error”, Appendix D.3.3",
    quote="‖Σ̂_n - Σ_*‖ ≤ 50 √((5d + 2ln(1/η_n))/(n-1)) (2σ²/(λ_A d) + λ_max)",
    statement=(
        "|Sigma-hat - Sigma_*| <= 50 s2 sqrt((5d + 2 ln(1/eta))/(n-1)), probability 1 - 6 eta"
    ),
    lines="3199-3250",
    mutations={"1 for 50": {"constant": 1.0}},
    remark="True although term B is not: the corrected term B leaves about 42.6 <= 50.",
)
def covariance_error(level: Level, constant: float = 50.0, share: float = 6.0) -> list[Point]:
    """|Sigma-hat - Sigma_*| <= 50 s2 sqrt((5d + 2L)/(n-1)) with probability 1 - 6 eta, n > 5d + 2L:
    without noise, where (n-2) Sigma-hat is Wishart; exactly in d = 1, else bounded.

    With 8 for 50 and 3 eta for 6 eta: let m = n - 1 and x = (5d + 2L)/m. Given the actions, the
    Y_j = theta-hat_j - mu_* are N(0, C_j), independent, C_j = Sigma_* + sigma^2 V_j^-1 <= s2 I, and
    with their mean C, Sigma-hat - Sigma_* = (m/(m-1)) (A - B) for A = mean of Y_j Y_j' - C and B =
    Ybar Ybar' - C/m: term C cancels. In each of 9^d directions |u'Au| <= s2 (2 sqrt(t/m) + 2t/m)
    but with probability 2 e^-t (Laurent and Massart); with t = d ln 9 + L <= xm/2 twice that
    bounds |A|: s2 (2 sqrt(2x) + 2x). |B| <= s2 (2d + 3L)/m <= 1.5 s2 x (term-b-corrected). For n >
    5d + 2L and eta < 1/3, n >= 8, x < 8/7, and the sum is at most 7.67 s2 sqrt(x).
    """
    points = []
    for d in DIMS:
        for log in level.pick((2.0, 14.0, 75.0), (2.0, 7.0, 14.0, 30.0, 75.0, 300.0)):
            for times in (1.0, 2.0, 10.0, 1000.0):
                n = math.floor(times * (5 * d + 2 * log)) + 1
                low, high = deviation(d, n - 2, constant * math.sqrt((5 * d + 2 * log) / (n - 1)))
                where = {"d": d, "n": n, "ln(1/eta)": log}
                points.append(bracketed(where, low, high, math.log(share) - log, logs=True))
    return points


@claim(
    id="covariance-error-sharp",
    constant=("constant", 8.0),
    proof="ours",
    sharpens="covariance-error",
    statement=(
        "|Sigma-hat - Sigma_*| <= 8 s2 sqrt((5d + 2 ln(1/eta))/(n-1)), probability 1 - 3 eta"
    ),
    mutations={"1 for 8": {"constant": 1.0}},
    remark=(
        "Given the actions, Sigma-hat - Sigma_* = (m/(m-1))(A - B), without term C; a "
        "net of 9^d directions, and term-b-corrected."
    ),
)
def covariance_error_sharp(level: Level, constant: float = 8.0) -> list[Point]:
    """The same with 8 for 50 and 3 eta for 6 eta."""
    return covariance_error(level, constant, share=3.0)
