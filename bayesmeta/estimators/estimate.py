"""What an estimator returns: a prior, and how it came about."""

from __future__ import annotations

from enum import Enum
from html import escape
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Advice, Array
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
        "what is given is one of many that fit as well; give {noise_sd} if it was estimated, or "
        "collect tasks with more steps"
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
        "the likelihood still rose when the search was stopped; give a larger {limit}"
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

    Examples
    --------
    >>> import bayesmeta as bm
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

    @property
    def usable(self) -> bool:
        """Whether the estimate is a prior: its covariance has no negative eigenvalue."""
        return self.status is not Status.NOT_POSITIVE_DEFINITE

    @property
    def mean_sd(self) -> Array | None:
        """Standard errors of the estimated mean."""
        return None if self.mean_cov is None else np.sqrt(np.diag(self.mean_cov))

    def __repr__(self) -> str:
        first, rows, last = _described(self)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)]
                + [row[-1]]
            ).rstrip()
            for row in rows
        ]
        return "\n".join([first, *lines, *([last] if last else [])])

    def _repr_html_(self) -> str:
        first, (head, *rows), last = _described(self)
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        return (
            f"<p>{escape(first)}</p><table><thead><tr>{cells}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{escape(last)}</p>"
        )


def correlation(cov: Array) -> Array:
    """Correlations; NaN where there is none, a variance or the matrix not being positive."""
    sd = np.sqrt(np.where(np.diag(cov) > 0, np.diag(cov), np.nan))
    found = cov / np.outer(sd, sd)
    return np.asarray(np.where(np.abs(found) <= 1 + 1e-9, found, np.nan))


def _described(estimate: PriorEstimate) -> tuple[str, list[list[str]], str]:
    """A line on the status, a table (its head first) of the features, a line on the noise."""
    mean, cov, errors = estimate.prior.mean, estimate.prior.cov, estimate.mean_sd
    between = correlation(cov)
    several = len(mean) > 1
    rows = [["", "mean" if errors is None else "mean ± s.e.", "sd", "correlation" * several]]
    for i, value in enumerate(mean):
        error = "" if errors is None else f" ± {errors[i]:.3g}"
        sd = f"{np.sqrt(cov[i, i]):.4g}" if cov[i, i] >= 0 else "none"
        rows.append(
            [
                f"x{i + 1}",
                f"{value:.4g}{error}",
                sd,
                "  ".join("none" if np.isnan(r) else f"{r:.2f}" for r in between[i, :i]),
            ]
        )
    first = f"PriorEstimate, {estimate.status.name}: {estimate.status.advice}"
    return first, rows, "" if estimate.noise_sd is None else f"noise_sd {estimate.noise_sd:.4g}"
