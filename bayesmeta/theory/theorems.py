"""The bounds of Theorems 1 and 2, and the bounds on regret that the paper puts into them."""

from __future__ import annotations

import math

from bayesmeta.checks import InputError, real
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import Regime


def check_delta(delta: float, name: str = "delta") -> float:
    """Refuse what is no probability between 0 and 1."""
    number = real(name, delta, above=0.0)
    if number >= 1:
        raise InputError(f"{name} must be less than 1, got {delta!r}")
    return number


def theorem_1(
    regime: Regime,
    tau: float,
    fm: float,
    fs: float,
    delta: float,
    known: float,
    corrected: bool = False,
) -> float:
    """The bound of Theorem 1 on relative regret, k_1 E[R] + c_bad delta / sqrt(d), where
    ``known`` is the regret of the agent that knows the prior after its exploration."""
    check_delta(delta)
    first = c.k_1(regime, tau, fm, fs, delta, corrected) * known
    return first + c.c_bad(regime, delta) * delta / math.sqrt(regime.dim)


def theorem_2(regime: Regime, known: float, single: float, corrected: bool = False) -> float:
    """The bound of Theorem 2 on the relative regret of N tasks, k_2 sqrt(N) E[R] + N_0 R_sing,
    where two or more actions are on offer (else add ``constants.bad_tasks``, see the claims
    theorem-2-corrected and theorem-2-step-sharp)."""
    regular = c.k_2(regime, corrected) * math.sqrt(regime.tasks) * known
    exploring = math.ceil(c.n_0(regime, corrected)) * single
    return regular + exploring


def prior_dependent_task(regime: Regime, actions: int) -> float:
    """The bracket of eq. (7), below Theorem 1: the regret of Thompson Sampling with the true
    prior and ``actions`` actions."""
    width = regime.bounds.prior_max * regime.bounds.radius**2
    first = 4 * math.sqrt(
        width / math.log1p(width / regime.noise_sd**2) * math.log(4 * actions * regime.horizon**2)
    )
    second = math.sqrt(
        0.5
        * regime.dim
        * regime.horizon
        * math.log1p(regime.bounds.prior_max * regime.horizon / regime.noise_sd**2)
    )
    return first * second + math.sqrt(2 * width)


def prior_dependent_corrected(regime: Regime, actions: int) -> float:
    """The bracket of eq. (7) with the a^2 that the printed one lacks, and with a smaller constant;
    proved in the claim prior-dependent-bound-corrected."""
    width = regime.bounds.prior_max * regime.bounds.radius**2
    x = width / regime.noise_sd**2
    first = math.sqrt(2 * width * math.log(4 * actions * regime.horizon**2) / math.log1p(x))
    second = math.sqrt(regime.dim * regime.horizon * math.log1p(x * regime.horizon / regime.dim))
    return first * second + math.sqrt(width) / (4 * math.sqrt(2 * math.pi) * regime.horizon)


def prior_dependent_meta(regime: Regime, actions: int) -> float:
    """The bracket of eq. (14), below Theorem 2."""
    width, steps = regime.bounds.prior_max * regime.bounds.radius**2, regime.tasks * regime.horizon
    first = math.sqrt(
        8 * width * math.log(4 * actions * steps**2) / math.log1p(width / regime.noise_sd**2)
    )
    spread = math.log1p(regime.bounds.prior_max * regime.horizon / regime.noise_sd**2)
    return first * math.sqrt(spread * regime.dim * regime.horizon)
