"""Theorem 1 without its rounding up: the smallest constants that we can prove.

Three changes to the corrected proof (analyses/claims/proofs.md, theorem-1-sharp). The event E_v is
lambda_min(V) >= lambda_A tau / 2, which has the probability that the paper proves for
lambda_A d / 2, by the same line. The mean and the covariance are estimated within smaller radii.
And the two costs of alignment are multiplied as they are, where the paper bounds each by a line; so
no condition delta <= 1/M is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from bayesmeta.checks import InputError
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import LARGEST, Regime


class Cost(NamedTuple):
    """Relative regret is at most (``jacobian`` * ``ratio`` - 1) R + c_bad delta / sqrt(d), where
    ``jacobian``, of aligning the covariances, is at most 2."""

    jacobian: float
    ratio: float

    @property
    def factor(self) -> float:
        """What stands for k_1."""
        return self.jacobian * self.ratio - 1


def alignment_cost(regime: Regime, tau: int, mean: float, cov: float, delta: float) -> Cost:
    """The two factors for a prior whose mean and covariance are off by ``mean`` and ``cov``, the
    covariance being the wider; infinite where V - B need not be positive definite."""
    d, low = regime.dim, regime.bounds.prior_min
    least = regime.bounds.action_min * tau / 2  # lambda_min(V), at least
    share = regime.noise_sd**2 * cov / (low**2 * least)  # |V^-1/2 B V^-1/2|, at most
    if share >= 1:
        return Cost(math.inf, math.inf)
    more = 1 / (1 - share)
    log = math.log(d * regime.horizon / delta)
    corner = math.sqrt(2 * d * (log + math.log(d)) / low)  # |Sigma_*^-1/2 Z|, at most
    shift = regime.noise_sd / low * math.sqrt(more / least) * (mean + cov * corner)
    square = d + 2 * math.sqrt(d * log) + 2 * log  # of the noise under E_xi
    jacobian = -d * max(tau - d - 1, 0) / 2 * math.log1p(-share)
    ratio = shift**2 / 2 + shift * math.sqrt(more * square) + (more - 1) * square / 2
    return Cost(_exp(jacobian), _exp(ratio))


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def estimation_radii(regime: Regime, tau: int, n: int) -> tuple[float, float]:
    """Errors of eq. (10) and of eq. (11) before task n that are exceeded with probability 3/(dnT)
    at most, given E_v in all tasks: of the mean, and of the covariance before it is widened."""
    d, seen = regime.dim, n - 1
    log = math.log(d * n * regime.horizon)
    noise = 2 * regime.noise_sd**2 / (regime.bounds.action_min * tau)
    each = noise + regime.bounds.prior_max
    square = (d + 2 * math.sqrt(d * log) + 2 * log) / seen
    net = (d * math.log(9) + log) / seen
    cov = seen / (seen - 1) * each * (4 * math.sqrt(net) + 4 * net + square)
    return math.sqrt(each * square), cov


def cost_before(regime: Regime, n: int) -> Cost:
    """The cost of the prior of MQB before task n, widened by its radius, N = n and delta =
    1/(n - 1), tau of eq. (8)."""
    here = replace(regime, tasks=n)
    tau = c.tau_of(here)
    mean, cov = estimation_radii(here, tau, n)
    return alignment_cost(here, tau, mean, 2 * cov, 1 / (n - 1))


def needed_sharp(regime: Regime) -> int:
    """The smallest number of tasks (to a per cent) after which the prior costs a task no more than
    the regret of one who knows it."""

    def enough(n: int) -> bool:
        cost = cost_before(regime, n)
        return _explores(regime, n) and cost.jacobian <= 2 and cost.factor <= 1

    return _first(enough)


def needed(
    regime: Regime, corrected: bool = False, explored: bool = False, radii: bool = False
) -> int:
    """The same for Theorem 1 as printed or ``corrected``: tau < T, delta = 1/(n - 1) <= 1/M and
    k_1 <= 1, with f_m and f_s of Lemma M-QB (corrected: and its condition on n).

    With ``explored`` E_v is lambda_min(V) >= lambda_A tau / 2: the proof uses lambda_A only
    through E_v, so that is lambda_A tau / d in its place. With ``radii`` those of
    ``estimation_radii`` stand for f_m and f_s.
    """

    def enough(n: int) -> bool:
        here, delta = replace(regime, tasks=n), 1 / (n - 1)
        tau, first = c.tau_of(here), c.burn_in(regime.dim, regime.horizon) if corrected else 3
        mean, cov = estimation_radii(here, tau, n)
        if explored:
            here = here.changed(action_min=here.bounds.action_min * tau / here.dim)
        fm, fs = c.f_m(here, n), c.f_s(here, n)
        told = (tau, *((mean**2 / delta, 4 * cov**2 / delta) if radii else (fm, fs)), delta)
        small = c.largest_m(here, *told, corrected) * delta <= 1
        possible = n > first and _explores(regime, n)
        return possible and small and c.k_1(here, *told, corrected) <= 1

    return _first(enough)


def steps_to_sharp(regime: Regime) -> dict[str, int]:
    """Tasks that are needed after each of the three changes, from the corrected theorem on."""
    return {
        "repaired": needed(regime, corrected=True),
        "λ_A τ/2 for λ_A d/2 in E_v": needed(regime, corrected=True, explored=True),
        "and smaller radii": needed(regime, corrected=True, explored=True, radii=True),
        "and the costs multiplied as they are": needed_sharp(regime),
    }


def _explores(regime: Regime, n: int) -> bool:
    """Whether the steps of exploration that eq. (8) asks for with N = n fit into a task."""
    return c.tau_of(replace(regime, tasks=n)) < regime.horizon


def _first(enough: Callable[[int], bool]) -> int:
    """The smallest n, on a grid of one per cent, with ``enough``, which holds from there on, until
    exploration no longer fits into a task."""
    high = 4
    while not enough(high):
        high *= 4
        if high > LARGEST:
            raise InputError("no number of tasks is enough while tau < T; raise horizon")
    low = max(high // 4, 3)
    while high - low > max(1, low // 100):
        middle = math.isqrt(low * high)
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
