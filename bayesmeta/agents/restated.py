"""What a player takes and gives, in the units that its tasks are played in, and back.

With units None everything is handed on as it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.agents.learners import Finished
from bayesmeta.checks import Array, InputError
from bayesmeta.environment import Setting, Task
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.tuples import Choosing, Plan
from bayesmeta.units import FAR, MOST, RATIO, Units, check_size


class Outcome(NamedTuple):
    """A task played through: regret against the best actions, how many steps explored, and for
    every step the index chosen (where there are finitely many), the action taken, the reward."""

    regret: float
    explored: int
    chosen: NDArray[np.int64]
    taken: Array
    rewards: Array


class Outcomes(NamedTuple):
    """A task played through by several agents: the fields of ``Outcome``, agent by agent.

    The arrays are reused by the next task.
    """

    regret: Array
    explored: Array
    chosen: NDArray[np.int64]
    taken: Array
    rewards: Array

    def of(self, agent: int) -> Outcome:
        """What one of them did."""
        return Outcome(
            regret=float(self.regret[agent]),
            explored=int(self.explored[agent]),
            chosen=self.chosen[agent],
            taken=self.taken[agent],
            rewards=self.rewards[agent],
        )


class Reach(NamedTuple):
    """How large numbers may become before the kernels leave the range of floating point."""

    radius: float
    """of the actions, as told; in the setting's units, as all of these"""
    action: float
    reward: float
    square: float
    """of parameters: mean and standard deviations"""

    @classmethod
    def of(cls, setting: Setting) -> Reach:
        """A belief of 2^(RATIO/2 + FAR) and an action 2^FAR times the radius make variances of
        rewards, and their products, that are still finite."""
        radius = max(setting.bounds.radius, setting.ball or 0.0) or 1.0
        units = setting.units or Units(0, 0)
        inner = float(units.inside(radius, 0, 1))
        theta = float(units.outside(2.0 ** (RATIO // 2 + 8) / inner, 1, -1))
        reward = min(float(units.outside(MOST, 1, 0)), MOST)
        return cls(radius, min(2.0**FAR * radius, MOST), reward, min(theta, 1e150) ** 2)

    def check_prior(self, prior: GaussianPrior) -> None:
        """Refuse a prior far beyond what the setting says."""
        self.check_moments(prior.mean, prior.cov)

    def check_moments(self, mean: Array, cov: Array) -> None:
        """The same of its mean and covariance."""
        size = float(cov.trace() + mean @ mean)
        if not size <= self.square:
            raise InputError(
                f"the prior of the next task reaches {math.sqrt(size) if size > 0 else size:.3g}, "
                "far beyond the bounds that the setting tells; correct them, or choose other units"
            )

    def check_learned(self, means: Array, covs: Array) -> None:
        """The same of several."""
        sizes = np.trace(covs, axis1=1, axis2=2) + (means * means).sum(axis=1)
        if not (sizes <= 0.5 * self.square).all():
            for mean, cov in zip(means, covs, strict=True):
                self.check_moments(mean, cov)

    def check_actions(self, largest: float) -> None:
        """Refuse actions far beyond the radius, or so small that their squares are 0."""
        check_size("the largest entry of actions", largest)
        if largest > self.action:
            raise InputError(
                f"actions reach {largest:.3g}, but the setting tells a radius of "
                f"{self.radius:.3g}; correct it"
            )

    def check_reward(self, reward: float) -> None:
        """Refuse a reward whose square would be infinite."""
        if abs(reward) > self.reward:
            raise InputError(
                f"reward is {reward:.3g}; with this setting it may be {self.reward:.3g} at most"
            )


def own_variance(setting: Setting) -> float:
    """sigma^2, in the units of the kernels."""
    units = setting.units
    sd = setting.noise_sd if units is None else float(units.inside(setting.noise_sd, 1, 0))
    return sd**2


def plan_inside(units: Units | None, plan: Plan) -> Plan:
    """The threshold bounds V / sigma^2."""
    if units is None:
        return plan
    return plan._replace(threshold=float(units.inside(plan.threshold, -2, 2)))


def choosing_inside(units: Units | None, choosing: Choosing) -> Choosing:
    """The ridge is added to V, the norm is that of theta."""
    if units is None:
        return choosing
    return choosing._replace(
        ridge=float(units.inside(choosing.ridge, 0, 2)),
        norm_bound=float(units.inside(choosing.norm_bound, 1, -1)),
    )


def task_inside(units: Units | None, task: Task) -> Task:
    if units is None:
        return task
    return Task(
        theta=units.inside(task.theta, 1, -1),
        noise=task.noise,
        actions=units.inside(task.actions, 0, 1),
        radius=float(units.inside(task.radius, 0, 1)),
        best=units.inside(task.best, 1, 0),
        earned=units.inside(task.earned, 0, 1),
    )


def finished_outside(units: Units | None, task: Finished) -> Finished:
    if units is None:
        return task
    trace = None
    if task.trace is not None:
        trace = units.outside(task.trace[0], 0, 1), units.outside(task.trace[1], 1, 0)
    return Finished(
        gram=units.outside(task.gram, 0, 2),
        moment=units.outside(task.moment, 1, 1),
        steps=task.steps,
        energy=float(units.outside(task.energy, 2, 0)),
        trace=trace,
    )


def outcomes_outside(units: Units | None, done: Outcomes) -> Outcomes:
    if units is None:
        return done
    return done._replace(
        regret=units.outside(done.regret, 1, 0),
        taken=units.outside(done.taken, 0, 1),
        rewards=units.outside(done.rewards, 1, 0),
    )
