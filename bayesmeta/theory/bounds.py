"""What the theorems promise in a regime, and from where on they promise anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import NamedTuple

from bayesmeta.checks import InputError, real, whole
from bayesmeta.environment import TaskFamily
from bayesmeta.theory import constants as c
from bayesmeta.theory.constants import Regime

LARGEST = 10**60
"""No horizon or number of tasks beyond this is looked for."""


def check_regime(regime: Regime) -> Regime:
    """Refuse numbers that the assumptions exclude."""
    for name, least in (("dim", 1), ("tasks", 2), ("horizon", 1)):
        whole(name, getattr(regime, name), least=least)
    for name in ("noise_sd", "radius", "action_min", "prior_min", "prior_max"):
        real(name, getattr(regime, name), above=0.0)
    real("mean_norm", regime.mean_norm, least=0.0)
    if regime.prior_min > regime.prior_max:
        raise InputError(
            f"prior_min ({regime.prior_min:g}) must not exceed prior_max ({regime.prior_max:g})"
        )
    most = regime.radius**2 / regime.dim
    if regime.action_min > most * (1 + 1e-9):
        raise InputError(
            f"action_min ({regime.action_min:g}) is impossible: actions of norm at most "
            f"{regime.radius:g} in {regime.dim} dimensions have lambda_min(Sigma_A) <= "
            f"radius^2 / dim = {most:g}"
        )
    return regime


def regime_of(family: TaskFamily, tasks: int) -> Regime:
    """The regime of a family that is met ``tasks`` times."""
    told = family.told()
    return check_regime(
        Regime(family.dim, tasks, family.horizon, family.noise_sd, told.radius, told.action_min,
               told.prior_min, told.prior_max, told.mean_norm)
    )  # fmt: skip


def theorem_1(
    regime: Regime, tau: float, fm: float, fs: float, delta: float, known: float
) -> float:
    """The bound of Theorem 1 on relative regret, k_1 E[R] + c_bad delta / sqrt(d), where
    ``known`` is the regret of the agent that knows the prior after its exploration."""
    first = c.k_1(regime, tau, fm, fs, delta) * known
    return first + c.c_bad(regime, delta) * delta / math.sqrt(regime.dim)


def theorem_2(regime: Regime, known: float, single: float) -> float:
    """The bound of Theorem 2 on the relative regret of N tasks, k_2 sqrt(N) E[R] + N_0 R_sing."""
    return c.k_2(regime) * math.sqrt(regime.tasks) * known + math.ceil(c.n_0(regime)) * single


def prior_dependent_task(regime: Regime, actions: int) -> float:
    """The bracket of the prior-dependent bound below Theorem 1: the regret of Thompson Sampling
    with the true prior and ``actions`` actions."""
    width = regime.prior_max * regime.radius**2
    first = 4 * math.sqrt(
        width / math.log1p(width / regime.noise_sd**2) * math.log(4 * actions * regime.horizon**2)
    )
    second = math.sqrt(
        0.5 * regime.dim * regime.horizon
        * math.log1p(regime.prior_max * regime.horizon / regime.noise_sd**2)
    )  # fmt: skip
    return first * second + math.sqrt(2 * width)


def prior_dependent_corrected(regime: Regime, actions: int) -> float:
    """The bracket with a^2 where the printed one lacks it, and with a smaller constant: see the
    claim prior-dependent-bound-corrected, which has the proof."""
    width = regime.prior_max * regime.radius**2
    x = width / regime.noise_sd**2
    first = math.sqrt(2 * width * math.log(4 * actions * regime.horizon**2) / math.log1p(x))
    second = math.sqrt(regime.dim * regime.horizon * math.log1p(x * regime.horizon / regime.dim))
    return first * second + math.sqrt(width) / (4 * math.sqrt(2 * math.pi) * regime.horizon)


def prior_dependent_meta(regime: Regime, actions: int) -> float:
    """The bracket of the prior-dependent bound below Theorem 2."""
    width, steps = regime.prior_max * regime.radius**2, regime.tasks * regime.horizon
    first = math.sqrt(
        8 * width * math.log(4 * actions * steps**2) / math.log1p(width / regime.noise_sd**2)
    )
    spread = math.log1p(regime.prior_max * regime.horizon / regime.noise_sd**2)
    return first * math.sqrt(spread * regime.dim * regime.horizon)


def smallest_horizon(regime: Regime) -> int:
    """The smallest T with tau < T, the other numbers as they are: there T - tau only grows."""
    return _first(lambda t: c.tau_of(replace(regime, horizon=t)) < t, "horizon")


def smallest_tasks(regime: Regime) -> int:
    """The smallest N with N >= N_0, the other numbers as they are."""
    return _first(lambda n: n >= math.ceil(c.n_0(replace(regime, tasks=n))), "tasks", least=2)


def smallest_both(regime: Regime) -> tuple[int, int]:
    """The smallest T and N with tau < T and N >= N_0 at once: each raises the other, so they are
    raised in turn until both hold."""
    found = regime
    while True:
        longer = replace(found, horizon=max(found.horizon, smallest_horizon(found)))
        more = replace(longer, tasks=max(longer.tasks, smallest_tasks(longer)))
        if more == found:
            return more.horizon, more.tasks
        found = more


def _first(holds: Callable[[int], bool], name: str, least: int = 1) -> int:
    """The first whole number from which on ``holds``: doubling, then bisection."""
    high = least
    while not holds(high):
        high *= 2
        if high > LARGEST:
            raise InputError(f"no {name} up to {LARGEST:.0e} will do; relax a constant")
    low = max(high // 2, least - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


class Line(NamedTuple):
    """A constant with what it is; corrected where the printed one does not do what it is for."""

    name: str
    value: float
    what: str
    corrected: float | None = None


def describe_theory(regime: Regime, actions: int) -> list[Line]:
    """Every constant in a regime, at delta = 1/N and n = N, as Theorem 2 uses them."""
    delta, n = 1 / regime.tasks, regime.tasks
    tau = c.tau_of(regime)
    fm, fs = c.f_m(regime, n), c.f_s(regime, n)
    variance = regime.estimate_variance
    radius = 50 * variance * math.sqrt(
        (5 * regime.dim + 2 * math.log(regime.dim * n * regime.horizon)) / (n - 1)
    )  # fmt: skip
    m = c.largest_m(regime, tau, fm, fs, delta)
    return [
        Line("tau", tau, "steps of exploration in a task, eq. (8)"),
        Line("c_w", 50 * variance, "widening constant, below eq. (12)"),
        Line("widening", radius, "what eq. (12) adds to every eigenvalue before task N"),
        Line("c_s", c.c_s(regime), "2 sigma^2 / (lambda_min^2 lambda_A)"),
        Line("c_xi", c.c_xi(regime, delta), "sigma sqrt(5 ln(dT/delta))"),
        Line("c_1", c.c_1(regime, delta), "2 / lambda_min ln(d^2 T/delta)"),
        Line("c_bad", c.c_bad(regime, delta), "22 a (m + sqrt(4 lambda_max ln(d^2 T/delta)))"),
        Line("f_m", fm, "E_m: |mean error| <= sqrt(f_m delta)"),
        Line("f_s", fs, "E_s: |covariance error| <= sqrt(f_s delta)"),
        Line("M", m, "Theorem 1 asks for delta <= 1/M",
             c.largest_m(regime, tau, fm, fs, delta, corrected=True)),
        Line("k_1", c.k_1(regime, tau, fm, fs, delta), "Theorem 1: relative regret <= k_1 R + …",
             c.k_1(regime, tau, fm, fs, delta, corrected=True)),
        Line("k_2", c.k_2(regime), "Theorem 2: relative regret <= k_2 sqrt(N) R + N_0 R_sing",
             c.k_2(regime, corrected=True)),
        Line("N_0", math.ceil(c.n_0(regime)), "tasks of exploration, Theorem 2",
             math.ceil(c.n_0(regime, corrected=True))),
        Line("task bound", prior_dependent_task(regime, actions),
             "regret of Thompson Sampling with the true prior, one task (below Theorem 1)",
             prior_dependent_corrected(regime, actions)),
        Line("meta bound", prior_dependent_meta(regime, actions),
             "what stands in its place below Theorem 2, with N tasks in the logarithm"),
    ]  # fmt: skip


def doubtful(regime: Regime, actions: int) -> list[str]:
    """Which printed constants are too small here for what is claimed with them, after
    ``bayesmeta check``; empty where none is known to be."""
    found = []
    if regime.noise_sd < 1:
        found.append("sigma < 1: M, k_1, k_2 and N_0 as printed are too small (claim theorem-1)")
    if c.n_0(regime) < c.burn_in(regime.dim, regime.horizon):
        least = math.ceil(c.burn_in(regime.dim, regime.horizon))
        found.append(f"N_0 < {least}, from where Lemma M-QB speaks (claim n0-burn-in)")
    if prior_dependent_task(regime, actions) < prior_dependent_corrected(regime, actions):
        found.append("the task bound lacks a^2 and is too small for this radius (claim "
                     "prior-dependent-bound)")  # fmt: skip
    return found


def vacuous(regime: Regime) -> list[str]:
    """Why the theorems say nothing here; empty where they do."""
    delta, n = 1 / regime.tasks, regime.tasks
    tau = c.tau_of(regime)
    found = []
    if tau >= regime.horizon:
        found.append(f"tau > T: {tau:,} steps of exploration in tasks of {regime.horizon:,}")
    m = c.largest_m(regime, tau, c.f_m(regime, n), c.f_s(regime, n), delta)
    if delta > 1 / m:
        found.append(f"delta = 1/N > 1/M: Theorem 1 asks for N >= {m:.3g}")
    first = c.n_0(regime)
    if first > regime.tasks:
        found.append(f"N_0 > N: {first:.3g} tasks of exploration of {regime.tasks:,}")
    return found


def as_numbers(regime: Regime) -> dict[str, float]:
    """Plain data."""
    return {field.name: getattr(regime, field.name) for field in fields(regime)}
