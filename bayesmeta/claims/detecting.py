"""One task with a policy made to detect a covariance that is too wide.

Where the smallest eigenvalue of its posterior precision is at most a level, it plays -a e_1, else
a e_1; mu_* = m e_1 is so large that the second is best. Either action adds the same to V, so the
policy can take off what was played since exploration, and errs in all steps or in none. A wider
prior lowers the precision, so the learner errs more often. In one dimension all is known exactly,
in more V is drawn.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import fresnel
from scipy.stats import binom, norm

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


def _regime(d: int, horizon: int, action_min: float | None = None) -> Regime:
    told = {"noise_sd": 1.0, "prior": LOW, "mean_norm": MEAN, "action_min": action_min}
    return isotropic(dim=d, horizon=horizon, tasks=2, **told)


def _least_delta(d: int, horizon: int, fails: float) -> float:
    """The smallest delta with P(E fails) <= 9 delta/(dT), where E_v fails with probability
    ``fails`` at most; E_m and E_s are sure."""

    def excess(log: float) -> float:
        delta = math.exp(log)
        return 9 * delta / (d * horizon) - fails - _extreme(d, horizon, delta)

    return math.exp(brentq(excess, -80, -1.2)) * (1 + 1e-6)


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
    """Exactly: the learner errs where V <= v + B; E_v says V >= lambda_A/2 = 1/6. k_1 R is some
    nine tenths of the bound."""
    points = []
    for tau, v in level.pick(((16, 0.2),), ((4, 0.3), (8, 0.22), (16, 0.2), (24, 0.2))):
        horizon = 10 * tau
        delta = _least_delta(1, horizon, small_gram(tau, 1 / 6))
        regime = _regime(1, horizon)
        off = _widest(regime, tau, delta)
        gap = off.cov / (LOW * (LOW + off.cov))
        a_step = 2 * MEAN * (horizon - tau)
        known, used = (a_step * small_gram(tau, at) for at in (v, v + gap))
        right = _bound(regime, tau, delta, off, known, share)
        points.append(at_most(_where(regime, tau, delta, off, v), used - known, right))
    return points


def several_dimensions(level: Level, share: float = 1.0) -> list[Point]:
    """In two (and three) dimensions, V drawn; delta is large enough for P(E_v fails), which is
    counted: the upper end of its interval."""
    points = []
    for d, tau, times in level.pick(((2, 8, 1.4),), ((2, 8, 1.4), (3, 12, 1.6))):
        rng, runs = level.rng(f"theorem-1/{d}"), level.pick(300_000, 1_000_000)
        lowest = np.concatenate([_lowest(rng, d, tau, 50_000) for _ in range(runs // 50_000)])
        edge, horizon = d / (2 * (d + 2)), 10 * tau
        fails = counted({}, int((lowest < edge).sum()), runs, 1.0, level.size).high or 1.0
        delta = _least_delta(d, horizon, fails)
        regime = _regime(d, horizon)
        off = _widest(regime, tau, delta)
        gap = off.cov / (LOW * (LOW + off.cov))
        a_step = 2 * MEAN * (horizon - tau)
        known, used = (a_step * (lowest <= at) for at in (times * edge, times * edge + gap))
        mean = float(known.mean())
        right = _bound(regime, tau, delta, off, mean, share)
        where = _where(regime, tau, delta, off, times * edge)
        points.append(estimated(where, used - known, right, level.size))
    return points


MOVING = 0.005
"""Of the actions of ``never_with_the_true_prior``; the others are within 1e-6 of 0."""


def never_with_the_true_prior(level: Level, share: float = 1.0) -> list[Point]:
    """The bound on bad events: the policy errs where its posterior is somewhere wider than the true
    prior, which that of the learner who knows it never is; the other errs where lambda_min(V) <=
    B, and most certainly where fewer than d actions moved.

    A uniform ball within 1e-6 of 0 and one of radius 1 are mixed: a density that falls with the
    norm. E_v fails little more often than too few actions move. T is so large that delta comes
    near the 1/3 that it may be at most.
    """
    points = []
    for d, tau in level.pick(((1, 2000), (2, 2800)), ((1, 2000), (2, 2800), (3, 3600))):
        rng, runs = level.rng(f"theorem-1/never/{d}"), level.pick(100_000, 400_000)
        drawn = {k: _lowest(rng, d, k, runs) for k in range(d, d + 3) if d > 1}
        moving = binom.pmf(range(4 * d + 8), tau, MOVING)
        below = partial(_below, d, moving, drawn, level.size)
        edge = MOVING / (d + 2) * d / 2
        horizon = math.floor(2.6 / (d * below(edge)))
        regime = _regime(d, horizon, MOVING / (d + 2))
        delta = _least_delta(d, horizon, below(edge))
        off = _widest(regime, tau, delta)
        gap = off.cov / (LOW * (LOW + off.cov))
        a_step = 2 * MEAN * (horizon - tau)
        right = _bound(regime, tau, delta, off, 0.0, share)
        where = _where(regime, tau, delta, off, 0.0) | {
            "actions": "e_1 and -e_1",
            "f_A": f"{1 - MOVING:.1%} uniform on |A| <= 1e-6, the rest on the ball",
            "lambda_A": regime.bounds.action_min,
            "policy": "errs where its posterior is somewhere wider than the true prior",
        }
        low, high = (a_step * chance for chance in (float(moving[:d].sum()), below(gap)))
        points.append(Point(where, low, right, low, high, simulated=d > 1))
    return points


def _below(d: int, moving: Array, drawn: dict[int, Array], size: float, v: float) -> float:
    """P(lambda_min(V) <= v), at most, where 0, 1, … actions move with the probabilities ``moving``.

    Exactly where d = 1; else counted where few move, and where more do V is a sum of two grams,
    both of which must be as low."""
    least = [1.0] * d
    for k in range(d, len(moving)):
        if d == 1:
            least.append(small_gram(k, v))
        elif k in drawn:
            low = int((drawn[k] <= v).sum())
            least.append(counted({}, low, len(drawn[k]), 1.0, size).high or 1.0)
        else:
            least.append(min(least[j] * least[k - j] for j in range(1, k)))
    return float(moving @ least) + (1 - float(moving.sum())) * least[-1]


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
        regime = _regime(1, tau + 1)
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
