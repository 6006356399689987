"""Maximum and restricted maximum likelihood of (mu, Sigma), and of the noise where it is unknown.

Works in coordinates in which an average task's least squares estimate has unit covariance, so that
Sigma there is a ratio of signal to noise and every tolerance is a pure number.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Advice, Array, InputError
from bayesmeta.estimators.information import standard_errors
from bayesmeta.estimators.likelihood import in_threads, pack
from bayesmeta.estimators.search import FLAT, LIMIT, Search
from bayesmeta.statistics import TaskStatistics

FEW = 100
"""Tasks up to which the search begins at several places."""
RATIO = 1e8
"""Signal to noise beyond which the likelihood is computed with few digits."""
HOPELESS = 1e13
"""Signal to noise beyond which it has none."""
DEPENDENT = 1e-11
"""Features are linearly dependent: the smallest eigenvalue of their scaled sum of squares."""


class Fit(NamedTuple):
    """Where a likelihood is largest."""

    mean: Array
    cov: Array
    variance: float
    value: float
    mean_cov: Array
    cov_sd: Array | None
    """standard errors of the entries of Sigma, where asked for and determined"""
    iterations: int
    converged: bool
    rank: int
    identified: bool
    """whether the data determine every parameter; not looked at without ``errors``"""
    imprecise: bool
    """whether the noise is so small beside the differences of tasks that digits are lost"""
    noiseless: bool
    """whether the likelihood rises as the noise goes to 0"""


def maximise(
    stats: TaskStatistics,
    variance: float | None,
    *,
    restricted: bool,
    start: tuple[Array, Array] | None = None,
    threads: int = 1,
    limit: int = LIMIT,
    errors: bool = True,
) -> Fit:
    """Maximise the (restricted) likelihood, from a few steps of EM on by scoring and BFGS.

    ``variance`` None: the noise is estimated, too. ``start`` is a mean and covariance to begin at.
    """
    n, d = len(stats), stats.dim
    total = stats.gram.sum(axis=0)
    check_independent(total)
    stats, centre = stats.centred()
    free = variance is None
    begin = first_variance(stats, total) if variance is None else variance
    lower = np.linalg.cholesky(total / (n * begin))
    change = np.linalg.inv(lower).T  # theta = change theta'
    packed = pack(stats, change)
    mean, first, others = np.zeros(d), np.eye(d), []
    if start is not None:
        mean = np.linalg.solve(change, start[0] - centre)
        first = lower.T @ start[1] @ lower + 1e-2 * np.eye(d)  # slow at the boundary: keep off it
    if n <= FEW:  # the likelihood may have several maxima
        others = [size * np.eye(d) for size in (1.0, 0.01, 100.0)]
    found = []
    with in_threads(threads if len(packed.chunks) > 1 else 1) as each:
        for k, cov in enumerate([first, *others]):
            with suppress(np.linalg.LinAlgError):  # a start from which rounding leads astray
                one = Search(packed, mean, cov, begin, free, restricted, each)
                for _ in range(0 if k else 3):
                    one.em()
                if k:
                    one.bfgs(limit)
                found.append((one, *one.climb(limit)))
    if not found:
        raise np.linalg.LinAlgError("no start led anywhere")
    search, iterations, converged = max(found, key=lambda one: one[0].point.value)
    values, vectors = np.linalg.eigh(search.cov)
    values = np.where(values < FLAT, 0.0, values)
    if values[-1] > HOPELESS:
        raise np.linalg.LinAlgError("signal to noise is beyond the digits of numbers")
    cov = change @ (vectors * values) @ vectors.T @ change.T
    point = search.point
    value = point.value
    if restricted:  # the mean was integrated out in other coordinates
        value += float(np.linalg.slogdet(change)[1])
    inverse = np.linalg.inv(point.information)
    cov_sd, identified = standard_errors(search, change) if errors else (None, True)
    return Fit(
        centre + change @ point.mean,
        (cov + cov.T) / 2,
        search.variance,
        float(value),
        change @ inverse @ change.T,
        cov_sd,
        iterations,
        converged,
        int((values > 0).sum()),
        identified,
        bool(values[-1] > RATIO),
        free and search.variance < 1e-6 * begin,
    )


def check_independent(total: Array) -> None:
    """Refuse features that are linear combinations of others, in all tasks together."""
    units = np.sqrt(np.diag(total))
    if units.min() > 0:
        values = np.linalg.eigvalsh(total / np.outer(units, units))
        if values[0] > DEPENDENT * values[-1]:
            return
    raise InputError(
        "the features of all tasks together are linearly dependent, or so nearly that numbers of "
        "16 digits cannot tell them apart, so the prior mean is not determined; leave out a "
        "feature that others make up or that is always 0, or take the mean off one that hardly "
        "varies about it (a date)"
    )


def first_variance(stats: TaskStatistics, total: Array) -> float:
    """Residuals of each task's own least squares, pooled; or of one for all tasks."""
    left, freedom = stats.residuals()
    assert stats.energy is not None
    if freedom < 1:
        b = stats.moment.sum(axis=0)
        left = float(stats.energy.sum() - b @ np.linalg.pinv(total, hermitian=True) @ b)
        freedom = float(stats.count.sum())  # type: ignore[union-attr]
    if left <= 1e-13 * stats.energy.sum():
        raise InputError(
            Advice(
                "the rewards of every task are fitted exactly, so the noise cannot be estimated; "
                "give {noise_sd}, or more rows a task"
            )
        )
    return left / freedom
