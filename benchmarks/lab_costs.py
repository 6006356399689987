"""What the calibration lab costs, on two processes, and how it grows with replications; prints
JSON."""

from __future__ import annotations

import json
from typing import Any

from timing import growth, seconds

import bayesmeta as bm

JOBS = 2
CLOSED = ("moment", "ml", "reml")
"""With Wald intervals."""
SIZES = (125, 250, 500, 1000)
"""Replications along which the cost is to be linear."""


def closed(replications: int, dim: int = 5, tasks: int = 100) -> None:
    """Closed forms and likelihood, in the paper's family."""
    family = bm.paper_family(dim=dim)
    _lab(family, tasks, list(CLOSED), replications)


def posterior(replications: int, dim: int = 2, tasks: int = 50) -> None:
    """The posterior under the default prior."""
    _lab(bm.paper_family(dim=dim), tasks, ["posterior"], replications)


def _lab(family: bm.TaskFamily, tasks: int, names: list[str], replications: int) -> None:
    lab = bm.calibrate(family, tasks=tasks, estimators=names, replications=replications, jobs=JOBS)
    assert lab.sizes["replication"] == replications and float(lab.failed.max()) == 0


def measure(
    many: int = 1000, few: int = 200, sizes: tuple[int, ...] = SIZES, rounds: int = 2
) -> dict[str, Any]:
    """Seconds of either, the fastest of some rounds after one that compiles, start of processes
    included; and the growth of the first."""
    found: dict[str, Any] = {"jobs": JOBS}
    for name, work, count in (("closed", closed, many), ("posterior", posterior, few)):
        work(2)
        found[name] = {
            "replications": count,
            "seconds": min(seconds(lambda w=work, c=count: w(c)) for _ in range(rounds)),
        }
    found["growth"] = growth(sizes, lambda size: lambda: closed(size), count=1)
    return found


if __name__ == "__main__":
    print(json.dumps(measure()))
