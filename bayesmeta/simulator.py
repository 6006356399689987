"""Play agents through tasks of a family: (family, agents, seed) -> xarray Dataset."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields, is_dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.agents import Agent, with_references
from bayesmeta.checks import Array, InputError, whole
from bayesmeta.environment import TaskFamily
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.learners import KNOWN, Moments
from bayesmeta.player import Ensemble, Player
from bayesmeta.pool import Tick, each_run
from bayesmeta.streams import ENVIRONMENT, stream

if TYPE_CHECKING:
    import xarray as xr

VARIABLES = {
    "regret": "Bayesian regret of the task, eq. (1)",
    "relative_regret": "regret less that of the agent's reference, eq. (2)",
    "mean_error": "Euclidean distance of the prior mean in use from mu_*",
    "covariance_error": "operator norm of the prior covariance in use less Sigma_*",
    "raw_covariance_error": "the same for the estimate of eq. (11), before widening",
    "exploration_steps": "steps of the task that explored",
    "not_positive_definite": "1 where the widened covariance had to be raised to be usable",
    "passed_over": "tasks so far that the learner could not use, their gram being singular",
}
"""What a record holds for every run, agent and task."""

_BLOCK = 256  # tasks whose priors are kept before their errors are computed together


class _Errors:
    """Distances of the priors in use from the truth, computed a block of tasks at a time."""

    def __init__(self, family: TaskFamily, tasks: int) -> None:
        self._truth = family.prior
        self._noted: list[tuple[int, PriorEstimate]] = []
        self._last: PriorEstimate | None = None
        self.mean, self.cov, self.raw = np.empty(tasks), np.empty(tasks), np.empty(tasks)

    def add(self, task: int, estimate: PriorEstimate) -> None:
        """Note the prior of a task; one that stays the same is noted once."""
        if estimate is not self._last:
            self._last = estimate
            self._noted.append((task, estimate))
            if len(self._noted) == _BLOCK:
                self.flush()

    def flush(self) -> None:
        """Compute the errors of the tasks noted; each holds until the next one noted."""
        first, end = self._noted[0][0], self._noted[-1][0]
        spans = np.diff([task for task, _ in self._noted], append=end + 1)
        priors = [estimate.prior for _, estimate in self._noted]
        raw = [e.prior.cov if e.raw_cov is None else e.raw_cov for _, e in self._noted]
        means = np.array([prior.mean for prior in priors]) - self._truth.mean
        covs = np.array([prior.cov for prior in priors]) - self._truth.cov
        here = slice(first, end + 1)
        self.mean[here] = np.repeat(np.linalg.norm(means, axis=1), spans)
        self.cov[here] = np.repeat(_operator_norm(covs), spans)
        self.raw[here] = np.repeat(_operator_norm(np.array(raw) - self._truth.cov), spans)
        self._noted = self._noted[-1:]

    def close(self) -> None:
        """The last prior noted holds to the end."""
        self.flush()
        last = self._noted[0][0]
        for values in (self.mean, self.cov, self.raw):
            values[last:] = values[last]


def _operator_norm(symmetric: Array) -> Array:
    values = np.linalg.eigvalsh(symmetric)
    return np.maximum(-values[..., 0], values[..., -1])


def _players(
    family: TaskFamily, agents: Iterable[Agent], tasks: int, run: int, seed: int
) -> list[Player]:
    """A player for every row; a row that this family cannot be played with is refused."""
    agents = list(agents)
    for agent in agents:
        for policy in (agent.policy, agent.warmup_policy or agent.policy):
            policy.check_actions(family.actions.count)
    return [Player(agent, family.setting(tasks), seed=seed, run=run) for agent in agents]


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
    players = _players(family, agents, tasks, run, seed)
    ensemble = Ensemble(players)
    rng = stream(seed, run, ENVIRONMENT)
    regret, explored = np.empty((len(agents), tasks)), np.empty((len(agents), tasks))
    raised, passed_over = np.zeros((len(agents), tasks)), np.zeros((len(agents), tasks))
    errors = [_Errors(family, tasks) for _ in agents]
    for n in range(tasks):
        task = family.draw(rng)
        for i, player in enumerate(players):
            estimate = player.start_task()
            errors[i].add(n, estimate)
            raised[i, n] = estimate.status is Status.RAISED
            passed_over[i, n] = estimate.passed_over
        outcomes = ensemble.play(task)
        regret[:, n], explored[:, n] = outcomes.regret, outcomes.explored
        if progress is not None and (n + 1) % 64 == 0:
            progress(n + 1)
    for error in errors:
        error.close()
    if progress is not None:
        progress(tasks)
    return {
        "regret": regret,
        "mean_error": np.stack([error.mean for error in errors]),
        "covariance_error": np.stack([error.cov for error in errors]),
        "raw_covariance_error": np.stack([error.raw for error in errors]),
        "exploration_steps": explored,
        "not_positive_definite": raised,
        "passed_over": passed_over,
    }


def simulate(
    family: TaskFamily,
    agents: Agent | str | Iterable[Agent | str],
    *,
    tasks: int,
    runs: int = 1,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> xr.Dataset:
    """A record with dimensions (run, agent, task): everything in ``VARIABLES``.

    ``agents`` are rows, or names of rows in the roster. Their references are played too, so that
    relative regret is defined. The same seed gives
    the same bits whatever ``jobs`` (processes) is. ``progress`` is called with the number of
    tasks done in all runs together.
    """
    tasks, runs = whole("tasks", tasks, least=1), whole("runs", runs, least=1)
    seed, jobs = whole("seed", seed), whole("jobs", jobs, least=1)
    rows = with_references(agents)
    if not rows:
        raise InputError("agents is empty; name at least one")
    _players(family, rows, tasks, 0, seed)  # refuse what cannot be played before any process starts
    if jobs > 1 and runs > 1:
        # compile (or load) the kernels here, so that the processes find them in the cache
        simulate_run(family, [_brief(row) for row in rows], tasks=min(tasks, 4))
    work = partial(_one_run, family, rows, tasks, seed)
    return _record(family, rows, tasks, seed, each_run(work, runs, jobs, progress))


def _brief(row: Agent) -> Agent:
    """A row that needs the same kernels within four tasks, and no costly learner."""
    if isinstance(row.learner, Moments):
        return replace(row, warmup=min(row.warmup or 2, 2))
    return replace(row, learner=KNOWN, warmup=0)


def _one_run(
    family: TaskFamily, agents: list[Agent], tasks: int, seed: int, run: int, tick: Tick
) -> dict[str, Array]:
    return simulate_run(family, agents, tasks=tasks, run=run, seed=seed, progress=tick)


def _record(
    family: TaskFamily,
    agents: list[Agent],
    tasks: int,
    seed: int,
    results: list[dict[str, Array]],
) -> xr.Dataset:
    import xarray as xr

    names = [agent.name for agent in agents]
    arrays = {name: np.stack([result[name] for result in results]) for name in results[0]}
    reference = [names.index(agent.reference) for agent in agents]
    arrays["relative_regret"] = arrays["regret"] - arrays["regret"][:, reference]
    settings = {
        "family": describe_family(family),
        "agents": [describe(agent) for agent in agents],
        "tasks": tasks,
        "runs": len(results),
        "seed": seed,
    }
    return xr.Dataset(
        {
            name: (("run", "agent", "task"), arrays[name], {"long_name": text})
            for name, text in VARIABLES.items()
        },
        coords={
            "run": np.arange(len(results)),
            "agent": names,
            "task": np.arange(1, tasks + 1),
            "reference": ("agent", [agent.reference for agent in agents]),
            "warmup": ("agent", [agent.warmup_tasks(family.setting(tasks)) for agent in agents]),
        },
        attrs={"settings": json.dumps(settings), "versions": json.dumps(versions())},
    )


def describe_family(family: TaskFamily) -> dict[str, object]:
    """All that defines a family, and which assumptions it violates, as plain data."""
    return {
        "mean": family.prior.mean.tolist(),
        "cov": family.prior.cov.tolist(),
        "noise_sd": family.noise_sd,
        "horizon": family.horizon,
        "actions": describe(family.actions),
        "bounds": asdict(family.told()),
        "violations": family.violations(),
    }


def describe(value: object) -> object:
    """A frozen description as plain data, to every digit; functions by their name."""
    if is_dataclass(value):
        parts = {field.name: describe(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__} | parts
    if isinstance(value, np.ndarray):
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    name = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{name}" if name else repr(value)


def versions() -> dict[str, str]:
    """What the bits of a record depend on."""
    packages = ("bayesmeta", "numpy", "scipy", "numba", "llvmlite", "xarray")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
