"""The log-likelihood as a function of a root of Sigma and the noise, the mean at its best."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.statistics import TaskStatistics


class Held(NamedTuple):
    """A coefficient of the mean that is held at a value."""

    feature: int
    value: float


class Height(NamedTuple):
    """The log-likelihood (without the constant of the rows' number) and its slopes."""

    value: float
    root: Array
    """by the root of Sigma, (d, q)"""
    noise: float
    """by log sigma^2"""
    mean: Array


def height(
    stats: TaskStatistics, root: Array, log_variance: float, held: Held | None = None
) -> Height:
    """At Sigma = root root', where ``root`` is (d, q) with rows of zeros for features that do not
    vary; the mean is that of generalised least squares, but for the one that is held.

    Slopes at the best mean are those with it fixed, since the likelihood is flat there.
    """
    variance = math.exp(log_variance)
    gram, moment = stats.gram, stats.moment
    assert stats.energy is not None and stats.count is not None
    gr = gram @ root
    inner = np.eye(root.shape[1]) + root.T @ gr / variance
    inverse = np.linalg.inv(inner)
    back = gr @ inverse / variance
    w = (gram - back @ np.swapaxes(gr, 1, 2)) / variance
    u = (moment - np.einsum("nik,nk->ni", back, moment @ root)) / variance
    total, score = w.sum(axis=0), u.sum(axis=0)
    mean = _best(total, score, held)
    s = u - w @ mean
    residual = moment - gram @ mean
    along = residual @ root
    energy = float(
        stats.energy.sum() - (2 * stats.moment.sum(axis=0) - gram.sum(axis=0) @ mean) @ mean
    )
    explained = float(np.einsum("nk,nkl,nl->", along, inverse, along)) / variance
    rows = float(stats.count.sum())
    log_det = float(np.linalg.slogdet(inner)[1].sum())
    quadratic = (energy - explained) / variance
    value = -0.5 * (rows * log_variance + log_det + quadratic)
    by_cov = 0.5 * (s.T @ s - total)
    # of tr Omega^-1 and of the squares of Omega^-1 r, each times sigma^2
    trace = rows - float(np.sum((root @ root.T) * total))
    squares = quadratic - float(np.sum((s @ root) ** 2))
    return Height(value, 2 * by_cov @ root, 0.5 * (squares - trace), mean)


def _best(total: Array, score: Array, held: Held | None) -> Array:
    """The mean of generalised least squares, one coefficient of it perhaps held."""
    units = np.sqrt(np.diag(total))
    if held is None:
        return np.linalg.solve(total / np.outer(units, units), score / units) / units
    mean = np.zeros(len(score))
    mean[held.feature] = held.value
    rest = np.arange(len(score)) != held.feature
    if rest.any():
        left = (score - total[:, held.feature] * held.value)[rest] / units[rest]
        part = (total / np.outer(units, units))[np.ix_(rest, rest)]
        mean[rest] = np.linalg.solve(part, left) / units[rest]
    return mean
