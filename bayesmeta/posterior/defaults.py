"""A wide prior in the units of the data: what is believed where nothing is given."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.estimators.noise import pooled_variance
from bayesmeta.posterior.centring import centring_of
from bayesmeta.posterior.priors import LKJ
from bayesmeta.statistics import TaskStatistics


def default_prior(
    stats: TaskStatistics, noise_sd: float | None = None, centre: bool | str | None = None
) -> LKJ:
    """A wide prior in the data's own units: centred at the pooled estimate, twice as wide as tasks.

    The spread of few tasks may be far too small by chance: the scale is also no less than its 95%
    upper confidence value (16 times the spread of 2 tasks, 4.4 times that of 3, 2.4 times that of
    5; from 7 on twice is more), and likewise that of the noise; the mean's standard deviation is
    2.5 scales. With 2 or 3 tasks the intervals of the standard deviations still often begin too
    high, and no half-normal with a scale from such data does much better: give a prior of your own.

    With an intercept it is the prior of coefficients of the centred features, as
    ``sample_posterior`` takes it: that of the intercept is of the level at the features' means.

    The prior uses the data, for their units and where they lie, so simulation-based calibration has
    to use a prior of fixed numbers instead.

    Parameters
    ----------
    stats
        The tasks.
    noise_sd
        Their noise (sigma); None where it is to be estimated.
    centre
        As in ``sample_posterior``.

    Returns
    -------
    LKJ
        With a number a feature.

    Examples
    --------
    >>> stats = bm.TaskStatistics([[[4.0]], [[4.0]], [[4.0]]], [[6.0], [18.0], [30.0]])
    >>> bm.default_prior(stats, noise_sd=1.0)
    LKJ(mean=[4.5], mean_sd=[33.12], scale=[13.25], eta=2, noise_scale=2)
    """
    centring = centring_of(stats, centre)
    if centring is not None:
        stats = centring.inside(stats)
    mean, spread, variance = pooled_spread(stats, noise_sd)
    scale = _wide(len(stats) - 1) * spread
    freedom = stats.residuals()[1] if noise_sd is None else 0.0
    return LKJ(mean, 2.5 * scale, scale, noise_scale=_wide(freedom) * math.sqrt(variance))


def pooled_spread(stats: TaskStatistics, noise_sd: float | None) -> tuple[Array, Array, float]:
    """One theta for all tasks, how far tasks lie from it (no less than the noise of a typical
    task's least squares), and the variance of the noise."""
    mean, scatter, noise, variance = pooled(stats, noise_sd)
    return mean, np.sqrt(np.maximum(np.diag(noise), np.diag(scatter))), variance


def pooled(stats: TaskStatistics, noise_sd: float | None) -> tuple[Array, Array, Array, float]:
    """One theta for all tasks, the scatter of tasks about it (noise included), the covariance of a
    typical task's least squares, and the variance of the noise."""
    total = stats.gram.sum(axis=0)
    stats.require_independent_features()
    n = len(stats)
    mean = np.linalg.solve(total, stats.moment.sum(axis=0))
    variance = pooled_variance(stats, common=True)[0] if noise_sd is None else noise_sd**2
    noise = n * variance * np.linalg.inv(total)
    step = np.linalg.solve(total / n, (stats.moment - stats.gram @ mean).T).T
    return mean, step.T @ step / max(n - 1, 1), noise, variance


def _wide(freedom: float) -> float:
    """Twice, or for few degrees of freedom what makes an estimated standard deviation its 95% upper
    confidence value."""
    from scipy.special import chdtri  # scipy.stats, with its chi2, takes half a second to import

    return max(2.0, math.sqrt(freedom / chdtri(freedom, 0.95))) if freedom >= 1 else 2.0
