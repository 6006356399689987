"""One task in one dimension: regret with a prior that is off as far as delta <= 1/M allows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm

from bayesmeta.checks import Array
from bayesmeta.claims.edges import largest
from bayesmeta.claims.verdict import Level, Point, Where, estimated
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import Regime
from bayesmeta.theory.theorems import theorem_1


class Off(NamedTuple):
    """How far the prior in use is off: |mu-hat - mu_*|, and the multiple of I that Sigma-hat has
    more than Sigma_*."""

    mean: float
    cov: float


def deviations(
    regime: Regime, tau: int, delta: float, corrected: bool
) -> Iterator[tuple[Off, float]]:
    """The mean, the covariance, and both, as far off as delta M <= 1 allows; with delta M."""

    def delta_m(off: Off) -> float:
        fm, fs = off.mean**2 / delta, off.cov**2 / delta
        return delta * c.largest_m(regime, tau, fm, fs, delta, corrected)

    def far(part: str, base: Off) -> Off:
        size = largest(lambda x: delta_m(base._replace(**{part: x})) <= 1, 1e-9)
        return base._replace(**{part: size * (1 - 1e-9)})

    none = Off(0.0, 0.0)
    wide = far("cov", none)
    for off in (far("mean", none), wide, far("mean", Off(0.0, 0.5 * wide.cov))):
        yield off, delta_m(off)


def relative_regret(
    level: Level,
    where: Where,
    regime: Regime,
    tau: int,
    delta: float,
    off: Off,
    known: Array,
    used: Array,
    *,
    corrected: bool,
    share: float = 1.0,
) -> Point:
    """Relative regret, from the independent regrets with the ``known`` prior and with the one
    ``used``, against ``share`` of Theorem 1's bound; the interval covers the error of R, too."""
    fm, fs = off.mean**2 / delta, off.cov**2 / delta
    k_1 = share * c.k_1(regime, tau, fm, fs, delta, corrected)
    mean = float(known.mean())
    bound = share * theorem_1(regime, tau, fm, fs, delta, mean, corrected)
    where |= {
        "mean deviation": off.mean,
        "covariance deviation": off.cov,
        "tau": tau,
        "T": regime.horizon,
        "delta": delta,
        "R": mean,
        "k_1": k_1,
    }
    return estimated(where, used - known - k_1 * (known - mean), bound, level.size)


def small_gram(tau: int, v: float) -> float:
    """P(V <= v) for tau actions uniform on [-1, 1] and v <= 1: a ball in tau dimensions."""
    return math.exp(tau / 2 * math.log(math.pi * v / 4) - gammaln(tau / 2 + 1))


def failing_events(tau: int, horizon: int, delta: float) -> dict[str, float]:
    """The probability that the events fail, at most; Theorem 1 asks for 9 delta / (dT) or less. E_v
    is V >= lambda_A / 2 = 1/6."""
    fails = small_gram(tau, 1 / 6) + 2 * float(norm.sf(math.sqrt(2 * math.log(horizon / delta))))
    if fails > 9 * delta / horizon:
        raise ValueError(f"P(E fails) = {fails:.3g} is more than Theorem 1 allows")
    return {"P(E fails), at most": fails, "allowed": 9 * delta / horizon}


def thompson(
    gram: Array, off: Array | float, wide: Array | float, low: float, sigma: float, steps: int
) -> Array:
    """Regret of Thompson Sampling with N(off, wide) where the truth is N(0, low) and all of [-1, 1]
    is on offer, given V after exploration.

    theta and the draw are jointly Gaussian; with their correlation r and the draw's mean and sd m
    and s, a step costs E|theta| - E[theta sign(draw)] = sqrt(2 low/pi) (1 - r exp(-m^2/(2 s^2))). V
    grows by 1. With v the posterior variance and p = V / sigma^2, 1 - r^2 = (v + v^2 p) / s^2: so
    written nothing cancels where the noise is small.
    """
    total = np.zeros(np.broadcast(gram, off, wide).shape)
    for n in range(steps):
        precise = (gram + n) / sigma**2
        v = 1 / (1 / wide + precise)
        square = v + v * v * precise * (precise * low + 1)
        total += _lost(
            math.sqrt(low) * precise * v / np.sqrt(square),
            (v + v * v * precise) / square,
            (off / wide * v) ** 2 / square,
        )
    return math.sqrt(2 * low / math.pi) * total


def _lost(correlation: Array, rest: Array, far: Array) -> Array:
    """1 - r exp(-far/2), with ``rest`` = 1 - r^2, without cancellation."""
    lost: Array = rest / (1 + correlation) - correlation * np.expm1(-far / 2)
    return lost


def threshold(
    gram: Array,
    off: Array | float,
    wide: Array | float,
    low: float,
    sigma: float,
    steps: int,
    least: float,
) -> Array:
    """The same of a quasi-Bayesian policy that is greedy where its posterior precision is at least
    what the true prior and V = ``least`` after exploration give, else plays the opposite. The
    correlation is that of theta and the posterior mean: 1 - r^2 = 1 / (1 + low p)."""
    total = np.zeros(np.broadcast(gram, off, wide).shape)
    flipped = gram + sigma**2 / wide < least + sigma**2 / low
    for n in range(steps):
        precise = (gram + n) / sigma**2
        apart = precise * (precise * low + 1)  # variance of the posterior mean, over v^2
        rest = 1 / (1 + low * precise)
        lost = _lost(np.sqrt(low * precise * rest), rest, (off / wide) ** 2 / apart)
        total += np.where(flipped, 2 - lost, lost)
    return math.sqrt(2 * low / math.pi) * total
