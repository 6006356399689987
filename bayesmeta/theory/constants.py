"""The constants of the paper, each a function of plain numbers or of a ``Regime``.

As printed, with their equation; with ``corrected`` what is proved in its place (analyses/claims).
"""

from __future__ import annotations

import math

from numpy.polynomial import Polynomial

from bayesmeta.theory.regime import Regime

type Linear = tuple[float, float]
"""x + y ln(1/delta), as (x, y)."""


def exploration_length(dim: int, tasks: int, horizon: int, radius: float, action_min: float) -> int:
    """tau of eq. (8), max{d, 8 a^2 / lambda_A ln(d^2 N^2 T)}, rounded up to whole steps."""
    bound = 8 * radius**2 / action_min * math.log(dim**2 * tasks**2 * horizon)
    return math.ceil(max(dim, bound))


def gram_steps(regime: Regime, delta: float) -> float:
    """tau of the lemma on the gram, max{d, 8 a^2 / lambda_A ln(d^2 T / delta)}, not rounded."""
    log = math.log(regime.dim**2 * regime.horizon / delta)
    return max(regime.dim, 8 * regime.bounds.radius**2 / regime.bounds.action_min * log)


def estimate_variance(dim: int, noise_sd: float, action_min: float, prior_max: float) -> float:
    """2 sigma^2 / (lambda_A d) + lambda_max: under E_v a task's least squares estimate has no more
    variance than this in any direction (noise and prior pooled)."""
    return 2 * noise_sd**2 / (action_min * dim) + prior_max


def widening_constant(dim: int, noise_sd: float, action_min: float, prior_max: float) -> float:
    """c_w below eq. (12): 50 times the pooled variance."""
    return 50 * estimate_variance(dim, noise_sd, action_min, prior_max)


def estimate_variance_of(regime: Regime) -> float:
    """The pooled variance of a regime."""
    bounds = regime.bounds
    return estimate_variance(regime.dim, regime.noise_sd, bounds.action_min, bounds.prior_max)


def widening_constant_of(regime: Regime) -> float:
    """c_w of a regime."""
    bounds = regime.bounds
    return widening_constant(regime.dim, regime.noise_sd, bounds.action_min, bounds.prior_max)


def mean_radius(
    dim: int, noise_sd: float, action_min: float, prior_max: float, n: int, eta: float
) -> float:
    """sqrt(f_m delta) of the event E_m before the n-th task: the error of the mean is at most this
    with probability 1 - eta (lemma "Mean estimation error"); E_m has eta = 1 / (d n T)."""
    each = estimate_variance(dim, noise_sd, action_min, prior_max)
    return math.sqrt(3 * each * (dim - math.log(eta)) / (n - 1))


def covariance_radius(
    dim: int, noise_sd: float, action_min: float, prior_max: float, n: int, eta: float
) -> float:
    """Half of sqrt(f_s delta) of the event E_s: the error of eq. (11), not yet widened, is at most
    this with probability 1 - 6 eta (lemma "Covariance estimation error"); E_s has
    eta = 1 / (d n T)."""
    each = widening_constant(dim, noise_sd, action_min, prior_max)
    return each * math.sqrt((5 * dim - 2 * math.log(eta)) / (n - 1))


def f_m(regime: Regime, n: int) -> float:
    """f_{m,n} of E_m before the n-th task, eq. (77): 3 (pooled variance) (d + ln(dnT))."""
    log = math.log(regime.dim * n * regime.horizon)
    return 3 * estimate_variance_of(regime) * (regime.dim + log)


def f_s(regime: Regime, n: int) -> float:
    """f_{s,n} of E_s before the n-th task, eq. (77): (2 c_w)^2 (5d + 2 ln(dnT))."""
    log = math.log(regime.dim * n * regime.horizon)
    return (2 * widening_constant_of(regime)) ** 2 * (5 * regime.dim + 2 * log)


def c_s(regime: Regime) -> float:
    """c_s = 2 sigma^2 / (lambda_min^2 lambda_A), eq. (21)."""
    return 2 * regime.noise_sd**2 / (regime.bounds.prior_min**2 * regime.bounds.action_min)


def c_xi(regime: Regime, delta: float, corrected: bool = False) -> float:
    """c_xi = sigma sqrt(5 ln(dT / delta)), eq. (21). Corrected, for M, k_1, k_2 and N_0: without
    sigma, because eq. (43) leaves sigma out of the density (see the claim noise-density)."""
    log = math.log(regime.dim * regime.horizon / delta)
    return (1.0 if corrected else regime.noise_sd) * math.sqrt(5 * log)


def c_1(regime: Regime, delta: float) -> float:
    """c_1 = 2 / lambda_min ln(d^2 T / delta), eq. (21)."""
    return 2 / regime.bounds.prior_min * math.log(regime.dim**2 * regime.horizon / delta)


def c_bad(regime: Regime, delta: float) -> float:
    """c_bad = 22 a (m + sqrt(4 lambda_max ln(d^2 T / delta))), eq. (21)."""
    log = math.log(regime.dim**2 * regime.horizon / delta)
    return (
        22
        * regime.bounds.radius
        * (regime.bounds.mean_norm + math.sqrt(4 * regime.bounds.prior_max * log))
    )


def largest_m(
    regime: Regime, tau: float, fm: float, fs: float, delta: float, corrected: bool = False
) -> float:
    """M of Theorem 1, eq. (21): max{3, c_s^2 tau^2 f_s,
    18 c_xi^2 c_s (f_m + (c_1 d + c_xi^2 c_s/36) f_s)}."""
    cs, cx = c_s(regime), c_xi(regime, delta, corrected) ** 2
    return max(
        3.0,
        cs**2 * tau**2 * fs,
        18 * cx * cs * (fm + (c_1(regime, delta) * regime.dim + cx * cs / 36) * fs),
    )


def k_1(
    regime: Regime, tau: float, fm: float, fs: float, delta: float, corrected: bool = False
) -> float:
    """k_1 of Theorem 1, eq. (21): 12 sqrt(c_xi^2 c_s) sqrt(f_m delta)
    + (c_s tau + 12 sqrt(c_xi^2 c_s c_1 d) + 2 c_xi^2 c_s) sqrt(f_s delta)."""
    cs, cx = c_s(regime), c_xi(regime, delta, corrected) ** 2
    covariance = cs * tau + 12 * math.sqrt(cx * cs * c_1(regime, delta) * regime.dim) + 2 * cx * cs
    return 12 * math.sqrt(cx * cs * fm * delta) + covariance * math.sqrt(fs * delta)


def m_tilde(a: float, b: float, p: int) -> float:
    """M-tilde of Appendix C.3, free of delta: (4 p a^(1/p) ln(2 p a^(1/p)) + 2 b^(1/p))^p, where
    M(delta) <= a ln^p(1/delta) + b."""
    root, rest = math.pow(a, 1 / p), math.pow(b, 1 / p)
    return math.pow(4 * p * root * math.log(2 * p * root) + 2 * rest, p)


def m_tilde_of(
    regime: Regime,
    tau: Linear | None = None,
    fm: Linear | None = None,
    fs: Linear | None = None,
    corrected: bool = False,
) -> float:
    """M-tilde of a problem, Appendix C.3: delta <= 1/M-tilde is enough for delta <= 1/M(delta).

    M(delta) is M of Theorem 1 with these ``tau``, ``fm`` and ``fs``; by default those of
    ``linear_in_log``, so that N >= M-tilde is enough for N >= M_{N+1}, the N_0 of Theorem 2.
    """
    return m_tilde(*bounding_polynomial(regime, tau, fm, fs, corrected), 3)


def bounding_polynomial(
    regime: Regime,
    tau: Linear | None = None,
    fm: Linear | None = None,
    fs: Linear | None = None,
    corrected: bool = False,
) -> tuple[float, float]:
    """a >= 1/27 and b >= 3 with M(delta) <= a ln^3(1/delta) + b for all delta <= 1/3, Appendix C.3.

    M is the largest of 3 and two polynomials in ln(1/delta) > 1, with coefficients of at least 0:
    a is the larger sum of those of ln, ln^2 and ln^3, b the larger constant.
    """
    usual = linear_in_log(regime)
    steps, mean, cov = (
        Polynomial(one if given is None else given)
        for given, one in zip((tau, fm, fs), usual, strict=True)
    )
    d, cs = regime.dim, c_s(regime)
    scale = 5.0 if corrected else 5 * regime.noise_sd**2
    cx = scale * Polynomial((math.log(d * regime.horizon), 1.0))
    c1 = 2 / regime.bounds.prior_min * Polynomial((math.log(d**2 * regime.horizon), 1.0))
    parts = (cs**2 * steps**2 * cov, 18 * cs * cx * (mean + (d * c1 + cs / 36 * cx) * cov))
    return (
        max(1 / 27, *(float(part.coef[1:].sum()) for part in parts)),
        max(3.0, *(float(part.coef[0]) for part in parts)),
    )


def linear_in_log(regime: Regime) -> tuple[Linear, Linear, Linear]:
    """tau of eq. (8), f_m and f_s of Lemma M-QB before task N + 1, or a little more, for every
    N = 1/delta >= 3: ceil(x) <= x + 1 and ln(N + 1) <= ln N + ln(4/3)."""
    d, variance = regime.dim, estimate_variance_of(regime)
    per = 8 * regime.bounds.radius**2 / regime.bounds.action_min
    log = math.log(d * regime.horizon) + math.log(4 / 3)
    wide = (2 * widening_constant_of(regime)) ** 2
    return (
        (1 + max(d, per * math.log(d**2 * regime.horizon)), 2 * per),
        (3 * variance * (d + log), 3 * variance),
        (wide * (5 * d + 2 * log), 2 * wide),
    )


def k_2(regime: Regime, corrected: bool = False) -> float:
    """k_2 of Theorem 2, eq. (82), with delta = 1/N and tau of eq. (8)."""
    d, n = regime.dim, regime.tasks
    delta, log = 1 / n, math.log(d * n * regime.horizon)
    cs, cx = c_s(regime), c_xi(regime, delta, corrected) ** 2
    inner = cs * tau_of(regime) + 12 * math.sqrt(cx * cs * c_1(regime, delta) * d) + 2 * cx * cs
    mean = (
        24 * math.sqrt(cx * cs) * math.sqrt(3 * estimate_variance_of(regime)) * math.sqrt(d + log)
    )
    return mean + 4 * widening_constant_of(regime) * inner * math.sqrt(5 * d + 2 * log)


def burn_in(dim: int, horizon: int) -> float:
    """10d + 4 ln(16dT): Lemma 1 (M-QB) holds for every n greater than this."""
    return 10 * dim + 4 * math.log(16 * dim * horizon)


def bad_tasks(regime: Regime) -> float:
    """c_bad (1 + ln N) / sqrt(d) with delta = 1/N: the sum of c_bad / (sqrt(d) (n - 1)) over tasks,
    which the last step of Theorem 2's proof, eq. (83), drops (see the claim theorem-2-step); it is
    needed only where a single action is on offer while exploring (theorem-2-step-sharp)."""
    n = regime.tasks
    return c_bad(regime, 1 / n) * (1 + math.log(n)) / math.sqrt(regime.dim)


def n_0(regime: Regime, corrected: bool = False) -> float:
    """N_0 of Theorem 2, eq. (82), with delta = 1/N and tau of eq. (8); not rounded up. Corrected:
    at least ``burn_in`` as well (see the claim n0-burn-in)."""
    d, n = regime.dim, regime.tasks
    delta, log = 1 / n, math.log(d * (n + 1) * regime.horizon)
    cs, cx = c_s(regime), c_xi(regime, delta, corrected) ** 2
    mean = 3 * estimate_variance_of(regime) * (d + log)
    wide = 4 * widening_constant_of(regime) ** 2 * (5 * d + 2 * log)
    return max(
        burn_in(d, regime.horizon) if corrected else 3.0,
        wide * cs**2 * tau_of(regime) ** 2,
        18 * cx * cs * (mean + (c_1(regime, delta) * d + cx * cs / 36) * wide),
    )


def tau_of(regime: Regime) -> int:
    """tau of eq. (8) for a regime."""
    bounds = regime.bounds
    return exploration_length(
        regime.dim, regime.tasks, regime.horizon, bounds.radius, bounds.action_min
    )
