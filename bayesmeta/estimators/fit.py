"""Every estimator of the prior, on the same statistics of tasks."""

from __future__ import annotations

from numpy.typing import ArrayLike

from bayesmeta.checks import Array, InputError, of_type, one_of, real, whole
from bayesmeta.environment import Bounds
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.estimators.maximum import fit_gls, fit_likelihood
from bayesmeta.estimators.moments import fit_moments
from bayesmeta.estimators.search import LIMIT
from bayesmeta.estimators.split import fit_split
from bayesmeta.statistics import TaskStatistics

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
    own = {"cov": (cov, "gls")} | {
        name: (value, "moment-widened")
        for name, value in (("widening", widening), ("horizon", horizon), ("bounds", bounds))
    }
    for name, (given, user) in own.items():
        if given is not None and method != user:
            raise InputError(f"{name} is for method {user!r}; {method} does not use it")
    if method == "split":
        return fit_split(stats)
    of_type("stats", stats, TaskStatistics, "make one, or use TaskStatistics.from_frame")
    assert isinstance(stats, TaskStatistics)
    if len(stats) < 2:
        raise InputError(
            f"there is {len(stats)} task; how tasks differ can be learned from two or more"
        )
    whole("limit", limit, least=1)
    whole("threads", threads, least=1)
    variance = None if noise_sd is None else real("noise_sd", noise_sd, above=0.0) ** 2
    if method == "gls" and cov is not None:
        return fit_gls(stats, variance, cov, threads=threads)
    if method in ("ml", "reml", "gls"):
        return fit_likelihood(stats, variance, method != "ml", threads=threads, limit=limit)
    return fit_moments(stats, variance, method, widening=widening, horizon=horizon, bounds=bounds)


def task_posteriors(stats: TaskStatistics, estimate: PriorEstimate) -> tuple[Array, Array]:
    """Empirical Bayes, eq. (4): mean and covariance of every theta_j given its data and prior.

    As if the estimated prior were known: its own uncertainty is not in them.
    """
    if not estimate.usable:
        raise InputError(f"this estimate is no prior: {estimate.status.value}")
    if estimate.noise_sd is None:
        raise InputError(
            "this estimate has no noise_sd (split does not need it); give it with "
            "estimate._replace(noise_sd=...)"
        )
    return estimate.prior.posterior(stats.gram, stats.moment, estimate.noise_sd)
