"""Write this folder's page, figures and table from the records of the calibration lab.

python analyses/calibration/report.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesmeta.calibration.verdict import LACKING, SLACK
from bayesmeta.report.figures.comparison import (
    CHANCE,
    EDGE,
    TITLES,
    figure_by_tasks,
    figure_pit,
    figure_rows,
)
from bayesmeta.report.figures.overview import figure_overview
from bayesmeta.report.figures.style import Look, method_look
from bayesmeta.report.page import made_from, render, write_page
from bayesmeta.simulation.records import read_record
from bayesmeta.simulation.summaries import Interval
from bayesmeta.studies.lab import (
    CLOSED,
    FEWER,
    KINDS,
    LEARNER,
    PLAYED,
    RANDOM,
    REPLICATIONS,
    STUDIES,
    TRIED_AT,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
LEVEL = 0.95
NAMES = {"moment-widened": "widened, theory", "posterior, central": "posterior"}
"""Estimators of the studies -> names of looks."""
SHOWN = ("moment", "widened, theory", "reml", "posterior")
"""Of the table."""
FEW, DIM, WIDE = 50, 2, 5
"""Tasks and dimension of the table, and the other dimension."""
LAST = 1000
"""Tasks at which ways of data are compared."""
EARLY = 20
"""Tasks at which correlations under the default prior, and forecasts, are looked at."""
INTERVALS = {
    "wald": ("o", "Wald"),
    "wald-natural": ("s", "Wald, natural scale"),
    "profile": ("^", "profile"),
    "bootstrap": ("D", "bootstrap"),
    "radii": ("v", "radii"),
    "central": ("*", "central"),
    "hdi": ("P", "highest density"),
}
"""Kinds of intervals -> marker and name."""
ERRORS = f"bars: {CHANCE:g} Monte-Carlo errors"
"""What bars are, for notes."""
OPTIONAL = ("lab-intervals", "lab-priors")
"""Studies without which the page is written, too."""

Records = dict[str, xr.Dataset]


def read() -> Records:
    """All records there are, by the names of their studies."""
    there = [study for study in STUDIES if (HERE.parent / study.record).exists()]
    return {study.name: read_record(HERE.parent / study.record) for study in there}


def named(record: xr.Dataset) -> xr.Dataset:
    """With the names of looks for estimators."""
    names = [NAMES.get(str(one), str(one)) for one in record.estimator.values]
    return record.assign_coords(estimator=names)


def lines(records: Records, data: str) -> dict[str, xr.Dataset]:
    """Measures of every estimator by dimension and number of tasks, on data of one kind."""
    closed, drawn = (named(records[name].sel(data=data)) for name in ("lab", "lab-posterior"))
    shown = {str(one): closed.sel(estimator=one) for one in closed.estimator.values}
    return shown | {"posterior": drawn.sel(estimator="posterior")}


def share(at: xr.Dataset) -> Interval:
    """A coverage in per cent, with ``CHANCE`` Monte-Carlo errors."""
    middle, half = 100 * float(at.coverage), 100 * CHANCE * float(at.coverage_error)
    return Interval(middle, middle - half, middle + half)


def holds(at: xr.Dataset) -> bool:
    """Whether nothing shows that a coverage is off by more than the lab's slack."""
    found = share(at)
    near = found.low <= 100 * (LEVEL + SLACK) and found.high >= 100 * (LEVEL - SLACK)
    return near and float(at.available) >= 1 - LACKING


def values(records: Records) -> dict[str, Any]:
    """What the template is filled with."""
    random, learner = lines(records, RANDOM), lines(records, LEARNER)
    at = {name: one.sel(dim=DIM, tasks=FEW, level=LEVEL) for name, one in random.items()}
    reml = at["reml"].sel(kind="mu").width
    chosen = {name: one.sel(dim=DIM, level=LEVEL) for name, one in learner.items()}
    wrong = named(records["lab-wrong"]).sel(dim=DIM, tasks=100, level=LEVEL)
    priors = of_priors(records["lab-priors"]) if "lab-priors" in records else []
    return {
        "command": "python analyses/calibration/report.py",
        "made_from": made_from(records.values()),
        "rows": {
            name: {kind: share(at[name].sel(kind=kind)) for kind in ("mu", "sd", "next")}
            | {"width": float(at[name].sel(kind="mu").width / reml)}
            for name in SHOWN
        },
        "hold": {
            kind: [name for name in SHOWN if holds(at[name].sel(kind=kind))]
            for kind in ("mu", "sd", "next")
        },
        "learner": {
            name: share(chosen[name].sel(kind="mu", tasks=LAST)) for name in ("moment", "reml")
        },
        "learner_posterior": share(
            chosen["posterior"].sel(kind="mu", tasks=int(chosen["posterior"].tasks.max()))
        ),
        "learner_tasks": int(chosen["posterior"].tasks.max()),
        "early": [
            share(random["posterior"].sel(dim=dim, level=LEVEL, kind="corr", tasks=EARLY))
            for dim in (DIM, WIDE)
        ],
        "early_tasks": EARLY,
        "two": share(random["posterior"].sel(dim=DIM, level=LEVEL, kind="mu", tasks=2)),
        "worst": worst(wrong, "reml"),
        "level": 100 * LEVEL,
        "few": FEW,
        "dim": DIM,
        "last": LAST,
        "slack": 100 * SLACK,
        "replications": REPLICATIONS,
        "fewer": FEWER,
        "played": replications_of(records["lab"].sel(data=[PLAYED, LEARNER])),
        "intervals": kinds_of(records["lab-intervals"]) if "lab-intervals" in records else {},
        "priors": priors,
        "best_prior": best_of(priors),
        "tried_at": TRIED_AT,
        "dims": (DIM, WIDE),
    }


def kinds_of(record: xr.Dataset) -> dict[str, Interval]:
    """How often each kind of interval of REML covers a correlation, with ``FEW`` tasks."""
    at = record.sel(level=LEVEL, kind="corr", dim=DIM, tasks=FEW)
    return {
        kind: share(at.sel(estimator=f"reml, {kind}")) for kind in ("wald", "profile", "bootstrap")
    }


def of_priors(record: xr.Dataset) -> list[tuple[str, list[Interval]]]:
    """For every prior over correlations, how often intervals of correlations cover, by dimension
    and number of tasks."""
    at = record.sel(level=LEVEL, kind="corr")
    central = [str(one) for one in at.estimator.values if not str(one).endswith(", hdi")]
    return [
        (
            name.removesuffix(", central"),
            [
                share(at.sel(estimator=name, dim=dim, tasks=tasks))
                for dim in (DIM, WIDE)
                for tasks in TRIED_AT
            ],
        )
        for name in central
    ]


def replications_of(record: xr.Dataset) -> str:
    """How many replications cells have, of which a share p was not positive definite: the error of
    a share is the root of p (1 - p) / (n - 1)."""
    share, error = record.not_positive_definite, record.not_positive_definite_error
    at = (share * (1 - share) / error**2).where(error > 0).values
    found = sorted({int(one) for one in np.round(at[np.isfinite(at)], -1)})
    return " to ".join(f"{one:,}" for one in sorted({found[0], found[-1]}))


def best_of(priors: list[tuple[str, list[Interval]]]) -> str:
    """The prior under which intervals cover at least as often as under any other, everywhere;
    empty where there is none."""
    for name, shares in priors:
        others = [other for _, other in priors]
        if all(one.mean >= max(each) for one, *each in zip(shares, *_means(others), strict=True)):
            return name
    return ""


def _means(rows: list[list[Interval]]) -> list[list[float]]:
    return [[one.mean for one in row] for row in rows]


def look_of(judge: str) -> Look:
    """Of ``reml, profile``: the colour of the method, the marker of the kind of interval."""
    method, kind = judge.split(", ")
    marker, said = INTERVALS[kind]
    return method_look(method)._replace(marker=marker, label=f"{method}, {said}")


def worst(wrong: xr.Dataset, name: str) -> dict[str, Any]:
    """The wrong model under which an estimator's intervals of mean or sd cover least."""
    here = wrong.sel(estimator=name, kind=["mu", "sd"]).coverage
    at = here.isel(here.argmin(["wrong", "kind"]))
    found = wrong.sel(estimator=name, kind=str(at.kind.values), wrong=str(at.wrong.values))
    return {
        "wrong": str(at.wrong.values),
        "kind": TITLES[str(at.kind.values)],
        "share": share(found),
    }


def figures(records: Records) -> dict[str, Any]:
    """The pictures, by name."""
    random = lines(records, RANDOM)
    bars = f"{RANDOM} a task; {ERRORS}"
    drawn = named(records["lab-posterior"]).sel(data=RANDOM, dim=DIM, tasks=EARLY)
    closed = named(records["lab"]).sel(data=RANDOM, dim=DIM, tasks=EARLY)
    pits = {name: closed.pit.sel(estimator=name) for name in ("moment-clipped", "reml")}
    pits["posterior"] = drawn.pit.sel(estimator="posterior")
    counts = dict.fromkeys(pits, REPLICATIONS["lab"]) | {"posterior": REPLICATIONS["lab-posterior"]}
    table = named(records["lab"]).sel(dim=DIM, tasks=LAST)
    ways = table.data.values.tolist()
    wrong = named(records["lab-wrong"]).sel(dim=DIM, tasks=100)
    kinds = ("mu", "sd", "next")
    looks = {name: method_look(name) for name in (NAMES.get(one, one) for one in CLOSED)}
    found = {
        "coverage": figure_by_tasks(
            random,
            "coverage",
            ("mu", "sd", "corr", "next"),
            LEVEL,
            f"{bars}; grey: the level promised; {EDGE}",
        ),
        "width": figure_by_tasks(
            random,
            "width",
            kinds,
            LEVEL,
            f"{bars} (mostly smaller than the markers); {EDGE.split('; ')[1]}",
        ),
        "next": figure_pit(
            pits,
            counts,
            f"{EARLY} tasks; grey: where bars of a right forecast stay, 19 of 20 times",
        ),
        "data": figure_rows(
            table, ways, "data", looks, kinds, LEVEL, f"{LAST:,} tasks, d = {DIM}; {ERRORS}; {EDGE}"
        ),
        "wrong": figure_rows(
            wrong,
            wrong.wrong.values.tolist(),
            "wrong",
            looks | {"posterior": method_look("posterior")},
            kinds,
            LEVEL,
            f"100 tasks of {RANDOM}, d = {DIM}; {ERRORS}; {EDGE}",
        ),
    }
    if "lab-intervals" in records:
        found["intervals"] = of_intervals(records)
    return found


def overview(records: Records) -> Figure:
    """The README's picture: the lab, and the next task's regret on data of the same kind."""
    compared = read_record(HERE.parent / "bayes-vs-moment" / "compared.nc").sel(rule="tau=50")
    return figure_overview(
        lines(records, RANDOM),
        compared.regret,
        WIDE,
        LEVEL,
        f"d = {WIDE}, {RANDOM} a task; {REPLICATIONS['lab']:,} replications (posterior "
        f"{REPLICATIONS['lab-posterior']}, regret {compared.sizes['run']}), bars: {CHANCE:g} "
        "Monte-Carlo errors",
    )


def of_intervals(records: Records) -> Figure:
    """Every kind of interval, those of the posterior beside those of moments and REML."""
    by_fits = records["lab-intervals"].sel(level=LEVEL)
    drawn = records["lab-posterior"].sel(data=RANDOM, level=LEVEL)
    settings = [(2, tasks) for tasks in by_fits.tasks.values.tolist()] + [(WIDE, FEW)]
    rows = [f"d = {dim}, {tasks} tasks" for dim, tasks in settings]
    parts = [
        xr.concat([one.sel(dim=dim, tasks=tasks, drop=True) for dim, tasks in settings], "row")
        for one in (by_fits, drawn)
    ]
    wanted = ["coverage", "coverage_error", "available"]
    bare = [part[wanted].reset_coords(drop=True) for part in parts]
    table = xr.concat(bare, "estimator").assign_coords(row=rows)
    table = table.expand_dims(level=[LEVEL])
    looks = {str(name): look_of(str(name)) for name in table.estimator.values}
    kinds = ("mu", "sd", "corr", "cov")
    return figure_rows(table, rows, "row", looks, kinds, LEVEL, f"{ERRORS}; {EDGE}")


def all_numbers(records: Records) -> str:
    """Every measure of every study at the level of the page."""
    frames = []
    for name, record in records.items():
        table = record.sel(level=LEVEL)[
            ["coverage", "coverage_error", "width", "bias", "bias_error", "square", "available"]
        ]
        frame = table.to_dataframe().reset_index().drop(columns="level")
        frames.append(frame.assign(study=name).dropna(subset=["available"]))
    order = ["study", "dim", "data", "wrong", "tasks", "estimator", "kind"]
    joined = pd.concat(frames)
    rest = [name for name in joined.columns if name not in order]
    text: str = joined[order + rest].to_csv(index=False, float_format="%.4g")
    return text


def texts(records: Records) -> dict[Path, str]:
    """The page and the table beside it."""
    return {
        HERE / "README.md": render(HERE / "README.md.j2", **values(records)),
        HERE / "coverage.csv": all_numbers(records),
    }


def main() -> None:
    missing = [
        study.name
        for study in STUDIES
        if study.name not in OPTIONAL and not (HERE.parent / study.record).exists()
    ]
    if missing:
        print(f"no page yet, not recorded: {', '.join(missing)} (python analyses/record.py lab)")
        return
    records = read()
    pictures = {HERE / f"{name}.png": figure for name, figure in figures(records).items()}
    pictures[HERE / "overview.png"] = overview(records)
    write_page(texts(records), pictures)


if __name__ == "__main__":
    assert set(KINDS) == set(TITLES)
    main()
