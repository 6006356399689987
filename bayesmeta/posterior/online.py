"""Draws of the prior for an agent between two tasks, about the mode of the last ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array, InputError
from bayesmeta.environment import Bounds, Setting
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.priors import LKJ
from bayesmeta.posterior.quick import draw_quickly
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


class Drawn(NamedTuple):
    """Means (draws, d) and covariances (draws, d, d); the mode (mu, Sigma), from which to look for
    the next, where there is one; and whether they can be trusted."""

    means: Array
    covs: Array
    mode: tuple[Array, Array] | None
    trusted: bool


def draw_priors(
    stats: TaskStatistics,
    setting: Setting,
    *,
    draws: int,
    tune: int,
    seed: int,
    start: tuple[Array, Array] | None = None,
) -> Drawn:
    """Draws of the prior given the tasks so far; before any task, of the prior over priors.

    They can be trusted where importance weights pass their checks, or no draw of a chain diverged
    and every entry of mu moved. The mode is in the units that tasks are played in.
    """
    units = setting.units
    if units is not None:  # far from 1: drawn in the units that tasks are played in, and put back
        gram, moment = units.inside(stats.gram, 0, 2), units.inside(stats.moment, 1, 1)
        inside = TaskStatistics.trusted(gram, moment)
        found = _draw(inside, setting.in_units(units), draws, tune, seed, start)
        means, covs = units.outside(found.means, 1, -1), units.outside(found.covs, 2, -2)
        return found._replace(means=means, covs=covs)
    return _draw(stats, setting, draws, tune, seed, start)


def _draw(
    stats: TaskStatistics,
    setting: Setting,
    draws: int,
    tune: int,
    seed: int,
    start: tuple[Array, Array] | None,
) -> Drawn:
    prior = prior_from_bounds(setting.bounds).settled(setting.dim)
    if len(stats) == 0:
        means, roots, _ = prior.draw(np.random.default_rng(seed), draws)
        return Drawn(means, roots @ roots.transpose(0, 2, 1), None, True)
    problem = Problem(stats, setting.noise_sd, prior, "fused")
    found = draw_quickly(problem, draws=draws, tune=tune, seed=seed, start=start)
    trusted = found.divergent == 0 and not found.stuck
    return Drawn(found.draws["mu"], found.draws["Sigma"], found.mode, trusted)
