"""What a step of a rival costs beside one of the paper's Thompson rows, and Table 1 played live.

Run in a process of its own; prints JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from timing import rounds

from bayesmeta.agents.roster import ROSTER
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.streams import cell_seed
from bayesmeta.studies.growing import STUDIES
from bayesmeta.studies.rivals import BETTER, LINEAR, told_family

PAPER = "All-MTS"
"""The Thompson row of the paper that learns from all steps."""
SELDOM = ("REML-TS", *BETTER)
"""Rows whose cost comes in lumps, so that it is no cost of a step in few tasks: fits whenever tasks
have grown by a tenth, or a warm-up of d^3 tasks by another policy."""
COPIES = 6
CORES = 2


def steps(names: Sequence[str] = LINEAR, tasks: int = 300, count: int = 7) -> dict[str, Any]:
    """Cost of six copies of each rival over that of six copies of the paper's row, the tasks that
    they share included on both sides; policies that draw at every step aside."""
    family = told_family()

    def work(name: str) -> Callable[[], object]:
        rows = [replace(ROSTER[name], name=f"{name} {i}") for i in range(COPIES)]
        rows = [replace(row, reference=row.name) for row in rows]
        return lambda: simulate_run(family, rows, tasks=tasks)

    fastest = rounds(count, work(PAPER), *(work(name) for name in names)).min(axis=0)
    micro = fastest / (tasks * family.horizon * COPIES) * 1e6
    ratios = {name: float(one / micro[0]) for name, one in zip(names, micro[1:], strict=True)}
    return {"paper_us": float(micro[0]), "ratios": ratios, "tasks": tasks}


def seldom() -> dict[str, Any]:
    """The same of the rows whose cost comes in lumps, through all tasks of the study."""
    return steps(SELDOM, tasks=10_000, count=2)


def live() -> dict[str, Any]:
    """Minutes of Table 1: a cell of each value of each study, times the runs, over two cores."""
    total, cells = 0.0, 0
    for study in STUDIES:
        first: dict[Any, float] = {}
        for name, settings in study.cells.items():
            value = settings["value"]
            if value not in first:
                study.function(dict(settings), cell_seed(study.random_seed, name))  # compiles
                start = time.process_time()
                study.function(dict(settings), cell_seed(study.random_seed, name))
                first[value] = time.process_time() - start
            total += first[value]
            cells += 1
    return {"cpu_seconds": total, "minutes": total / 60 / CORES, "cells": cells}


def main() -> None:
    print(json.dumps({"steps": steps(), "seldom": seldom(), "live": live()}))


if __name__ == "__main__":
    main()
