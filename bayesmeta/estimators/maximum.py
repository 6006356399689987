"""Maximum and restricted maximum likelihood of (mu, Sigma), and of the noise where it is unknown.

Works in coordinates in which an average task's least squares estimate has unit covariance, so that
Sigma there is a ratio of signal to noise and every tolerance is a pure number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesmeta.checks import Advice, Array, InputError, covariance
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.information import standard_errors
from bayesmeta.estimators.likelihood import WIDE, evaluate, in_threads, pack
from bayesmeta.estimators.mixed import leading, ordered, varying_first
from bayesmeta.estimators.noise import pooled_variance
from bayesmeta.estimators.search import LIMIT, Search
from bayesmeta.estimators.starts import LOST, SAME_END, Climbs, End, at_moments, least_noise
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics

MARGIN = 1e-7
"""Log-likelihood by which another place must be better than where the usual starts lead."""
OFTEN = 10
"""Climbs, of ``MANY``, that must end as high as the estimate, in tables of few facts, to be sure of
it: a higher end that one climb in 50 finds is then missed by all of them in one table of 57."""
TRIED = 3
"""Other places that are searched to the end, if they promise to be higher."""
FEW = 100
"""Tasks up to which the search begins at several places."""
NARROW = 10
"""Features up to which these are many; with more, climbing from many takes too long."""
EM = 3
"""Steps of EM from a place that is not near."""
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
    begin = pooled_variance(differing, common=True)[0] if variance is None else variance
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
        best, strays = _from_usual(begun, climbs, starts, begin, near, options.limit)
        if options.thorough:
            found = _from_moments(begun, start, None if doubt else best, options.limit)
            best, strays = (best, strays + found) if doubt else (_higher(best, found), strays)
        if options.thorough and small:
            ends = climbs.elsewhere(None if best is None else _value(best))
            endless = least < begin and _endless(ends, begun, least)
            best = _highest(best, strays, ends, begun, least, endless, options.limit)
            endless = endless or (best is not None and least < begin and best[0].variance <= least)
            sure = not climbs.table.few or _often(best, ends)
        elif small and not free and climbs.table.few:
            best = _highest(best, strays, climbs.elsewhere(), begun, 0.0, False, options.limit)
        if best is None:
            raise np.linalg.LinAlgError("no start led anywhere")
        search, iterations, converged = best
        values, vectors = np.linalg.eigh(search.own_cov)
        values = np.where(values < search.flat, 0.0, values)
        ratio = values[-1] * max(1.0, begin / search.variance)  # of signal to noise
        if values[-1] > HOPELESS:
            raise np.linalg.LinAlgError("signal to noise is beyond the digits of numbers")
        back = change[:own, :own]
        cov = np.pad(back @ (vectors * values) @ vectors.T @ back.T, (0, len(change) - own))
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


Ended = tuple[Search, int, bool]
"""A search, its steps, and whether it arrived."""
Begun = Callable[[Array, float], Search]
"""A search that begins at a covariance and a noise variance."""


def _value(ended: Ended) -> float:
    return ended[0].point.value


def _from_usual(
    begun: Begun, climbs: Climbs, starts: list[Array], noise: float, near: bool, limit: int
) -> tuple[Ended | None, list[Ended]]:
    """The highest end of the searches from the usual starts, and those that rounding led astray.

    The first is searched to its end. From the others, and from the first where it is ``near``, the
    likelihood is climbed by compiled code, where features are few, and searched on only where that
    ends at another height, or nowhere.
    """
    best: Ended | None = None
    strays: list[Ended] = []
    for k, cov in enumerate(starts):
        quick = climbs.packed.dim < WIDE
        end = climbs.climb(cov, noise) if (k or near) and quick else None
        if end is not None and not _elsewhere(end, best):
            continue
        one = None
        try:
            if end is not None:
                ended = _to_the_end(end, begun, climbs.least, limit)
            else:
                one = begun(cov, noise)
                for _ in range(0 if k else EM):
                    one.em()
                if k and quick:
                    one.in_scale(limit)
                ended = (one, *one.climb(limit))
            if best is None or _value(ended) > _value(best):
                best = ended
        except np.linalg.LinAlgError:
            if one is not None:
                strays.append((one, limit, False))
    return best, strays


def _elsewhere(end: End, best: Ended | None) -> bool:
    """Whether a climb ended elsewhere than where the best search arrived. A lower end counts, too:
    on the boundary a climb stops where a search goes on."""
    return best is None or not best[2] or abs(end.value - _value(best)) > SAME_END


def _from_moments(
    begun: Begun, start: tuple[Array, float] | None, best: Ended | None, limit: int
) -> list[Ended]:
    """The end of a search from the moments, if there is one; where ``best`` is given, only if they
    are likelier than it."""
    with suppress(np.linalg.LinAlgError):
        if start is not None:
            one = begun(*start)
            if best is None or one.point.value > _value(best) + MARGIN:
                return [(one, *one.climb(limit))]
    return []


def _higher(best: Ended | None, others: list[Ended]) -> Ended | None:
    """Another search takes the place of the best if it ends higher by ``MARGIN``."""
    for other in others:
        if best is None or _value(other) > _value(best) + MARGIN:
            best = other
    return best


def _highest(
    best: Ended | None,
    strays: list[Ended],
    ends: list[End],
    begun: Begun,
    least: float,
    endless: bool,
    limit: int,
) -> Ended | None:
    """The highest of all: another place takes that of ``best`` if it is higher by ``MARGIN``.

    Likelihoods of less noise than ``least`` have too few digits to be compared; there the same
    covariance counts with that much noise.
    """
    highest = -math.inf if best is None else best[0].with_noise(max(best[0].variance, least))
    others = [] if best is None else strays
    for end in ends[:TRIED]:
        if end.value > highest + MARGIN:
            with suppress(np.linalg.LinAlgError):
                others.append(_to_the_end(end, begun, least, limit))

    def sure(ended: Ended) -> float:
        one = ended[0]
        return one.with_noise(max(one.variance, least)) - LOST * min(1.0, least / one.variance)

    other = max(others, key=sure, default=None)
    if best is None or other is None:
        return best or other
    if best[0].free and best[0].variance <= least and (endless or other[0].variance <= least):
        return best  # the likelihood rises to no noise, here as there
    return other if sure(other) > highest + MARGIN else best


def _endless(ends: list[End], begun: Begun, least: float) -> bool:
    """Whether the likelihood rises without bound as the noise goes to 0.

    If covariances of lower rank fit rewards exactly, it rises by at least half the logarithm of
    the noise variance for ever, so that it has no maximum, however high others are.
    """
    lowest = [end for end in ends if end.variance <= least]
    for end in lowest[:TRIED]:
        with suppress(np.linalg.LinAlgError):
            here = begun(end.root @ end.root.T, end.variance).point
            if here.noise_gradient < -0.25:
                return True
    return False


def _often(best: Ended | None, ends: list[End]) -> bool:
    """Whether several climbs came as high, so that none that was missed is likely to be higher."""
    return best is not None and sum(end.value > _value(best) - 1e-3 for end in ends) >= OFTEN


def _to_the_end(end: End, begun: Begun, least: float, limit: int) -> Ended:
    """Search on from the end of a climb, but not into noise so small that digits are lost."""
    one = begun(end.root @ end.root.T, end.variance)
    try:
        arrived = one.climb(limit)
    except np.linalg.LinAlgError:
        return begun(end.root @ end.root.T, end.variance), limit, False
    if one.variance < least:
        return begun(end.root @ end.root.T, end.variance), arrived[0], False
    return one, *arrived


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
    """A log-likelihood; None where statistics lack the parts that its constant needs. Rows in units
    of their own noise are denser by the roots of their weights."""
    if stats.count is None or stats.energy is None:
        return None
    return value if stats.log_weights is None else value + 0.5 * float(stats.log_weights.sum())


def fit_gls(
    stats: TaskStatistics, variance: float | None, cov: ArrayLike, *, threads: int = 1
) -> PriorEstimate:
    """``gls`` of ``fit_prior``: the mean weighted by (Sigma + sigma^2 V_j^-1)^-1, Sigma given."""
    stats.require_independent_features()
    variance = pooled_variance(stats)[0] if variance is None else variance
    given = GaussianPrior(np.zeros(stats.dim), covariance("cov", cov, stats.dim))
    if given.cov[~stats.differs].any():
        raise InputError(
            "cov must be 0 in the rows and columns of features that do not differ between tasks"
        )
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
