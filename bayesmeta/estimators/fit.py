"""Every estimator of the prior, on the same statistics of tasks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import Advice, Array, InputError, covariance, of_type, one_of, real, whole
from bayesmeta.environment import Bounds
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.estimators.gls import fit_gls
from bayesmeta.estimators.maximum import Options, fit_likelihood
from bayesmeta.estimators.mixed import require_all_varying
from bayesmeta.estimators.moments import fit_moments
from bayesmeta.estimators.restated import FeatureUnits, sizes_of
from bayesmeta.estimators.search import LIMIT
from bayesmeta.estimators.split import fit_split
from bayesmeta.statistics import TaskStatistics
from bayesmeta.units import check_size

METHODS = ("moment", "moment-widened", "moment-clipped", "gls", "ml", "reml", "split")
"""What ``fit_prior`` knows."""
DIGITS = 1e40
"""How many times the noise rewards may be for a likelihood; they have 16 digits."""
BEYOND = (
    "the estimate leaves the range of floating point: noise, rewards or the features of different "
    "tasks are too far apart in size; choose other units, or leave out the tasks with tiny features"
)
"""What is said where a number is not finite."""
FEATURES = 64
"""What the likelihood's methods take at most: several of their matrices have d^4 entries."""


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

    Parameters
    ----------
    stats : TaskStatistics, or a pair of them for ``method="split"``
        What the tasks leave behind.
    noise_sd : float, optional
        sigma; where None the noise is estimated, from pooled residuals by the moments, jointly with
        the prior by ``ml`` and ``reml``.
    method : str
        ``"moment"``
            mean and bias-corrected covariance of least squares, eqs. (9)-(11)
        ``"moment-widened"``
            the same with eq. (12); needs ``horizon``, and ``widening`` or ``bounds``
        ``"moment-clipped"``
            the same with negative eigenvalues set to zero; what that gives depends on the units of
            the features, unlike ``ml`` and ``reml``
        ``"ml"``, ``"reml"``
            maximum and restricted maximum likelihood; like ``gls`` for at most 64 features
        ``"gls"``
            the mean weighted by (Sigma + sigma^2 V_j^-1)^-1, Sigma being ``cov``, or estimated by
            ``reml``
        ``"split"``
            cross-covariance of least squares from two halves of the steps of each task; tasks are
            matched by their labels; unbiased whatever the noise
    cov : array_like, shape (d, d), optional
        Sigma, for ``gls``.
    widening : float, optional
        c_w of eq. (12); the theoretical constant where None.
    horizon : int, optional
        T of eq. (12), the steps of a task.
    bounds : Bounds, optional
        Those of Assumptions 1-3, for the theoretical c_w.
    limit : int
        Steps after which the search of ``ml`` and ``reml`` stops.
    threads : int
        Threads of that search.

    Returns
    -------
    PriorEstimate
        The prior, how it came about (``status``), and standard errors: of the covariance, by the
        moments and split from how the tasks' contributions spread, by ``ml`` and ``reml`` from the
        expected information. Without ``count`` and ``energy`` there is no log-likelihood.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = rng.normal(2.0, 1.0, size=50)  # fifty tasks, one feature that is always 1
    >>> rewards = theta.repeat(4) + 0.5 * rng.standard_normal(200)
    >>> stats = TaskStatistics.from_arrays(np.arange(50).repeat(4), rewards, np.ones((200, 1)))
    >>> estimate = fit_prior(stats, method="reml")
    >>> estimate.prior.mean.round(2), estimate.prior.cov.round(2), round(estimate.noise_sd, 2)
    (array([2.11]), array([[0.79]]), 0.53)
    """
    one_of("method", method, METHODS)
    own = {"cov": (cov, "gls")} | {
        name: (value, "moment-widened")
        for name, value in (("widening", widening), ("horizon", horizon), ("bounds", bounds))
    }
    for name, (given, user) in own.items():
        if given is not None and method != user:
            raise InputError(f"{name} is for method {user!r}; {method} does not use it")
    with _within_floats():
        if method == "split":
            return _checked(fit_split(stats))  # it checks its pair, and keeps its labels
        return _checked(
            _fit(stats, noise_sd, method, cov, widening, horizon, bounds, limit, threads)
        )


def _fit(
    stats: object,
    noise_sd: float | None,
    method: str,
    cov: ArrayLike | None,
    widening: float | None,
    horizon: int | None,
    bounds: Bounds | None,
    limit: int,
    threads: int,
) -> PriorEstimate:
    """``fit_prior`` of one set of statistics."""
    of_type("stats", stats, TaskStatistics, "make one, or use TaskStatistics.from_frame")
    assert isinstance(stats, TaskStatistics)
    if len(stats) < 2:
        raise InputError(
            f"there is {len(stats)} task; how tasks differ can be learned from two or more"
        )
    whole("limit", limit, least=1)
    whole("threads", threads, least=1)
    if method in ("ml", "reml", "gls") and stats.dim > FEATURES:
        raise InputError(
            f"{stats.dim} features are more than {method} takes ({FEATURES}): it would need "
            f"matrices of {8e-9 * stats.dim**4:.0f} GB each; use fewer, or a method of moments "
            "(moment-clipped)"
        )
    variance = None
    if noise_sd is not None:
        variance = check_size("noise_sd", real("noise_sd", noise_sd, above=0.0)) ** 2
    if method == "gls" and cov is not None:
        found = _gls(stats, variance, covariance("cov", cov, stats.dim), threads)
    elif method in ("ml", "reml", "gls"):
        options = Options(threads=threads, limit=limit)
        found = largest_likelihood(stats, variance, method != "ml", options)
    else:
        require_all_varying(method, stats)
        found = fit_moments(
            stats, variance, method, widening=widening, horizon=horizon, bounds=bounds
        )
    return found._replace(features=stats.features)


def largest_likelihood(
    stats: TaskStatistics, variance: float | None, restricted: bool, options: Options
) -> PriorEstimate:
    """``ml`` or ``reml``, in units that can be computed with."""
    if variance is not None and sizes_of(stats)[0] > DIGITS * math.sqrt(variance):
        raise InputError(
            Advice(
                "{noise_sd} is so small beside the rewards that the likelihood cannot be computed; "
                "give a larger one, or let it be estimated"
            )
        )
    units = FeatureUnits.of(stats, variance=variance)
    if units is None:
        return fit_likelihood(stats, variance, restricted, options)
    if options.start is not None:
        mean, cov = options.start
        options = options._replace(start=(units.mean(mean), units.cov(cov)))
    found = fit_likelihood(units.inside(stats), units.variance(variance), restricted, options)
    return units.outside(found, stats.count, restricted)


def _gls(stats: TaskStatistics, variance: float | None, cov: Array, threads: int) -> PriorEstimate:
    """``gls`` with Sigma given, in units that can be computed with."""
    units = FeatureUnits.of(stats, variance=variance)
    if units is None:
        return fit_gls(stats, variance, cov, threads=threads)
    own = units.variance(variance)
    found = fit_gls(units.inside(stats), own, units.cov(cov), threads=threads)
    return units.outside(found, stats.count)


@contextmanager
def _within_floats() -> Iterator[None]:
    """What leaves the range of floating point is refused, without a warning of NumPy's."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
    except np.linalg.LinAlgError:
        raise InputError(BEYOND) from None


def _checked(found: PriorEstimate) -> PriorEstimate:
    """An estimate without NaN or infinity."""
    parts = (found.prior.mean, found.prior.cov, found.mean_cov, found.cov_sd, found.noise_sd)
    if not all(np.isfinite(part).all() for part in parts if part is not None):
        raise InputError(BEYOND)
    return found


def task_posteriors(stats: TaskStatistics, estimate: PriorEstimate) -> tuple[Array, Array]:
    """Empirical Bayes, eq. (4): every theta_j given its data, as if the estimated prior were known.

    Parameters
    ----------
    stats : TaskStatistics
    estimate : PriorEstimate
        From ``fit_prior``; its own uncertainty is not in the result.

    Returns
    -------
    mean, cov : arrays, shapes (n, d) and (n, d, d)

    Examples
    --------
    >>> stats = TaskStatistics(gram=[[[4.0]], [[4.0]]], moment=[[4.0], [12.0]])
    >>> mean, cov = task_posteriors(stats, fit_prior(stats, noise_sd=1.0, method="moment"))
    >>> mean.ravel().round(2)  # least squares has 1 and 3
    array([1.12, 2.88])
    """
    if not estimate.usable:
        raise InputError(f"this estimate is no prior: {estimate.status.advice}")
    if estimate.noise_sd is None:
        raise InputError(
            "this estimate has no noise_sd (split does not need it); give it with "
            "estimate._replace(noise_sd=...)"
        )
    return estimate.prior.trusted_posterior(stats.gram, stats.moment, estimate.noise_sd)
