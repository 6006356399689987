"""The bad event, Theorems 1 and 2 and what is said about their constants (lines 226-527, 2448-2680,
3268-3330)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from scipy.stats import norm

from bayesmeta.checks import Array
from bayesmeta.claims.edges import largest
from bayesmeta.claims.experiment import section_6
from bayesmeta.claims.verdict import Claim, Level, Point, at_most, estimated
from bayesmeta.environment import paper_family
from bayesmeta.theory import bounds, theorems
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import Regime

SECTION = "theorems"


def _conditional_square(d: int, ell: float) -> float:
    """E[Z_i^2 | E_theta fails], exactly: some |Z_j| > t = sqrt(2 ell), Z independent normals."""
    t = math.sqrt(2 * ell)
    tail = 2 * float(norm.sf(t))
    log_inside = math.log1p(-tail)
    kept = -2 * t * float(norm.pdf(t)) - tail  # E[Z^2; |Z| <= t] - 1
    fail = -math.expm1(d * log_inside)
    rest = -math.expm1((d - 1) * log_inside) - math.exp((d - 1) * log_inside) * kept
    return rest / fail


def bad_event_moment(level: Level, four: float = 4.0, ells: tuple[float, ...] = ()) -> list[Point]:
    """E[Z_i^2 | E_theta fails] <= 4 sqrt(2 ln(d^2 T/delta)), as printed."""
    points = []
    for d in (1, 2, 5, 10):
        many = (1.8, 2.0, 3.0, 6.397, 10.0, 20.0, 30.0, 100.0)
        for ell in ells or level.pick((2.0, 6.397, 30.0), many):
            left = _conditional_square(d, ell)
            points.append(
                at_most({"d": d, "ln(d^2 T/delta)": ell}, left, four * math.sqrt(2 * ell))
            )
    return points


def bad_event_moment_corrected(level: Level, one: float = 1.0) -> list[Point]:
    """E[Z_i^2 | E_theta fails] <= 1 + (2 ell + 1)/d, ell = ln(d^2 T/delta) >= 1.

    Proof: let J be the first coordinate beyond t = sqrt(2 ell). Those before it have second moments
    of at most 1, those after it of 1, and E[Z^2 | |Z| > t] = 1 + t phi(t)/Q(t) <= t^2 + 2. Their
    sum is at most 2 ell + d + 1, and the coordinates are exchangeable.
    """
    points = []
    for d in (1, 2, 5, 10):
        for ell in level.pick((1.0, 10.0, 100.0), (1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0)):
            right = 1 + (2 * ell + one) / d
            points.append(at_most({"d": d, "ell": ell}, _conditional_square(d, ell), right))
    return points


def bad_event(level: Level, four: float = 4.0) -> list[Point]:
    """E[|theta| | E_theta fails] - m <= sqrt(d) sqrt(4 lambda_max ln(d^2 T/delta)), which is what
    the lemma says of 2aT|theta| with m = 0; by the exact second moment (first for d = 1)."""
    points = []
    for d in (1, 2, 5, 10):
        for horizon in (1, 2, 200, 10_000):
            for delta in level.pick((1 / 3, 1e-6), (1 / 3, 1e-2, 1e-6, 1e-12)):
                ell = math.log(d * d * horizon / delta)
                t = math.sqrt(2 * ell)
                left = math.sqrt(d * _conditional_square(d, ell))
                if d == 1:
                    left = math.exp(float(norm.logpdf(t) - norm.logsf(t)))
                where = {"d": d, "T": horizon, "delta": delta}
                points.append(at_most(where, left, math.sqrt(d * four * ell)))
    return points


def two_armed_regret(a: float, low: float, sigma: float, steps: int) -> float:
    """The regret of Thompson Sampling with the true prior N(0, low), d = 1 and actions ±a: exactly
    a sqrt(2 low/pi) sum over n < T of 1/(1 + n low a^2/sigma^2)."""
    x = low * a * a / sigma**2
    total = float(np.sum(1 / (1 + np.arange(steps) * x)))
    return a * math.sqrt(2 * low / math.pi) * total


def drawn_actions_regret(
    rng: np.random.Generator, a: float, low: float, actions: int, steps: int, runs: int
) -> Array:
    """The same where a step offers so many actions, uniform on [-a, a], and sigma = 1, run by run:
    E[max - min] = 2a (K-1)/(K+1) is lost where the signs of theta and the draw differ. V, the sum
    of squares of largest (or smallest) actions, does not depend on theta."""
    best = a * (2 * rng.random((runs, steps)) ** (1 / actions) - 1)  # the largest of them
    gram = np.cumsum(best**2, axis=1) - best**2
    lost = np.sum(1 / (1 + low * gram), axis=1)
    made: Array = a * (actions - 1) / (actions + 1) * math.sqrt(2 * low / math.pi) * lost
    return made


def prior_dependent(
    level: Level, radii: tuple[float, ...] = (), share: float = 1.0, corrected: bool = False
) -> list[Point]:
    """The brackets of the prior-dependent bounds (lines 276 and 491, N = 2) are no smaller than the
    regret of Thompson Sampling with the true prior, actions drawn anew at every step."""
    points = []
    runs = level.pick(2000, 5000)
    for a in radii or level.pick((1000.0, 0.25, 1.0), (1000.0, 30.0, 13.0, 3.0, 1.0, 0.25, 0.01)):
        for x, actions, horizon in product(
            level.pick((1.0, 1e-5), (1.0, 1e-5, 1e-2, 0.1, 100.0)),
            (20, 2),
            level.pick((10, 100), (10, 100, 1, 1000)),
        ):
            low = x / a**2
            rng = level.rng(f"prior-dependent/{a}/{x}/{actions}/{horizon}")
            values = drawn_actions_regret(rng, a, low, actions, horizon, runs)
            regime = Regime.of(
                dim=1,
                horizon=horizon,
                tasks=2,
                noise_sd=1.0,
                radius=a,
                action_min=a * a / 3,
                prior_min=low,
                prior_max=low,
                mean_norm=0.0,
            )
            where = {
                "d": 1,
                "f_A": "uniform on [-a, a]",
                "actions": actions,
                "a": a,
                "Sigma_*": low,
                "sigma": 1.0,
                "T": horizon,
            }
            brackets = {"276": theorems.prior_dependent_task, "491": theorems.prior_dependent_meta}
            if corrected:
                brackets = {"276, corrected": theorems.prior_dependent_corrected}
            for line, bracket in brackets.items():
                right = share * bracket(regime, actions)
                point = estimated({**where, "line": line}, values, right, level.size)
                points.append(point._replace(label=line))
    return points


def two_arms(level: Level, share: float = 1.0) -> list[Point]:
    """The corrected bracket for two fixed actions, exactly."""
    points = []
    for a in level.pick((0.01, 1.0, 1000.0), (0.01, 0.25, 1.0, 3.0, 10.0, 13.0, 30.0, 1000.0)):
        for x in level.pick((1e-2, 1.0), (1e-5, 1e-2, 0.1, 1.0, 100.0)):
            for horizon in level.pick((1, 10, 1000), (1, 10, 100, 1000, 10_000)):
                low = x / a**2
                regime = Regime.of(
                    dim=1,
                    horizon=horizon,
                    tasks=2,
                    noise_sd=1.0,
                    radius=a,
                    action_min=a * a,
                    prior_min=low,
                    prior_max=low,
                    mean_norm=0.0,
                )
                left = two_armed_regret(a, low, 1.0, horizon)
                right = share * theorems.prior_dependent_corrected(regime, 2)
                where = {
                    "d": 1,
                    "actions": "-a, a",
                    "a": a,
                    "Sigma_*": low,
                    "sigma": 1.0,
                    "T": horizon,
                }
                points.append(at_most(where, left, right))
    return points


def in_section_6(level: Level) -> list[Point]:
    """Regret of KTS in a task of Section 6 (d = 5), in the recorded runs, against the brackets."""
    recorded, regime = section_6(), bounds.regime_of(paper_family(), 10_000)
    values = np.array(recorded["total"]["KTS"]) * recorded["unit"] / recorded["tasks"]
    return [
        estimated(
            {"experiment": "Section 6", "d": 5, "T": 200, "bracket": name},
            values,
            bracket(regime, 20),
            level.size,
        )
        for name, bracket in (
            ("printed", theorems.prior_dependent_task),
            ("corrected", theorems.prior_dependent_corrected),
        )
    ]


def demonstration(level: Level, power: int = 2, eight: float = 8.0) -> list[Point]:
    """The appendix's example: with f_m = d^2, f_s = 1 and tau of the lemma on the gram, delta =
    (8 sqrt(a_M) ln(4 sqrt(a_M)) + 2 sqrt(b_M))^-2 satisfies delta M <= 1, and k_1 <= 1 + sqrt(24).

    k_1: delta <= 1/M says p <= 1 and 18 (x^2 + y^2) + w^2/2 <= 1, where k_1 = p + 12 (x + y) + 2w.
    """
    points = []
    for d in level.pick((1, 10), (1, 2, 5, 10, 100)):
        for sigma in level.pick((1e-4, 1.0), (1e-4, 1e-2, 1.0, 3.0)):
            for low in level.pick((1e-4, 1.0), (1e-4, 1e-2, 1.0, 10.0)):
                for a in level.pick((1.0,), (0.01, 1.0, 1000.0)):
                    for horizon in level.pick((200,), (10, 200, 10**6, 10**12)):
                        regime = Regime.of(
                            dim=d,
                            horizon=horizon,
                            tasks=2,
                            noise_sd=sigma,
                            radius=a,
                            action_min=a * a / (d + 2),
                            prior_min=low,
                            prior_max=low,
                            mean_norm=1.0,
                        )
                        cs, ratio = c.c_s(regime), (8 * a * a / regime.bounds.action_min) ** 2
                        inner = 180 * sigma**2 * cs * (d**2 + 4 * d / low + 5 * sigma**2 * cs / 36)
                        a_m = max(2 * cs**2 * ratio, inner)
                        b_m = max(
                            3 + cs**2 * d**2 + 2 * cs**2 * ratio * math.log(d**2 * horizon) ** 2,
                            3 + inner * math.log(d * horizon) ** 2,
                        )
                        root = math.sqrt(a_m)
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


def n0_burn_in(
    level: Level, corrected: bool = False, share: float = 1.0, edge: bool = False
) -> list[Point]:
    """N_0 as printed is at least 10d + 4 ln(16dT), so that Lemma M-QB speaks of every n > N_0; at
    the ``edge``, with the smallest noise for which it is."""
    points = []
    for d in (1, 2, 5, 10):
        regime = Regime.of(
            dim=d,
            horizon=2,
            tasks=10_000,
            noise_sd=1.0,
            radius=1.0,
            action_min=1 / (d + 2),
            prior_min=1.0,
            prior_max=1.0,
            mean_norm=1.0,
        )
        regime = replace(regime, horizon=bounds.smallest_horizon(regime))
        needed = c.burn_in(d, regime.horizon)

        def printed(sigma: float, regime: Regime = regime) -> float:
            return c.n_0(replace(regime, noise_sd=sigma))

        def short(
            sigma: float,
            needed: float = needed,
            printed: Callable[[float], float] = printed,
        ) -> bool:
            return printed(sigma) < needed

        sigmas = level.pick((1e-4, 1.0), (1e-4, 1e-3, 1e-2, 1.0, 3.0))
        if edge:
            sigmas = (largest(short, 1e-9) * (1 + 1e-9),)
        for sigma in sigmas:
            first = share * printed(sigma)
            if corrected:
                first = math.ceil(c.n_0(replace(regime, noise_sd=sigma), corrected=True))
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


def theorem_2_step(
    level: Level, corrected: bool = False, both: bool = True, share: float = 1.0
) -> list[Point]:
    """sum over n of k_2(n) R / (2 sqrt(n-1)) + c_bad / (sqrt(d)(n-1)) <= k_2 sqrt(N) R, with R no
    larger than 2a(T - tau) sqrt(2 tr E[Sigma_{tau+1}]), as for Thompson Sampling."""
    points = []
    for d, horizon in ((1, 1000), (2, 2000), (5, 5000), (10, 10_000)):
        for sigma in level.pick((1e-4, 1e-6), (1e-4, 1e-5, 1e-6, 1e-8)):
            tasks = 10_000
            regime = Regime.of(
                dim=d,
                horizon=horizon,
                tasks=tasks,
                noise_sd=sigma,
                radius=1.0,
                action_min=1 / (d + 2),
                prior_min=1.0,
                prior_max=1.0,
                mean_norm=2 * math.sqrt(d),
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


def _slope(value: str, growing: bool) -> float:
    """Exponent in d of k_2 or N_0, logarithms taken off, from d = 10^5 to 10^6."""
    found = []
    dims = (10**5, 10**6)
    for d in dims:
        a = math.sqrt(d) if growing else 1.0
        regime = Regime.of(
            dim=d,
            horizon=10**6,
            tasks=10_000,
            noise_sd=1.0,
            radius=a,
            action_min=a * a / (d + 2),
            prior_min=1.0,
            prior_max=1.0,
            mean_norm=1.0,
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


CLAIMS = (
    Claim(
        "bad-event-moment",
        SECTION,
        "2500-2585",
        "E",
        "E[Z_i^2 | E_theta fails] <= 4 sqrt(2 ln(d^2 T/delta))",
        bad_event_moment,
        {"2 for 4, where 4 does": partial(bad_event_moment, four=2.0, ells=(2.0,))},
        "E_theta says Z_i^2 <= z^2 with z = sqrt(2 ln(d^2 T/delta)); the proof (line 2527) takes "
        "the threshold z for it.",
        partial(bad_event_moment, ells=(2.0,)),
        survives="The lemma on the bad event survives with its constants, and so does Theorem "
        "1's c_bad.",
        sides="the conditional moment; its bound",
    ),
    Claim(
        "bad-event-moment-corrected",
        SECTION,
        "2500-2585",
        "E",
        "E[Z_i^2 | E_theta fails] <= 1 + (2 ln(d^2 T/delta) + 1)/d",
        bad_event_moment_corrected,
        {"1 dropped": partial(bad_event_moment_corrected, one=0.0)},
    ),
    Claim(
        "bad-event",
        SECTION,
        "2451-2610",
        "E",
        "E[max R | E_theta fails] <= c_bad sqrt(d) T / 11",
        bad_event,
        {"2 for 4": partial(bad_event, four=2.0)},
        "True by the corrected moment, where ell = ln(d^2 T/delta) >= 1, which delta <= 1/3 "
        "gives: 2 ell + d + 1 <= 4 d ell.",
    ),
    Claim(
        "demonstration",
        SECTION,
        "2614-2680",
        "D",
        "the delta of the example satisfies delta <= 1/M, and k_1 stays bounded",
        demonstration,
        {
            "power 1 for 2": partial(demonstration, power=1),
            "1 for 8": partial(demonstration, eight=1.0),
        },
        "k_1 <= 1 + sqrt(24), not only up to logarithms. What is said on the way, a_M and b_M of "
        "order d^2, holds where a grows like sqrt(d); with a fixed they grow like d^4. The "
        "example does not see to tau < T.",
    ),
    Claim(
        "prior-dependent-bound",
        SECTION,
        "276, 491",
        "E",
        "the brackets bound the regret of Thompson Sampling with the true prior",
        lambda level: [*prior_dependent(level), *in_section_6(level)],
        {"0.05 of it, where a <= 1": partial(prior_dependent, share=0.05, radii=(0.01, 1.0))},
        "The second logarithm lacks a^2: ln(1 + lambda_max T / sigma^2) for ln(1 + lambda_max "
        "a^2 T / (d sigma^2)), so the bounds change with units of actions and fail for large "
        "radii. That of line 276 holds for a <= 2 sqrt(d).",
        partial(prior_dependent, radii=(0.01, 1.0)),
        survives="The corrected bracket has the same order in d and T; the bounds on Bayesian "
        "regret that are made of it survive with it.",
        sides="regret, with its interval; the bracket",
    ),
    Claim(
        "prior-dependent-bound-corrected",
        SECTION,
        "276, 491",
        "E",
        "sqrt(2) sqrt(lambda_max a^2 ln(4|A|T^2) / ln(1 + lambda_max a^2/sigma^2)) "
        "sqrt(dT ln(1 + lambda_max a^2 T/(d sigma^2))) + a sqrt(lambda_max)/(4 sqrt(2 pi) T)",
        lambda level: [*two_arms(level), *prior_dependent(level, corrected=True)],
        {"0.3 of it": partial(two_arms, share=0.3)},
        "E[regret_t] <= beta E|A_t|_{Sigma_t} + |A| a sqrt(lambda_max) phi(beta) with beta^2 = "
        "2 ln(4|A|T^2); Cauchy-Schwarz; y <= X/ln(1+X) ln(1+y) for y <= X; the determinant.",
    ),
    Claim(
        "n0-burn-in",
        SECTION,
        "437, 3276-3290",
        "D",
        "N_0 as printed covers n > 10d + 4 ln(16dT)",
        n0_burn_in,
        {"half of it, at the edge": partial(n0_burn_in, share=0.5, edge=True)},
        "N_0 goes to 3 as sigma goes to 0, the condition of Lemma M-QB does not.",
        partial(n0_burn_in, edge=True),
        survives="Theorem 2 survives with the larger of the two for N_0, which has the same "
        "order. (What Lemma M-QB concludes, if not what it says, holds from n = 4 on where 5d + "
        "2 ln(dnT) <= 75 (n - 1): N_0 = 3 would do where 5d + 2 ln(4dT) <= 225; see proofs.)",
        sides="10d + 4 ln(16dT); N_0",
    ),
    Claim(
        "n0-burn-in-corrected",
        SECTION,
        "437, 3276-3290",
        "D",
        "max{N_0, ceil(10d + 4 ln(16dT))} does",
        partial(n0_burn_in, corrected=True),
        {"N_0 alone": n0_burn_in},
    ),
    Claim(
        "theorem-2-step",
        SECTION,
        "3299-3330",
        "D",
        "the sum of both parts over n is at most k_2 sqrt(N) R",
        theorem_2_step,
        {"half of k_2, without c_bad": partial(theorem_2_step, both=False, share=0.5)},
        "The sum of c_bad / (sqrt(d)(n-1)) is dropped in the last line (3313-3334). It matters "
        "where the noise is small.",
        partial(theorem_2_step, both=False),
        survives="Theorem 2 survives with another c_bad (1 + ln N) / sqrt(d), of lower order.",
        sides="the sum; k_2 sqrt(N) R, R at its largest",
    ),
    Claim(
        "theorem-2-step-corrected",
        SECTION,
        "3299-3330",
        "D",
        "the same with c_bad (1 + ln N) / sqrt(d) on the right",
        partial(theorem_2_step, corrected=True),
        {"without it": theorem_2_step},
    ),
    Claim(
        "k2-growth",
        SECTION,
        "460",
        "S",
        "k_2 grows like d^(3/2), a fixed",
        partial(growth, value="k_2", rate=1.5, growing=False),
        {"rate 1, a growing": partial(growth, value="k_2", rate=1.0, growing=True)},
        "Printed is the rate alone, all other constants fixed. But lambda_A <= a^2/d: with "
        "a fixed c_s and tau grow with d, and k_2 like d^(5/2). (With lambda_A fixed as well the "
        "formula gives 3/2, for d <= a^2/lambda_A; beyond that no law of actions is left.)",
        partial(growth, value="k_2", rate=1.5, growing=True),
        survives="The rate d^(5/2) sqrt(NT) of Theorem 2 survives where a grows like sqrt(d) and "
        "lambda_A stays; "
        "with a fixed k_2 is larger by a factor d.",
        sides="the exponent of d; 3/2 and 0.05 for lower orders",
    ),
    Claim(
        "k2-growth-corrected",
        SECTION,
        "460",
        "S",
        "k_2 grows like d^(3/2) where a grows like sqrt(d) and lambda_A stays",
        partial(growth, value="k_2", rate=1.5, growing=True),
        {"rate 1": partial(growth, value="k_2", rate=1.0, growing=True)},
    ),
    Claim(
        "n0-growth",
        SECTION,
        "460",
        "S",
        "N_0 grows like d^3, a fixed",
        partial(growth, value="N_0", rate=3.0, growing=False),
        {"rate 2, a growing": partial(growth, value="N_0", rate=2.0, growing=True)},
        "As for k2-growth; with a fixed: d^5.",
        partial(growth, value="N_0", rate=3.0, growing=True),
        survives="N_0 of order d^3 survives there; with a fixed it is larger by d^2.",
        sides="the exponent of d; 3 and 0.05 for lower orders",
    ),
    Claim(
        "n0-growth-corrected",
        SECTION,
        "460",
        "S",
        "N_0 grows like d^3 where a grows like sqrt(d) and lambda_A stays",
        partial(growth, value="N_0", rate=3.0, growing=True),
        {"rate 2": partial(growth, value="N_0", rate=2.0, growing=True)},
    ),
)
"""Checks of this section."""
