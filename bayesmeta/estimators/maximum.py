"""Maximum and restricted maximum likelihood of (mu, Sigma), and of the noise where it is unknown.

Works in coordinates in which an average task's least squares estimate has unit covariance, so that
Sigma there is a ratio of signal to noise and every tolerance is a pure number.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import Advice, Array, InputError, covariance
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.information import standard_errors
from bayesmeta.estimators.likelihood import evaluate, in_threads, pack
from bayesmeta.estimators.noise import pooled_variance
from bayesmeta.estimators.search import FLAT, LIMIT, Search
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics

FEW = 100
"""Tasks up to which the search begins at several places."""
RATIO = 1e8
"""Signal to noise beyond which the likelihood is computed with few digits."""
HOPELESS = 1e13
"""Signal to noise beyond which it has none."""


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


class Options(NamedTuple):
    """How to search for a maximum."""

    start: tuple[Array, Array] | None = None
    """a mean and covariance to begin at"""
    threads: int = 1
    limit: int = LIMIT
    """steps at most"""
    errors: bool = True
    """whether to compute standard errors, and see whether the data determine everything"""


def maximise(
    stats: TaskStatistics, variance: float | None, restricted: bool, options: Options
) -> Fit:
    """Maximise the (restricted) likelihood, from a few steps of EM on by scoring and BFGS.

    ``variance`` None: the noise is estimated, too.
    """
    n, free = len(stats), variance is None
    total = stats.gram.sum(axis=0)
    stats.require_independent_features()
    stats, centre = stats.centred()
    begin = pooled_variance(stats, common=True)[0] if variance is None else variance
    lower = np.linalg.cholesky(total / (n * begin))
    change = np.linalg.inv(lower).T  # theta = change theta'
    packed = pack(stats, change)
    mean, starts = _starts(options, lower, change, centre, n)
    found = []
    with in_threads(options.threads if len(packed.chunks) > 1 else 1) as each:
        for k, cov in enumerate(starts):
            with suppress(np.linalg.LinAlgError):  # a start from which rounding leads astray
                one = Search(packed, mean, cov, begin, free, restricted, each)
                for _ in range(0 if k else 3):
                    one.em()
                if k:
                    one.bfgs(options.limit)
                found.append((one, *one.climb(options.limit)))
    if not found:
        raise np.linalg.LinAlgError("no start led anywhere")
    search, iterations, converged = max(found, key=lambda one: one[0].point.value)
    values, vectors = np.linalg.eigh(search.cov)
    values = np.where(values < FLAT, 0.0, values)
    if values[-1] > HOPELESS:
        raise np.linalg.LinAlgError("signal to noise is beyond the digits of numbers")
    cov = change @ (vectors * values) @ vectors.T @ change.T
    # the restricted likelihood integrates the mean out, in other coordinates
    volume = float(np.linalg.slogdet(change)[1]) if restricted else 0.0
    cov_sd, identified = standard_errors(search, change) if options.errors else (None, True)
    return Fit(
        mean=centre + change @ search.point.mean,
        cov=(cov + cov.T) / 2,
        variance=search.variance,
        value=float(search.point.value + volume),
        mean_cov=change @ np.linalg.inv(search.point.information) @ change.T,
        cov_sd=cov_sd,
        iterations=iterations,
        converged=converged,
        rank=int((values > 0).sum()),
        identified=identified,
        imprecise=bool(values[-1] > RATIO),
        noiseless=free and search.variance < 1e-6 * begin,
    )


def _starts(
    options: Options, lower: Array, change: Array, centre: Array, tasks: int
) -> tuple[Array, list[Array]]:
    """Where to begin, in whitened coordinates: a mean, and covariances one after the other."""
    one = np.eye(len(centre))
    mean, first = np.zeros(len(centre)), one
    if options.start is not None:
        mean = np.linalg.solve(change, options.start[0] - centre)
        # off the boundary, where the search is slow
        first = lower.T @ options.start[1] @ lower + 1e-2 * one
    if tasks > FEW:
        return mean, [first]
    return mean, [first, *(size * one for size in (1.0, 0.01, 100.0))]  # several maxima


def fit_likelihood(
    stats: TaskStatistics, variance: float | None, restricted: bool, options: Options
) -> PriorEstimate:
    """``ml`` or ``reml`` of ``fit_prior``, with a status that says what to think of it."""
    try:
        fit = maximise(stats, variance, restricted, options)
    except np.linalg.LinAlgError:
        raise InputError(
            Advice(
                "the likelihood cannot be computed with numbers of 16 digits: the noise is too "
                "small beside the rewards; give a larger {noise_sd}, or let it be estimated"
            )
        ) from None
    status = _status(fit, stats.dim)
    return PriorEstimate(
        GaussianPrior(fit.mean, fit.cov),
        status,
        mean_cov=fit.mean_cov,
        cov_sd=fit.cov_sd if status is Status.OK else None,
        noise_sd=math.sqrt(fit.variance),
        log_likelihood=_if_complete(stats, fit.value),
        iterations=fit.iterations,
    )


def _status(fit: Fit, dim: int) -> Status:
    """The most serious thing to say of a maximum."""
    if fit.imprecise:
        return Status.IMPRECISE
    if fit.noiseless:  # converged or not: the likelihood has no maximum
        return Status.NO_NOISE
    if not fit.converged:
        return Status.NOT_CONVERGED
    if not fit.identified:
        return Status.NOT_IDENTIFIED
    return Status.BOUNDARY if fit.rank < dim else Status.OK


def _if_complete(stats: TaskStatistics, value: float) -> float | None:
    """A log-likelihood; None where statistics lack the parts that its constant needs."""
    return None if stats.count is None or stats.energy is None else value


def fit_gls(
    stats: TaskStatistics, variance: float | None, cov: ArrayLike, *, threads: int = 1
) -> PriorEstimate:
    """``gls`` of ``fit_prior``: the mean weighted by (Sigma + sigma^2 V_j^-1)^-1, Sigma given."""
    stats.require_independent_features()
    variance = pooled_variance(stats)[0] if variance is None else variance
    given = GaussianPrior(np.zeros(stats.dim), covariance("cov", cov, stats.dim))
    centred, centre = stats.centred()
    packed = pack(centred, np.eye(stats.dim))
    with in_threads(threads) as each:
        point = evaluate(packed, given.mean, given.cholesky, variance, False, each)
    return PriorEstimate(
        GaussianPrior(centre + point.mean, given.cov),
        Status.OK,
        mean_cov=np.linalg.inv(point.information),
        noise_sd=math.sqrt(variance),
        log_likelihood=_if_complete(stats, point.value),
    )
