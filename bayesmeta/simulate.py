"""Play agents through tasks of a family: (family, agents, seed) -> xarray Dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.agents import Agent
from bayesmeta.checks import Array
from bayesmeta.environment import TaskFamily
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.kernels.draw import mean_rewards
from bayesmeta.player import Player
from bayesmeta.streams import ENVIRONMENT, stream

if TYPE_CHECKING:
    pass

VARIABLES = {
    "regret": "Bayesian regret of the task, eq. (1)",
    "relative_regret": "regret less that of the agent's reference, eq. (2)",
    "mean_error": "Euclidean distance of the prior mean in use from mu_*",
    "covariance_error": "operator norm of the prior covariance in use less Sigma_*",
    "raw_covariance_error": "the same for the estimate of eq. (11), before widening",
    "exploration_steps": "steps of the task that explored",
    "not_positive_definite": "1 where the widened covariance had to be raised to be usable",
}
"""What a record holds for every run, agent and task."""

_BLOCK = 256  # tasks whose priors are kept before their errors are computed together


class _Errors:
    """Distances of the priors in use from the truth, computed a block of tasks at a time."""

    def __init__(self, family: TaskFamily, tasks: int) -> None:
        d = family.dim
        self._truth = family.prior
        self._mean, self._cov = np.empty((_BLOCK, d)), np.empty((_BLOCK, d, d))
        self._raw = np.empty((_BLOCK, d, d))
        self._task: list[int] = []
        self._last: PriorEstimate | None = None
        self.mean, self.cov, self.raw = np.empty(tasks), np.empty(tasks), np.empty(tasks)

    def add(self, task: int, estimate: PriorEstimate) -> None:
        """Note the prior of a task; one that stays the same is noted once."""
        if estimate is self._last:
            return
        self._last = estimate
        i = len(self._task)
        self._task.append(task)
        self._mean[i], self._cov[i] = estimate.prior.mean, estimate.prior.cov
        self._raw[i] = estimate.prior.cov if estimate.raw_cov is None else estimate.raw_cov
        if i + 1 == _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Compute the errors of the tasks noted; each holds until the next one noted."""
        n = len(self._task)
        mean = np.linalg.norm(self._mean[:n] - self._truth.mean, axis=1)
        cov = _operator_norm(self._cov[:n] - self._truth.cov)
        raw = _operator_norm(self._raw[:n] - self._truth.cov)
        if n:
            first, spans = self._task[0], np.diff([*self._task, len(self.mean)])
            for out, values in ((self.mean, mean), (self.cov, cov), (self.raw, raw)):
                out[first:] = np.repeat(values, spans)
        self._task.clear()


def _operator_norm(symmetric: Array) -> Array:
    values = np.linalg.eigvalsh(symmetric)
    return np.maximum(-values[..., 0], values[..., -1])


def simulate_run(
    family: TaskFamily,
    agents: Iterable[Agent],
    *,
    tasks: int,
    run: int = 0,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Array]:
    """One run: arrays (agent, task) of everything in ``VARIABLES`` but the relative regret.

    Parameters, noise and actions of a task are drawn once and shared by all agents, so that
    comparisons are paired. ``progress`` is called with the number of tasks done.
    """
    agents = list(agents)
    players = [Player(agent, family.setting(tasks), seed=seed, run=run) for agent in agents]
    for agent in agents:
        agent.policy.check_actions(family.actions.count)
        (agent.warmup_policy or agent.policy).check_actions(family.actions.count)
    rng = stream(seed, run, ENVIRONMENT)
    regret, explored = np.empty((len(agents), tasks)), np.empty((len(agents), tasks))
    raised = np.zeros((len(agents), tasks))
    errors = [_Errors(family, tasks) for _ in agents]
    values = best = None
    for n in range(tasks):
        task = family.draw(rng)
        if task.actions is not None:
            if values is None or best is None:
                sets, _, count = task.actions.shape
                values, best = np.empty((sets, count)), np.empty(sets)
            mean_rewards(task.actions, task.theta, values, best)
        for i, player in enumerate(players):
            estimate = player.start_task()
            errors[i].add(n, estimate)
            outcome = player.play(task, values, best)
            regret[i, n], explored[i, n] = outcome.regret, outcome.explored
            raised[i, n] = estimate.status is Status.RAISED
        if progress is not None and (n + 1) % 64 == 0:
            progress(n + 1)
    for error in errors:
        error.flush()
    if progress is not None:
        progress(tasks)
    return {
        "regret": regret,
        "mean_error": np.stack([error.mean for error in errors]),
        "covariance_error": np.stack([error.cov for error in errors]),
        "raw_covariance_error": np.stack([error.raw for error in errors]),
        "exploration_steps": explored,
        "not_positive_definite": raised,
    }
