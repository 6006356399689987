"""How an agent comes by its prior: oracles, Algorithm 2's moments, likelihood, a posterior.

A learner is a frozen description with three methods; its memory is a value they pass along. An
agent whose prior comes from somewhere else is one more learner of this shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from bayesmeta.checks import Array, InputError, one_of, real, whole
from bayesmeta.environment import Setting
from bayesmeta.estimators import moments
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.fit import largest_likelihood
from bayesmeta.estimators.maximum import Options
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.statistics import TaskStatistics


class Finished(NamedTuple):
    """What a finished task leaves to its learner: the statistics of all its steps where the learner
    says ``all_steps``, otherwise those of its opening exploration.

    Parameters
    ----------
    gram : array, shape (d, d)
        V = A'A.
    moment : array, shape (d,)
        A'x.
    steps : int
        How many steps.
    energy : float
        x'x.
    trace : tuple of arrays, optional
        Every action and reward in order, (steps, d) and (steps,), for a learner that has a true
        attribute ``needs_steps``.

    Examples
    --------
    >>> bm.agents.Finished(np.eye(2), np.zeros(2), steps=2, energy=0.5).steps
    2
    """

    gram: Array
    moment: Array
    steps: int
    energy: float
    trace: tuple[Array, Array] | None = None


class Learner(Protocol):
    """What an agent asks of whatever provides its prior."""

    @property
    def all_steps(self) -> bool:
        """Whether it learns from all steps of a task, or only from its opening exploration."""

    def start(self, setting: Setting) -> Any:
        """The memory before the first task."""

    def observe(self, memory: Any, task: Finished) -> Any:
        """The memory after one more task. The arrays of ``task`` are reused: copy what you keep."""

    def estimate(self, memory: Any, setting: Setting, rng: np.random.Generator) -> PriorEstimate:
        """The prior for the next task."""


PARTS = ("all_steps", "start", "observe", "estimate")
"""What a learner has."""


def missing_parts(learner: object) -> list[str]:
    """The parts of a learner that an object lacks."""
    return [
        part
        for part in PARTS
        if not hasattr(learner, part)
        or (part != "all_steps" and not callable(getattr(learner, part)))
    ]


def told_truth(setting: Setting) -> GaussianPrior:
    """The true prior, for an agent that knows part of it."""
    if setting.truth is None:
        raise InputError(
            "this agent knows part of the true prior, so the setting must carry it: "
            "give truth=GaussianPrior(...), or use an agent that learns"
        )
    return setting.truth


def told_hyper(setting: Setting) -> GaussianPrior:
    """The hyper-prior, for an agent that is told one."""
    if setting.hyper is None:
        raise InputError(
            "this agent is told a hyper-prior of mu_*, which the setting lacks: give "
            "hyper=GaussianPrior(m_q, S_q) to the setting or the family, or use an agent that "
            "needs none"
        )
    return setting.hyper


def told_cov(setting: Setting, which: str) -> Array:
    """The covariance an agent starts from: "known", "bound" or "marginal", see ``Given``."""
    if which == "bound":
        return setting.bounds.prior_max * np.eye(setting.dim)
    cov = told_truth(setting).cov
    return cov + told_hyper(setting).cov if which == "marginal" else cov


@dataclass(frozen=True)
class Given:
    """A prior fixed from the start: no learning.

    Parameters
    ----------
    mean : {"known", "zero", "hyper"}
        mu_*, 0, or the mean of the hyper-prior.
    cov : {"known", "bound", "marginal"}
        Sigma_*; lambda_max I, its upper bound of Assumption 2; or Sigma_* + S_q, the covariance of
        theta under the hyper-prior.
    scale : float
        Multiplies the covariance.

    Examples
    --------
    >>> setting = bm.paper_family(dim=2).setting(tasks=10)
    >>> bm.agents.Given(scale=0.5).start(setting).prior.cov[0, 0]
    np.float64(0.5)
    """

    mean: str = "known"
    cov: str = "known"
    scale: float = 1.0

    def __post_init__(self) -> None:
        one_of("mean", self.mean, ("known", "zero", "hyper"))
        one_of("cov", self.cov, ("known", "bound", "marginal"))
        real("scale", self.scale, least=0.0)

    @property
    def all_steps(self) -> bool:
        return False

    def start(self, setting: Setting) -> PriorEstimate:
        mean = np.zeros(setting.dim)
        if self.mean == "known":
            mean = told_truth(setting).mean
        elif self.mean == "hyper":
            mean = told_hyper(setting).mean
        cov = told_cov(setting, self.cov)
        return PriorEstimate(GaussianPrior(mean, self.scale * cov), Status.GIVEN)

    def observe(self, memory: PriorEstimate, task: Finished) -> PriorEstimate:
        return memory

    def estimate(
        self, memory: PriorEstimate, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        return memory


KNOWN = Given()
"""N(mu_*, Sigma_*): KTS."""
KNOWN_MEAN = Given(cov="bound")
"""N(mu_*, lambda_max I): KMTS."""
UNKNOWN = Given(mean="zero", cov="bound")
"""N(0, lambda_max I): UKTS, and the warm-up of Figure 1."""


class MomentMemory(NamedTuple):
    """The running moments and the widening constant settled at the start."""

    state: Any
    constant: float


@dataclass(frozen=True)
class Moments:
    """Algorithm 2: mean and bias-corrected covariance of OLS estimates, widened, eqs. (9)-(12).

    Parameters
    ----------
    all_steps : bool
        Whether to use every step of a task, or only its opening exploration, as the theory has it.
    widening : float, optional
        c_w; None is the theoretical constant.

    Examples
    --------
    >>> bm.ROSTER["All-MTS"].learner
    Moments(all_steps=True, widening=1.0)
    """

    all_steps: bool = False
    widening: float | None = None

    def __post_init__(self) -> None:
        if self.widening is not None:
            real("widening", self.widening, least=0.0)

    def start(self, setting: Setting) -> MomentMemory:
        constant = moments.chosen_widening(
            setting.dim, setting.noise_sd, self.widening, setting.bounds
        )
        return MomentMemory(moments.empty(setting.dim), constant)

    def observe(self, memory: MomentMemory, task: Finished) -> MomentMemory:
        moments.observe(memory.state, task.gram, task.moment)
        return memory

    def estimate(
        self, memory: MomentMemory, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        if memory.state.tasks[0] < 2:
            skipped = int(memory.state.tasks[1])
            return PriorEstimate(UNKNOWN.start(setting).prior, Status.TOO_FEW_TASKS, None, skipped)
        floor = setting.bounds.prior_min
        cov, raw = moments.widened(
            memory.state, setting.noise_sd**2, setting.horizon, memory.constant
        )
        cholesky, raised = moments.usable(cov, floor)
        prior = GaussianPrior.trusted(memory.state.mean.copy(), cov, cholesky)
        status = Status.RAISED if raised else Status.OK
        return PriorEstimate(prior, status, raw, int(memory.state.tasks[1]))


class History:
    """The statistics of all tasks so far, and the estimate made of the first of them."""

    def __init__(self, dim: int, room: int = 16) -> None:
        self.gram, self.moment = np.empty((room, dim, dim)), np.empty((room, dim))
        self.tasks, self.next_fit = 0, 0
        self.estimate: PriorEstimate | None = None

    def add(self, task: Finished) -> None:
        if self.tasks == len(self.gram):
            self.gram = np.concatenate([self.gram, np.empty_like(self.gram)])
            self.moment = np.concatenate([self.moment, np.empty_like(self.moment)])
        self.gram[self.tasks], self.moment[self.tasks] = task.gram, task.moment
        self.tasks += 1


@dataclass(frozen=True)
class Likelihood:
    """The prior of largest (restricted) likelihood, from all steps of all tasks.

    The likelihood is unharmed by adaptive choices of actions, so no step need be forced, and a task
    need not determine its theta.

    Parameters
    ----------
    restricted : bool
        REML, or else maximum likelihood.
    growth : float
        Fits again whenever the tasks have grown by this factor, so that the total cost stays linear
        in their number.

    Examples
    --------
    >>> bm.ROSTER["REML-TS"].learner
    Likelihood(restricted=True, growth=1.1)
    """

    restricted: bool = True
    growth: float = 1.1

    def __post_init__(self) -> None:
        real("growth", self.growth, above=1.0)

    @property
    def all_steps(self) -> bool:
        return True

    def start(self, setting: Setting) -> History:
        return History(setting.dim)

    def observe(self, memory: History, task: Finished) -> History:
        memory.add(task)
        return memory

    def estimate(
        self, memory: History, setting: Setting, rng: np.random.Generator
    ) -> PriorEstimate:
        n = memory.tasks
        if n >= 2 and (memory.estimate is None or n >= memory.next_fit):
            old = memory.estimate
            stats = TaskStatistics.trusted(memory.gram[:n], memory.moment[:n])
            if stats.independent_features():  # the steps of all tasks span all directions
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
        return memory.estimate


MANY = 2**31
"""More tasks than any run has."""


def lasts(learner: Learner, memory: Any) -> int:
    """For how many tasks, the next included, a learner's estimate stays as it is, at least.

    Of other learners than those named here, subclasses of them included, nothing is known.
    """
    if type(learner) is Given:
        return MANY
    if type(learner) is Likelihood and memory.estimate is not None:
        return max(int(memory.next_fit) - int(memory.tasks), 1)
    return 1


class Draws:
    """The statistics of all tasks so far, and draws of the prior given the first of them."""

    def __init__(self, dim: int) -> None:
        self.history = History(dim)
        self.priors: list[GaussianPrior] = []
        self.centre: GaussianPrior | None = None
        self.mode: tuple[Array, Array] | None = None
        self.status = Status.POSTERIOR
        self.next_fit = 0


@dataclass(frozen=True)
class Posterior:
    """A posterior of (mu, Sigma) from all steps of all tasks, by importance weights or MCMC.

    Every task is played with a prior drawn from it, so that not knowing the prior makes an agent
    explore. Before any task mu is N(0, b^2 I) and the standard deviations of Sigma are
    half-normal(s), where b and s^2 are the bounds of Assumptions 3 and 2 that the agent is told;
    correlation matrices are uniform.

    Parameters
    ----------
    average : bool
        Play with the moments of the predictive distribution of theta instead: the posterior mean of
        mu, and that of Sigma plus the posterior covariance of mu.
    growth : float
        Fits again whenever the tasks have grown by this factor, from the mode of the last fit.
    draws : int
        Of each fit.
    tune : int
        Tuning draws of a chain where no mode is found; about a mode 100 do.

    Examples
    --------
    >>> bm.ROSTER["HB-TS"].learner
    Posterior(average=False, growth=1.3, draws=200, tune=300)
    """

    average: bool = False
    growth: float = 1.3
    draws: int = 200
    tune: int = 300

    def __post_init__(self) -> None:
        real("growth", self.growth, above=1.0)
        whole("draws", self.draws, least=10)
        whole("tune", self.tune, least=50)

    @property
    def all_steps(self) -> bool:
        return True

    def start(self, setting: Setting) -> Draws:
        return Draws(setting.dim)

    def observe(self, memory: Draws, task: Finished) -> Draws:
        memory.history.add(task)
        return memory

    def estimate(self, memory: Draws, setting: Setting, rng: np.random.Generator) -> PriorEstimate:
        n = memory.history.tasks
        if not memory.priors or n >= memory.next_fit:
            self._refit(memory, setting, int(rng.integers(2**31)))
            memory.next_fit = max(n + 1, math.ceil(n * self.growth))
        if self.average:
            assert memory.centre is not None
            return PriorEstimate(memory.centre, memory.status)
        return PriorEstimate(memory.priors[rng.integers(len(memory.priors))], memory.status)

    def _refit(self, memory: Draws, setting: Setting, seed: int) -> None:
        from bayesmeta.posterior.online import draw_priors

        history, n = memory.history, memory.history.tasks
        stats = TaskStatistics.trusted(history.gram[:n], history.moment[:n])
        means, covs, memory.mode, trusted = draw_priors(
            stats, setting, draws=self.draws, tune=self.tune, seed=seed, start=memory.mode
        )
        memory.status = Status.POSTERIOR if trusted else Status.DIVERGENT
        memory.priors = [GaussianPrior(mean, cov) for mean, cov in zip(means, covs, strict=True)]
        memory.centre = GaussianPrior(means.mean(axis=0), covs.mean(axis=0) + np.cov(means.T))
