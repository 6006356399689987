"""Maximum and restricted maximum likelihood of (mu, Sigma), and of the noise where it is unknown.

Works in coordinates in which an average task's least squares estimate has unit covariance, so that
Sigma there is a ratio of signal to noise and every tolerance is a pure number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Advice, Array, InputError
from bayesmeta.estimators.ends import (
    end_of,
    endless_at,
    from_moments,
    from_usual,
    higher,
    highest_of,
    often,
)
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.information import standard_errors
from bayesmeta.estimators.likelihood import WIDE, in_threads, pack
from bayesmeta.estimators.mixed import leading, ordered, varying_first
from bayesmeta.estimators.search import LIMIT, Search
from bayesmeta.estimators.starts import Climbs, at_moments, first_noise, least_noise
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics

FEW = 100
"""Tasks up to which the search begins at several places."""
NARROW = 10
"""Features up to which these are many; with more, climbing from many takes too long."""
OFF = 1e-2
"""Added to a covariance to begin at: on the boundary the search is slow."""
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
    thorough: bool = True
    """whether to look for higher maxima elsewhere, in small tables; if not, only where the noise is
    known and tasks have told few numbers"""


def maximise(
    stats: TaskStatistics, variance: float | None, restricted: bool, options: Options
) -> Fit:
    """Maximise the (restricted) likelihood, from a few steps of EM on by scoring and L-BFGS.

    ``variance`` None: the noise is estimated, too.
    """
    if stats.varying is not None and not all(stats.varying[: sum(stats.varying)]):
        order = varying_first(stats)
        return _in_order(stats, variance, restricted, options, order)
    n, free, own = len(stats), variance is None, int(stats.differs.sum())
    total = stats.gram.sum(axis=0)
    energy = _energy(stats) if free or options.thorough else 0.0
    stats.require_independent_features()
    stats, centre = stats.centred()
    differing = leading(stats, own)
    begin = first_noise(differing) if variance is None else variance
    lower = np.linalg.cholesky(total / (n * begin))
    change = np.linalg.inv(lower).T  # theta = change theta'
    mean, starts = _starts(options, lower, change, centre, n, own)
    with in_threads(options.threads) as each:
        packed = pack(stats, change, each)

        def begun(cov: Array, noise: float) -> Search:
            return Search(packed, mean, cov, noise, begin, free, restricted, each, own)

        least = least_noise(energy, begin)
        climbs = Climbs(packed, begin, least, free, restricted, own)
        endless, sure, small = False, True, n <= FEW and own <= NARROW and len(total) < WIDE
        doubt, start = small, None
        if options.thorough:
            doubt = small and not climbs.table.plenty
            start = at_moments(differing, change[:own, :own], variance, begin)
        near = small and not doubt and start is not None and options.start is None
        if near and start is not None:
            starts = [start[0] + OFF * np.eye(own)]
        near = near or (small and not options.thorough)
        best, strays = from_usual(begun, climbs, starts, begin, near, options.limit)
        if options.thorough:
            found = from_moments(begun, start, None if doubt else best, options.limit)
            best, strays = (best, strays + found) if doubt else (higher(best, found), strays)
        if options.thorough and small:
            ends = climbs.elsewhere(end_of(best), best is not None and best[2])
            endless = least < begin and endless_at(ends, begun, least)
            best = highest_of(best, strays, ends, begun, least, endless, options.limit)
            endless = endless or (best is not None and least < begin and best[0].variance <= least)
            sure = not climbs.table.few or often(best, ends)
        elif small and not free and climbs.table.few:
            best = highest_of(best, strays, climbs.elsewhere(), begun, 0.0, False, options.limit)
        if best is None:
            raise np.linalg.LinAlgError("no start led anywhere")
        search, iterations, converged = best
        values, vectors = np.linalg.eigh(search.own_cov)
        values = np.where(values < search.flat, 0.0, values)
        ratio = values[-1] * max(1.0, begin / search.variance)  # of signal to noise
        if values[-1] > HOPELESS:
            raise np.linalg.LinAlgError("signal to noise is beyond the digits of numbers")
        # a square has no negative eigenvalue, whatever is rounded
        root = change[:own, :own] @ (vectors * np.sqrt(values))
        cov = np.pad(root @ root.T, (0, len(change) - own))
        # the restricted likelihood integrates the mean out, in other coordinates
        volume = float(np.linalg.slogdet(change)[1]) if restricted else 0.0
        cov_sd, identified = standard_errors(search, change) if options.errors else (None, True)
        vanishes = search.variance < 1e-6 * begin
        rises = (identified or vanishes) and search.rises_without_noise(energy, vanishes)
        noiseless = free and (rises or endless)
    return Fit(
        mean=centre + change @ search.point.mean,
        cov=(cov + cov.T) / 2,
        variance=search.variance,
        value=float(search.point.value + volume),
        mean_cov=change @ np.linalg.inv(search.point.information) @ change.T,
        cov_sd=cov_sd,
        iterations=iterations,
        converged=converged and sure,
        rank=int((values > 0).sum()),
        identified=identified,
        imprecise=bool(values[-1] > RATIO or (ratio > RATIO and not noiseless)),
        noiseless=noiseless,
    )


def _in_order(
    stats: TaskStatistics,
    variance: float | None,
    restricted: bool,
    options: Options,
    order: NDArray[np.intp],
) -> Fit:
    """``maximise`` with the features in another order, in which those that differ come first."""
    if options.start is not None:
        mean, cov = options.start
        options = options._replace(start=(mean[order], cov[np.ix_(order, order)]))
    fit = maximise(ordered(stats, order), variance, restricted, options)
    back = np.argsort(order)
    both = np.ix_(back, back)
    return fit._replace(
        mean=fit.mean[back],
        cov=fit.cov[both],
        mean_cov=fit.mean_cov[both],
        cov_sd=None if fit.cov_sd is None else fit.cov_sd[both],
    )


def _energy(stats: TaskStatistics) -> float:
    """The sum of squared rewards, or without it that of what each task's features explain."""
    if stats.energy is not None:
        return float(stats.energy.sum())
    inverse = np.linalg.pinv(stats.gram, hermitian=True)
    return float(np.einsum("ni,nij,nj->", stats.moment, inverse, stats.moment))


def _starts(
    options: Options, lower: Array, change: Array, centre: Array, tasks: int, own: int
) -> tuple[Array, list[Array]]:
    """Where to begin, in whitened coordinates: a mean, and covariances one after the other."""
    one = np.eye(own)
    mean, first = np.zeros(len(centre)), one
    if options.start is not None:
        mean = np.linalg.solve(change, options.start[0] - centre)
        # off the boundary, where the search is slow
        first = (lower.T @ options.start[1] @ lower)[:own, :own] + OFF * one
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
    status = _status(fit, int(stats.differs.sum()))
    return PriorEstimate(
        GaussianPrior(fit.mean, fit.cov),
        status,
        mean_cov=fit.mean_cov,
        cov_sd=fit.cov_sd if status is Status.OK else None,
        noise_sd=math.sqrt(fit.variance),
        log_likelihood=if_complete(stats, fit.value),
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


def if_complete(stats: TaskStatistics, value: float) -> float | None:
    """A log-likelihood; None where statistics lack the parts that its constant needs. Rows in units
    of their own noise are denser by the roots of their weights."""
    if stats.count is None or stats.energy is None:
        return None
    return value if stats.log_weights is None else value + 0.5 * float(stats.log_weights.sum())
