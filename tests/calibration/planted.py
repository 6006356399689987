"""Estimators whose calibration is known, for tests of the lab; at the top of a module, so that
worker processes can import them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import norm

import bayesmeta as bm

FAMILY = bm.TaskFamily(
    bm.GaussianPrior([1.0, -1.0], [[1.0, 0.3], [0.3, 0.5]]),
    bm.UniformBall(dim=2, radius=1.0, count=5),
    noise_sd=0.5,
    horizon=12,
)
"""Easy tasks: no estimate of Sigma is near the boundary."""


def known(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.PriorEstimate:
    """Generalised least squares with the true Sigma: its intervals of mu are exact."""
    return bm.fit_prior(stats, noise_sd, "gls", cov=FAMILY.prior.cov)


def _around(
    estimate: bm.PriorEstimate, factor: float
) -> Callable[[float], dict[str, tuple[float, float]]]:
    def intervals(level: float) -> dict[str, tuple[float, float]]:
        half = factor * norm.isf((1 - level) / 2) * estimate.mean_sd
        mean = estimate.prior.mean
        return {f"mu[x{i + 1}]": (mean[i] - half[i], mean[i] + half[i]) for i in range(2)}

    return intervals


def halved(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.EstimateWithIntervals:
    """The same with intervals of half the width: at 95% they cover 2 Phi(1.96 / 2) - 1."""
    found = known(stats, noise_sd)
    return bm.EstimateWithIntervals(found, _around(found, 0.5))


def truthful(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.GaussianPrior:
    """The truth: its forecast of the next task is exact."""
    return FAMILY.prior


def failing(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.PriorEstimate:
    """Fails where the data have a certain sign: in about half of the replications."""
    if stats.moment.sum() > -len(stats) * 0.05:
        raise ZeroDivisionError("planted failure")
    return known(stats, noise_sd)


def wrong_type(stats: bm.TaskStatistics, noise_sd: float | None) -> dict[str, float]:
    """Returns what is no estimate."""
    return {"mean": float(np.mean(stats.moment))}


def wrong_intervals(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.EstimateWithIntervals:
    """An estimate whose intervals name a quantity there is not."""
    return bm.EstimateWithIntervals(known(stats, noise_sd), lambda level: {"mu[x9]": (0.0, 1.0)})
