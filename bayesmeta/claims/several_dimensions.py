"""One task in several dimensions, simulated: Thompson Sampling with a prior that is off."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.claims.one_dimension import Off, deviations, relative_regret
from bayesmeta.claims.regimes import isotropic
from bayesmeta.claims.verdict import Level, Point
from bayesmeta.theory import constants as c


def _play(off: Off, gram: Array, theta: Array, noise: Array, later: Array) -> Array:
    """Regret of Thompson Sampling with N(off.mean e_1, (1 + off.cov) I) after exploration."""
    d, wide = theta.shape[1], 1 + off.cov
    precision = np.eye(d) / wide + gram
    total = np.einsum("nij,nj->ni", gram, theta) + noise
    total[:, 0] += off.mean / wide
    regret = np.zeros(len(theta))
    for z, shock in zip(later[0], later[1, ..., 0], strict=True):
        lower = np.linalg.cholesky(precision)
        draw = np.linalg.solve(precision, total[..., None])[..., 0]
        draw += np.linalg.solve(lower.transpose(0, 2, 1), z[..., None])[..., 0]
        action = draw / np.linalg.norm(draw, axis=1, keepdims=True)
        gain = np.einsum("ni,ni->n", action, theta)
        regret += np.linalg.norm(theta, axis=1) - gain
        precision = precision + action[:, :, None] * action[:, None, :]
        total = total + action * (gain + shock)[:, None]
    return regret


def several_dimensions(level: Level, corrected: bool = True) -> list[Point]:
    """Thompson Sampling with the whole ball on offer in d > 1, simulated, on the same theta,
    exploration and noise; tau of the lemma on the gram, sigma = 1, Sigma_* = I."""
    points = []
    for d in level.pick((2,), (2, 5)):
        rng, delta = level.rng(f"theorem-1/{d}"), 0.1
        regime = isotropic(dim=d, horizon=10_000, tasks=10_000, noise_sd=1.0)
        tau = math.ceil(c.gram_steps(regime, delta))
        regime = replace(regime, horizon=tau + 5)
        runs = level.pick(1000, 4000)
        draws = np.empty((runs, d, d))
        for k in range(runs):
            raw = rng.standard_normal((tau, d))
            raw *= (rng.random(tau) ** (1 / d) / np.linalg.norm(raw, axis=1))[:, None]
            draws[k] = raw.T @ raw
        theta = rng.standard_normal((runs, d))
        noise = np.einsum("nij,nj->ni", np.linalg.cholesky(draws), rng.standard_normal((runs, d)))
        later = rng.standard_normal((2, 5, runs, d))
        for off, product in deviations(regime, tau, delta, corrected):
            known = _play(Off(0.0, 0.0), draws, theta, noise, later)
            used = _play(off, draws, theta, noise, later)
            where = {
                "d": d,
                "actions": "the whole ball",
                "policy": "Thompson Sampling",
                "sigma": 1.0,
                "mu_*": 0.0,
                "Sigma_*": "I",
                "delta M": product,
            }
            points.append(
                relative_regret(
                    level, where, regime, tau, delta, off, known, used, corrected=corrected
                )
            )
    return points
