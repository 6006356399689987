"""A learner that is told its priors and learns nothing: for studies of wrong priors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesmeta.agents.learners import Finished
from bayesmeta.environment import Setting
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.gaussian import GaussianPrior


@dataclass(frozen=True)
class Told:
    """Plays every task with the one prior it is told, or with one of several drawn at random."""

    priors: tuple[GaussianPrior, ...]

    @property
    def all_steps(self) -> bool:
        return False

    def start(self, setting: Setting) -> tuple[PriorEstimate, ...]:
        return tuple(PriorEstimate(prior, Status.GIVEN) for prior in self.priors)

    def observe(
        self, memory: tuple[PriorEstimate, ...], task: Finished
    ) -> tuple[PriorEstimate, ...]:
        return memory

    def estimate(
        self, memory: tuple[PriorEstimate, ...], setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        return memory[rng.integers(len(memory))]
