"""Tasks with metadata whose prior is learned: theta_n ~ N(Phi_n gamma, Sigma), neither being told.

It is the mixed model of ``estimators.metadata``, fitted again and again as tasks come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesmeta.agents.learners import UNKNOWN, Finished, History
from bayesmeta.agents.metadata import check_designs, design_of
from bayesmeta.checks import Array, InputError, one_of, real
from bayesmeta.environment import Setting
from bayesmeta.estimators.designs import Coordinates, checked_designs
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.fit import FEATURES, largest_likelihood
from bayesmeta.estimators.maximum import Options
from bayesmeta.estimators.metadata import USES, prior_at, restated
from bayesmeta.statistics import TaskStatistics


@dataclass(frozen=True, eq=False)
class Covariates:
    """The mean Phi_n gamma and Sigma of largest (restricted) likelihood, from all steps so far.

    The mean may also be off what Phi_n gamma can be, by a vector that is the same in all tasks: an
    intercept, which most Phi_n have anyway (``with_metadata``). Until the tasks determine all
    coefficients it plays as if it knew nothing: as long as there is a city that none of them had,
    say. Columns that are nearly collinear are refused when it starts.

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
        one_of("use", self.use, USES)
        real("growth", self.growth, above=1.0)

    @property
    def all_steps(self) -> bool:
        return True

    @cached_property
    def coordinates(self) -> Coordinates:
        """Those of the mixed model; the designs of all tasks to come are known."""
        return Coordinates.of(self.designs)

    @cached_property
    def regressors(self) -> Array:
        """F_n of every task to come, (tasks, d, d + q)."""
        return self.coordinates.features(self.designs)

    @property
    def coefficients(self) -> int:
        """How many the mean has, the intercept's d included."""
        return self.coordinates.coefficients

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
        """Those of the mixed model, of the tasks so far."""
        n = memory.tasks
        known = TaskStatistics.trusted(memory.gram[:n], memory.moment[:n])
        return restated(known, self.regressors[:n])

    def gamma(self, estimate: PriorEstimate) -> Array:
        """gamma of an estimate of the mixed model. Where columns are collinear, in all tasks to
        come together, later ones get coefficient 0."""
        found: Array = self.coordinates.lift @ estimate.prior.mean
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
        prior = prior_at(design_of(self.regressors, n), memory.estimate, self.use)
        return PriorEstimate(prior, memory.estimate.status)
