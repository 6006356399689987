"""What the runner of studies costs, measured in a process of its own; prints JSON.

Overhead a cell and memory of the driver on cells that do nothing, and Figure 1 at the paper's size
in one process and in two.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import xarray as xr

from bayesmeta.agents.roster import with_references
from bayesmeta.runner.collect import collect
from bayesmeta.runner.run import run_study
from bayesmeta.runner.study import Study, grid
from bayesmeta.studies import figure1

MIB = 1 << 20


def nothing(settings: dict, seed: int) -> xr.Dataset:
    """A cell that does nothing."""
    return xr.Dataset({"value": float(seed)}, attrs={"seed": seed})


def resident() -> float:
    """MiB this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def many_cells(cells: int = 10_000, **where: int) -> dict[str, float]:
    """Milliseconds a cell, start to end, and how memory grows after the first tenth."""
    study = Study("nothing", grid(run=range(cells)), nothing, 0, ("run",))
    seen: list[tuple[float, float]] = []

    @contextmanager
    def bar(total: int, done: int) -> Iterator[Callable[[float], None]]:
        yield lambda now: seen.append((now, resident()))

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        report = run_study(study, folder, progressbar=bar, **where)
        took = time.perf_counter() - start
        start = time.perf_counter()
        collect(study, folder)
        collecting = time.perf_counter() - start
    assert report.done == cells
    early = max(size for done, size in seen if done <= cells // 10)
    late = max(size for done, size in seen if done > cells * 0.9)
    return {
        "cells": cells,
        "ms_a_cell": 1000 * took / cells,
        "early_MiB": early,
        "late_MiB": late,
        "collect_ms_a_cell": 1000 * collecting / cells,
    }


def figure(jobs: int, **size: int) -> float:
    """Seconds of the study of Figure 1."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        assert run_study(figure1.study(**size), folder, jobs=jobs).complete
        return time.perf_counter() - start


def reproduce() -> float:
    """Seconds of the command ``bayesmeta reproduce``, from its start to its end."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("bayesmeta")), "reproduce", "--out"]
        start = time.perf_counter()
        subprocess.run([*command, folder], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def main() -> None:
    two = [figure(2)]
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    one = [figure(1)]
    two.append(figure(2))
    one.append(figure(1))
    whole = min(reproduce() for _ in range(2))  # after memory was read: it counts, too
    settings = next(iter(figure1.study(runs=1).cells.values()))
    full = {
        "agents": len(with_references(settings["agents"])),
        "reproduce_seconds": whole,
        "seconds": min(two),
        "seconds_one_process": min(one),
        "speedup": min(one) / min(two),
        "rounds": [a / b for a, b in zip(one, two, strict=True)],
        "driver_MiB": driver,
        "largest_worker_MiB": worker,
    }
    trivial = {"one": many_cells(jobs=1), "two": many_cells(jobs=2), "dask": many_cells(dask=2)}
    print(json.dumps({"trivial": trivial, "full_size": full}))


if __name__ == "__main__":
    if sys.argv[1:] == ["warm"]:  # compile, in a process whose memory does not count
        figure(1, runs=1, tasks=150)
    else:
        main()
