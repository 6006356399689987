"""Proper scores (Gneiting and Raftery 2007): of intervals, and of a forecast of the next theta."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.gaussian import lower_root

PAIRS = 100
"""Draws that an energy score is computed from."""


def interval_score(low: Array, high: Array, true: Array, level: Array) -> Array:
    """Width, plus 2 / (1 - level) times how far the truth is outside: smaller is better."""
    outside = np.maximum(low - true, 0) + np.maximum(true - high, 0)
    out: Array = high - low + 2 / (1 - level) * outside
    return out


def energy_score(draws: Array, true: Array) -> Array:
    """Mean distance of the draws (m, d) from each of the truths (k, d), less half the mean
    distance of two draws: the score CRPS is in one dimension."""
    m = len(draws)
    out: Array = _distances(true, draws).mean(axis=1)
    return out - _distances(draws, draws).sum() / (2 * m * (m - 1))


def _distances(one: Array, two: Array) -> Array:
    """Of every row from every other; a feature at a time, as a sum over a short axis is slow."""
    squares = np.zeros((len(one), len(two)))
    for left, right in zip(one.T, two.T, strict=True):
        squares += (right - left[:, None]) ** 2
    out: Array = np.sqrt(squares)
    return out


class Forecast(NamedTuple):
    """The law of the next task's theta: a mixture of the Gaussians N(means, covs), of one
    component for an estimate, of one a draw for a posterior."""

    means: Array
    """(s, d)"""
    covs: Array
    """(s, d, d)"""


class NextTask(NamedTuple):
    """What came of a forecast at some next tasks."""

    inside: Array
    """by level, the share of the tasks in the ellipsoid"""
    width: Array
    """by level, twice the geometric mean of the ellipsoid's half-axes"""
    pit: Array
    """by feature, where the first task lies in the forecast"""
    pit_distance: float
    """the same of its Mahalanobis distance from the centre"""
    log_score: float
    """mean of minus the log-density"""
    energy_score: float


def judged(forecast: Forecast, theta: Array, levels: Array, normals: Array) -> NextTask:
    """A forecast against thetas (k, d); ``normals`` (m, d) make draws of it.

    The ellipsoid of a Gaussian is the usual one; that of a mixture has its mean and covariance and
    holds ``level`` of the mixture's draws.
    """
    from scipy.special import chdtr, chdtri, ndtr

    means, covs = forecast
    s, d = means.shape
    centre = means.mean(axis=0)
    cov = covs.mean(axis=0) + (np.cov(means.T).reshape(d, d) if s > 1 else 0.0)
    gap = theta[:, None] - means
    sds = np.sqrt(np.diagonal(covs, axis1=1, axis2=2))
    with np.errstate(divide="ignore", invalid="ignore"):
        pit = ndtr(gap[0] / sds).mean(axis=0)
    try:
        roots, root = np.linalg.cholesky(covs), np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:  # a singular law has no density: the worst of scores
        draws = centre + normals[:PAIRS] @ lower_root(cov).T
        nothing, energy = np.zeros(len(levels)), float(energy_score(draws, theta).mean())
        return NextTask(nothing, nothing, pit, 1.0, np.inf, energy)
    normals = normals[:PAIRS] if s == 1 else normals  # of one Gaussian, quantiles are known
    which = np.arange(len(normals)) % s
    draws = means[which] + np.einsum("mij,mj->mi", roots[which], normals)
    distance = (np.linalg.solve(root, (theta - centre).T) ** 2).sum(axis=0)
    if s == 1:
        far, pit_distance = chdtri(d, 1 - levels), float(chdtr(d, distance[0]))
    else:
        own = (np.linalg.solve(root, (draws - centre).T) ** 2).sum(axis=0)
        far, pit_distance = np.quantile(own, levels), float((own <= distance[0]).mean())
    z = np.linalg.solve(roots, gap.transpose(1, 2, 0)).transpose(2, 0, 1)  # (k, s, d)
    halves = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    logs = -0.5 * (z**2).sum(axis=-1) - halves - d / 2 * np.log(2 * np.pi)
    axis = np.exp(np.log(np.diagonal(root)).mean())
    return NextTask(
        (distance[:, None] <= far).mean(axis=0),
        2 * np.sqrt(far) * axis,
        pit,
        pit_distance,
        float(np.log(s) - np.logaddexp.reduce(logs, axis=1).mean()),
        float(energy_score(draws[:PAIRS], theta).mean()),
    )
