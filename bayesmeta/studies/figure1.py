"""Figure 1 of the paper, and the studies beside it: what they run, and the figure's files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents import BAYESIAN, FIGURE_1, OURS, find_agents
from bayesmeta.cells import Study, grid
from bayesmeta.environment import paper_family
from bayesmeta.plots import figure_1
from bayesmeta.records import read_record, record_writer, thin, write_together
from bayesmeta.simulator import describe_runs, find_rows, record_run
from bayesmeta.summaries import NORMALISER, summarise

if TYPE_CHECKING:
    import xarray as xr

FILES = ("figure1.nc", "figure1.png", "summary.json", "summary.csv")
"""What a run leaves in its folder."""
LEARNERS = ("Th-MTS_tau", "All-MTS_tau", "All-MTS")
DRAWN = (*FIGURE_1, *OURS)
"""The rows of the figure: the paper's and ours."""
FAIR = (
    "KTS",
    *OURS,
    "All-MTS",
    "All-MTS_w10",
    "KTS_x0.5",
    "KTS_x0.2",
    "KTS_x0.05",
    "KGreedy",
    "KUCB",
    "KIDS",
)
"""Who to compare a learner with: other policies with the true prior, TS with a smaller one."""
FEW = ("KTS", "UKTS", "All-MTS", "All-MTS_w10", "REML-TS", *BAYESIAN)
"""Who is compared where tasks are few."""
RECORDED = Path("analyses/figure1/bayes.nc")
"""Where the rows of Figure 1 that are slow to play are kept."""
IDS = tuple(name.replace("TS", "IDS") for name in FIGURE_1)


def play(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One run of the experiment of Section 6, with dimensions (agent, task)."""
    family, tasks = paper_family(), settings["tasks"]
    return record_run(family, find_rows(family, settings["agents"], tasks), tasks, seed)


def count_raised(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Tasks of one run whose widened covariance, eq. (12), was not positive definite."""
    counts = play(settings, seed)[["not_positive_definite"]].sum("task").astype(np.int32)
    return counts.sel(agent=list(LEARNERS))


def study(
    *,
    runs: int = 10,
    tasks: int = 10_000,
    seed: int = 0,
    agents: Sequence[str] = DRAWN,
    keep: Callable[[xr.Dataset], xr.Dataset] = lambda record: record,
    name: str = "figure1",
    note: str = "",
    record: str = "",
    function: Callable[[dict[str, Any], int], xr.Dataset] = play,
) -> Study:
    """The experiment of Section 6, a cell for every run; KTS, the unit of regret, is played too."""
    names = [row.name for row in find_agents(dict.fromkeys([*agents, NORMALISER]))]

    def described(record: xr.Dataset) -> xr.Dataset:
        family = paper_family()
        rows = find_rows(family, names, tasks)
        return keep(describe_runs(record, family, rows, tasks, seed))

    cells = grid({"agents": names, "tasks": tasks}, run=range(runs))
    return Study(name, cells, function, seed, ("run",), note, described, record)


STUDIES = (
    study(note="Figure 1 at the paper's size", record="figure1/figure1.nc", keep=thin),
    study(
        name="figure1-orderings",
        record="figure1/orderings.nc",
        note="more runs of the same size: ten leave some of Section 6's statements undecided",
        runs=60,
        seed=1,
        agents=FIGURE_1,
        keep=partial(thin, points=100),
    ),
    study(
        name="figure1-fair",
        record="figure1/fair.nc",
        note="what a learner must be compared with: the true prior scaled, other policies with it",
        agents=FAIR,
        keep=partial(thin, points=100),
    ),
    study(
        name="figure1-bayes",
        record="figure1/bayes.nc",
        note="the agents that learn a posterior by MCMC, beside those they are compared with",
        agents=("KTS", "All-MTS", "REML-TS", *BAYESIAN),
        keep=thin,
    ),
    study(
        name="figure1-few",
        record="figure1/few.nc",
        note="the same where tasks are few, so that not knowing the prior matters most",
        agents=FEW,
        tasks=100,
        runs=30,
        seed=4,
        keep=thin,
    ),
    study(
        name="figure1-ids",
        record="figure1/ids.nc",
        note="IDS instead of Thompson Sampling; fewer tasks, since a step of IDS costs 30 of TS",
        tasks=2_000,
        agents=IDS,
        keep=thin,
    ),
    study(
        name="figure1-definiteness",
        record="figure1/definiteness.nc",
        note="how often eq. (12) is not positive definite: most likely soon after the warm-up",
        runs=400,
        tasks=300,
        seed=2,
        agents=LEARNERS,
        function=count_raised,
    ),
)
"""What is recorded in analyses/figure1."""


def with_recorded(record: xr.Dataset, path: Path = RECORDED) -> tuple[xr.Dataset, str]:
    """The record with the rows of ``BAYESIAN`` that it lacks from the recorded study, thinned as
    that is; and a word on it. Only where the study played the very same tasks."""
    import xarray as xr

    missing = [name for name in BAYESIAN if name not in record.agent]
    names = " and ".join(missing)
    ask = f"--agents {','.join(missing)} plays them"
    if not missing:
        return record, ""
    if not path.is_file():
        return record, f"{names} are not drawn: there is no {path}; {ask}"
    kept = read_record(path)
    runs, here = record.sizes["run"], thin(record)
    if kept.sizes["run"] < runs or not here.task.equals(kept.task):
        return record, (
            f"{names} are not drawn: they were recorded for {kept.sizes['run']} runs of "
            f"{int(kept.task[-1])} tasks; {ask}"
        )
    kept = kept.isel(run=slice(runs)).assign_coords(run=here.run)
    ours, theirs = (data.cumulative_regret.sel(agent=NORMALISER).values for data in (here, kept))
    if not np.allclose(ours, theirs, rtol=1e-9):
        return record, f"{names} are not drawn: the recorded study had other tasks (a seed?); {ask}"
    variables = [name for name in here.data_vars if name in kept]
    joined = xr.concat(
        [here[variables].assign_coords(recorded=("agent", [False] * here.sizes["agent"])),
         kept[variables].sel(agent=missing).assign_coords(
             recorded=("agent", [True] * len(missing)))],
        "agent", join="exact", combine_attrs="override",
    )  # fmt: skip
    return joined.assign_attrs(here.attrs), f"{names} are from {path}; {ask}"


def write(
    record: xr.Dataset,
    folder: Path,
    agents: Sequence[str] = DRAWN,
    shown: xr.Dataset | None = None,
) -> None:
    """Write figure, record and summaries, all or none; ``agents`` are the ones drawn, and
    ``shown`` is what figure and summaries are made of, where that is more than what was played."""
    shown = record if shown is None else shown
    figure, summary = figure_1(shown, agents), summarise(shown)
    writers = (
        record_writer(record),
        lambda to: figure.savefig(to, dpi=110),
        lambda to: to.write_text(json.dumps(summary, indent=2) + "\n"),
        lambda to: _write_table(summary, to),
    )
    write_together({folder / name: writer for name, writer in zip(FILES, writers, strict=True)})


def _write_table(summary: dict[str, dict[str, object]], path: Path) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        fields = list(next(iter(summary.values())))
        columns = [
            part
            for name in fields
            for part in ([f"{name}_low", f"{name}_high"] if name.endswith("interval") else [name])
        ]
        table.writerow(["agent", *columns])
        for agent, row in summary.items():
            cells: list[object] = []
            for name in fields:
                value = row[name]
                if name.endswith("interval"):
                    cells += value if isinstance(value, list) else [math.nan, math.nan]
                else:
                    cells.append(value)
            table.writerow([agent, *cells])
