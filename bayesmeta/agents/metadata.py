"""Tasks with metadata: theta_n = Phi_n gamma + delta_n, and the posterior of gamma (MTTS).

Wan, Ge and Song (2021). With gamma ~ N(m_g, S_g) and delta ~ N(0, Sigma_*) a finished task adds
Phi' Lambda Phi and Phi' shift to the posterior of gamma, Lambda and shift being what it says of the
mean of its theta (``kernels.hyper``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesmeta.agents.learners import Finished, told_truth
from bayesmeta.checks import Array, InputError, of_type, one_of
from bayesmeta.environment import Setting
from bayesmeta.estimators.designs import checked_designs
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.metadata import USES
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.hyper import evidence


def design_of(designs: Array, task: int) -> Array:
    """That of a task, from 0."""
    if task >= len(designs):
        raise InputError(f"there are designs for {len(designs)} tasks, and this is one more")
    found: Array = designs[task]
    return found


def check_designs(designs: Array, setting: Setting) -> None:
    """Refuse designs of another dimension, or too few."""
    tasks, d, _ = designs.shape
    if d != setting.dim or tasks < setting.tasks:
        raise InputError(
            f"designs have shape {designs.shape}, but there are {setting.tasks} tasks of "
            f"dimension {setting.dim}; give a (d, p) matrix for every task"
        )


class MetadataSums(NamedTuple):
    """Sums over the tasks so far and how many there were; noise variance, root of Sigma_*."""

    precision: Array
    shift: Array
    tasks: int
    variance: float
    root: Array


@dataclass(frozen=True, eq=False)
class Metadata:
    """The posterior of gamma given finished tasks, whose designs Phi_n are told in their order.

    Parameters
    ----------
    designs : array, shape (tasks, d, p)
        Phi_n of every task to come.
    gamma : GaussianPrior
        N(m_g, S_g), of dimension p.
    use : {"marginal", "mean"}
        The prior of a task, where gamma is N(m, C): N(Phi m, Phi C Phi' + Sigma_*), as MTTS has it,
        or N(Phi m, Sigma_*), its approximation.

    Examples
    --------
    >>> designs = np.ones((3, 2, 1))
    >>> bm.agents.Metadata(designs, bm.GaussianPrior([0.0], [[1.0]])).use
    'marginal'
    """

    designs: Array
    gamma: GaussianPrior
    use: str = "marginal"

    def __post_init__(self) -> None:
        of_type("gamma", self.gamma, GaussianPrior, "use GaussianPrior(mean, cov) of gamma")
        designs = checked_designs(self.designs)
        if designs.shape[2] != self.gamma.dim:
            raise InputError(
                f"designs have {designs.shape[2]} columns but gamma has dimension "
                f"{self.gamma.dim}; give (tasks, d, p) designs for a gamma of dimension p"
            )
        object.__setattr__(self, "designs", designs)
        one_of("use", self.use, USES)

    @property
    def all_steps(self) -> bool:
        return True

    def start(self, setting: Setting) -> MetadataSums:
        check_designs(self.designs, setting)
        p = self.gamma.dim
        root = np.ascontiguousarray(told_truth(setting).cholesky.T)
        return MetadataSums(np.zeros((p, p)), np.zeros(p), 0, setting.noise_sd**2, root)

    def observe(self, memory: MetadataSums, task: Finished) -> MetadataSums:
        design = design_of(self.designs, memory.tasks)
        precision, shift = evidence(task.gram, task.moment, memory.variance, memory.root)
        memory.precision[:] += design.T @ precision @ design
        memory.shift[:] += design.T @ shift
        return memory._replace(tasks=memory.tasks + 1)

    def posterior(self, memory: MetadataSums) -> tuple[Array, Array]:
        """Mean and covariance of gamma given the tasks so far."""
        return self.gamma.trusted_posterior(memory.precision, memory.shift, 1.0)

    def estimate(
        self, memory: MetadataSums, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        design, cov = design_of(self.designs, memory.tasks), told_truth(setting).cov
        mean, spread = self.posterior(memory)
        if self.use == "marginal":
            cov = cov + design @ spread @ design.T
        return PriorEstimate(GaussianPrior(design @ mean, cov), Status.OK)
