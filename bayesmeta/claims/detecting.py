"""One step after exploration, for a policy made to detect a covariance that is too wide.

Where the smallest eigenvalue of its posterior precision is at most a level, it plays -a e_1, else
a e_1; mu_* = m e_1 is so large that the second is best. A wider prior lowers the precision, so the
learner errs more often. In one dimension all is known exactly, in more V is drawn.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import fresnel
from scipy.stats import norm

from bayesmeta.checks import Array
from bayesmeta.claims.one_dimension import Off, deviations, small_gram
from bayesmeta.claims.regimes import isotropic
from bayesmeta.claims.verdict import Level, Point, Where, at_most, counted, estimated
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import Regime
from bayesmeta.theory.sharper import alignment_cost
from bayesmeta.theory.theorems import theorem_1

LOW, MEAN = 1e-3, 10.0
"""Sigma_* = LOW I and mu_* = MEAN e_1: theta_1 < 0 has probability Q(316), which is 0."""


def _extreme(d: int, horizon: int, delta: float) -> float:
    """P(E_theta fails), at most."""
    return 2 * d * float(norm.sf(math.sqrt(2 * math.log(d * d * horizon / delta))))


def _regime(d: int, tau: int) -> Regime:
    return isotropic(dim=d, horizon=tau + 1, tasks=2, noise_sd=1.0, prior=LOW, mean_norm=MEAN)


def _widest(regime: Regime, tau: int, delta: float) -> Off:
    """The covariance as far off as delta <= 1/M allows; the mean right."""
    offs = [off for off, _ in deviations(regime, tau, delta, corrected=True)]
    return next(off for off in offs if off.cov and not off.mean)


def _where(regime: Regime, tau: int, delta: float, off: Off, level: float) -> Where:
    return {
        "d": regime.dim,
        "actions": "the whole ball",
        "policy": f"errs where lambda_min(V) <= {level:g} with the true prior",
        "sigma": 1.0,
        "mu_*": f"{MEAN:g} e_1",
        "Sigma_*": LOW,
        "covariance deviation": off.cov,
        "tau": tau,
        "T": regime.horizon,
        "delta": delta,
    }


def _bound(regime: Regime, tau: int, delta: float, off: Off, known: float, share: float) -> float:
    """``share`` of Theorem 1's bound; at sigma = 1 printed and corrected constants agree."""
    return share * theorem_1(regime, tau, 0.0, off.cov**2 / delta, delta, known, corrected=True)


def one_dimension(level: Level, share: float = 1.0) -> list[Point]:
    """Exactly: the learner errs where V <= v + B. delta is the smallest with P(E fails) <= 9
    delta/T, where E_v says V >= lambda_A/2 = 1/6."""
    points = []
    for tau, v in level.pick(((16, 0.25),), ((4, 0.3), (8, 0.3), (16, 0.25), (24, 0.25))):

        def excess(log: float, tau: int = tau) -> float:
            delta = math.exp(log)
            fails = small_gram(tau, 1 / 6) + _extreme(1, tau + 1, delta)
            return 9 * delta / (tau + 1) - fails

        delta = math.exp(brentq(excess, -80, -1.2)) * (1 + 1e-6)
        regime = _regime(1, tau)
        off = _widest(regime, tau, delta)
        gap = off.cov / (LOW * (LOW + off.cov))
        known, used = (2 * MEAN * small_gram(tau, at) for at in (v, v + gap))
        right = _bound(regime, tau, delta, off, known, share)
        points.append(at_most(_where(regime, tau, delta, off, v), used - known, right))
    return points


def several_dimensions(level: Level, share: float = 1.0) -> list[Point]:
    """In two (and three) dimensions, V drawn; delta is large enough for P(E_v fails), which is
    counted: the upper end of its interval."""
    points = []
    for d, tau, times in level.pick(((2, 8, 2.0),), ((2, 8, 2.0), (3, 12, 2.0))):
        rng, runs = level.rng(f"theorem-1/{d}"), level.pick(300_000, 1_000_000)
        lowest = np.concatenate([_lowest(rng, d, tau, 50_000) for _ in range(runs // 50_000)])
        edge, horizon = d / (2 * (d + 2)), tau + 1
        fails = counted({}, int((lowest < edge).sum()), runs, 1.0, level.size).high or 1.0
        delta = fails * d * horizon / 8  # the ninth is for E_theta
        regime = replace(_regime(d, tau), horizon=horizon)
        off = _widest(regime, tau, delta)
        gap = off.cov / (LOW * (LOW + off.cov))
        known, used = (2 * MEAN * (lowest <= at) for at in (times * edge, times * edge + gap))
        mean = float(known.mean())
        right = _bound(regime, tau, delta, off, mean, share)
        where = _where(regime, tau, delta, off, times * edge)
        points.append(estimated(where, used - known, right, level.size))
    return points


def _lowest(rng: np.random.Generator, d: int, tau: int, runs: int) -> Array:
    """lambda_min(V) of ``tau`` actions from the unit ball."""
    raw = rng.standard_normal((runs, tau, d))
    raw *= rng.random((runs, tau, 1)) ** (1 / d) / np.linalg.norm(raw, axis=2)[..., None]
    lowest: Array = np.linalg.eigvalsh(raw.transpose(0, 2, 1) @ raw)[:, 0]
    return lowest


def gram_below(tau: int, v: float) -> float:
    """P(V <= v) for tau actions uniform on [-1, 1], by inversion of the characteristic function of
    the sum of their squares (Gil-Pelaez); for some tens of actions or more, to about 1e-12."""
    t = (np.arange(30_000) + 0.5) * 1e-4  # beyond 3 it is 0
    sine, cosine = fresnel(np.sqrt(2 * t / math.pi))
    one = np.sqrt(math.pi / (2 * t)) * (cosine + 1j * sine)
    wave = np.exp(tau * np.log(one) - 1j * t * v)
    return 0.5 - float((wave.imag / t).sum()) * 1e-4 / math.pi


def sharp(level: Level, share: float = 1.0) -> list[Point]:
    """The same in one dimension against theorem-1-sharp, exactly, with tau of the lemma on the
    gram: E_v is V >= lambda_A tau/2, and V is near that much more often than near lambda_A/2."""
    points = []
    for delta, sds in level.pick(((1e-8, 3.0),), ((1e-5, 2.0), (1e-8, 3.0), (1e-10, 4.0))):
        tau = 100
        for _ in range(20):  # tau = 24 ln(T/delta), T = tau + 1
            tau = math.ceil(24 * math.log((tau + 1) / delta))
        regime = _regime(1, tau)
        fails = math.exp(-tau / 24) + _extreme(1, tau + 1, delta)  # by Tropp's bound
        if fails > 9 * delta / (tau + 1):
            raise ValueError(f"P(E fails) = {fails:.3g} is more than Theorem 1 allows")
        for part in level.pick((5e-4,), (1e-4, 5e-4, 0.002)):  # |B| over lambda_A tau/2
            cov = part * tau / 6 * LOW**2 / (1 - part * tau / 6 * LOW)
            cost = alignment_cost(regime, tau, 0.0, cov, delta)
            gap = cov / (LOW * (LOW + cov))
            v = tau / 3 - sds * math.sqrt(4 * tau / 45)
            known, used = (2 * MEAN * gram_below(tau, x) for x in (v, v + gap))
            right = cost.factor * known + c.c_bad(regime, delta) * delta
            where = _where(regime, tau, delta, Off(0.0, cov), v)
            points.append(at_most(where, used - known, share * right, 1e-9))
    return points
