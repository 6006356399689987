"""Every estimator of the prior, on the same statistics of tasks."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import Advice, Array, InputError, covariance, of_type, one_of, real, whole
from bayesmeta.environment import Bounds
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.likelihood import evaluate, in_threads, pack
from bayesmeta.estimators.maximum import check_independent, maximise
from bayesmeta.estimators.search import LIMIT
from bayesmeta.estimators.widening import widening_radius
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics
from bayesmeta.theory.constants import widening_constant

METHODS = ("moment", "moment-widened", "moment-clipped", "gls", "ml", "reml", "split")
"""What ``fit_prior`` knows."""


def fit_prior(
    stats: TaskStatistics | tuple[TaskStatistics, TaskStatistics],
    noise_sd: float | None = None,
    method: str = "reml",
    *,
    cov: ArrayLike | None = None,
    widening: float | None = None,
    horizon: int | None = None,
    bounds: Bounds | None = None,
    limit: int = LIMIT,
    threads: int = 1,
) -> PriorEstimate:
    """Estimate the prior N(mu, Sigma) of the parameters of tasks.

    ``moment``          mean and bias-corrected covariance of least squares, eqs. (9)-(11)
    ``moment-widened``  the same with eq. (12); needs ``horizon`` (T), and ``widening`` (c_w) or,
                        for the theoretical constant, ``bounds``
    ``moment-clipped``  the same with negative eigenvalues set to zero
    ``gls``             the mean weighted by (Sigma + sigma^2 V_j^-1)^-1, for ``cov`` given, or
                        estimated by reml
    ``ml``, ``reml``    maximum and restricted maximum likelihood
    ``split``           cross-covariance of least squares from two halves of the steps of each task:
                        ``stats`` is the pair, such as (from_frame(odd), from_frame(even)), whose
                        tasks are matched by their labels; unbiased whatever the noise

    ``noise_sd`` None: the noise is estimated, from pooled residuals, or jointly by ml and reml.
    ``bounds`` are those of Assumptions 1-3 (``bm.Bounds``); ``limit`` stops the search of ml and
    reml after so many steps; ``threads`` work on their tasks side by side. Without count and energy
    there is no log-likelihood. Standard errors of the covariance: for moments and split
    from how the tasks' contributions spread, for ml and reml from the expected information.
    """
    one_of("method", method, METHODS)
    for name, given, user in (("cov", cov, "gls"), ("widening", widening, "moment-widened"),
                              ("horizon", horizon, "moment-widened"),
                              ("bounds", bounds, "moment-widened")):  # fmt: skip
        if given is not None and method != user:
            raise InputError(f"{name} is for method {user!r}; {method} does not use it")
    if method == "split":
        return _split(stats)
    of_type("stats", stats, TaskStatistics, "make one, or use TaskStatistics.from_frame")
    assert isinstance(stats, TaskStatistics)
    if len(stats) < 2:
        raise InputError(
            f"there is {len(stats)} task; how tasks differ can be learned from two or more"
        )
    whole("limit", limit, least=1)
    whole("threads", threads, least=1)
    variance = None if noise_sd is None else real("noise_sd", noise_sd, above=0.0) ** 2
    if method in ("ml", "reml"):
        return fit_likelihood(stats, variance, method == "reml", threads=threads, limit=limit)
    if method == "gls":
        return _gls(stats, variance, cov, threads, limit)
    return _moment(stats, variance, method, widening, horizon, bounds)


def pooled_variance(stats: TaskStatistics) -> float:
    """The noise variance from the residuals of every task's own least squares, pooled."""
    left, freedom = stats.residuals()
    if freedom < 1:
        raise InputError(
            Advice(
                "no task has more steps than features, so their residuals say nothing of the "
                "noise; give {noise_sd}"
            )
        )
    assert stats.energy is not None
    if left <= 1e-13 * stats.energy.sum():
        raise InputError(
            Advice(
                "the rewards of every task are fitted exactly, so the noise cannot be estimated; "
                "give {noise_sd}, or more rows a task"
            )
        )
    return left / freedom


def _moment(
    stats: TaskStatistics,
    variance: float | None,
    method: str,
    widening: float | None,
    horizon: int | None,
    bounds: Bounds | None,
) -> PriorEstimate:
    check_independent(stats.gram.sum(axis=0))
    usable = stats.determined()
    k, d = int(usable.sum()), stats.dim
    if k < 2:
        raise InputError(
            f"{k} of {len(stats)} tasks have an invertible gram, and {method} needs two; ml and "
            "reml use the others, too"
        )
    doubt = 0.0  # of the noise variance, where it is estimated
    if variance is None:
        variance = pooled_variance(stats)
        doubt = 2 * variance**2 / stats.residuals()[1]
    gram, moment, units = stats.scaled()
    inverse = np.linalg.inv(gram[usable])
    theta = np.einsum("nij,nj->ni", inverse, moment[usable]) / units  # eq. (9)
    inverse = inverse / np.outer(units, units)
    mean = theta.mean(axis=0)  # eq. (10)
    gap = theta - mean
    each = k / (k - 1) * gap[:, :, None] * gap[:, None, :] - variance * inverse
    raw = each.mean(axis=0)  # eq. (11)
    raw = (raw + raw.T) / 2
    negative = int((np.linalg.eigvalsh(raw) < 0).sum())
    facts = {
        "raw_cov": raw,
        "passed_over": len(stats) - k,
        "negative": negative,
        "mean_cov": gap.T @ gap / (k * (k - 1)),
        "cov_sd": np.sqrt(each.var(axis=0, ddof=1) / k + doubt * inverse.mean(axis=0) ** 2)
        if k > 2
        else None,
        "noise_sd": math.sqrt(variance),
    }
    status = Status.NOT_POSITIVE_DEFINITE if negative else Status.OK
    if method == "moment-clipped":
        if negative:
            facts["cov_sd"] = None  # of the matrix before it was clipped
        return _estimate(mean, _clip(raw), Status.CLIPPED if negative else Status.OK, facts)
    if method == "moment-widened":
        cov = raw + _radius(k, d, variance, widening, horizon, bounds) * np.eye(d)
        status = Status.OK if np.linalg.eigvalsh(cov)[0] >= 0 else Status.NOT_POSITIVE_DEFINITE
        return _estimate(mean, cov, status, facts)
    return _estimate(mean, raw, status, facts)


def _radius(
    k: int,
    d: int,
    variance: float,
    widening: float | None,
    horizon: int | None,
    bounds: Bounds | None,
) -> float:
    """s of eq. (12) before task n = k + 1."""
    if horizon is None:
        raise InputError("moment-widened needs horizon, the number of steps of a task (T)")
    whole("horizon", horizon, least=1)
    if widening is None:
        if bounds is None or bounds.action_min <= 0:
            raise InputError(
                "the theoretical c_w needs bounds with action_min > 0 (Assumption 1); or give "
                "widening"
            )
        widening = widening_constant(d, math.sqrt(variance), bounds.action_min, bounds.prior_max)
    constant = real("widening", widening, least=0.0)
    return float(widening_radius(k + 1, d, horizon, constant))


def _clip(symmetric: Array) -> Array:
    values, vectors = np.linalg.eigh(symmetric)
    clipped = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (clipped + clipped.T) / 2


def _estimate(mean: Array, cov: Array, status: Status, facts: dict[str, object]) -> PriorEstimate:
    """The estimate as it is: a matrix with negative eigenvalues is handed out, and said so."""
    good = status is not Status.NOT_POSITIVE_DEFINITE
    prior = GaussianPrior(mean, cov) if good else GaussianPrior.unusable(mean, cov)
    return PriorEstimate(prior, status, **facts)  # type: ignore[arg-type]


def fit_likelihood(
    stats: TaskStatistics,
    variance: float | None,
    restricted: bool,
    *,
    start: tuple[Array, Array] | None = None,
    threads: int = 1,
    limit: int = LIMIT,
    errors: bool = True,
) -> PriorEstimate:
    """``ml`` or ``reml``; ``start`` is a mean and covariance to begin at; without ``errors`` no
    standard errors are computed, nor is it seen whether all is determined."""
    try:
        fit = maximise(
            stats, variance, restricted=restricted, start=start, threads=threads, limit=limit,
            errors=errors,
        )  # fmt: skip
    except np.linalg.LinAlgError:
        raise InputError(
            Advice(
                "the likelihood cannot be computed with numbers of 16 digits: the noise is too "
                "small beside the rewards; give a larger {noise_sd}, or let it be estimated"
            )
        ) from None
    status = Status.OK
    if fit.rank < stats.dim:
        status = Status.BOUNDARY
    if not fit.identified:
        status = Status.NOT_IDENTIFIED
    if not fit.converged:
        status = Status.NOT_CONVERGED
    if fit.noiseless:  # whether it arrived or not: there is nowhere to arrive
        status = Status.NO_NOISE
    if fit.imprecise:
        status = Status.IMPRECISE
    return PriorEstimate(
        GaussianPrior(fit.mean, fit.cov),
        status,
        mean_cov=fit.mean_cov,
        cov_sd=fit.cov_sd if status is Status.OK else None,
        noise_sd=math.sqrt(fit.variance),
        log_likelihood=None if stats.count is None or stats.energy is None else fit.value,
        iterations=fit.iterations,
    )


def _gls(
    stats: TaskStatistics, variance: float | None, cov: ArrayLike | None, threads: int, limit: int
) -> PriorEstimate:
    if cov is None:
        return fit_likelihood(stats, variance, True, threads=threads, limit=limit)
    check_independent(stats.gram.sum(axis=0))
    variance = pooled_variance(stats) if variance is None else variance
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
        log_likelihood=None if stats.count is None or stats.energy is None else point.value,
    )


def _split(pair: object) -> PriorEstimate:
    """Means and cross-covariance of two independent least squares estimates of every theta."""
    if (
        not isinstance(pair, tuple)
        or len(pair) != 2
        or not all(isinstance(half, TaskStatistics) for half in pair)
    ):
        raise InputError(
            "split takes a pair of TaskStatistics as stats, from two halves of each task's steps"
        )
    first, second = pair
    if len(first) != len(second) or first.dim != second.dim or len(first) < 2:
        raise InputError(
            "split needs the same two or more tasks in both halves, got "
            f"{len(first)} of dimension {first.dim} and {len(second)} of dimension {second.dim}"
        )
    if first.features != second.features:
        raise InputError("split needs the same features in both halves, in the same order")
    one, two = first.ols(), second.ols()
    if first.tasks is not None and second.tasks is not None and first.tasks != second.tasks:
        place = {label: k for k, label in enumerate(second.tasks)}
        alone = [label for label in first.tasks if label not in place]
        if alone:
            raise InputError(f"split needs the same tasks in both halves; {alone[0]!r} is in one")
        two = two[[place[label] for label in first.tasks]]
    n = len(one)
    mean = (one + two).mean(axis=0) / 2
    gap_one, gap_two = one - one.mean(axis=0), two - two.mean(axis=0)
    each = n / (n - 1) * gap_one[:, :, None] * gap_two[:, None, :]
    each = (each + each.transpose(0, 2, 1)) / 2
    raw = each.mean(axis=0)
    negative = int((np.linalg.eigvalsh(raw) < 0).sum())
    gap = (gap_one + gap_two) / 2
    facts = {
        "raw_cov": raw,
        "negative": negative,
        "mean_cov": gap.T @ gap / (n * (n - 1)),
        "cov_sd": each.std(axis=0, ddof=1) / math.sqrt(n) if n > 2 else None,
    }
    return _estimate(mean, raw, Status.NOT_POSITIVE_DEFINITE if negative else Status.OK, facts)


def task_posteriors(stats: TaskStatistics, estimate: PriorEstimate) -> tuple[Array, Array]:
    """Empirical Bayes, eq. (4): mean and covariance of every theta_j given its data and prior.

    As if the estimated prior were known: its own uncertainty is not in them.
    """
    if not estimate.usable:
        raise InputError(f"this estimate is no prior: {estimate.status.advice}")
    if estimate.noise_sd is None:
        raise InputError(
            "this estimate has no noise_sd (split does not need it); give it with "
            "estimate._replace(noise_sd=...)"
        )
    return estimate.prior.posterior(stats.gram, stats.moment, estimate.noise_sd)
