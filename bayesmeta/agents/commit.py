"""Explore, then commit: moments of arms pulled at random, and learners that stop learning.

After Simchowitz et al. (2021): so many tasks are played at random, the prior is estimated from them
by moments, and kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.agents.learners import UNKNOWN, Finished, Learner, Moments, missing_parts
from bayesmeta.agents.moment_mean import MomentMean
from bayesmeta.checks import Array, InputError, whole
from bayesmeta.environment import Setting
from bayesmeta.estimators.clipping import clip
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.gaussian import GaussianPrior


class ArmSums(NamedTuple):
    """Sums over tasks, updated in place: [used, passed over], of u, of M; the noise variance."""

    tasks: Array
    first: Array
    second: Array
    variance: float


@dataclass(frozen=True)
class ArmMoments:
    """Unbiased moments of the means of K arms from n pulls at random, task by task.

    With S_a the sum of an arm's rewards and N_a its pulls, u = (K / n) S has mean mu, and
    M_ab = n / (n - 1) u_a u_b, M_aa = (S_a^2 - N_a sigma^2) / ((n / K) (1 + (n - 1) / K)) have that
    of theta theta'. Negative eigenvalues of the covariance are set to 0.

    Parameters
    ----------
    covariance : bool
        Whether the covariance is estimated, too; otherwise it is lambda_max I.

    Examples
    --------
    >>> bm.ROSTER["MoM-TS_arms"].learner
    Commit(inner=ArmMoments(covariance=True), tasks=50)
    """

    covariance: bool = True

    @property
    def all_steps(self) -> bool:
        return False

    def start(self, setting: Setting) -> ArmSums:
        d = setting.dim
        return ArmSums(np.zeros(2), np.zeros(d), np.zeros((d, d)), setting.noise_sd**2)

    def observe(self, memory: ArmSums, task: Finished) -> ArmSums:
        n, d = task.steps, len(task.moment)
        pulls = np.diag(task.gram)
        if np.abs(pulls.sum() - n) > 1e-6 * max(n, 1) or (task.gram != np.diag(pulls)).any():
            raise InputError(
                "moments of arms need actions that are unit vectors (unit_vectors, arms_family); "
                "use MoM-TS for other linear bandits"
            )
        if n < 2:
            memory.tasks[1] += 1
            return memory
        u = d / n * task.moment
        second = n / (n - 1) * np.outer(u, u)
        own = task.moment**2 - pulls * memory.variance
        np.fill_diagonal(second, own / (n / d * (1 + (n - 1) / d)))
        memory.tasks[0] += 1
        memory.first[:] += u
        memory.second[:] += second
        return memory

    def estimate(
        self, memory: ArmSums, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        count, skipped = memory.tasks[0], int(memory.tasks[1])
        if count < 2:
            return PriorEstimate(UNKNOWN.start(setting).prior, Status.TOO_FEW_TASKS, None, skipped)
        mean = memory.first / count
        if not self.covariance:
            cov = setting.bounds.prior_max * np.eye(setting.dim)
            return PriorEstimate(GaussianPrior(mean, cov), Status.OK, passed_over=skipped)
        raw = memory.second / count - np.outer(mean, mean)
        raw = (raw + raw.T) / 2
        negative = int((np.linalg.eigvalsh(raw) < 0).sum())
        status = Status.CLIPPED if negative else Status.OK
        return PriorEstimate(GaussianPrior(mean, clip(raw)), status, raw, skipped, negative)


class Committed(NamedTuple):
    """The memory of the learner inside, and how many tasks it has seen."""

    memory: Any
    tasks: int


@dataclass(frozen=True)
class Commit:
    """A learner that sees the first tasks only, and keeps what it learned from them.

    Parameters
    ----------
    inner : Learner
        The learner.
    tasks : int
        How many tasks it sees (N_0).

    Examples
    --------
    >>> bm.agents.Commit(bm.agents.Moments(widening=0.0), tasks=20).tasks
    20
    """

    inner: Learner
    tasks: int

    def __post_init__(self) -> None:
        whole("tasks", self.tasks)
        if isinstance(self.inner, type) or missing_parts(self.inner):
            raise InputError(f"inner must be a learner such as Moments(), got {self.inner!r:.80}")

    @property
    def all_steps(self) -> bool:
        return self.inner.all_steps

    def start(self, setting: Setting) -> Committed:
        return Committed(self.inner.start(setting), 0)

    def observe(self, memory: Committed, task: Finished) -> Committed:
        inner, seen = memory
        if seen >= self.tasks:
            return memory
        return Committed(self.inner.observe(inner, task), seen + 1)

    def estimate(
        self, memory: Committed, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        return self.inner.estimate(memory.memory, setting, rng)

    def settled(self, memory: Committed) -> bool:
        """Whether the prior stays from now on."""
        return memory.tasks >= self.tasks and type(self.inner) in (Moments, MomentMean, ArmMoments)
