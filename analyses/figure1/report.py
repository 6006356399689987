"""Write this folder's page, figures and tables, and the README's block, from the records.

python analyses/figure1/report.py
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from bayesmeta.agents.roster import BAYESIAN, FIGURE_1, OURS, ROSTER
from bayesmeta.environment import paper_family
from bayesmeta.report.figure1 import RECORDED, recorded_rows, with_recorded
from bayesmeta.report.figures.figure1 import figure_1, figure_orderings
from bayesmeta.report.markdown import write_block
from bayesmeta.report.numbers import csv_text
from bayesmeta.report.page import made_from, render, write_page
from bayesmeta.simulation.records import cumulative, read_record, settings_of, write_record
from bayesmeta.simulation.summaries import (
    Interval,
    error_slopes,
    interval,
    normaliser,
    orderings,
    run_by_run,
    summarise,
)
from bayesmeta.studies.figure1 import DRAWN, LEARNERS

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RECORDS = ("figure1", "fair", "orderings", "ids", "definiteness", "bayes", "few")
ROWS = (*DRAWN, *BAYESIAN)


def shown(records: dict[str, xr.Dataset]) -> xr.Dataset:
    """The figure's record with the recorded rows that ``reproduce`` adds."""
    return with_recorded(records["figure1"], HERE / "bayes.nc")[0]


def agents_of(record: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Final numbers of every agent, with intervals over runs."""
    final, unit = cumulative(record).isel(task=-1), normaliser(record)
    found: dict[str, dict[str, Any]] = {}
    for name, row in summarise(record).items():
        here = final.sel(agent=name)
        found[name] = row | {
            "note": ROSTER[name].note,
            "regret": interval(here.cumulative_regret.values / unit),
            "relative": interval(here.cumulative_relative_regret.values / unit),
            "of_mean": interval(here.mean_error.values),
            "of_covariance": interval(here.covariance_error.values),
        }
    return found


def paired(
    record: xr.Dataset, first: str, second: str, part: str = "cumulative_regret"
) -> Interval:
    """Regret of one agent less that of another in the same run, in units of KTS's total."""
    final = cumulative(record)[part].isel(task=-1) / normaliser(record)
    return interval((final.sel(agent=first) - final.sel(agent=second)).values)


def late(record: xr.Dataset, agent: str) -> Interval:
    """Relative regret of the last half of the tasks, in units of KTS's total."""
    total = cumulative(record).cumulative_relative_regret.sel(agent=agent)
    last = int(record.task[-1])
    gap = total.sel(task=last) - total.sel(task=last // 2)
    return interval(gap.values / normaliser(record))


def refits(tasks: int) -> list[int]:
    """The numbers of tasks after which an HB agent fits its posterior."""
    growth, n, found = ROSTER["HB-TS"].learner.growth, 0, []
    while n < tasks:
        found.append(n)
        n = max(n + 1, math.ceil(n * growth))
    return found


def values(records: dict[str, xr.Dataset]) -> dict[str, Any]:
    """What the templates speak of."""
    fair, many, definite, bayes = (
        records[name] for name in ("fair", "orderings", "definiteness", "bayes")
    )
    agents = {name: agents_of(record) for name, record in records.items() if name != "definiteness"}
    agents["shown"] = agents_of(shown(records))
    found = orderings(many)
    eigenvalues = np.linalg.eigvalsh(paper_family().prior.cov)
    counts = definite.not_positive_definite
    return {
        "command": "python analyses/figure1/report.py",
        "made_from": made_from(records.values()),
        "rows": ROWS,
        "ours": OURS,
        "bayesian": BAYESIAN,
        "agents": agents,
        "sizes": {
            name: (record.sizes["run"], settings_of(record)["tasks"])
            for name, record in records.items()
        },
        "seeds": {name: settings_of(record)["seed"] for name, record in records.items()},
        "warmup": ROSTER["REML-TS"].warmup,
        "orderings": found,
        "exceptions": [one for one in found if one.verdict != "holds"],
        "in_figure": Counter(one.verdict for one in orderings(records["figure1"])),
        "slopes": {name: interval(error_slopes(many, name)) for name in LEARNERS},
        "late": {name: late(fair, name) for name in OURS},
        "less_theirs": {name: paired(fair, name, "All-MTS") for name in OURS},
        "less_reml": {
            name: {kind: paired(records[kind], name, "REML-TS") for kind in ("bayes", "few")}
            for name in BAYESIAN
        },
        "true_smallest": float(eigenvalues[0]),
        "equal_smallest": int((eigenvalues < eigenvalues[0] + 1e-9).sum()),
        "growth": ROSTER["HB-TS"].learner.growth - 1,
        "refits": refits(settings_of(bayes)["tasks"]),
        "raised": {
            name: (int((counts.sel(agent=name) > 0).sum()), int(counts.sel(agent=name).sum()))
            for name in LEARNERS
        },
        "ids_draws": ROSTER["KIDS"].policy.posterior_draws,
    }


def readme(records: dict[str, xr.Dataset]) -> str:
    """The README of this folder."""
    return render(HERE / "README.md.j2", **values(records))


def main_block(records: dict[str, xr.Dataset]) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(records)).strip()


def agents_csv(records: dict[str, xr.Dataset]) -> str:
    """Every number of ``summarise``, of every agent of every record that has regrets."""
    named = {name: record for name, record in records.items() if name != "definiteness"}
    rows: list[list[object]] = []
    header: list[str] = []
    for kind, record in (named | {"figure1": shown(records)}).items():
        for agent, found in summarise(record).items():
            row: dict[str, object] = {"record": kind, "agent": agent}
            for key, value in found.items():
                if key.endswith("interval"):
                    row[f"{key}_low"], row[f"{key}_high"] = value or (None, None)
                else:
                    row[key] = value
            row.setdefault("untrusted", None)  # older records do not have it
            header = list(row)
            rows.append(list(row.values()))
    return csv_text(header, rows)


def orderings_csv(records: dict[str, xr.Dataset]) -> str:
    """Every statement of Section 6, judged on its own runs and on those of the figure."""
    rows = [
        [
            name,
            records[name].sizes["run"],
            one.statement,
            one.span,
            one.measure,
            *one.value,
            one.verdict,
        ]
        for name in ("orderings", "figure1")
        for one in orderings(records[name])
    ]
    header = [
        "record",
        "runs",
        "statement",
        "over",
        "number that must be negative",
        "value",
        "low",
        "high",
        "verdict",
    ]
    return csv_text(header, rows)


def paired_csv(records: dict[str, xr.Dataset]) -> str:
    """The agents that learn a posterior against others in the same runs, total and relative."""
    rows = [
        [
            kind,
            name,
            other,
            part.removeprefix("cumulative_"),
            *paired(records[kind], name, other, part),
        ]
        for kind in ("bayes", "few")
        for name in BAYESIAN
        for other in ("KTS", "REML-TS", "All-MTS", "All-MTS_w10")
        if other in records[kind].agent
        for part in ("cumulative_regret", "cumulative_relative_regret")
    ]
    return csv_text(["record", "agent", "less", "measure", "value", "low", "high"], rows)


def on_the_way_csv(record: xr.Dataset) -> str:
    """Errors after few tasks and many, averaged over runs."""
    near = record.sel(task=[20, 50, 100, 300, 1_000, 3_000, 10_000], method="nearest")
    measures = ("mean_error", "covariance_error", "smallest_eigenvalue")
    rows = [
        [
            agent,
            int(n),
            *(
                round(float(near[part].sel(agent=agent, task=n).mean()), 6) + 0.0
                for part in measures
            ),
        ]
        for agent in (*OURS, "All-MTS", "All-MTS_w10")
        for n in near.task.values
    ]
    return csv_text(["agent", "task", *measures], rows)


def section_6(record: xr.Dataset) -> str:
    """The runs that the check of Section 6's claims is made on, as package data."""
    unit = normaliser(record)
    found = {
        "study": "figure1-orderings",
        "tasks": int(record.task[-1]),
        "unit": unit,
        **run_by_run(record, FIGURE_1, LEARNERS, unit),
    }
    return json.dumps(found) + "\n"


def texts(records: dict[str, xr.Dataset]) -> dict[Path, str]:
    """Every file of text that is made from the records."""
    return {
        HERE / "README.md": readme(records),
        HERE / "agents.csv": agents_csv(records),
        HERE / "orderings.csv": orderings_csv(records),
        HERE / "paired.csv": paired_csv(records),
        HERE / "on-the-way.csv": on_the_way_csv(records["fair"]),
        HERE / "summary.json": json.dumps(summarise(shown(records)), indent=2) + "\n",
        ROOT / "bayesmeta" / "data" / "section6.json": section_6(records["orderings"]),
    }


def main() -> None:
    records = {name: read_record(HERE / f"{name}.nc") for name in RECORDS}
    figures = {
        HERE / "figure1.png": figure_1(shown(records), ROWS),
        HERE / "orderings.png": figure_orderings(orderings(records["orderings"])),
    }
    write_page(texts(records), figures)
    write_block(ROOT / "README.md", "figure1", main_block(records))
    write_record(recorded_rows(records["bayes"]), ROOT / "bayesmeta" / "data" / RECORDED)


if __name__ == "__main__":
    main()
