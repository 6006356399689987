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
from bayesmeta.checks import Array, InputError, one_of, real, whole
from bayesmeta.environment import Setting
from bayesmeta.estimators import moments
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.moments import MomentState
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.decorrelate import decorrelate


class Decorrelations(NamedTuple):
    """Running moments of the estimates with their Q in place of V^-1, the smallest eigenvalues of
    the grams so far, the ridge they came to, after how many tasks it is settled again, and ln T."""

    state: MomentState
    lowest: tuple[float, ...]
    ridge: float
    next_fit: int
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
        the tasks have grown by a tenth.

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
        return Decorrelations(moments.empty(setting.dim), (), 0.0, self.first, logs)

    def observe(self, memory: Decorrelations, task: Finished) -> Decorrelations:
        if task.trace is None:
            raise InputError("W-decorrelation needs every step of a task: Finished with its trace")
        state, lowest, ridge, next_fit, logs = memory
        if len(lowest) >= next_fit:
            ridge = float(np.quantile(lowest, 0.15)) / logs
            next_fit = math.ceil(1.1 * len(lowest) + 0.1)
        least = max(float(np.linalg.eigvalsh(task.gram)[0]), 0.0)
        memory = Decorrelations(state, (*lowest, least), ridge, next_fit, logs)
        if not ridge > 0:
            return memory
        left, told, square = decorrelate(*task.trace, ridge)
        start = state.mean if self.centre == "past" else _least_squares(task)
        if start is None:
            state.tasks[1] += 1
            return memory
        _add(state, left @ start + told, square)
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


def _least_squares(task: Finished) -> Array | None:
    """Of the task; None where its gram is singular."""
    theta: Array = moments.observe(moments.empty(len(task.moment)), task.gram, task.moment)[1]
    return None if np.isnan(theta).any() else theta


def _add(state: MomentState, theta: Array, square: Array) -> None:
    """One more estimate, as ``moments.observe`` adds least squares."""
    state.tasks[0] += 1
    step = theta - state.mean
    state.mean[:] += step / state.tasks[0]
    state.scatter[:] += np.outer(step, theta - state.mean)
    state.inverse_grams[:] += square
