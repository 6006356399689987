"""Estimators whose calibration is known, for tests of the lab; at the top of a module, so that
worker processes can import them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import norm, t

import bayesmeta as bm
from bayesmeta.estimators.moments import least_squares

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


def careless(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.PriorEstimate:
    """Changes what it is given."""
    found = known(stats, noise_sd)
    stats.moment[:] = 0.0
    return found


def observed(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.EstimateWithIntervals:
    """Student's t intervals of mu from least squares: exact where there is no noise, so that
    thetas are observed."""
    theta = least_squares(stats)
    n, mean, sd = len(theta), theta.mean(axis=0), theta.std(axis=0, ddof=1)

    def intervals(level: float) -> dict[str, tuple[float, float]]:
        half = t.isf((1 - level) / 2, n - 1) * sd / np.sqrt(n)
        return {f"mu[x{i + 1}]": (mean[i] - half[i], mean[i] + half[i]) for i in range(2)}

    prior = bm.GaussianPrior(mean, np.cov(theta.T))
    return bm.EstimateWithIntervals(prior, intervals)


MARK = "BAYESMETA_TEST_MARK"
"""Names a file: while it is there, ``mortal`` kills its process at the fifth call."""
_calls = 0


def mortal(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.PriorEstimate:
    """Generalised least squares; the process may die of it, once."""
    global _calls
    _calls += 1
    mark = os.environ.get(MARK)
    if mark and Path(mark).exists() and _calls == 5:
        Path(mark).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return known(stats, noise_sd)
