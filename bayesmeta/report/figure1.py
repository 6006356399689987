"""The files of Figure 1: figure, record, summaries; rows from the recorded study joined."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.agents.roster import BAYESIAN
from bayesmeta.report.figures.figure1 import figure_1
from bayesmeta.runner.files import write_together
from bayesmeta.simulation.records import read_record, record_writer, thin
from bayesmeta.simulation.summaries import NORMALISER, summarise
from bayesmeta.studies.figure1 import DRAWN

if TYPE_CHECKING:
    import xarray as xr

FILES = ("figure1.nc", "figure1.png", "summary.json", "summary.csv")
"""What a run leaves in its folder."""


RECORDED = Path("analyses/figure1/bayes.nc")
"""Where the rows of Figure 1 that are slow to play are kept."""


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
