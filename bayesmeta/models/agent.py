"""Draws of the prior for an agent at work: one chain, quick to start, no diagnostics."""

from __future__ import annotations

import math

from bayesmeta.checks import Array
from bayesmeta.environment import Setting
from bayesmeta.models.hierarchical import Problem
from bayesmeta.models.priors import LKJ
from bayesmeta.models.sampling import draw_chain
from bayesmeta.statistics import TaskStatistics


def draw_priors(
    stats: TaskStatistics,
    setting: Setting,
    *,
    draws: int,
    tune: int,
    seed: int,
    start: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Means (draws, d) and covariances (draws, d, d), and the point to start the next chain at."""
    bounds, d = setting.bounds, setting.dim
    prior = LKJ(0.0, bounds.mean_norm, math.sqrt(bounds.prior_max), eta=2.0).settled(d)
    problem = Problem(stats, setting.noise_sd, prior, "fused")
    found, last = draw_chain(problem, draws=draws, tune=tune, seed=seed, start=start)
    return found["mu"], found["Sigma"], last
