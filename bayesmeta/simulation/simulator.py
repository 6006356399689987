"""One run: agents play the same tasks of a family; what is measured of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.ensemble import Ensemble, Learned, block_size
from bayesmeta.agents.player import Player
from bayesmeta.agents.roster import with_references
from bayesmeta.checks import Array, InputError
from bayesmeta.environment import TaskFamily
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.runner.progress import report_progress
from bayesmeta.streams import ENVIRONMENT, stream

if TYPE_CHECKING:
    import xarray as xr

VARIABLES = {
    "regret": "Bayesian regret of the task, eq. (1)",
    "relative_regret": "regret less that of the agent's reference, eq. (2)",
    "mean_error": "Euclidean distance of the prior mean in use from mu_*",
    "covariance_error": "operator norm of the prior covariance in use less Sigma_*",
    "raw_covariance_error": "the same for the estimate of eq. (11), before widening",
    "smallest_eigenvalue": "smallest eigenvalue of the prior covariance in use",
    "exploration_steps": "steps of the task that explored",
    "not_positive_definite": "1 where the widened covariance had to be raised to be usable",
    "singular": "1 where the likelihood was largest at a singular covariance, which was used",
    "passed_over": "tasks so far that the learner could not use, their gram being singular",
    "untrusted": "tasks so far played with a prior from draws that diverged or did not move",
}
"""What a record holds for every run, agent and task."""

_BLOCK = 256  # priors, or blocks of them, that are kept before errors are computed together
_REPORT = 64  # tasks between reports of progress


class _Errors:
    """Distances of the priors in use from the truth, computed a block of tasks at a time."""

    def __init__(self, family: TaskFamily, tasks: int) -> None:
        self._truth = family.prior
        self._noted: list[tuple[NDArray[np.int64], Array, Array, Array]] = []
        self._last: PriorEstimate | None = None
        self.mean, self.cov, self.raw, self.least = (np.empty(tasks) for _ in range(4))

    def add(self, task: int, estimate: PriorEstimate, learned: Learned | None) -> None:
        """Note the prior of a task, and those learned for the tasks after it; one that stays the
        same is noted once."""
        if estimate is not self._last:
            prior = estimate.prior
            raw = prior.cov if estimate.raw_cov is None else estimate.raw_cov
            self._note(np.array([task]), prior.mean[None], prior.cov[None], raw[None])
            self._last = estimate
        if learned is not None:
            later = task + 1 + np.arange(len(learned.mean))
            self._note(later, *(part.copy() for part in learned[:3]))
            self._last = None

    def _note(self, tasks: NDArray[np.int64], mean: Array, cov: Array, raw: Array) -> None:
        self._noted.append((tasks, mean, cov, raw))
        if len(self._noted) == _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Compute the errors of the tasks noted; each holds until the next one noted."""
        tasks, means, covs, raws = (np.concatenate(part) for part in zip(*self._noted, strict=True))
        spans, here = np.diff(tasks, append=tasks[-1] + 1), slice(tasks[0], tasks[-1] + 1)
        self.mean[here] = np.repeat(np.linalg.norm(means - self._truth.mean, axis=1), spans)
        self.cov[here] = np.repeat(_operator_norm(covs - self._truth.cov), spans)
        self.least[here] = np.repeat(np.linalg.eigvalsh(covs)[:, 0], spans)
        self.raw[here] = np.repeat(_operator_norm(raws - self._truth.cov), spans)
        self._noted = [(tasks[-1:], means[-1:], covs[-1:], raws[-1:])]

    def close(self) -> None:
        """Compute what is left; the last prior noted holds to the end."""
        self.flush()
        last = self._noted[0][0][0]
        for values in (self.mean, self.cov, self.raw, self.least):
            values[last:] = values[last]


def _operator_norm(symmetric: Array) -> Array:
    values = np.linalg.eigvalsh(symmetric)
    return np.maximum(-values[..., 0], values[..., -1])


def _players(family: TaskFamily, agents: Iterable[Agent], tasks: int, seed: int) -> list[Player]:
    """A player for every row; a row that this family cannot be played with is refused."""
    agents, weighted = list(agents), family.payoffs is not None
    for agent in agents:
        for policy in (agent.policy, agent.warmup_policy or agent.policy):
            policy.check_actions(family.actions.count, weighted=weighted)
        for rule in (agent.exploration, agent.warmup_exploration or agent.exploration):
            rule.check_actions(family.actions.count, weighted=weighted)
    players = []
    for agent in agents:
        try:
            players.append(Player(agent, family.setting(tasks), random_seed=seed))
        except InputError as error:
            raise InputError(f"{agent.name}: {error}") from None
    return players


def simulate_run(
    family: TaskFamily,
    agents: Iterable[Agent],
    *,
    tasks: int,
    seed: int = 0,
) -> dict[str, Array]:
    """One run: arrays (agent, task) of everything in ``VARIABLES``, among them the regret of
    eq. (1), but the relative regret.

    Parameters, noise and actions of a task are drawn once and shared by all agents, so that
    comparisons are paired.
    """
    agents, family = list(agents), family.in_run(seed)
    players = _players(family, agents, tasks, seed)
    size = block_size(players, family.horizon * family.dim * (family.actions.count or 0))
    ensemble = Ensemble(players, block=size)
    rng = stream(seed, ENVIRONMENT)
    regret, explored = np.empty((len(agents), tasks)), np.empty((len(agents), tasks))
    raised, passed_over, singular, bad = (np.zeros((len(agents), tasks)) for _ in range(4))
    errors = [_Errors(family, tasks) for _ in agents]
    n = end = 0
    while n < tasks:
        if n == end:
            block = family.draw_block(rng, min(size, tasks - n))
            begin, end = n, n + len(block.theta)
        part = ensemble.play_some(block, n - begin)
        here = slice(n, n + len(part.regret))
        regret[:, here], explored[:, here] = part.regret.T, part.explored.T
        for i, (estimate, learned) in enumerate(zip(part.estimates, part.learned, strict=True)):
            errors[i].add(n, estimate, learned)
            raised[i, here] = estimate.status is Status.RAISED
            singular[i, here] = estimate.status is Status.BOUNDARY
            passed_over[i, here] = estimate.passed_over
            bad[i, here] = estimate.status is Status.DIVERGENT
            if learned is not None:
                later = slice(n + 1, here.stop)
                raised[i, later], passed_over[i, later] = learned.raised, learned.passed_over
        if here.stop // _REPORT > n // _REPORT:
            report_progress(here.stop / tasks)
        n = here.stop
    for error in errors:
        error.close()
    return {
        "regret": regret,
        "mean_error": np.stack([error.mean for error in errors]),
        "covariance_error": np.stack([error.cov for error in errors]),
        "raw_covariance_error": np.stack([error.raw for error in errors]),
        "smallest_eigenvalue": np.stack([error.least for error in errors]),
        "exploration_steps": explored,
        "not_positive_definite": raised,
        "singular": singular,
        "passed_over": passed_over,
        "untrusted": bad.cumsum(axis=1),
    }


def find_rows(
    family: TaskFamily, agents: Agent | str | Iterable[Agent | str], tasks: int
) -> list[Agent]:
    """The rows and their references; refused where this family cannot be played with them."""
    rows = with_references(agents)
    if not rows:
        raise InputError("agents is empty; name at least one")
    _players(family, rows, tasks, 0)
    return rows


def record_run(family: TaskFamily, agents: list[Agent], tasks: int, seed: int) -> xr.Dataset:
    """One run with dimensions (agent, task): everything in ``VARIABLES``, the relative regret of
    eqs. (2) and (3), too."""
    import xarray as xr

    arrays = simulate_run(family, agents, tasks=tasks, seed=seed)
    names = [agent.name for agent in agents]
    reference = [names.index(agent.reference) for agent in agents]
    arrays["relative_regret"] = arrays["regret"] - arrays["regret"][reference]
    return xr.Dataset(
        {
            name: (("agent", "task"), arrays[name], {"long_name": text})
            for name, text in VARIABLES.items()
        },
        coords={
            "agent": names,
            "task": np.arange(1, tasks + 1),
            "reference": ("agent", [agent.reference for agent in agents]),
            "warmup": ("agent", [agent.warmup_tasks(family.setting(tasks)) for agent in agents]),
        },
    )
