"""The centre of a biased regression from past tasks: after AVG-OFUL and RR-OFUL.

After Cella, Lazaric and Pontil (2020), whose estimate also moves within the task under way; here it
is that of the finished tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesmeta.agents.learners import UNKNOWN, Finished
from bayesmeta.agents.policies import oful
from bayesmeta.checks import one_of
from bayesmeta.environment import Setting
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.centre import CentreSums, centre_of, observe


class CentreMemory(NamedTuple):
    """The running sums, and the ridge settled at the start."""

    state: CentreSums
    ridge: float


@dataclass(frozen=True)
class Centre:
    """A prior mean from past tasks, with the covariance lambda_max I.

    Parameters
    ----------
    how : {"average", "pooled"}
        The mean of the tasks' ridge estimates (high variance, no bias of weighting), or one ridge
        regression of all their steps (high bias: under adaptive choices it tends to
        E[V]^-1 E[V theta], which is not mu_*).

    Examples
    --------
    >>> bm.ROSTER["RR-OFUL"].learner
    Centre(how='pooled')
    """

    how: str = "average"

    def __post_init__(self) -> None:
        one_of("how", self.how, ("average", "pooled"))

    @property
    def all_steps(self) -> bool:
        return True

    @property
    def pooled(self) -> bool:
        return self.how == "pooled"

    def known(self, setting: Setting) -> GaussianPrior:
        """The prior whose covariance it keeps; of its mean nothing is used."""
        return UNKNOWN.start(setting).prior

    def start(self, setting: Setting) -> CentreMemory:
        d, ridge = setting.dim, oful(0.0, ridge=None).settled(setting)[0]
        return CentreMemory(CentreSums(np.zeros(1), np.zeros(d), np.zeros((d, d))), ridge)

    def observe(self, memory: CentreMemory, task: Finished) -> CentreMemory:
        observe(memory.state, task.gram, task.moment, memory.ridge, self.pooled)
        return memory

    def estimate(
        self, memory: CentreMemory, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        known = self.known(setting)
        if not memory.state.tasks[0]:
            return PriorEstimate(known, Status.TOO_FEW_TASKS)
        mean = centre_of(*memory, self.pooled)
        return PriorEstimate(GaussianPrior.trusted(mean, known.cov, known.cholesky), Status.OK)
