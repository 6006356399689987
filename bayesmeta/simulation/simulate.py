"""Runs of agents through tasks of a family: a study with a cell for every run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.agents.agent import Agent
from bayesmeta.checks import of_type, renamed, whole
from bayesmeta.environment import TaskFamily
from bayesmeta.runner.collect import collect_kept
from bayesmeta.runner.plain import describe
from bayesmeta.runner.run import run_study
from bayesmeta.runner.study import Study, grid
from bayesmeta.simulation.simulator import find_rows, record_run

if TYPE_CHECKING:
    import xarray as xr


def play(
    settings: dict[str, Any], seed: int, family: TaskFamily, agents: list[Agent]
) -> xr.Dataset:
    """One run, with dimensions (agent, task)."""
    return record_run(family, agents, settings["tasks"], seed)


def simulation_study(
    name: str,
    family: TaskFamily,
    agents: Agent | str | Iterable[Agent | str],
    *,
    tasks: int,
    runs: int = 1,
    random_seed: int = 0,
    function: Callable[..., xr.Dataset] = play,
    keep: Callable[[xr.Dataset], xr.Dataset] | None = None,
    note: str = "",
    record: str = "",
) -> Study:
    """The study of a simulation: cells ``run=0``, ``run=1``, …, each one run of all agents.

    Run k is played with the seed of (``random_seed``, "run=k"). ``function`` plays a run and
    measures it; ``keep`` gets the collected record with its settings.
    """
    tasks, runs = whole("tasks", tasks, least=1), whole("runs", runs, least=1)
    random_seed = whole("random_seed", random_seed)
    of_type("family", family, TaskFamily, "use TaskFamily(prior, actions, noise_sd, horizon)")
    rows, notes = find_rows(family, agents, tasks), family.notes()

    def kept(collected: xr.Dataset) -> xr.Dataset:
        settings = {
            "family": describe_family(family),
            "agents": describe(rows),
            "tasks": tasks,
            "runs": collected.sizes["run"],
            "seed": random_seed,
        }
        described = collected.assign_attrs(settings=json.dumps(settings))
        if family.hyper is not None:
            described = described.assign_attrs(regret=averaged_over(family))
        if notes:
            described = described.assign_attrs(notes="; ".join(notes))
        return described if keep is None else keep(described)

    cells = grid({"agents": [row.name for row in rows], "tasks": tasks}, run=range(runs))
    return Study(
        name,
        cells,
        function,
        random_seed=random_seed,
        dims=("run",),
        note=note,
        keep=kept,
        record=record,
        shared={"family": family, "agents": rows},
    )


@renamed(seed="random_seed")
def simulate(
    family: TaskFamily,
    agents: Agent | str | Iterable[Agent | str],
    *,
    tasks: int,
    runs: int = 1,
    random_seed: int = 0,
    jobs: int = 1,
    scheduler: str | None = None,
    dask: int | None = None,
    folder: Path | str | None = None,
    progressbar: bool = False,
) -> xr.Dataset:
    """Play agents through tasks of a family; all agents of a run meet the same tasks and noise.

    Parameters
    ----------
    family : TaskFamily
        The environment.
    agents : Agent, str, or iterable of them
        Rows, or names of rows in the roster; their references, eq. (2), are played too.
    tasks, runs : int
        Tasks of a run (N), and independent repetitions.
    random_seed : int
        Run k depends on (``random_seed``, k) alone: the same bits however many runs there are, and
        wherever they are played. Also accepted as ``seed``.
    jobs, scheduler, dask
        Where runs are played; see ``run_study``.
    folder : path, optional
        Where finished runs are stored; an interrupted simulation goes on from there.
    progressbar : bool
        Show how many runs are done.

    Returns
    -------
    xarray.Dataset
        Dimensions (run, agent, task), the variables of ``simulator.VARIABLES``; its attributes
        hold the settings and versions that repeat it.

    Examples
    --------
    >>> record = bm.simulate(bm.paper_family(dim=2, horizon=10), ["KTS", "UKTS"], tasks=5, runs=2)
    >>> dict(record.sizes)
    {'run': 2, 'agent': 2, 'task': 5}
    """
    study = simulation_study(
        "simulation", family, agents, tasks=tasks, runs=runs, random_seed=random_seed
    )
    workers: dict[str, Any] = {"scheduler": scheduler, "dask": dask}
    if jobs != 1 or workers == {"scheduler": None, "dask": None}:
        workers["jobs"] = min(whole("jobs", jobs, least=1), runs)
    report = run_study(study, folder, raise_errors=True, progressbar=progressbar, **workers)
    return collect_kept(study, report)


def averaged_over(family: TaskFamily) -> str:
    """What the regret of a record is a mean over: Bayes regret over a hyper-prior, or that at one
    mu_*; the two are different quantities, and a table must say which it shows."""
    if family.redraw:
        return "mean over runs, mu_* drawn from the hyper-prior for each"
    return "at the one mu_* of the family"


def describe_family(family: TaskFamily) -> dict[str, object]:
    """All that defines a family, and which assumptions it violates, as plain data."""
    told: dict[str, object] = {}
    if family.hyper is not None:
        told = {"hyper": describe(family.hyper), "redraw": family.redraw}
    return told | {
        "mean": family.prior.mean.tolist(),
        "cov": family.prior.cov.tolist(),
        "noise_sd": family.noise_sd,
        "horizon": family.horizon,
        "actions": describe(family.actions),
        "bounds": asdict(family.told()),
        "violations": family.violations(),
    }
