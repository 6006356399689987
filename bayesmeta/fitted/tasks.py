"""Every task's coefficients given its data, with the uncertainty about (mu, Sigma) in them.

With mu and Sigma known, theta_j given its data has the mean and covariance M_j of eq. (4). The mean
moves with mu by I - B_j = I - M_j V_j / sigma^2. Where mu is estimated, with covariance C,
M_j + (I - B_j) C (I - B_j)' is exact for Sigma given: it is the posterior under a flat prior of mu,
and the mean square error of prediction (Kackar and Harville 1984). This is of tasks that C comes
from; of a new task the fitted ones say N(mu, Sigma + C), to which its own rows are added. What
estimating Sigma adds is found by a bootstrap (Laird and Louis 1987): the moments of theta_j given
its data, over replications of (mu, Sigma, sigma). Where the estimate of Sigma is singular, the
replications are drawn from that estimate and lie about it, so that their intervals are still too
short.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.estimators.estimate import Status
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    from pandas import DataFrame

    from bayesmeta.fitted.bootstrap import Drawn

SINGULAR = (Status.BOUNDARY, Status.CLIPPED, Status.NOT_IDENTIFIED, Status.NO_NOISE)
"""Where Sigma has no variance in some direction, so that tasks seem to be known there, or is one of
many that fit as well."""


class Moments(NamedTuple):
    """Means (n, d) and covariances (n, d, d) of coefficients."""

    mean: Array
    cov: Array


def given_prior(
    prior: GaussianPrior, mean_cov: Array | None, gram: Array, moment: Array, noise_sd: float
) -> Moments:
    """With the uncertainty of mu, none where ``mean_cov`` is None, and Sigma as it is."""
    mean, cov = prior.trusted_posterior(gram, moment, noise_sd)
    if mean_cov is not None:
        rest = np.eye(prior.dim) - cov @ gram / noise_sd**2
        cov = cov + rest @ mean_cov @ np.swapaxes(rest, -1, -2)
    return Moments(mean, cov)


def new_prior(
    prior: GaussianPrior, mean_cov: Array | None, gram: Array, moment: Array, noise_sd: float
) -> Moments:
    """The same of tasks that ``prior`` was not estimated from."""
    wide = prior if mean_cov is None else GaussianPrior(prior.mean, prior.cov + mean_cov)
    return given_prior(wide, None, gram, moment, noise_sd)


def given_draws(means: Array, covs: Array, noises: Array, gram: Array, moment: Array) -> Moments:
    """Over draws of (mu, Sigma, sigma): mean covariance, and covariance of the means."""
    middle = means.mean(axis=0)  # relative to it: a large level costs no digits
    moved = moment - gram @ middle
    total, square, spread = np.zeros_like(moved), np.zeros_like(gram), np.zeros_like(gram)
    for mean, cov, noise in zip(means, covs, noises, strict=True):
        one, within = GaussianPrior(mean - middle, cov).trusted_posterior(gram, moved, float(noise))
        total = total + one
        square = square + one[..., :, None] * one[..., None, :]
        spread = spread + within
    k = len(means)
    centre = total / k
    between = square / k - centre[..., :, None] * centre[..., None, :]
    return Moments(middle + centre, np.asarray(spread / k + between))


def around(centre: Array, drawn: Drawn, gram: Array, moment: Array) -> Moments:
    """The estimate of every task with the spread that the bootstrap gives it."""
    found = given_draws(drawn.mean, drawn.cov, drawn.noise, gram, moment)
    return Moments(centre, found.cov)


def tasks_frame(
    stats: TaskStatistics, columns: Mapping[str, Array], fixed: bool, conditional: bool
) -> DataFrame:
    """A row for every task and feature, of (n, d) means, standard deviations and ends; without
    features whose coefficients are the same in all tasks, unless ``fixed``."""
    import pandas as pd

    shown = stats.differs | fixed
    names = [str(one) for one, own in zip(stats.feature_labels, shown, strict=True) if own]
    index = pd.MultiIndex.from_product([stats.task_labels, names], names=["task", "feature"])
    named = {"estimate" if key == "mean" else key: one for key, one in columns.items()}
    data = {key: one[:, shown].ravel() for key, one in named.items()}
    return pd.DataFrame({**data, "conditional": conditional}, index=index)


def normal_columns(moments: Moments, level: float) -> dict[str, Array]:
    """Means, standard deviations and the ends of normal intervals, all (n, d)."""
    sd = np.sqrt(np.maximum(np.diagonal(moments.cov, axis1=1, axis2=2), 0.0))
    return with_ends(moments.mean, sd, level)


def with_ends(mean: Array, sd: Array, level: float) -> dict[str, Array]:
    """Columns of normal distributions: means, standard deviations, the ends of intervals."""
    from scipy.stats import norm

    half = float(norm.isf((1 - level) / 2)) * sd
    return {"mean": mean, "sd": sd, "low": mean - half, "high": mean + half}
