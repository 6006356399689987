"""The example of Theorem 1, Appendix C.6."""

from __future__ import annotations

import math
from functools import partial

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.growth import LAMBDA, RADIUS, example_constants, growth
from bayesmeta.claims.regimes import isotropic
from bayesmeta.claims.verdict import Level, Point, at_most
from bayesmeta.theory import constants as c


@claim(
    id="demonstration",
    constant=("eight", 8.0),
    kind=Kind.INEQUALITY,
    section=Section.THEOREMS,
    where="Appendix C.6",
    quote="we choose δ ≜ (8 a_M^{1/2} ln(4 a_M^{1/2}) + 2 b_M^{1/2})⁻² … k_1 ∈ Õ(1)",
    statement=(
        "the delta of the example satisfies delta <= 1/M, k_1 stays bounded, and a_M grows "
        "like d^2, lambda_A fixed"
    ),
    lines="2614-2680",
    mutations={
        "power 1 for 2": {"power": 1},
        "1 for 8": {"eight": 1.0},
        "a fixed": {"fixed": RADIUS},
    },
    proof="ours",
    remark=(
        "k_1 <= 1 + sqrt(24), not only up to logarithms. What is said on the way, a_M of "
        "order d^2, is meant with lambda_A fixed, as the rates of Theorem 2 "
        "(demonstration-radius-fixed). The example does not see to tau < T."
    ),
)
def demonstration(
    level: Level, power: int = 2, eight: float = 8.0, fixed: str = LAMBDA
) -> list[Point]:
    """The appendix's example: with f_m = d^2, f_s = 1 and tau of the lemma on the gram, delta =
    (8 sqrt(a_M) ln(4 sqrt(a_M)) + 2 sqrt(b_M))^-2 satisfies delta M <= 1, and k_1 <= 1 + sqrt(24).

    k_1: delta <= 1/M says p <= 1 and 18 (x^2 + y^2) + w^2/2 <= 1, where k_1 = p + 12 (x + y) + 2w.
    """
    points = growth(level, "a_M", 2.0, fixed)
    for d in level.pick((1, 10), (1, 2, 5, 10, 100)):
        for sigma in level.pick((1e-4, 1.0), (1e-4, 1e-2, 1.0, 3.0)):
            for low in level.pick((1e-4, 1.0), (1e-4, 1e-2, 1.0, 10.0)):
                for a in level.pick((1.0,), (0.01, 1.0, 1000.0)):
                    for horizon in level.pick((200,), (10, 200, 10**6, 10**12)):
                        regime = isotropic(
                            dim=d,
                            horizon=horizon,
                            tasks=2,
                            noise_sd=sigma,
                            radius=a,
                            prior=low,
                            mean_norm=1.0,
                        )
                        cs, parts = c.c_s(regime), example_constants(regime, low)
                        b_m = max(
                            3 + cs**2 * d**2 + parts[0] * math.log(d**2 * horizon) ** 2,
                            3 + parts[1] * math.log(d * horizon) ** 2,
                        )
                        root = math.sqrt(max(parts))
                        delta = (eight * root * math.log(4 * root) + 2 * math.sqrt(b_m)) ** -power
                        tau = c.gram_steps(regime, delta)
                        where = {
                            "d": d,
                            "sigma": sigma,
                            "lambda_min": low,
                            "a": a,
                            "T": horizon,
                            "delta": delta,
                        }
                        m = c.largest_m(regime, tau, d**2, 1.0, delta)
                        points.append(at_most(where, delta * m, 1.0))
                        k = c.k_1(regime, tau, d**2, 1.0, delta)
                        points.append(at_most({**where, "of": "k_1"}, k, 1 + math.sqrt(24)))
    return points


@claim(
    id="demonstration-radius-fixed",
    reading_of="demonstration",
    quote="Noticing that a_M, b_M ∈ Õ(d²)",
    statement="a_M of the example grows like d^2, a fixed",
    mutations={"rate 1, lambda_A fixed": partial(growth, value="a_M", rate=1.0)},
    holds_at=partial(growth, value="a_M", rate=2.0),
    remark="As for k2-growth-radius-fixed: a_M grows like d^4.",
    survives="The example: its delta satisfies delta <= 1/M, and k_1 stays bounded, either way.",
    sides="the exponent of d; 2 and 0.05 for lower orders",
)
def demonstration_radius(level: Level) -> list[Point]:
    """a_M, with a = 1 and uniform actions."""
    return growth(level, "a_M", 2.0, RADIUS)
