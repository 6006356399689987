"""Draws of the prior for an agent between two tasks: one chain, quick to start."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.checks import Array, InputError
from bayesmeta.environment import Bounds, Setting
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.nuts import draw_chain
from bayesmeta.posterior.priors import LKJ
from bayesmeta.statistics import TaskStatistics


def prior_from_bounds(bounds: Bounds) -> LKJ:
    """The prior over (mu, Sigma) of an agent that is told the bounds of Assumptions 2 and 3.

    mu_i ~ N(0, b^2), standard deviations of Sigma half-normal(s), correlation matrices uniform,
    where b and s^2 are the bounds of Assumptions 3 and 2; b is at least s.
    """
    spread = math.sqrt(bounds.prior_max)
    if spread == 0:
        raise InputError(
            "an agent with a posterior needs bounds with prior_max > 0; where tasks do not differ, "
            "there is no prior to learn"
        )
    return LKJ(0.0, max(bounds.mean_norm, spread), spread, eta=1.0)


def draw_priors(
    stats: TaskStatistics,
    setting: Setting,
    *,
    draws: int,
    tune: int,
    seed: int,
    start: Array | None = None,
) -> tuple[Array, Array, Array | None, bool]:
    """Draws of the prior given the tasks so far; before any task, of the prior over priors.

    Means (draws, d), covariances (draws, d, d), the point to start the next chain at, and whether
    they can be trusted: no draw diverged, every entry of mu moved.
    """
    units = setting.units
    if units is not None:  # far from 1: drawn in the units that tasks are played in, and put back
        gram, moment = units.inside(stats.gram, 0, 2), units.inside(stats.moment, 1, 1)
        own = setting.in_units(units)
        means, covs, last, trusted = _draw(
            TaskStatistics.trusted(gram, moment), own, draws, tune, seed, start
        )
        return units.outside(means, 1, -1), units.outside(covs, 2, -2), last, trusted
    return _draw(stats, setting, draws, tune, seed, start)


def _draw(
    stats: TaskStatistics, setting: Setting, draws: int, tune: int, seed: int, start: Array | None
) -> tuple[Array, Array, Array | None, bool]:
    prior = prior_from_bounds(setting.bounds).settled(setting.dim)
    if len(stats) == 0:
        means, roots, _ = prior.draw(np.random.default_rng(seed), draws)
        return means, roots @ roots.transpose(0, 2, 1), None, True
    problem = Problem(stats, setting.noise_sd, prior, "fused")
    chain = draw_chain(problem, draws=draws, tune=tune, seed=seed, start=start)
    trusted = chain.divergent == 0 and not chain.stuck
    return chain.draws["mu"], chain.draws["Sigma"], chain.last, trusted
