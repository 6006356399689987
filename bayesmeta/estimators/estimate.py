"""What an estimator returns: a prior, and how it came about."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Advice, Array
from bayesmeta.display import html_table, moments_rows, text_table
from bayesmeta.gaussian import GaussianPrior


class Status(Enum):
    """How a prior came about, with advice where it is not what the theory covers.

    Examples
    --------
    >>> from bayesmeta import Status
    >>> Status.OK.advice
    'estimated from data'
    """

    OK = Advice("estimated from data")
    GIVEN = Advice("given, not learned")
    TOO_FEW_TASKS = Advice(
        "too few tasks to estimate a covariance; collect at least two usable tasks"
    )
    NOT_POSITIVE_DEFINITE = Advice(
        "the bias-corrected covariance has negative eigenvalues, so it is no covariance yet; use "
        "more tasks, or moment-clipped, ml or reml, whose estimate always is one"
    )
    CLIPPED = Advice("negative eigenvalues of the bias-corrected covariance were set to zero")
    BOUNDARY = Advice(
        "the likelihood is largest at a singular covariance: the data do not show that tasks "
        "differ in every direction; more tasks, or a posterior ({sample_posterior}), would say more"
    )
    NOT_IDENTIFIED = Advice(
        "the data do not determine every entry of the covariance (or tell it from the noise), so "
        "what is given is one of many that fit as well; give {noise_sd}, or the known variances of "
        "rows, if it was estimated, or collect tasks with more steps"
    )
    IMPRECISE = Advice(
        "the noise is so small beside the differences between tasks that the likelihood was "
        "computed with few digits; the moments are as good there, and exact"
    )
    NO_NOISE = Advice(
        "the likelihood rises as the noise goes to 0: tasks have too few rows beyond their "
        "features to show it; give {noise_sd}, or collect more rows a task"
    )
    NOT_CONVERGED = Advice(
        "the likelihood still rose when the search was stopped, or it has many maxima and a higher "
        "one may have been missed; give a larger {limit}, or collect more tasks or rows a task"
    )
    POSTERIOR = Advice("from a posterior of (mu, Sigma) given all data")
    DIVERGENT = Advice(
        "from a posterior of (mu, Sigma), but some of its draws diverged or did not move, so it "
        "may be biased; tune longer ({tune})"
    )
    RAISED = Advice(
        "the widened covariance was not positive definite, so its eigenvalues were raised to the "
        "lower bound of Assumption 2; widen more, explore longer, or wait for more tasks"
    )

    @property
    def advice(self) -> Advice:
        """What happened and what to do; ``.in_options()`` names the options of a command."""
        value: Advice = self.value
        return value


class PriorEstimate(NamedTuple):
    """A prior and how it came about; what a method does not have is None.

    Parameters
    ----------
    prior
        The estimate of N(mu, Sigma).
    status
        How it came about.
    raw_cov
        The covariance before widening or clipping.
    passed_over
        Tasks that could not be used, because their gram was singular.
    negative
        Negative eigenvalues of ``raw_cov``.
    mean_cov
        The covariance of the estimated mean.
    cov_sd
        (d, d), standard errors of the entries of the estimated covariance.
    noise_sd
        The noise (sigma), given or estimated.
    log_likelihood
        At the estimate.
    iterations
        Steps of the search.
    features
        Labels of the features, for tables.

    Examples
    --------
    >>> prior = bm.GaussianPrior([1.0, 0.0], [[1.0, 0.5], [0.5, 4.0]])
    >>> bm.PriorEstimate(prior, bm.Status.GIVEN, noise_sd=0.5)
    PriorEstimate, GIVEN: given, not learned
        mean  sd  correlation
    x1     1   1
    x2     0   2  0.25
    noise_sd 0.5
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
    features: tuple[str, ...] | None = None

    @property
    def usable(self) -> bool:
        """Whether the estimate is a prior: its covariance has no negative eigenvalue."""
        return self.status is not Status.NOT_POSITIVE_DEFINITE

    @property
    def mean_sd(self) -> Array | None:
        """Standard errors of the estimated mean."""
        return None if self.mean_cov is None else np.sqrt(np.diag(self.mean_cov))

    def _shown(self) -> tuple[str, list[list[str]], str]:
        """A line on the status, a table of the features, a line on the noise."""
        title = f"PriorEstimate, {self.status.name}: {self.status.advice}"
        noise = "" if self.noise_sd is None else f"noise_sd {self.noise_sd:.4g}"
        rows = moments_rows(self.prior.mean, self.prior.cov, self.mean_sd, self.features)
        return title, rows, noise

    def __repr__(self) -> str:
        title, rows, noise = self._shown()
        return "\n".join(filter(None, (title, text_table(rows), noise)))

    def _repr_html_(self) -> str:
        return html_table(*self._shown())
