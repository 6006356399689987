"""The mean of least squares over past tasks with a known covariance: after Meta-DP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesmeta.agents.learners import UNKNOWN, Finished, MomentMemory, told_truth
from bayesmeta.environment import Setting
from bayesmeta.estimators import moments
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.gaussian import GaussianPrior


@dataclass(frozen=True)
class MomentMean:
    """N(mean of OLS estimates, Sigma_*): eq. (10), where the covariance is known.

    Parameters
    ----------
    all_steps : bool
        Whether to use every step of a task, or only its opening exploration.

    Examples
    --------
    >>> bm.ROSTER["Meta-DP"].learner
    MomentMean(all_steps=False)
    """

    all_steps: bool = False

    def known(self, setting: Setting) -> GaussianPrior:
        """The prior whose covariance it is told; of its mean nothing is used."""
        return told_truth(setting)

    def start(self, setting: Setting) -> MomentMemory:
        self.known(setting)
        return MomentMemory(moments.empty(setting.dim), 0.0)

    def observe(self, memory: MomentMemory, task: Finished) -> MomentMemory:
        moments.observe(memory.state, task.gram, task.moment)
        return memory

    def estimate(
        self, memory: MomentMemory, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        skipped = int(memory.state.tasks[1])
        if memory.state.tasks[0] < 2:
            return PriorEstimate(UNKNOWN.start(setting).prior, Status.TOO_FEW_TASKS, None, skipped)
        known = self.known(setting)
        prior = GaussianPrior.trusted(memory.state.mean.copy(), known.cov, known.cholesky)
        return PriorEstimate(prior, Status.OK, passed_over=skipped)
