"""The files of Figure 1: figure, record, summaries; rows from the recorded study joined."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from importlib.resources import as_file
from importlib.resources import files as resources
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


RECORDED = "figure1-bayes.nc"
"""The rows of Figure 1 that are slow to play, in the folder ``data`` of the package."""


def recorded_rows(bayes: xr.Dataset) -> xr.Dataset:
    """What ``with_recorded`` needs of the record of ``figure1-bayes``: the rows of ``BAYESIAN``,
    and KTS, by whose regret it is seen that the tasks are the same."""
    return bayes.sel(agent=[NORMALISER, *BAYESIAN])


def with_recorded(record: xr.Dataset, path: Path | None = None) -> tuple[xr.Dataset, str]:
    """The record with the rows of ``BAYESIAN`` that it lacks, and a sentence about them.

    They come from the recorded study, thinned as that is: package data, or another record at
    ``path``. They are added only where that study played the very same tasks.
    """
    missing = [name for name in BAYESIAN if name not in record.agent]
    names = " and ".join(missing)
    ask = f"--agents {','.join(missing)} plays them"
    if not missing:
        return record, ""
    if path is None:
        with as_file(resources("bayesmeta.data") / RECORDED) as file:
            kept = read_record(file)
    else:
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
        why = "the recorded study had other tasks, of another seed or version"
        return record, f"{names} are not drawn: {why}; {ask}"
    return _joined(here, kept, missing), f"{names} are from the recorded study figure1-bayes; {ask}"


def _joined(here: xr.Dataset, kept: xr.Dataset, missing: list[str]) -> xr.Dataset:
    """The rows played and the ``missing`` ones, told apart by the coordinate ``recorded``."""
    import xarray as xr

    variables = [name for name in here.data_vars if name in kept]
    played = here[variables].assign_coords(recorded=("agent", [False] * here.sizes["agent"]))
    added = kept[variables].sel(agent=missing)
    added = added.assign_coords(recorded=("agent", [True] * len(missing)))
    joined = xr.concat([played, added], "agent", join="exact", combine_attrs="override")
    return joined.assign_attrs(here.attrs)


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
