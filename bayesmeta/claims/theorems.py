"""The bad event, Theorems 1 and 2 and what is said about their constants (lines 226-527, 2448-2680,
3268-3330)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm

from bayesmeta.claims.verdict import Claim, Level, Point, at_most, equal, estimated
from bayesmeta.theory import bounds
from bayesmeta.theory import constants as c
from bayesmeta.theory.constants import Regime

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
        for horizon in (2, 200, 10_000):
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


def prior_dependent(
    level: Level, corrected: bool = False, share: float = 1.0, radii: tuple[float, ...] = ()
) -> list[Point]:
    """The bracket of the prior-dependent bound is no smaller than the regret of Thompson Sampling
    with the true prior: exactly for two actions in one dimension."""
    points = []
    some, many = (0.01, 0.25, 1.0, 1000.0), (0.01, 0.25, 1.0, 3.0, 10.0, 13.0, 30.0, 1000.0)
    for a in radii or level.pick(some, many):
        for x in level.pick((1e-2, 1.0), (1e-5, 1e-2, 0.1, 1.0, 100.0)):
            for horizon in level.pick((1, 10, 1000), (1, 10, 100, 1000, 10_000)):
                low = x / a**2
                regime = Regime(1, 2, horizon, 1.0, a, a * a, low, low, 0.0)
                left = two_armed_regret(a, low, 1.0, horizon)
                bracket = (bounds.prior_dependent_corrected if corrected
                           else bounds.prior_dependent_task)  # fmt: skip
                right = share * bracket(regime, 2)
                where = {"d": 1, "actions": "-a, a", "a": a, "Sigma_*": low, "sigma": 1.0,
                         "T": horizon}  # fmt: skip
                points.append(at_most(where, left, right))
    return points


def _thompson(
    a: float, low: float, sigma: float, off: float, tau: int, horizon: int, draws: np.ndarray
) -> float:
    """Regret after exploration of Thompson Sampling with N(off, low) where the truth is N(0, low),
    actions [-a, a]: a sqrt(2 low/pi) E[1 - r/(1+r) exp(-off^2/(2 low (1+r)^2))], r = low V/sigma^2,
    summed over steps; V after exploration from ``draws``."""
    total = 0.0
    for n in range(horizon - tau):
        r = low / sigma**2 * (draws + n * a * a)
        total += float(np.mean(1 - r / (1 + r) * np.exp(-(off**2) / (2 * low * (1 + r) ** 2))))
    return a * math.sqrt(2 * low / math.pi) * total


def theorem_1(
    level: Level, corrected: bool = False, sigmas: tuple[float, ...] = (), share: float = 1.0
) -> list[Point]:
    """Relative regret of Thompson Sampling in one dimension, [-1, 1] on offer, mu_* = 0 and the
    mean off as far as delta <= 1/M allows, against k_1 R + c_bad delta / sqrt(d)."""
    rng = level.rng("theorem-1")
    a, tau, delta = 1.0, 8, 1e-4
    draws = (rng.uniform(-a, a, (level.pick(50_000, 500_000), tau)) ** 2).sum(axis=1)
    points = []
    for sigma in sigmas or level.pick((1.0, 1e-3), (3.0, 1.0, 0.1, 1e-2, 1e-3, 1e-4)):
        for ratio in level.pick((30.0,), (1.0, 10.0, 30.0, 100.0, 300.0)):
            low, horizon = ratio * sigma**2, 10
            regime = Regime(1, 10_000, horizon, sigma, a, 1 / 3, low, low, 0.0)
            square = 5 * math.log(horizon / delta) * (1.0 if corrected else sigma**2)
            off = math.sqrt(0.99 / (18 * square * c.c_s(regime)))
            fail = math.exp(tau / 2 * math.log(math.pi) - gammaln(tau / 2 + 1)
                            - tau / 2 * math.log(6) - tau * math.log(2))  # fmt: skip
            assert (
                fail + 2 * norm.sf(math.sqrt(2 * math.log(horizon / delta))) < 9 * delta / horizon
            )
            known = _thompson(a, low, sigma, 0.0, tau, horizon, draws)
            used = _thompson(a, low, sigma, off, tau, horizon, draws)
            k_1 = 12 * math.sqrt(square * c.c_s(regime)) * off
            right = k_1 * known + c.c_bad(regime, delta) * delta
            where = {"d": 1, "actions": "all of [-1, 1]", "policy": "Thompson Sampling",
                     "lambda_A": 1 / 3, "sigma": sigma, "mu_*": 0.0, "Sigma_*": low,
                     "mean deviation": off, "tau": tau, "T": horizon, "delta": delta}  # fmt: skip
            points.append(Point(where, used - known, share * right))
    return points


def theorem_1_shell(level: Level) -> list[Point]:
    """The same for a law on a thin shell, 1 - 1e-6 <= |A| <= 1, and a policy that is greedy where
    its posterior precision is at least what Sigma_* = 1 and actions of the shell give, else plays
    the opposite. With the true prior it always is; with Sigma-hat = 1.003 it never is, whatever
    the actions. One step after tau = 100."""
    tau, delta, cov = 100, 1e-4, 0.003
    regime = Regime(1, 10_000, tau + 1, 1.0, 1.0, 0.999, 1.0, 1.0, 0.0)
    fm, fs = 1e-12, cov**2 / delta
    assert delta * c.largest_m(regime, tau, fm, fs, delta) <= 1
    assert 1 / (1 + cov) + tau < 1 + tau * (1 - 1e-6) ** 2
    rng = level.rng("theorem-1-shell")
    theta, noise = rng.standard_normal((2, level.pick(20_000, 200_000)))
    right = np.sign(tau * theta + math.sqrt(tau) * noise) == np.sign(theta)
    known = float(np.mean(2 * np.abs(theta) * ~right))
    bound = c.k_1(regime, tau, fm, fs, delta) * known + c.c_bad(regime, delta) * delta
    where = {"d": 1, "f_A": "uniform on 1 - 1e-6 <= |A| <= 1", "policy": "threshold", "sigma": 1.0,
             "mu_*": 0.0, "Sigma_*": 1.0, "covariance deviation": cov, "tau": tau, "T": tau + 1,
             "delta": delta}  # fmt: skip
    values = 2 * np.abs(theta) * np.where(right, 1.0, -1.0)
    return [estimated(where, values, bound, level.size)]


def units(level: Level, corrected: bool = True) -> list[Point]:
    """k_1 does not change with the units of rewards (sigma, theta, mu and the root of Sigma times
    c), as relative regret over regret does not."""
    points = []
    base = Regime(2, 1000, 2000, 0.5, 1.0, 0.2, 0.5, 2.0, 1.0)
    for factor in (1e-3, 0.1, 10.0, 1e3):
        scaled = replace(base, noise_sd=0.5 * factor, prior_min=0.5 * factor**2,
                         prior_max=2.0 * factor**2, mean_norm=factor)  # fmt: skip
        values = [
            c.k_1(regime, 10, 1e-3 * unit**2, 1e-6 * unit**4, 0.01, corrected)
            for regime, unit in ((base, 1.0), (scaled, factor))
        ]
        points.append(equal({"c": factor}, abs(values[1] / values[0] - 1), 1e-9))
    return points


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
                        regime = Regime(d, 2, horizon, sigma, a, a * a / (d + 2), low, low, 1.0)
                        cs, ratio = c.c_s(regime), (8 * a * a / regime.action_min) ** 2
                        inner = 180 * sigma**2 * cs * (d**2 + 4 * d / low + 5 * sigma**2 * cs / 36)
                        a_m = max(2 * cs**2 * ratio, inner)
                        b_m = max(
                            3 + cs**2 * d**2 + 2 * cs**2 * ratio * math.log(d**2 * horizon) ** 2,
                            3 + inner * math.log(d * horizon) ** 2,
                        )
                        root = math.sqrt(a_m)
                        delta = (eight * root * math.log(4 * root) + 2 * math.sqrt(b_m)) ** -power
                        tau = c.gram_steps(regime, delta)
                        where = {"d": d, "sigma": sigma, "lambda_min": low, "a": a, "T": horizon,
                                 "delta": delta}  # fmt: skip
                        m = c.largest_m(regime, tau, d**2, 1.0, delta)
                        points.append(at_most(where, delta * m, 1.0))
                        k = c.k_1(regime, tau, d**2, 1.0, delta)
                        points.append(at_most({**where, "of": "k_1"}, k, 1 + math.sqrt(24)))
    return points


def n0_burn_in(
    level: Level, corrected: bool = False, share: float = 1.0, sigmas: tuple[float, ...] = ()
) -> list[Point]:
    """N_0 as printed is at least 10d + 4 ln(16dT), so that Lemma M-QB speaks of every n > N_0."""
    points = []
    for d in (1, 2, 5, 10):
        for sigma in sigmas or level.pick((1.0, 1e-4), (3.0, 1.0, 1e-2, 1e-3, 1e-4)):
            regime = Regime(d, 10_000, 2, sigma, 1.0, 1 / (d + 2), 1.0, 1.0, 1.0)
            regime = replace(regime, horizon=bounds.smallest_horizon(regime))
            needed = 10 * d + 4 * math.log(16 * d * regime.horizon)
            first = share * c.n_0(regime)
            if corrected:
                first = max(first, math.ceil(needed))
            where = {"d": d, "sigma": sigma, "a": 1.0, "T": regime.horizon, "N": 10_000}
            points.append(at_most(where, needed, first))
    return points


def theorem_2_step(
    level: Level, corrected: bool = False, both: bool = True, share: float = 1.0
) -> list[Point]:
    """sum over n of k_2(n) R / (2 sqrt(n-1)) + c_bad / (sqrt(d)(n-1)) <= k_2 sqrt(N) R, with R no
    larger than 2a(T - tau) sqrt(2 tr E[Sigma_{tau+1}])."""
    points = []
    for d, horizon in ((1, 1000), (2, 2000), (5, 5000)):
        for sigma in level.pick((1.0, 1e-4), (3.0, 1.0, 1e-2, 1e-4)):
            tasks = 10_000
            regime = Regime(d, tasks, horizon, sigma, 1.0, 1 / (d + 2), 1.0, 1.0, 2 * math.sqrt(d))
            tau = c.tau_of(regime)
            first = max(math.ceil(c.n_0(regime)), 3)
            if first >= tasks or tau >= horizon:
                continue
            trace = 2 * d * sigma**2 / (regime.action_min * tau) + 1 / (tasks**2 * horizon)
            known = 2 * (horizon - tau) * math.sqrt(2 * trace)
            ns = np.arange(first + 1, tasks + 1)
            bad = c.c_bad(regime, 1 / tasks) / math.sqrt(d) * float(np.sum(1 / (ns - 1)))
            main = c.k_2(regime) * known * float(np.sum(1 / (2 * np.sqrt(ns - 1))))
            right = share * c.k_2(regime) * math.sqrt(tasks) * known
            if corrected:
                right += c.c_bad(regime, 1 / tasks) * (1 + math.log(tasks)) / math.sqrt(d)
            where = {"d": d, "sigma": sigma, "T": horizon, "N": tasks, "regret R at most": known}
            points.append(at_most(where, main + (bad if both else 0.0), right))
    return points


def _slope(value: str, growing: bool) -> float:
    """Exponent in d of k_2 or N_0, logarithms taken off, from d = 10^5 to 10^6."""
    found = []
    dims = (10**5, 10**6)
    for d in dims:
        a = math.sqrt(d) if growing else 1.0
        regime = Regime(d, 10_000, 10**6, 1.0, a, a * a / (d + 2), 1.0, 1.0, 1.0)
        log = math.log(d**2 * 1e8 * 1e6)
        raw = c.k_2(regime) / log if value == "k_2" else c.n_0(regime) / log**2
        found.append(math.log(raw))
    return (found[1] - found[0]) / math.log(10)


def growth(level: Level, value: str, rate: float, growing: bool) -> list[Point]:
    """The exponent is the printed one, within 0.05."""
    slope = _slope(value, growing)
    where = {"what": value, "a": "sqrt(d)" if growing else "fixed", "exponent": slope}
    return [at_most(where, slope, rate + 0.05)]


CLAIMS = (
    Claim("bad-event-moment", SECTION, "2500-2585", "E",
          "E[Z_i^2 | E_theta fails] <= 4 sqrt(2 ln(d^2 T/delta))", bad_event_moment,
          {"2 for 4, where 4 does": partial(bad_event_moment, four=2.0, ells=(2.0,))},
          "E_theta says Z_i^2 <= z^2 with z = sqrt(2 ln(d^2 T/delta)); the proof (line 2527) takes "
          "the threshold z for it.",
          partial(bad_event_moment, ells=(2.0,)),
          survives="The lemma on the bad event survives with its constants, and so does Theorem "
          "1's c_bad.",
          sides="the conditional moment; its bound"),
    Claim("bad-event-moment-corrected", SECTION, "2500-2585", "E",
          "E[Z_i^2 | E_theta fails] <= 1 + (2 ln(d^2 T/delta) + 1)/d", bad_event_moment_corrected,
          {"1 dropped": partial(bad_event_moment_corrected, one=0.0)}),
    Claim("bad-event", SECTION, "2451-2610", "E",
          "E[max R | E_theta fails] <= c_bad sqrt(d) T / 11", bad_event,
          {"2 for 4": partial(bad_event, four=2.0)},
          "True by the corrected moment: 2 ell + d + 1 <= 4 d ell."),
    Claim("theorem-1", SECTION, "226, 787-800", "E",
          "relative regret <= k_1 E[R] + c_bad delta / sqrt(d)",
          lambda level: [*theorem_1(level), *theorem_1_shell(level)],
          {"1e-9 of it, where sigma >= 1": partial(theorem_1, sigmas=(1.0, 3.0), share=1e-9)},
          "False for small sigma: M and k_1 contain c_xi^2 = 5 sigma^2 ln(dT/delta), where the "
          "density of the noise (line 1494) calls for 5 ln(dT/delta), and so change with the units "
          "of rewards; for sigma >= 1 the corrected constants are smaller. And false, for a "
          "contrived policy, where actions come from a thin shell (alignment-support).",
          partial(theorem_1, sigmas=(1.0, 3.0)),
          survives="Theorem 1 with 5 ln(dT/delta) for c_xi^2 in M and k_1, for laws of "
          "alignment-support-corrected.",
          sides="relative regret; the bound"),
    Claim("theorem-1-corrected", SECTION, "226, 787-800", "E",
          "the same with 5 ln(dT/delta) for c_xi^2 in M and k_1, f_A as in "
          "alignment-support-corrected",
          lambda level: [*theorem_1(level, corrected=True), *units(level)],
          {"c_xi as printed": theorem_1, "on a shell": theorem_1_shell},
          "The paper's proof with E_v kept until the ratio of densities is bounded, and "
          "density-ratio-corrected, good-event-product, jacobian-bound and bad-event. Its slack is "
          "enormous; it is the units that could have failed."),
    Claim("demonstration", SECTION, "2614-2680", "D",
          "the delta of the example satisfies delta <= 1/M, and k_1 stays bounded", demonstration,
          {"power 1 for 2": partial(demonstration, power=1),
           "1 for 8": partial(demonstration, eight=1.0)},
          "k_1 <= 1 + sqrt(24), not only up to logarithms. What is said on the way, a_M and b_M of "
          "order d^2, holds where a grows like sqrt(d); with a fixed they grow like d^4. The "
          "example does not see to tau < T."),
    Claim("prior-dependent-bound", SECTION, "276, 491", "E",
          "the bracket bounds the regret of Thompson Sampling with the true prior", prior_dependent,
          {"0.05 of it, where a <= 1": partial(prior_dependent, share=0.05, radii=(0.01, 1.0))},
          "The second logarithm lacks a^2: ln(1 + lambda_max T / sigma^2) for ln(1 + lambda_max "
          "a^2 T / (d sigma^2)), so the bound changes with units of actions and fails for radii "
          "above about 11. It holds for a <= 2 sqrt(d).",
          partial(prior_dependent, radii=(0.01, 1.0)),
          survives="The corrected bracket has the same order in d and T; the bounds on Bayesian "
          "regret that are made of it survive with it.",
          sides="regret; the bracket"),
    Claim("prior-dependent-bound-corrected", SECTION, "276, 491", "E",
          "sqrt(2) sqrt(lambda_max a^2 ln(4|A|T^2) / ln(1 + lambda_max a^2/sigma^2)) "
          "sqrt(dT ln(1 + lambda_max a^2 T/(d sigma^2))) + a sqrt(lambda_max)/(4 sqrt(2 pi) T)",
          partial(prior_dependent, corrected=True),
          {"0.3 of it": partial(prior_dependent, corrected=True, share=0.3)},
          "E[regret_t] <= beta E|A_t|_{Sigma_t} + |A| a sqrt(lambda_max) phi(beta) with beta^2 = "
          "2 ln(4|A|T^2); Cauchy-Schwarz; y <= X/ln(1+X) ln(1+y) for y <= X; the determinant."),
    Claim("n0-burn-in", SECTION, "437, 3276-3290", "D",
          "N_0 as printed covers n > 10d + 4 ln(16dT)", n0_burn_in,
          {"1e-30 of it, where it does": partial(n0_burn_in, share=1e-30, sigmas=(1.0,))},
          "N_0 goes to 3 as sigma goes to 0, the condition of Lemma M-QB does not.",
          partial(n0_burn_in, sigmas=(1.0,)),
          survives="Theorem 2 survives with the larger of the two for N_0, which has the same "
          "order.",
          sides="10d + 4 ln(16dT); N_0"),
    Claim("n0-burn-in-corrected", SECTION, "437, 3276-3290", "D",
          "max{N_0, ceil(10d + 4 ln(16dT))} does", partial(n0_burn_in, corrected=True),
          {"N_0 alone": n0_burn_in}),
    Claim("theorem-2-step", SECTION, "3299-3330", "D",
          "the sum of both parts over n is at most k_2 sqrt(N) R", theorem_2_step,
          {"half of k_2, without c_bad": partial(theorem_2_step, both=False, share=0.5)},
          "The sum of c_bad / (sqrt(d)(n-1)) is dropped in the last line (3313-3334).",
          partial(theorem_2_step, both=False),
          survives="Theorem 2 survives with another c_bad (1 + ln N) / sqrt(d), of lower order.",
          sides="the sum; k_2 sqrt(N) R, R at its largest"),
    Claim("theorem-2-step-corrected", SECTION, "3299-3330", "D",
          "the same with c_bad (1 + ln N) / sqrt(d) on the right",
          partial(theorem_2_step, corrected=True), {"without it": theorem_2_step}),
    Claim("k2-growth", SECTION, "460", "S", "k_2 grows like d^(3/2), a fixed",
          partial(growth, value="k_2", rate=1.5, growing=False),
          {"rate 1, a growing": partial(growth, value="k_2", rate=1.0, growing=True)},
          "With a fixed, lambda_A <= a^2/d makes c_s and tau grow with d: d^(5/2).",
          partial(growth, value="k_2", rate=1.5, growing=True),
          survives="The rate d^(5/2) sqrt(NT) of Theorem 2 survives where a grows like sqrt(d); "
          "with a fixed k_2 is larger by a factor d.",
          sides="the exponent of d; 3/2 and 0.05 for lower orders"),
    Claim("k2-growth-corrected", SECTION, "460", "S", "k_2 grows like d^(3/2) where a grows like "
          "sqrt(d)", partial(growth, value="k_2", rate=1.5, growing=True),
          {"rate 1": partial(growth, value="k_2", rate=1.0, growing=True)}),
    Claim("n0-growth", SECTION, "460", "S", "N_0 grows like d^3, a fixed",
          partial(growth, value="N_0", rate=3.0, growing=False),
          {"rate 2, a growing": partial(growth, value="N_0", rate=2.0, growing=True)},
          "With a fixed: d^5.", partial(growth, value="N_0", rate=3.0, growing=True),
          survives="N_0 of order d^3 survives where a grows like sqrt(d); with a fixed it is "
          "larger by d^2.",
          sides="the exponent of d; 3 and 0.05 for lower orders"),
    Claim("n0-growth-corrected", SECTION, "460", "S",
          "N_0 grows like d^3 where a grows like sqrt(d)",
          partial(growth, value="N_0", rate=3.0, growing=True),
          {"rate 2": partial(growth, value="N_0", rate=2.0, growing=True)}),
)  # fmt: skip
"""Checks of this section."""
