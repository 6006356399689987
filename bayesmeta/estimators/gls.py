"""The mean by generalised least squares, the covariance of tasks being given."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import InputError, covariance
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.likelihood import evaluate, in_threads, pack
from bayesmeta.estimators.maximum import if_complete
from bayesmeta.estimators.noise import pooled_variance
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics


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
        log_likelihood=if_complete(stats, point.value),
    )
