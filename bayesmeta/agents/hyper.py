"""The learner that knows Sigma_* and is told a hyper-prior of mu_*: the hyper-posterior of mu_*.

mu_* ~ N(m_q, S_q), theta ~ N(mu_*, Sigma_*) in every task. What tasks say of mu_* adds up
(``kernels.hyper``), so that the memory is d^2 + d numbers. All steps are used: a likelihood is
unharmed by adaptive choices of actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesmeta.agents.learners import Finished, told_cov, told_hyper
from bayesmeta.checks import Array, InputError, one_of, real
from bayesmeta.environment import Setting
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.codes import Use
from bayesmeta.kernels.hyper import HyperState, HyperTold, observe, task_prior


class HyperMemory(NamedTuple):
    """The running sums, and what was settled at the start."""

    state: HyperState
    told: HyperTold


@dataclass(frozen=True)
class Hyper:
    """The hyper-posterior of mu_* under a known covariance, from all steps of all tasks.

    Parameters
    ----------
    use : {"marginal", "draw", "mean"}
        The prior of the next task, where mu_* is N(m, C) given the tasks so far: N(m, Sigma + C),
        as AdaTS and, task after task, HierTS have it; N(mu, Sigma) with mu drawn from N(m, C), as
        MetaTS; or N(m, Sigma).
    cov : {"known", "bound"}
        Sigma: the true Sigma_*, or lambda_max I.
    scale : float
        Multiplies Sigma: other than 1, the learner is told a wrong one.
    hyper_scale : float
        Multiplies the covariance of the hyper-prior.

    Examples
    --------
    >>> bm.ROSTER["MetaTS"].learner
    Hyper(use='draw', cov='known', scale=1.0, hyper_scale=1.0)
    """

    use: str = "marginal"
    cov: str = "known"
    scale: float = 1.0
    hyper_scale: float = 1.0

    def __post_init__(self) -> None:
        one_of("use", self.use, [use.name.lower() for use in Use])
        one_of("cov", self.cov, ("known", "bound"))
        real("scale", self.scale, least=0.0)
        real("hyper_scale", self.hyper_scale, least=0.0)

    @property
    def all_steps(self) -> bool:
        return True

    @property
    def code(self) -> Use:
        """How the kernels call the use."""
        return Use[self.use.upper()]

    def start(self, setting: Setting) -> HyperMemory:
        hyper, d = told_hyper(setting), setting.dim
        prior = GaussianPrior(hyper.mean, self.scale * told_cov(setting, self.cov))
        wide = GaussianPrior(hyper.mean, self.hyper_scale * hyper.cov)
        told = HyperTold(
            setting.noise_sd**2,
            prior.cov.copy(),
            np.ascontiguousarray(prior.cholesky.T),
            hyper.mean.copy(),
            np.ascontiguousarray(wide.cholesky.T),
        )
        return HyperMemory(HyperState(np.zeros((d, d)), np.zeros(d)), told)

    def observe(self, memory: HyperMemory, task: Finished) -> HyperMemory:
        observe(*memory, task.gram, task.moment)
        parts = (task.gram, memory.state.shift)
        if not all(np.isfinite(part).all() for part in parts):
            raise InputError(
                "what tasks say of the prior mean leaves the range of floating point; choose other "
                "units for rewards or actions"
            )
        return memory

    def estimate(
        self, memory: HyperMemory, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        normals = self.normals(rng, 1, setting.dim)[0]
        mean, cov, root = task_prior(int(self.code), *memory, normals)
        return PriorEstimate(GaussianPrior.trusted(mean, cov, root.T), Status.OK)

    def normals(self, rng: np.random.Generator, tasks: int, dim: int) -> Array:
        """What the priors of some tasks are drawn with; zeros where nothing is drawn."""
        if self.code is not Use.DRAW:
            return np.zeros((tasks, dim))
        return rng.standard_normal((tasks, dim))
