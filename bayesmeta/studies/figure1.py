"""Figure 1 of the paper: run it, and write its files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.agents import FIGURE_1, find_agents
from bayesmeta.environment import paper_family
from bayesmeta.plots import figure_1
from bayesmeta.records import record_writer, write_together
from bayesmeta.simulator import simulate
from bayesmeta.summaries import NORMALISER, summarise

if TYPE_CHECKING:
    import xarray as xr

FILES = ("figure1.nc", "figure1.png", "summary.json", "summary.csv")
"""What a run leaves in its folder."""


def run(
    *,
    runs: int = 10,
    tasks: int = 10_000,
    seed: int = 0,
    jobs: int = 2,
    agents: Sequence[str] = FIGURE_1,
    progress: Callable[[int], None] | None = None,
) -> xr.Dataset:
    """The record of the experiment of Section 6; KTS, the unit of regret, is always played."""
    rows = find_agents(dict.fromkeys([*agents, NORMALISER]))
    return simulate(
        paper_family(), rows, tasks=tasks, runs=runs, seed=seed, jobs=jobs, progress=progress
    )


def write(record: xr.Dataset, folder: Path, agents: Sequence[str] = FIGURE_1) -> None:
    """Write figure, record and summaries, all or none; ``agents`` are the ones drawn."""
    figure, summary = figure_1(record, agents), summarise(record)
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
