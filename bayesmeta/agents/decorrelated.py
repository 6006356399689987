"""Moments of W-decorrelated estimates: a way to use all steps with less bias than least squares.

Deshpande, Mackey, Syrgkanis and Taddy (2018), which the paper names as a remedy for the bias of
estimates from adaptively chosen actions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesmeta.agents.learners import UNKNOWN, Finished
from bayesmeta.checks import InputError, one_of, real, whole
from bayesmeta.environment import Setting
from bayesmeta.estimators import moments
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.moments import MomentState
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.decorrelate import RIDGE, Ridges, settle

MOST = 2**16
"""Tasks that settle the ridge, at most."""


class Decorrelations(NamedTuple):
    """Running moments of the estimates with their Q in place of V^-1, ridges, and ln T."""

    state: MomentState
    ridges: Ridges
    logs: float


@dataclass(frozen=True)
class Decorrelated:
    """Mean and covariance of W-decorrelated estimates, eqs. (9)-(12) with Q in place of V^-1.

    Parameters
    ----------
    centre : {"ols", "past"}
        What an estimate starts from: the task's own least squares, as the authors have it, or the
        mean of past estimates (0 before the first), which needs no inverse and whose bias is
        M (mean - theta).
    widening : float
        c_w of eq. (12).
    first : int
        So many tasks only settle the ridge: the 15% quantile of past smallest eigenvalues of V over
        ln T, so that it does not depend on the task it is used in. It is settled again whenever
        the tasks have grown by a tenth, until they are as many as the setting tells.

    Examples
    --------
    >>> bm.ROSTER["W-MTS"].learner
    Decorrelated(centre='ols', widening=1.0, first=10)
    """

    centre: str = "ols"
    widening: float = 1.0
    first: int = 10

    needs_steps = True

    def __post_init__(self) -> None:
        one_of("centre", self.centre, ("ols", "past"))
        real("widening", self.widening, least=0.0)
        whole("first", self.first, least=1)

    @property
    def all_steps(self) -> bool:
        return True

    def start(self, setting: Setting) -> Decorrelations:
        logs = math.log(max(setting.horizon, 3))
        ridges = Ridges(np.array([0.0, self.first, 0.0]), np.zeros(min(setting.tasks, MOST)))
        return Decorrelations(moments.empty(setting.dim), ridges, logs)

    @property
    def past(self) -> bool:
        return self.centre == "past"

    def observe(self, memory: Decorrelations, task: Finished) -> Decorrelations:
        if task.trace is None:
            raise InputError("W-decorrelation needs every step of a task: Finished with its trace")
        state, ridges, logs = memory
        ridge = ridges.settled[RIDGE]
        moments.observe_decorrelated(state, task.gram, task.moment, *task.trace, ridge, self.past)
        settle(ridges, task.gram, logs)
        return memory

    def estimate(
        self, memory: Decorrelations, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        state, skipped = memory.state, int(memory.state.tasks[1])
        if state.tasks[0] < 2:
            return PriorEstimate(UNKNOWN.start(setting).prior, Status.TOO_FEW_TASKS, None, skipped)
        cov, raw = moments.widened(state, setting.noise_sd**2, setting.horizon, self.widening)
        cholesky, raised = moments.usable(cov, setting.bounds.prior_min)
        prior = GaussianPrior.trusted(state.mean.copy(), cov, cholesky)
        return PriorEstimate(prior, Status.RAISED if raised else Status.OK, raw, skipped)
