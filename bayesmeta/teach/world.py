"""What the page shows: tasks and their estimates, one task step by step, regret of the next one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.agents import reference
from bayesmeta.agents.exploration import no_exploration
from bayesmeta.agents.player import Player
from bayesmeta.agents.policies import thompson
from bayesmeta.agents.roster import ROSTER
from bayesmeta.agents.told import Told
from bayesmeta.checks import Array, is_covariance, one_of
from bayesmeta.environment import TaskFamily
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.estimators.fit import fit_prior
from bayesmeta.estimators.moments import least_squares, raise_eigenvalues
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.simulation.summaries import Interval, interval
from bayesmeta.statistics import TaskStatistics
from bayesmeta.streams import stream
from bayesmeta.teach.setup import RADIUS, Setup

METHODS = ("moment", "moment-widened", "reml")
"""The closed forms, as ``fit_prior`` calls them."""
PRIORS = ("truth", *METHODS, "nothing")
"""What a task can be played with."""
NEXT = 200
"""Next tasks over which regret is averaged."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """Tasks that explored: their thetas (N, 2), least squares (N, 2), steps and sums, and estimates
    of the prior they come from, each made when it is first asked for."""

    setup: Setup
    family: TaskFamily
    thetas: Array
    estimates: Array
    steps: NDArray[np.int64]
    stats: TaskStatistics
    _fits: dict[str, PriorEstimate] = field(default_factory=dict)

    def fit(self, method: str) -> PriorEstimate:
        """The estimate by a method of ``fit_prior``."""
        if method not in self._fits:
            widened: dict[str, Any] = {}
            if method == "moment-widened":
                widened = {"widening": self.setup.widening, "horizon": self.setup.horizon}
            self._fits[method] = fit_prior(self.stats, self.setup.noise_sd, method, **widened)
        return self._fits[method]


@lru_cache(maxsize=64)
def cloud(setup: Setup) -> Cloud:
    """Explore N tasks.

    Task j is drawn from a stream of its own, so that more tasks leave the first ones as they are.
    """
    family, rule, n = setup.family(), setup.rule(), setup.tasks
    played = replace(family, horizon=rule.tau or family.horizon)  # no step after the exploration
    player = Player(
        replace(ROSTER["KTS"], exploration=rule), played.setting(n), random_seed=setup.seed
    )
    thetas, steps = np.empty((n, 2)), np.empty(n, dtype=np.int64)
    gram, moment, energy = np.empty((n, 2, 2)), np.empty((n, 2)), np.empty(n)
    for j in range(n):
        task = played.draw(stream(setup.seed, f"task {j}"))
        player.start_task()
        outcome = player.play(task)
        thetas[j], steps[j] = task.theta, outcome.explored
        actions, rewards = outcome.taken[: steps[j]], outcome.rewards[: steps[j]]
        gram[j], moment[j] = actions.T @ actions, actions.T @ rewards
        energy[j] = rewards @ rewards
    stats = TaskStatistics(gram, moment, steps.astype(float), energy)
    return Cloud(setup, family, thetas, least_squares(stats), steps, stats)


class Row(NamedTuple):
    """An estimate beside the truth: errors of mean and covariance (Euclidean and operator norm),
    its correlation (NaN where it is no covariance or has a variance of 0), and its smallest
    eigenvalue."""

    mean_error: float
    cov_error: float
    correlation: float
    lowest: float


def compare(mean: Array, cov: Array, truth: GaussianPrior) -> Row:
    """One estimate's row."""
    lowest = float(np.linalg.eigvalsh(cov)[0])
    valid = is_covariance(cov) and cov[0, 0] > 0 and cov[1, 1] > 0
    return Row(
        float(np.linalg.norm(mean - truth.mean)),
        float(np.abs(np.linalg.eigvalsh(cov - truth.cov)).max()),
        float(cov[0, 1] / math.sqrt(cov[0, 0] * cov[1, 1])) if valid else math.nan,
        lowest,
    )


def rows(setup: Setup) -> dict[str, Row]:
    """The table of the closed forms.

    Parameters
    ----------
    setup : Setup
        Where the sliders stand.

    Returns
    -------
    dict of str to Row
        By method, as ``fit_prior`` calls it.

    Examples
    --------
    >>> from bayesmeta.teach.setup import Setup
    >>> from bayesmeta.teach.world import rows
    >>> few, many = rows(Setup(tasks=5)), rows(Setup(tasks=500))
    >>> few["reml"].mean_error > many["reml"].mean_error
    True
    """
    found = cloud(setup)
    priors = {method: found.fit(method).prior for method in METHODS}
    return {
        method: compare(prior.mean, prior.cov, found.family.prior)
        for method, prior in priors.items()
    }


def playable(prior: GaussianPrior, family: TaskFamily) -> GaussianPrior:
    """A prior that can be played with: eigenvalues below 0 are raised, as in Section 6."""
    if is_covariance(prior.cov):
        return GaussianPrior(prior.mean, prior.cov)
    cov = np.array(prior.cov)
    raise_eigenvalues(cov, family.told().prior_min)
    return GaussianPrior(prior.mean, cov)


def prior_of(setup: Setup, name: str) -> GaussianPrior:
    """The prior a task is played with: the truth, an estimate, or that of one who knows nothing,
    N(0, lambda_max I), as UKTS does."""
    one_of("prior", name, PRIORS)
    family = setup.family()
    if name == "truth":
        return family.prior
    if name == "nothing":
        return GaussianPrior(np.zeros(2), family.told().prior_max * np.eye(2))
    return playable(cloud(setup).fit(name).prior, family)


class Steps(NamedTuple):
    """One task under Thompson Sampling, T steps: before step t its posterior is ``means[t]`` and
    ``covs[t]``; ``sampled[t]`` is drawn from it, ``chosen[t]`` of ``actions[t]`` (K, 2) is best for
    that, ``best[t]`` is best in truth; ``regret[t]`` is that of the steps before t."""

    theta: Array
    prior: GaussianPrior
    actions: Array
    chosen: NDArray[np.int64]
    best: NDArray[np.int64]
    sampled: Array
    means: Array
    covs: Array
    regret: Array


@lru_cache(maxsize=64)
def one_task(setup: Setup, name: str = "truth") -> Steps:
    """The task after the N seen, played by Thompson Sampling (Algorithm 1) without exploration.

    The same theta, actions, noise and random numbers of the policy whatever the prior.
    """
    family, prior = setup.family(), prior_of(setup, name)
    horizon = family.horizon
    task = family.draw(stream(setup.seed, "next task"))
    draws = stream(setup.seed, "next task/policy").standard_normal((horizon, 3))
    plan = no_exploration().plan(family.setting(1))
    played = reference.play(thompson(), plan, task, prior, family.noise_sd, draws, RADIUS)
    actions = task.actions.transpose(0, 2, 1)
    taken = actions[np.arange(horizon), played.chosen]
    grams = _before(taken[:, :, None] * taken[:, None, :])
    moments = _before(taken * played.rewards[:, None])
    means, covs = prior.posterior(grams, moments, family.noise_sd)
    roots = np.array([GaussianPrior(np.zeros(2), cov).cholesky for cov in covs[:-1]])
    values = actions @ task.theta
    regret = values.max(axis=1) - values[np.arange(horizon), played.chosen]
    return Steps(
        task.theta,
        prior,
        actions,
        played.chosen.astype(np.int64),
        values.argmax(axis=1),
        means[:-1] + np.einsum("tij,tj->ti", roots, draws[:, :2]),
        means,
        covs,
        _before(regret),
    )


def _before(values: Array) -> Array:
    """Sums over the steps before each, and over all: one more than there are steps."""
    return np.concatenate([np.zeros((1, *values.shape[1:])), values.cumsum(axis=0)])


class Predicted(NamedTuple):
    """What a posterior says of the next theta: its mean, and the covariance of its draws."""

    mean: Array
    cov: Array


class NextRegret(NamedTuple):
    """Mean regret of the next task, and how much more it is than with the truth, with 95% intervals
    over the tasks, which are the same for all."""

    regret: Interval
    more: Interval


def regrets(setup: Setup, priors: Sequence[GaussianPrior]) -> Array:
    """Regret of the next tasks (prior, task), played by Thompson Sampling with each prior.

    All rows have one name, and so the same randomness beside the same tasks.
    """
    rows = [replace(ROSTER["KTS"], learner=Told((prior,))) for prior in priors]
    return simulate_run(setup.family(), rows, tasks=NEXT, seed=setup.seed)["regret"]


@lru_cache(maxsize=64)
def _of_closed_forms(setup: Setup) -> Array:
    return regrets(setup, [prior_of(setup, name) for name in PRIORS])


def next_regret(setup: Setup, posterior: Predicted | None = None) -> dict[str, NextRegret]:
    """Regret of the next task when Thompson Sampling plays it with each prior."""
    found = dict(zip(PRIORS, _of_closed_forms(setup), strict=True))
    if posterior is not None:
        nothing = found.pop("nothing")
        found["posterior"] = regrets(setup, [GaussianPrior(posterior.mean, posterior.cov)])[0]
        found["nothing"] = nothing
    truth = found["truth"]
    return {name: NextRegret(interval(own), interval(own - truth)) for name, own in found.items()}
