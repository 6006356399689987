"""What an estimator returns: a prior, and how it came about."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from bayesmeta.checks import Array
from bayesmeta.gaussian import GaussianPrior


class Status(Enum):
    """How a prior came about, with advice where it is not what the theory covers."""

    OK = "estimated from data"
    GIVEN = "given, not learned"
    TOO_FEW_TASKS = "too few tasks to estimate a covariance; collect at least two usable tasks"
    RAISED = (
        "the widened covariance was not positive definite, so its eigenvalues were raised to the "
        "lower bound of Assumption 2; widen more, explore longer, or wait for more tasks"
    )


class PriorEstimate(NamedTuple):
    """A prior and its status; ``raw_cov`` is the covariance estimate before any widening, and
    ``passed_over`` counts the tasks that could not be used because their gram was singular."""

    prior: GaussianPrior
    status: Status
    raw_cov: Array | None = None
    passed_over: int = 0
