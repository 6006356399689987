"""Play agents through tasks of a family: (family, agents, seed) -> xarray Dataset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.agents.player import Ensemble, Player
from bayesmeta.agents.roster import Agent, with_references
from bayesmeta.checks import Array, InputError, whole
from bayesmeta.environment import TaskFamily
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.runner.executors import Processes, Serial, check_picklable, each, processes
from bayesmeta.runner.progress import report_progress
from bayesmeta.runner.provenance import versions
from bayesmeta.streams import ENVIRONMENT, cell_seed, stream

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

_BLOCK = 256  # tasks whose priors are kept before their errors are computed together


class _Errors:
    """Distances of the priors in use from the truth, computed a block of tasks at a time."""

    def __init__(self, family: TaskFamily, tasks: int) -> None:
        self._truth = family.prior
        self._noted: list[tuple[int, PriorEstimate]] = []
        self._last: PriorEstimate | None = None
        self.mean, self.cov, self.raw, self.least = (np.empty(tasks) for _ in range(4))

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
        covs = np.array([prior.cov for prior in priors])
        here = slice(first, end + 1)
        self.mean[here] = np.repeat(np.linalg.norm(means, axis=1), spans)
        self.cov[here] = np.repeat(_operator_norm(covs - self._truth.cov), spans)
        self.least[here] = np.repeat(np.linalg.eigvalsh(covs)[:, 0], spans)
        self.raw[here] = np.repeat(_operator_norm(np.array(raw) - self._truth.cov), spans)
        self._noted = self._noted[-1:]

    def close(self) -> None:
        """The last prior noted holds to the end."""
        self.flush()
        last = self._noted[0][0]
        for values in (self.mean, self.cov, self.raw, self.least):
            values[last:] = values[last]


def _operator_norm(symmetric: Array) -> Array:
    values = np.linalg.eigvalsh(symmetric)
    return np.maximum(-values[..., 0], values[..., -1])


def _players(family: TaskFamily, agents: Iterable[Agent], tasks: int, seed: int) -> list[Player]:
    """A player for every row; a row that this family cannot be played with is refused."""
    agents = list(agents)
    for agent in agents:
        for policy in (agent.policy, agent.warmup_policy or agent.policy):
            policy.check_actions(family.actions.count)
    return [Player(agent, family.setting(tasks), random_seed=seed) for agent in agents]


def simulate_run(
    family: TaskFamily,
    agents: Iterable[Agent],
    *,
    tasks: int,
    seed: int = 0,
) -> dict[str, Array]:
    """One run: arrays (agent, task) of everything in ``VARIABLES`` but the relative regret.

    Parameters, noise and actions of a task are drawn once and shared by all agents, so that
    comparisons are paired.
    """
    agents = list(agents)
    players = _players(family, agents, tasks, seed)
    ensemble = Ensemble(players)
    rng = stream(seed, ENVIRONMENT)
    regret, explored = np.empty((len(agents), tasks)), np.empty((len(agents), tasks))
    raised, passed_over, singular, bad = (np.zeros((len(agents), tasks)) for _ in range(4))
    errors = [_Errors(family, tasks) for _ in agents]
    for n in range(tasks):
        task = family.draw(rng)
        for i, player in enumerate(players):
            estimate = player.start_task()
            errors[i].add(n, estimate)
            raised[i, n] = estimate.status is Status.RAISED
            singular[i, n] = estimate.status is Status.BOUNDARY
            passed_over[i, n] = estimate.passed_over
            bad[i, n] = estimate.status is Status.DIVERGENT
        outcomes = ensemble.play(task)
        regret[:, n], explored[:, n] = outcomes.regret, outcomes.explored
        if (n + 1) % 64 == 0:
            report_progress((n + 1) / tasks)
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
    relative regret is defined. Run k is played with the seed of (``seed``, "run=k") alone: the same
    seed gives the same bits whatever ``runs`` or ``jobs`` (processes) is. ``progress`` is called
    with the number of tasks done in all runs together.
    """
    tasks, runs = whole("tasks", tasks, least=1), whole("runs", runs, least=1)
    seed, jobs = whole("seed", seed), whole("jobs", jobs, least=1)
    rows = find_rows(family, agents, tasks)
    done: dict[int, xr.Dataset] = {}

    def watch() -> None:
        if progress is not None:
            progress(round((len(done) + workers.fraction()) * tasks))

    with ExitStack() as stack:
        workers: Serial | Processes = Serial()
        if jobs > 1 and runs > 1:
            check_picklable("family or agents", (family, rows))
            workers = stack.enter_context(processes(min(jobs, runs)))
        workers.watch = watch
        items = ((k, (family, rows, tasks, cell_seed(seed, f"run={k}"))) for k in range(runs))
        for k, future in each(workers, record_run, items, watch):
            done[k] = future.result()
    return join_runs([done[k] for k in range(runs)], family, rows, seed)


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
    """One run with dimensions (agent, task): everything in ``VARIABLES``."""
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


def join_runs(
    runs: list[xr.Dataset], family: TaskFamily, agents: list[Agent], seed: int
) -> xr.Dataset:
    """A record of several runs with dimensions (run, agent, task), and what repeats it."""
    import xarray as xr

    record = xr.concat(runs, "run", coords="minimal", compat="override", join="override")
    record = record.assign_coords(run=np.arange(len(runs)))
    return describe_runs(record, family, agents, record.sizes["task"], seed)


def describe_runs(
    record: xr.Dataset, family: TaskFamily, agents: list[Agent], tasks: int, seed: int
) -> xr.Dataset:
    """The record with all that repeats it in its attributes."""
    settings = {
        "family": describe_family(family),
        "agents": [describe(agent) for agent in agents],
        "tasks": tasks,
        "runs": record.sizes["run"],
        "seed": seed,
    }
    made_by = record.attrs.get("versions", json.dumps(versions()))
    return record.assign_attrs(settings=json.dumps(settings), versions=made_by)


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
