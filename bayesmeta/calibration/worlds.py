"""Where the lab's data come from: a simulated family, or a table of one's own drawn anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import Exploration, first_steps
from bayesmeta.agents.roster import ROSTER, find_agents
from bayesmeta.calibration.steps import chosen, explored_at_once, explored_only, padded, sums_of
from bayesmeta.calibration.wrong import RIGHT, Wrong, WrongFamily, thetas, unequal
from bayesmeta.checks import Advice, Array, InputError, of_type, real
from bayesmeta.environment import TaskFamily
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.fit import fit_prior
from bayesmeta.fitted.bootstrap import redraw_around
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.codes import Rule
from bayesmeta.posterior.priors import LKJ, InverseWishart, KnownCovariance, Prior
from bayesmeta.simulation.played import statistics_of, steps_of
from bayesmeta.statistics import TaskStatistics
from bayesmeta.streams import ENVIRONMENT, stream

PRIORS = (LKJ, InverseWishart, KnownCovariance)
"""Priors over priors."""
UNSETTLED = (Status.NOT_IDENTIFIED, Status.NO_NOISE, Status.NOT_CONVERGED)
"""Fits that no data should be drawn from."""


class Truth(NamedTuple):
    """What data are drawn from: one prior, or a prior over priors for a new one each time."""

    prior: GaussianPrior | Prior
    noise_sd: float
    noise_drawn: bool
    """whether the noise is drawn from the prior over priors, too"""

    def draw(self, rng: np.random.Generator) -> tuple[GaussianPrior, float]:
        """The prior and the noise of one replication."""
        if isinstance(self.prior, GaussianPrior):
            return self.prior, self.noise_sd
        means, roots, noises = self.prior.draw(rng, 1)
        prior = GaussianPrior(means[0], roots[0] @ roots[0].T)
        return prior, float(noises[0]) if self.noise_drawn else self.noise_sd


class Data(NamedTuple):
    """The data of one replication, and what they were drawn from."""

    stats: TaskStatistics
    prior: GaussianPrior
    noise_sd: float
    halves: tuple[TaskStatistics, TaskStatistics] | None
    """from every other step, for ``split``"""
    wrong: Wrong = RIGHT
    family: TaskFamily | None = None
    """of the prior and noise, where tasks are simulated"""

    @property
    def told(self) -> float:
        """The noise as those are told who know it, rightly or not."""
        return self.wrong.told * self.noise_sd

    def next_thetas(self, rng: np.random.Generator, size: int) -> Array:
        """Thetas of tasks to come, (size, d)."""
        return thetas(self.wrong, self.prior, rng, size)


@dataclass(frozen=True, eq=False)
class Simulated:
    """Tasks of a family: their opening exploration, or all steps of an agent."""

    family: TaskFamily
    how: Exploration | Agent
    truth: Truth
    halved: bool
    wrong: Wrong = RIGHT

    def draw(self, tasks: int, seed: int) -> Data:
        """So many tasks."""
        prior, noise = self.truth.draw(stream(seed, "truth"))
        # bounds stay those of the family: a learner told those of a drawn truth would know it
        bounds = self.family.bounds
        if not isinstance(self.truth.prior, GaussianPrior):
            bounds = self.family.told()
        whole = family = replace(self.family, prior=prior, noise_sd=noise, bounds=bounds)
        anew = getattr(family.actions, "redraw", "") == "step"
        if isinstance(self.how, Exploration) and self.how.rule is Rule.FIRST_STEPS and anew:
            tau = self.how.plan(family.setting(tasks)).tau
            steps = explored_at_once(family, tau, tasks, stream(seed, ENVIRONMENT), self.wrong)
            return Data(sums_of(*steps), prior, noise, self._halves(*steps), self.wrong, whole)
        opening = isinstance(self.how, Exploration)
        if isinstance(self.how, Exploration):
            row = replace(ROSTER["UKTS"], exploration=self.how)
            family = explored_only(family, self.how, tasks)
        else:
            row = self.how
        family = WrongFamily.of(family, self.wrong)
        if not self.halved:
            stats = statistics_of(family, row, tasks, seed, opening=opening)
            return Data(stats, prior, noise, None, self.wrong, whole)
        every = steps_of(family, row, tasks, seed, opening=opening)
        played = [(actions.copy(), rewards.copy()) for actions, rewards in every]  # used again
        steps = padded(played)
        stats = sums_of(*steps, np.array([len(rewards) for _, rewards in played]))
        return Data(stats, prior, noise, self._halves(*steps), self.wrong, whole)

    def _halves(
        self, actions: Array, rewards: Array
    ) -> tuple[TaskStatistics, TaskStatistics] | None:
        """Of every other step, for ``split``, which needs no counts."""
        if not self.halved:
            return None
        even, odd = (sums_of(actions[:, k::2], rewards[:, k::2]) for k in (0, 1))
        return even, odd


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A table's designs, with coefficients and noise drawn anew; as many tasks as the table has
    are the table's own, other numbers are drawn from them with replacement."""

    stats: TaskStatistics
    truth: Truth
    wrong: Wrong = RIGHT

    def draw(self, tasks: int, seed: int) -> Data:
        """So many tasks."""
        rng = stream(seed, "truth")
        prior, noise = self.truth.draw(rng)
        stats = self.stats
        if tasks != len(stats):
            stats = chosen(stats, rng.integers(0, len(stats), size=tasks))
        theta = thetas(self.wrong, prior, rng, tasks)
        sds = np.full(tasks, noise)
        if self.wrong.noise:
            sds *= unequal(rng, tasks)
        return Data(redraw_around(stats, theta, sds, rng), prior, noise, None, self.wrong)


World = Simulated | Redrawn


def world_of(
    where: object, explore: object, truth: object, noise_sd: float | str | None, halved: bool
) -> World:
    """The world that arguments of ``calibrate`` describe, checked."""
    if isinstance(where, TaskFamily):
        return _simulated(where, explore, truth, noise_sd, halved)
    if isinstance(where, TaskStatistics):
        if explore is not None:
            raise InputError("explore is for a TaskFamily; a table's tasks keep their designs")
        if halved:
            raise InputError("split needs the steps of tasks, which a table's sums do not have")
        return _redrawn(where, truth, noise_sd)
    raise InputError(
        f"where must be a TaskFamily or a TaskStatistics, got {type(where).__name__}; "
        "TaskStatistics.from_frame makes one of a table"
    )


def _simulated(
    family: TaskFamily,
    explore: object,
    truth: object,
    noise_sd: float | str | None,
    halved: bool,
) -> Simulated:
    how: Exploration | Agent
    if explore is None:
        how = first_steps(family.horizon)
    elif isinstance(explore, str):
        how = find_agents(explore)[0]
    elif isinstance(explore, Agent):
        how = explore
    else:
        made = "use first_steps(tau), until_eigenvalue(c), an agent or the name of one"
        how = of_type("explore", explore, Exploration, made)
        if how.rule in (Rule.NONE, Rule.RESCUE):
            raise InputError(
                f"explore={how!r} has no exploration steps at the beginning of tasks, so there "
                "would be no data; use first_steps(tau) or until_eigenvalue(c), or an agent"
            )
    if isinstance(how, Exploration):
        how.plan(family.setting(2))  # refuses a tau beyond the horizon
    prior = _checked_truth(family.prior if truth is None else truth, family.dim)
    if isinstance(prior, GaussianPrior):
        family = replace(family, prior=prior)  # what learners are told is of the truth
    drawn = noise_sd == "estimate" and not isinstance(prior, GaussianPrior)
    return Simulated(family, how, Truth(prior, family.noise_sd, drawn), halved)


def _redrawn(stats: TaskStatistics, truth: object, noise_sd: float | str | None) -> Redrawn:
    stats.require_independent_features()
    if len(stats) < 2:
        raise InputError(f"there is {len(stats)} task; give two or more")
    told = None if isinstance(noise_sd, (str, type(None))) else real("noise_sd", noise_sd, above=0)
    if isinstance(truth, PriorEstimate):
        if truth.noise_sd is None or not truth.usable:
            raise InputError("truth must be a usable prior with a noise_sd; fit it by reml")
        return Redrawn(stats, Truth(_checked_truth(truth.prior, stats.dim), truth.noise_sd, False))
    if isinstance(truth, PRIORS) and stats.varying is not None:
        raise InputError(
            "a prior over priors is for tables whose features all differ between tasks"
        )
    fitted = fit_prior(stats, told, "reml")
    if fitted.status in UNSETTLED or fitted.noise_sd is None:
        raise InputError(
            Advice(
                f"no data can be drawn like these: {fitted.status.advice.template} (in Python, a "
                "PriorEstimate with its noise can be given as the truth)",
                **fitted.status.advice.values,
            )
        )
    prior = _checked_truth(fitted.prior if truth is None else truth, stats.dim)
    drawn = told is None and not isinstance(prior, GaussianPrior)
    return Redrawn(stats, Truth(prior, fitted.noise_sd, drawn))


def _checked_truth(truth: object, dim: int) -> GaussianPrior | Prior:
    """A prior, or a prior over priors with a number a feature."""
    if isinstance(truth, PRIORS):
        return truth.settled(dim)
    prior = of_type(
        "truth", truth, GaussianPrior, "or use LKJ or InverseWishart for a new one each time"
    )
    if prior.dim != dim:
        raise InputError(f"truth has dimension {prior.dim}, the tasks {dim}")
    return prior
