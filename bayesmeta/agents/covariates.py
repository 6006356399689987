"""Tasks with metadata whose prior is learned: theta_n ~ N(Phi_n gamma, Sigma), neither being told.

It is a mixed model. Rewards A theta_n = A mu + A (Phi_n - M) gamma + A delta_n, with M the mean of
all Phi_n: the features A differ between tasks, A (Phi_n - M) have the same coefficients in all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesmeta.agents.learners import UNKNOWN, Finished, History
from bayesmeta.agents.metadata import check_designs, checked_designs, design_of
from bayesmeta.checks import Array, InputError, one_of, real
from bayesmeta.environment import Setting
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.fit import FEATURES, largest_likelihood
from bayesmeta.estimators.maximum import Options
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics


@dataclass(frozen=True, eq=False)
class Covariates:
    """The mean Phi_n gamma and Sigma of largest (restricted) likelihood, from all steps so far.

    The mean may also be off what Phi_n gamma can be, by a vector that is the same in all tasks: an
    intercept, which most Phi_n have anyway. Until the tasks determine all coefficients it plays as
    if it knew nothing.

    Parameters
    ----------
    designs : array, shape (tasks, d, p)
        Phi_n of every task to come.
    use : {"marginal", "mean"}
        The prior of a task: with the error of the mean in its covariance, as MTTS has it, or
        without.
    restricted : bool
        REML, or else maximum likelihood.
    growth : float
        Fits again whenever the tasks have grown by this factor.

    Examples
    --------
    >>> bm.agents.Covariates(np.ones((3, 2, 1))).coefficients
    2
    """

    designs: Array
    use: str = "marginal"
    restricted: bool = True
    growth: float = 1.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "designs", checked_designs(self.designs))
        one_of("use", self.use, ("marginal", "mean"))
        real("growth", self.growth, above=1.0)

    @property
    def all_steps(self) -> bool:
        return True

    @cached_property
    def regressors(self) -> Array:
        """F_n = (I, (Phi_n - M) B), (tasks, d, d + q): B spans what Phi_n - M tell apart."""
        tasks, d, _ = self.designs.shape
        centred = self.designs - self.designs.mean(axis=0)
        _, values, rows = np.linalg.svd(centred.reshape(tasks * d, -1), full_matrices=False)
        basis = rows[values > 1e-10 * max(float(np.abs(self.designs).max()), 1e-300)].T
        eye = np.broadcast_to(np.eye(d), (tasks, d, d))
        return np.concatenate([eye, centred @ basis], axis=2)

    @property
    def coefficients(self) -> int:
        """How many the mean has, the intercept's d included."""
        return int(self.regressors.shape[2])

    def start(self, setting: Setting) -> History:
        check_designs(self.designs, setting)
        if self.coefficients > FEATURES:
            raise InputError(
                f"designs make {self.coefficients} coefficients of the mean, and likelihood takes "
                f"{FEATURES} at most; give designs with fewer columns"
            )
        return History(setting.dim)

    def observe(self, memory: History, task: Finished) -> History:
        memory.add(task)
        return memory

    def statistics(self, memory: History) -> TaskStatistics:
        """Those of the mixed model: the intercept's features differ between tasks."""
        n, d = memory.tasks, self.designs.shape[1]
        features = self.regressors[:n]
        varying = tuple(j < d for j in range(features.shape[2]))
        return TaskStatistics.trusted(
            features.transpose(0, 2, 1) @ memory.gram[:n] @ features,
            np.einsum("nij,ni->nj", features, memory.moment[:n]),
            varying=varying if not all(varying) else None,
        )

    def gamma(self, estimate: PriorEstimate) -> Array:
        """gamma of an estimate of the mixed model: the shortest, where designs leave it open."""
        means = np.einsum("ndq,q->nd", self.regressors, estimate.prior.mean)
        stacked = self.designs.reshape(means.size, -1)
        found: Array = np.linalg.lstsq(stacked, means.reshape(-1))[0]
        return found

    def estimate(
        self, memory: History, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        n, d = memory.tasks, setting.dim
        if n >= 2 and (memory.estimate is None or n >= memory.next_fit):
            stats = self.statistics(memory)
            # an estimate of Sigma needs more tasks than those that settle the mean
            if stats.independent_features() and n * d > self.coefficients:
                old = memory.estimate
                start = None if old is None else (old.prior.mean, old.prior.cov)
                memory.estimate = largest_likelihood(
                    stats,
                    setting.noise_sd**2,
                    self.restricted,
                    Options(start, errors=False, thorough=False),
                )
            memory.next_fit = math.ceil(n * self.growth)
        if memory.estimate is None:
            return PriorEstimate(UNKNOWN.start(setting).prior, Status.TOO_FEW_TASKS)
        found, features = memory.estimate, design_of(self.regressors, n)
        cov = found.prior.cov[:d, :d]
        if self.use == "marginal" and found.mean_cov is not None:
            cov = cov + features @ found.mean_cov @ features.T
        return PriorEstimate(GaussianPrior(features @ found.prior.mean, cov), found.status)
