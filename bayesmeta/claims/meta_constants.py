"""The constants of Theorem 2, eqs. (82)-(83): N_0, the last step of the proof, growth with d."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.edges import largest
from bayesmeta.claims.regimes import isotropic
from bayesmeta.claims.verdict import Level, Point, at_most
from bayesmeta.theory import bounds
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import Regime


def _least_noise(regime: Regime, needed: float) -> float:
    """The smallest noise with which N_0 is at least ``needed``."""

    def short(sigma: float) -> bool:
        return c.n_0(replace(regime, noise_sd=sigma)) < needed

    return largest(short, 1e-9) * (1 + 1e-9)


@claim(
    id="n0-burn-in",
    kind=Kind.INEQUALITY,
    section=Section.THEOREMS,
    where="above Theorem 2, Section 5; eq. (82), Appendix E",
    quote="N_0 ≜ ⌈M_{N+1}⌉, which ensures for every n > N_0 that δ_n < 1/M_n",
    statement="N_0 as printed covers n > 10d + 4 ln(16dT)",
    lines="437, 3276-3290",
    mutations={"half of it, at the edge": {"share": 0.5, "edge": True}},
    holds_at={"edge": True},
    remark="As sigma goes to 0, N_0 goes to 3, while the condition of Lemma M-QB stays.",
    survives=(
        "Theorem 2 survives with the larger of the two for N_0, which has the same "
        "order. (The conclusion of Lemma M-QB, though not the lemma as stated, holds "
        "from n = 4 on where 5d + 2 ln(dnT) <= 75 (n - 1); so N_0 = 3 is enough where "
        "5d + 2 ln(4dT) <= 225; see analyses/claims/proofs.md.)"
    ),
    sides="10d + 4 ln(16dT); N_0",
)
def n0_burn_in(
    level: Level, corrected: bool = False, share: float = 1.0, edge: bool = False
) -> list[Point]:
    """N_0 as printed is at least 10d + 4 ln(16dT), so that Lemma 1 (M-QB) covers every n > N_0; at
    the ``edge``, with the smallest noise for which it is."""
    points = []
    for d in (1, 2, 5, 10):
        regime = isotropic(dim=d, horizon=2, tasks=10_000, noise_sd=1.0, mean_norm=1.0)
        regime = replace(regime, horizon=bounds.smallest_horizon(regime))
        needed = c.burn_in(d, regime.horizon)
        sigmas = level.pick((1e-4, 1.0), (1e-4, 1e-3, 1e-2, 1.0, 3.0))
        if edge:
            sigmas = (_least_noise(regime, needed),)
        for sigma in sigmas:
            here = replace(regime, noise_sd=sigma)
            first = math.ceil(c.n_0(here, corrected=True)) if corrected else share * c.n_0(here)
            where = {
                "d": d,
                "sigma": sigma,
                "a": 1.0,
                "lambda_A": regime.bounds.action_min,
                "Sigma_*": 1.0,
                "T": regime.horizon,
                "N": 10_000,
            }
            points.append(at_most(where, needed, first))
    return points


@claim(
    id="n0-burn-in-corrected",
    corrects="n0-burn-in",
    statement="max{N_0, ceil(10d + 4 ln(16dT))} covers n > 10d + 4 ln(16dT)",
    mutations={"N_0 alone": n0_burn_in},
)
def n0_burn_in_corrected(level: Level) -> list[Point]:
    """The same with the larger of the two for N_0."""
    return n0_burn_in(level, corrected=True)


@claim(
    id="theorem-2-step",
    kind=Kind.INEQUALITY,
    section=Section.THEOREMS,
    where="last inequality of eq. (83), Appendix E",
    quote=(
        "N_0 R_exp + ∑_{n=N_0+1}^N (k̃_2(n)/(2√(n-1)) E[R] + c_bad/(√d(n-1))) ≤ N_0 "
        "R_exp + k_2 √N E[R]"
    ),
    statement="the sum of both parts over n is at most k_2 sqrt(N) R",
    lines="3299-3330",
    mutations={"half of k_2, without c_bad": {"both": False, "share": 0.5}},
    holds_at={"both": False},
    remark=(
        "The sum of c_bad / (sqrt(d)(n-1)) is dropped in the last line of eq. (83). It "
        "matters where the noise is small."
    ),
    survives="Theorem 2 survives with another c_bad (1 + ln N) / sqrt(d), of lower order.",
    sides="the sum; k_2 sqrt(N) R, R at its largest",
)
def theorem_2_step(
    level: Level, corrected: bool = False, both: bool = True, share: float = 1.0
) -> list[Point]:
    """sum over n of k_2(n) R / (2 sqrt(n-1)) + c_bad / (sqrt(d)(n-1)) <= k_2 sqrt(N) R, with R no
    larger than 2a(T - tau) sqrt(2 tr E[Sigma_{tau+1}]), as for Thompson Sampling."""
    points = []
    for d, horizon in ((1, 1000), (2, 2000), (5, 5000), (10, 10_000)):
        for sigma in level.pick((1e-4, 1e-6), (1e-4, 1e-5, 1e-6, 1e-8)):
            tasks = 10_000
            regime = isotropic(
                dim=d, horizon=horizon, tasks=tasks, noise_sd=sigma, mean_norm=2 * math.sqrt(d)
            )
            tau = c.tau_of(regime)
            first = max(math.ceil(c.n_0(regime)), 3)
            if first >= tasks or tau >= horizon:
                continue
            trace = 2 * d * sigma**2 / (regime.bounds.action_min * tau) + 1 / (tasks**2 * horizon)
            known = 2 * (horizon - tau) * math.sqrt(2 * trace)
            ns = np.arange(first + 1, tasks + 1)
            bad = c.c_bad(regime, 1 / tasks) / math.sqrt(d) * float(np.sum(1 / (ns - 1)))
            main = c.k_2(regime) * known * float(np.sum(1 / (2 * np.sqrt(ns - 1))))
            right = share * c.k_2(regime) * math.sqrt(tasks) * known
            if corrected:
                right += c.bad_tasks(regime)
            where = {
                "d": d,
                "sigma": sigma,
                "a": 1.0,
                "lambda_A": regime.bounds.action_min,
                "Sigma_*": "I",
                "m": regime.bounds.mean_norm,
                "T": horizon,
                "N": tasks,
                "policy": "Thompson Sampling",
                "R, at most": known,
            }
            points.append(at_most(where, main + (bad if both else 0.0), right))
    return points


@claim(
    id="theorem-2-step-corrected",
    corrects="theorem-2-step",
    statement="the same with c_bad (1 + ln N) / sqrt(d) on the right",
    mutations={"without it": theorem_2_step},
)
def theorem_2_step_corrected(level: Level) -> list[Point]:
    """The same with the sum of the bad events on the right."""
    return theorem_2_step(level, corrected=True)


def _slope(value: str, growing: bool) -> float:
    """Exponent in d of k_2 or N_0, logarithms taken off, from d = 10^5 to 10^6."""
    found = []
    dims = (10**5, 10**6)
    for d in dims:
        a = math.sqrt(d) if growing else 1.0
        regime = isotropic(
            dim=d, horizon=10**6, tasks=10_000, noise_sd=1.0, radius=a, mean_norm=1.0
        )
        log = math.log(d**2 * 1e8 * 1e6)
        raw = c.k_2(regime) / log if value == "k_2" else c.n_0(regime) / log**2
        found.append(math.log(raw))
    return (found[1] - found[0]) / math.log(10)


def growth(level: Level, value: str, rate: float, growing: bool) -> list[Point]:
    """The exponent is the printed one, within 0.05."""
    slope = _slope(value, growing)
    where = {
        "what": value,
        "a": "sqrt(d)" if growing else 1.0,
        "lambda_A": "a^2/(d + 2)",
        "d": "10^5 to 10^6",
        "N": 10_000,
        "T": 10**6,
        "sigma": 1.0,
        "Sigma_*": "I",
    }
    return [at_most(where, slope, rate + 0.05)]


@claim(
    id="k2-growth",
    kind=Kind.GROWTH_RATE,
    section=Section.THEOREMS,
    where="below Theorem 2, Section 5",
    quote="k_2 ∈ Õ(d^{3/2})",
    statement="k_2 grows like d^(3/2), a fixed",
    lines="460",
    mutations={"rate 1, a growing": {"rate": 1.0, "growing": True}},
    holds_at={"growing": True},
    remark=(
        "The paper prints only the rate, with all other constants fixed. But lambda_A "
        "<= a^2/d: with a fixed, c_s and tau grow with d, and k_2 grows like d^(5/2). "
        "(With lambda_A fixed as well the formula gives 3/2, for d <= a^2/lambda_A; for "
        "larger d no law of actions has that lambda_A.)"
    ),
    survives=(
        "The rate d^(5/2) sqrt(NT) of Theorem 2 survives where a grows like sqrt(d) "
        "and lambda_A stays; with a fixed k_2 is larger by a factor d."
    ),
    sides="the exponent of d; 3/2 and 0.05 for lower orders",
)
def k2_growth(level: Level, rate: float = 1.5, growing: bool = False) -> list[Point]:
    """k_2, with a fixed or growing like sqrt(d)."""
    return growth(level, "k_2", rate, growing)


@claim(
    id="k2-growth-corrected",
    corrects="k2-growth",
    statement="k_2 grows like d^(3/2) where a grows like sqrt(d) and lambda_A stays",
    mutations={"rate 1": {"rate": 1.0}},
)
def k2_growth_corrected(level: Level, rate: float = 1.5) -> list[Point]:
    """k_2, with a growing like sqrt(d)."""
    return growth(level, "k_2", rate, growing=True)


@claim(
    id="n0-growth",
    kind=Kind.GROWTH_RATE,
    section=Section.THEOREMS,
    where="below Theorem 2, Section 5",
    quote="N_0 ∈ Õ(d³)",
    statement="N_0 grows like d^3, a fixed",
    lines="460",
    mutations={"rate 2, a growing": {"rate": 2.0, "growing": True}},
    holds_at={"growing": True},
    remark="As for k2-growth: with a fixed, N_0 grows like d^5.",
    survives="N_0 of order d^3 where a grows like sqrt(d); with a fixed it is larger by d^2.",
    sides="the exponent of d; 3 and 0.05 for lower orders",
)
def n0_growth(level: Level, rate: float = 3.0, growing: bool = False) -> list[Point]:
    """N_0, with a fixed or growing like sqrt(d)."""
    return growth(level, "N_0", rate, growing)


@claim(
    id="n0-growth-corrected",
    corrects="n0-growth",
    statement="N_0 grows like d^3 where a grows like sqrt(d) and lambda_A stays",
    mutations={"rate 2": {"rate": 2.0}},
)
def n0_growth_corrected(level: Level, rate: float = 3.0) -> list[Point]:
    """N_0, with a growing like sqrt(d)."""
    return growth(level, "N_0", rate, growing=True)
