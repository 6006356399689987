"""Write this folder's page, figure and table from the record.

python analyses/intervals/report.py
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import xarray as xr

from bayesmeta.report.figures.intervals import figure_intervals
from bayesmeta.report.numbers import csv_text
from bayesmeta.report.page import made_from, plus_minus, render, write_page
from bayesmeta.simulation.records import read_record
from bayesmeta.simulation.summaries import Interval
from bayesmeta.studies import singular
from bayesmeta.studies.intervals import (
    BOOTSTRAPPED,
    LEVEL,
    METHODS,
    REPLICATIONS,
    ROWS,
    RUNS,
    UNCERTAINTY,
)

HERE = Path(__file__).parent
SAID = {
    "none": "as if the prior were known",
    "mean": "the mean's uncertainty included (the default)",
    "bootstrap": "by a bootstrap",
    "posterior": "of the posterior",
}
"""The kinds of intervals of tasks, in words."""


def percent(share: float, of: float) -> Interval:
    """A share in per cent with 1.96 Monte-Carlo errors."""
    half = 196 * math.sqrt(max(share * (1 - share), 0.0) / of)
    return Interval(100 * share, 100 * share - half, 100 * share + half)


def mean_coverage(record: xr.Dataset, method: str, n: int) -> Interval:
    """Over all quantities; the error as if those of one run were the same, which is no less."""
    here = record.sel(interval=method, n=n)
    return percent(float((here.covered / here.available).mean()), float(here.available.min()))


def predicted(record: xr.Dataset, uncertainty: str, n: int) -> Interval:
    """Coverage of the mean reward of a new task."""
    here = record.sel(uncertainty=uncertainty, n=n)
    return percent(float(here.predicted / here.predictions), float(here.predictions))


def singular_rows(record: xr.Dataset) -> list[list[str]]:
    """A row for every kind of interval of tasks: coverage, and how far off the farthest is."""
    rows = []
    for kind in singular.KINDS:
        here = record.sel(kind=kind)
        low, high = (singular.BOUNDS[kind][i] for i in (0, 1))
        rows.append(
            [
                SAID[kind],
                plus_minus(covered(here), 1),
                f"{100 * low:.0f} to {100 * high:.0f}",
                f"{float(here.farthest):.1f}",
                f"{float(here.worst):.1f}",
            ]
        )
    return rows


def covered(here: xr.Dataset) -> Interval:
    """In per cent, with 1.96 errors over tables."""
    mean, half = 100 * float(here.covered), 196 * float(here.error)
    return Interval(mean, mean - half, mean + half)


def values(record: xr.Dataset, without: xr.Dataset) -> dict[str, Any]:
    """What the template speaks of; ``without`` is the record of singular fits."""
    sizes = record.n.values.tolist()
    share = 100 * (record.covered / record.available).sel(interval="profile")
    at = share.argmin(["n", "quantity"])
    least = share.isel(at)
    return {
        "command": "python analyses/intervals/report.py",
        "made_from": made_from([record, without]),
        "sizes": sizes,
        **{m: {n: mean_coverage(record, m, n) for n in sizes} for m in METHODS},
        "predicted": {one: {n: predicted(record, one, n) for n in sizes} for one in UNCERTAINTY},
        "lowest": {
            "share": float(least),
            "name": str(least.quantity.values),
            "n": int(least.n),
        },
        "singular": {n: 100 * float(record.singular.sel(n=n)) / RUNS for n in sizes},
        "inside": {
            one: {n: 100 * float(record.inside.sel(n=n, uncertainty=one)) for n in sizes}
            for one in UNCERTAINTY
        },
        "runs": RUNS,
        "bootstrapped": BOOTSTRAPPED,
        "replications": REPLICATIONS,
        "rows": ROWS,
        "without": {
            "rows": singular_rows(without),
            **{kind: covered(without.sel(kind=kind)) for kind in singular.KINDS},
            "worst": float(without.worst.sel(kind="none")),
            "count": int(without.singular),
            "of": int(without.runs),
            "tasks": singular.TASKS,
            "steps": singular.ROWS,
            "replications": singular.REPLICATIONS,
        },
    }


def all_numbers(record: xr.Dataset) -> str:
    """Coverage and median width of every kind of interval."""
    names = ("covered", "available", "width")
    rows = [
        [n, method, quantity]
        + [float(record[name].sel(n=n, interval=method, quantity=quantity)) for name in names]
        for n in record.n.values.tolist()
        for method in METHODS
        for quantity in record.quantity.values.tolist()
    ]
    rows += [
        [n, f"prediction ({one})", "a new task"]
        + [
            float(record[name].sel(n=n, uncertainty=one))
            for name in ("predicted", "predictions", "predicted_width")
        ]
        for n in record.n.values.tolist()
        for one in UNCERTAINTY
    ]
    return csv_text(["tasks", "interval", "quantity", *names], rows)


def texts(record: xr.Dataset, without: xr.Dataset) -> dict[Path, str]:
    """Every file of text that is made from the records."""
    return {
        HERE / "README.md": render(HERE / "README.md.j2", **values(record, without)),
        HERE / "intervals.csv": all_numbers(record),
    }


def main() -> None:
    record, without = (read_record(HERE / name) for name in ("intervals.nc", "singular.nc"))
    write_page(texts(record, without), {HERE / "intervals.png": figure_intervals(record, LEVEL)})


if __name__ == "__main__":
    main()
