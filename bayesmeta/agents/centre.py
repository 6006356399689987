"""The centre of a biased regression from past tasks: after AVG-OFUL and RR-OFUL.

After Cella, Lazaric and Pontil (2020), whose estimate also moves within the task under way; here it
is that of the finished tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesmeta.agents.learners import UNKNOWN, Finished
from bayesmeta.agents.policies import oful
from bayesmeta.checks import Array, one_of
from bayesmeta.environment import Setting
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.gaussian import GaussianPrior


class CentreSums(NamedTuple):
    """Sums over tasks, updated in place: [how many], of ridge estimates or of moments, of grams;
    and the ridge settled at the start."""

    tasks: Array
    vector: Array
    gram: Array
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

    def start(self, setting: Setting) -> CentreSums:
        d, ridge = setting.dim, oful(0.0, ridge=None).settled(setting)[0]
        return CentreSums(np.zeros(1), np.zeros(d), np.zeros((d, d)), ridge)

    def observe(self, memory: CentreSums, task: Finished) -> CentreSums:
        memory.tasks[0] += 1
        if self.how == "pooled":
            memory.vector[:] += task.moment
            memory.gram[:] += task.gram
        else:
            memory.vector[:] += _ridge(task.gram, task.moment, memory.ridge)
        return memory

    def estimate(
        self, memory: CentreSums, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        if not memory.tasks[0]:
            return PriorEstimate(UNKNOWN.start(setting).prior, Status.TOO_FEW_TASKS)
        if self.how == "pooled":
            mean = _ridge(memory.gram, memory.vector, memory.ridge)
        else:
            mean = memory.vector / memory.tasks[0]
        eye, widest = np.eye(setting.dim), setting.bounds.prior_max
        prior = GaussianPrior.trusted(mean, widest * eye, math.sqrt(widest) * eye)
        return PriorEstimate(prior, Status.OK)


def _ridge(gram: Array, moment: Array, ridge: float) -> Array:
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), moment)
