"""How the constants of Theorem 2, and of the example of Theorem 1, grow with d.

The paper prints rates in d and calls lambda_A a known constant. Actions of norm at most a have
lambda_A <= a^2 / d, so lambda_A can stay only where a grows like sqrt(d); where a stays, lambda_A
falls. Both readings are entries: the paper's, and that of a reader who takes a for the constant.
"""

from __future__ import annotations

import math
from functools import partial

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.regimes import isotropic
from bayesmeta.claims.verdict import Level, Point, at_most, equal
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import Regime

LAMBDA, RADIUS, BOTH = "lambda_A = 1", "a = 1", "a = 1000, lambda_A = 1"
"""What stays as d grows: lambda_A, with a^2 = d + 2; a, with lambda_A = 1 / (d + 2); or both, which
laws allow up to d = a^2 / lambda_A."""
DIMS = {LAMBDA: (10**5, 10**6), RADIUS: (10**5, 10**6), BOTH: (10**3, 10**6)}
RATES = {
    "k_2": {LAMBDA: 1.5, RADIUS: 2.5, BOTH: 0.5},
    "N_0": {LAMBDA: 3.0, RADIUS: 5.0, BOTH: 1.0},
    "a_M": {LAMBDA: 2.0, RADIUS: 4.0},
}
"""The true exponents, up to logarithms; see proofs.md."""
NEAR = {LAMBDA: 0.05, RADIUS: 0.05, BOTH: 0.1}
"""What lower orders may add."""


def growing(d: int, fixed: str) -> Regime:
    """The regime in d dimensions with what is ``fixed`` fixed."""
    a = {LAMBDA: math.sqrt(d + 2), RADIUS: 1.0, BOTH: 1000.0}[fixed]
    action_min = 1 / (d + 2) if fixed == RADIUS else 1.0
    return isotropic(
        dim=d,
        horizon=10**6,
        tasks=10_000,
        noise_sd=1.0,
        radius=a,
        action_min=action_min,
        mean_norm=1.0,
    )


def example_constants(regime: Regime, low: float) -> tuple[float, float]:
    """a_{M_1} and a_{M_2} of Appendix C.6, for f_m = d^2 and f_s = 1; a_M is the larger one."""
    d, cs, noise = regime.dim, c.c_s(regime), regime.noise_sd**2
    ratio = (8 * regime.bounds.radius**2 / regime.bounds.action_min) ** 2
    inner = 180 * noise * cs * (d**2 + 4 * d / low + 5 * noise * cs / 36)
    return 2 * cs**2 * ratio, inner


def exponent(value: str, fixed: str) -> float:
    """The exponent in d of k_2, N_0 or a_M, logarithms taken off."""
    found = []
    for d in DIMS[fixed]:
        regime = growing(d, fixed)
        log = math.log(d**2 * 1e8 * 1e6)
        raw = {
            "k_2": c.k_2(regime) / log,
            "N_0": c.n_0(regime) / log**2,
            "a_M": max(example_constants(regime, 1.0)),
        }[value]
        found.append(math.log(raw))
    first, last = DIMS[fixed]
    return (found[1] - found[0]) / math.log(last / first)


def _where(value: str, fixed: str) -> dict[str, object]:
    first, last = (round(math.log10(d)) for d in DIMS[fixed])
    return {
        "what": value,
        "fixed": fixed,
        "d": f"10^{first} to 10^{last}",
        "N": 10_000,
        "T": 10**6,
        "sigma": 1.0,
        "Sigma_*": "I",
    }


def growth(level: Level, value: str, rate: float, fixed: str = LAMBDA) -> list[Point]:
    """The exponent is no more than the printed one, but for lower orders."""
    return [at_most(_where(value, fixed), exponent(value, fixed), rate + NEAR[fixed])]


def true_growth(level: Level, value: str, shift: float = 0.0) -> list[Point]:
    """The exponent in each reading is the true one, from both sides."""
    return [
        equal(_where(value, fixed), abs(exponent(value, fixed) - rate - shift), NEAR[fixed])
        for fixed, rate in RATES[value].items()
    ]


@claim(
    id="k2-growth",
    kind=Kind.GROWTH_RATE,
    section=Section.THEOREMS,
    where="below Theorem 2, Section 5",
    quote="k_2 ∈ Õ(d^{3/2})",
    statement="k_2 grows like d^(3/2), lambda_A fixed",
    lines="460",
    mutations={"rate 1": {"rate": 1.0}, "a fixed": {"fixed": RADIUS}},
    constant=("rate", 1.5),
    proof="ours",
    remark=(
        "As the paper has it, with lambda_A a known constant. That forces a^2 >= d "
        "lambda_A, so the norm of actions grows with d (k2-growth-radius-fixed)."
    ),
)
def k2_growth(level: Level, rate: float = 1.5, fixed: str = LAMBDA) -> list[Point]:
    """k_2, with lambda_A fixed and a^2 = d + 2."""
    return growth(level, "k_2", rate, fixed)


@claim(
    id="k2-growth-radius-fixed",
    reading_of="k2-growth",
    statement="k_2 grows like d^(3/2), a fixed",
    mutations={"rate 1, lambda_A fixed": partial(growth, value="k_2", rate=1.0)},
    holds_at=k2_growth,
    remark=(
        "Always lambda_A <= a^2/d. With a fixed c_s and tau both grow with d, and k_2 "
        "grows like d^(5/2)."
    ),
    survives="The rate d^(3/2) where a grows like sqrt(d); with a fixed k_2 is larger by d.",
    sides="the exponent of d; 3/2 and 0.05 for lower orders",
)
def k2_growth_radius(level: Level) -> list[Point]:
    """k_2, with a = 1 and uniform actions."""
    return growth(level, "k_2", 1.5, RADIUS)


@claim(
    id="k2-growth-exact",
    sharpens="k2-growth",
    statement=(
        "k_2 grows like d^(3/2) with lambda_A fixed, like d^(5/2) with a fixed, and like "
        "d^(1/2) with both fixed, which laws allow up to d = a^2/lambda_A"
    ),
    mutations={"exponents larger by 1/2": {"shift": 0.5}, "smaller by 1/2": {"shift": -0.5}},
    proof="ours",
)
def k2_growth_exact(level: Level, shift: float = 0.0) -> list[Point]:
    """k_2 in each reading, from both sides."""
    return true_growth(level, "k_2", shift)


@claim(
    id="n0-growth",
    kind=Kind.GROWTH_RATE,
    section=Section.THEOREMS,
    where="below Theorem 2, Section 5",
    quote="N_0 ∈ Õ(d³)",
    statement="N_0 grows like d^3, lambda_A fixed",
    lines="460",
    mutations={"rate 2": {"rate": 2.0}, "a fixed": {"fixed": RADIUS}},
    constant=("rate", 3.0),
    proof="ours",
    remark="As for k2-growth (n0-growth-radius-fixed).",
)
def n0_growth(level: Level, rate: float = 3.0, fixed: str = LAMBDA) -> list[Point]:
    """N_0, with lambda_A fixed and a^2 = d + 2."""
    return growth(level, "N_0", rate, fixed)


@claim(
    id="n0-growth-radius-fixed",
    reading_of="n0-growth",
    statement="N_0 grows like d^3, a fixed",
    mutations={"rate 2, lambda_A fixed": partial(growth, value="N_0", rate=2.0)},
    holds_at=n0_growth,
    remark="As for k2-growth-radius-fixed: N_0 grows like d^5.",
    survives="The rate d^3 where a grows like sqrt(d); with a fixed N_0 is larger by d^2.",
    sides="the exponent of d; 3 and 0.05 for lower orders",
)
def n0_growth_radius(level: Level) -> list[Point]:
    """N_0, with a = 1 and uniform actions."""
    return growth(level, "N_0", 3.0, RADIUS)


@claim(
    id="n0-growth-exact",
    sharpens="n0-growth",
    statement=(
        "N_0 grows like d^3 with lambda_A fixed, like d^5 with a fixed, and like d with "
        "both fixed, which laws allow up to d = a^2/lambda_A"
    ),
    mutations={"exponents larger by 1/2": {"shift": 0.5}, "smaller by 1/2": {"shift": -0.5}},
    proof="ours",
)
def n0_growth_exact(level: Level, shift: float = 0.0) -> list[Point]:
    """N_0 in each reading, from both sides."""
    return true_growth(level, "N_0", shift)
