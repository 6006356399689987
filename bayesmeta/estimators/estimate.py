"""What an estimator returns: a prior, and how it came about."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.gaussian import GaussianPrior


class Status(Enum):
    """How a prior came about, with advice where it is not what the theory covers."""

    OK = "estimated from data"
    GIVEN = "given, not learned"
    TOO_FEW_TASKS = "too few tasks to estimate a covariance; collect at least two usable tasks"
    NOT_POSITIVE_DEFINITE = (
        "the bias-corrected covariance has negative eigenvalues, so it is no covariance yet; use "
        "more tasks, or moment-clipped, ml or reml, whose estimate always is one"
    )
    CLIPPED = "negative eigenvalues of the bias-corrected covariance were set to zero"
    BOUNDARY = (
        "the likelihood is largest at a singular covariance: the data do not show that tasks "
        "differ in every direction; more tasks, or a posterior (sample_posterior), would say more"
    )
    NOT_IDENTIFIED = (
        "the data do not determine every entry of the covariance (or tell it from the noise), so "
        "what is given is one of many that fit as well; give noise_sd if it was estimated, or "
        "collect tasks with more steps"
    )
    IMPRECISE = (
        "the noise is so small beside the differences between tasks that the likelihood was "
        "computed with few digits; the moments are as good there, and exact"
    )
    NO_NOISE = (
        "the likelihood rises as the noise goes to 0: tasks have too few rows beyond their "
        "features to show it; give noise_sd, or collect more rows a task"
    )
    NOT_CONVERGED = "the likelihood still rose when the search was stopped; give a larger limit"
    POSTERIOR = "from a posterior of (mu, Sigma) given all data"
    DIVERGENT = (
        "from a posterior of (mu, Sigma), but some of its draws diverged or did not move, so it "
        "may be biased; tune longer"
    )
    RAISED = (
        "the widened covariance was not positive definite, so its eigenvalues were raised to the "
        "lower bound of Assumption 2; widen more, explore longer, or wait for more tasks"
    )


class PriorEstimate(NamedTuple):
    """A prior and how it came about; what a method does not have is None.

    ``raw_cov`` is the covariance before widening or clipping, ``passed_over`` counts tasks that
    could not be used because their gram was singular, ``negative`` the negative eigenvalues of
    ``raw_cov``. ``mean_cov`` is the covariance of the estimated mean, ``cov_sd`` (d, d) holds the
    standard errors of the entries of the estimated covariance, ``noise_sd`` the noise given or
    estimated.
    """

    prior: GaussianPrior
    status: Status
    raw_cov: Array | None = None
    passed_over: int = 0
    negative: int = 0
    mean_cov: Array | None = None
    cov_sd: Array | None = None
    noise_sd: float | None = None
    log_likelihood: float | None = None
    iterations: int | None = None

    @property
    def usable(self) -> bool:
        """Whether the estimate is a prior: its covariance has no negative eigenvalue."""
        return self.status is not Status.NOT_POSITIVE_DEFINITE

    @property
    def mean_sd(self) -> Array | None:
        """Standard errors of the estimated mean."""
        return None if self.mean_cov is None else np.sqrt(np.diag(self.mean_cov))
