"""Write the page, figures and tables of this folder, and the README's block, from the records.

python analyses/rivals/report.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from bayesmeta.report import rivals as r
from bayesmeta.report.figures import rivals as figures
from bayesmeta.report.figures.style import Look, look
from bayesmeta.report.markdown import from_interval, write_block
from bayesmeta.report.page import made_from, plus_minus, render, write_page
from bayesmeta.simulation.records import read_record, settings_of
from bayesmeta.simulation.summaries import Interval, interval
from bayesmeta.studies.published import FACTORS, KNOWING

HERE = Path(__file__).parent
FAMILIES = {"linear": "linear bandit", "arms": "arms", "pricing": "dynamic pricing"}
GROWTH = tuple(f"{family}-{grows}" for family in FAMILIES for grows in r.AXES)
REPLAYS = {
    "replay": ("Verbal aggression", "VerbAgg of lme4: no, perhaps or yes, 0, 1 or 2"),
    "replay-bfi": ("Personality", "bfi of psych: from 1, very inaccurate, to 6, very accurate"),
}
"""Studies of real answers: what they are about, and where they are."""
OTHER = (
    *("linear-T8", "published", "covariance"),
    *(name + twin for name in REPLAYS for twin in ("", "-twin")),
)
NAMES = ("rivals", "draws", *GROWTH, *OTHER)
SHORT = ("REML-TS", "AdaTS", "All-MTS", "KMTS", "Meta-DP++", "Th-MTS_tau", "UKTS")
"""Rows of the short table, by regret, below the best that learns its prior."""
LINES = {
    "KTS": Look("KTS", "#000000", "-", "o"),
    "AdaTS": Look("AdaTS", "#0072B2", "-", "D"),
    "MetaMean": Look("MetaMean", "#56B4E9", (0, (5, 1, 1, 1)), "v"),
    "KMTS": Look(r"knows $\mu_*$, c I", "#E69F00", (0, (6, 2)), "s"),
    "MetaMean, c I": Look("MetaMean, c I", "#CC79A7", (0, (3, 1)), "X"),
}
"""Rows that are told a covariance, in the third figure."""
FEW = 20


def load() -> dict[str, xr.Dataset]:
    """The records there are: a study that has not been run yet leaves its section empty."""
    found = [name for name in NAMES if name == "rivals" or (HERE / f"{name}.nc").exists()]
    return {name: read_record(HERE / f"{name}.nc") for name in found}


def grown_families(records: dict[str, xr.Dataset]) -> dict[str, str]:
    """The families whose growth in N is recorded, which the others' belongs to."""
    return {name: title for name, title in FAMILIES.items() if f"{name}-N" in records}


def everybody(records: dict[str, xr.Dataset]) -> list[r.Place]:
    """All rows of the paper's experiment; of those whose policy draws, as far as they played."""
    shown = r.places(records["rivals"])
    known = {place.name for place in shown}
    draws = r.places(records["draws"]) if "draws" in records else []
    slow = [place for place in draws if place.name not in known]
    return sorted([*shown, *slow], key=lambda place: place.regret.mean)


def growth(records: dict[str, xr.Dataset]) -> list[r.Grown]:
    """Every system in every family, by what grows."""
    return [
        row
        for family in FAMILIES
        for grows in r.AXES
        if f"{family}-{grows}" in records
        for row in r.grown(family, grows, records[f"{family}-{grows}"])
    ]


def winners(records: dict[str, xr.Dataset]) -> Figure:
    """The first figure."""
    places, most = everybody(records), int(records["rivals"].task[-1])
    rows = [
        figures.Winner(
            place.name,
            place.regret,
            place.reference_regret,
            figures.told_in_symbols(place.told),
            figures.kind_of(place.told),
            place.tasks < most,
        )
        for place in places
    ]
    return figures.figure_winners(rows, "regret (KTS = 1), at the paper's one $\\mu_*$, log scale")


def slopes(rows: list[r.Grown]) -> Figure:
    """The second figure."""
    names = list(dict.fromkeys(row.name for row in rows if row.family in ("linear", "arms")))
    panels = []
    for grows, title in zip(r.AXES, ("tasks N", "steps T", "dimension d, or arms K"), strict=True):
        measured = {
            name: {
                row.family: row.exponent for row in rows if (row.name, row.grows) == (name, grows)
            }
            for name in names
        }
        panels.append(figures.Slopes(title, measured, printed_bounds(rows, grows)))
    return figures.figure_slopes(panels)


def printed_bounds(rows: list[r.Grown], grows: str) -> dict[str, dict[str, float]]:
    """By system and family, the printed exponents, each in the family that it is printed for."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.grows == grows and row.bound is not None:
            found.setdefault(row.name, {})[row.family] = row.bound
    return found


def covariances(record: xr.Dataset) -> Figure:
    """The third figure."""
    titles = {"linear": "the paper's family", "arms": "arms", "blocks": "six arms in two blocks"}
    panels = []
    for family, (_, most) in KNOWING.items():
        here = record.sel(family=family)
        row = []
        for tasks in (FEW, most):
            told, others = r.by_factor(here, tasks, FACTORS, list(LINES))
            lines = {name: (LINES[name], values) for name, values in told.items()}
            untold = {
                name: (look(name), others[name].mean) for name in ("REML-TS", "All-MTS", "UKTS")
            }
            title = f"{titles[family]}, {tasks} tasks"
            row.append(figures.Known(title, np.array(FACTORS), lines, untold))
        panels.append(row)
    return figures.figure_covariance(panels)


def slope_text(row: r.Grown | None, what: str = "exponent") -> str:
    """An exponent with its interval and what is printed."""
    if row is None:
        return "not defined"
    found: Interval | None = getattr(row, what)
    text = "none" if found is None else from_interval(found, 2)
    return text if row.bound is None else f"{text}, at most {row.bound:g}"


def table_1(rows: list[r.Grown], family: str, have: set[str]) -> list[list[str]]:
    """System, what it is told, and its exponents in N, T and d."""

    def said(name: str, grows: str) -> str:
        if f"{family}-{grows}" not in have:
            return "not recorded yet"
        return slope_text(here.get((name, grows)))

    here = {(row.name, row.grows): row for row in rows if row.family == family}
    names = dict.fromkeys(name for name, _ in here)
    return [[name, r.told(name), *(said(name, grows) for grows in r.AXES)] for name in names]


def relative_rows(record: xr.Dataset) -> list[list[str]]:
    """System, N_0, and relative regret with and without its first N_0 tasks, and against KTS."""
    return [
        [
            row.name,
            str(row.warmup),
            plus_minus(row.own),
            plus_minus(row.after),
            plus_minus(row.against_kts),
        ]
        for row in r.relative(record)
    ]


def tau_rows(record: xr.Dataset | None) -> list[list[str]]:
    """Th-MTS_tau with the tau of eq. (8), where tasks are long enough for it."""
    out: list[list[str]] = []
    if record is None:
        return out
    for value in record.value.values.tolist():
        final = record.sel(value=value).isel(task=-1)
        unit = float(final.cumulative_regret.sel(agent="KTS").mean())
        own = final.cumulative_relative_regret.sel(agent="Th-MTS_tau(8)") / unit
        kts = (final.cumulative_regret.sel(agent="Th-MTS_tau(8)") / unit) - 1
        out.append([str(value), plus_minus(interval(own.values)), plus_minus(interval(kts.values))])
    return out


def claims(records: dict[str, xr.Dataset]) -> dict[str, Any]:
    """What the paper says of other systems, in numbers."""
    final = records["rivals"].isel(task=-1)
    unit = float(final.cumulative_regret.sel(agent="KTS").mean())

    def less(one: str, two: str, what: str = "cumulative_regret", by: float = unit) -> Interval:
        return interval(((final[what].sel(agent=one) - final[what].sel(agent=two)) / by).values)

    told: dict[str, Any] = {}
    if "covariance" in records:
        here = records["covariance"].sel(family="linear")
        told, _ = r.by_factor(here, KNOWING["linear"][1], FACTORS, list(LINES))
    return {
        "same": less("Meta-DP++", "Th-MTS_tau"),
        "same_error": less("Meta-DP++", "Th-MTS_tau", "mean_error", 1.0),
        "decorrelated": less("W-MTS", "All-MTS", "mean_error", 1.0),
        "decorrelated_past": less("W-MTS_past", "All-MTS", "mean_error", 1.0),
        "costs": less("W-MTS", "All-MTS"),
        "costs_past": less("W-MTS_past", "All-MTS"),
        **{name: dict(zip(FACTORS, values, strict=True)) for name, values in told.items()},
    }


def values(records: dict[str, xr.Dataset]) -> dict[str, Any]:
    """What the templates are filled with."""
    places, rows = everybody(records), growth(records)
    learned = [place for place in places if r.learned(place)]
    best = learned[0]
    by_name = {place.name: place for place in places}
    settings, families = settings_of(records["rivals"]), grown_families(records)
    return {
        "places": places,
        "by_name": by_name,
        "best": best,
        "best_long": next(p for p in learned if p.tasks == settings["tasks"]),
        "short": [by_name[name] for name in dict.fromkeys([best.name, *SHORT])],
        "runs": records["rivals"].sizes["run"],
        "tasks": settings["tasks"],
        "slow": records.get("draws"),
        "tasks_slow": min(place.tasks for place in places),
        "have": set(records),
        "families": families,
        "table_1": {family: table_1(rows, family, set(records)) for family in families},
        "relative": {family: relative_rows(records[f"{family}-N"]) for family in families},
        "most": {family: int(records[f"{family}-N"].task[-1]) for family in families},
        "regret_of": {family: records[f"{family}-N"].attrs["regret"] for family in families},
        "grown": {(row.family, row.grows, row.name): row for row in rows},
        "slope_of": lambda *where: slope_text(
            next(
                (
                    row._replace(bound=None)
                    for row in rows
                    if (row.family, row.grows, row.name) == where
                ),
                None,
            )
        ),
        "tau": tau_rows(records.get("linear-T8")),
        "repeated": r.repeated(records["published"]) if "published" in records else [],
        "played": r.settings_played(records["published"]) if "published" in records else {},
        "claims": claims(records),
        "replays": [
            (title, records.get(name), records.get(f"{name}-twin"), name, what)
            for name, (title, what) in REPLAYS.items()
        ],
        "factors": FACTORS,
        "few": FEW,
        "command": "python analyses/rivals/report.py",
        "made_from": made_from(records.values()),
    }


def readme(records: dict[str, xr.Dataset]) -> str:
    """The page of this folder."""
    return render(HERE / "README.md.j2", **values(records))


def main_block(records: dict[str, xr.Dataset]) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(records))


def rows_csv(records: dict[str, xr.Dataset]) -> str:
    """rivals.csv: every row of the paper's experiment."""
    rows = [
        {
            "agent": p.name,
            "told": p.told,
            "tasks": p.tasks,
            "regret": p.regret.mean,
            "low": p.regret.low,
            "high": p.regret.high,
            "reference": p.reference,
            "relative_regret": p.relative.mean,
            "relative_low": p.relative.low,
            "relative_high": p.relative.high,
            "mean_error": p.mean_error.mean,
        }
        for p in everybody(records)
    ]
    text: str = pd.DataFrame(rows).to_csv(index=False, float_format="%.4g")
    return text


def growth_csv(records: dict[str, xr.Dataset]) -> str:
    """growth.csv: every exponent, with its interval, the local ones, and what is printed."""
    rows = []
    for row in growth(records):
        spans = [("last factor of 4 or more", row.exponent), ("after warm-up", row.after)]
        spans += [("against KTS", row.against_kts)]
        pairs = zip(row.values[:-1], row.values[1:], row.local, strict=True)
        spans += [(f"{low} to {high}", found) for low, high, found in pairs]
        for span, found in spans:
            ends = (None, None, None) if found is None else found
            rows.append([row.family, row.grows, row.name, r.told(row.name), span, *ends, row.bound])
    head = ["family", "grows", "agent", "told", "span", "exponent", "low", "high", "at_most"]
    text: str = pd.DataFrame(rows, columns=head).to_csv(index=False, float_format="%.3g")
    return text


def texts(records: dict[str, xr.Dataset]) -> dict[Path, str]:
    """All files of text of this folder."""
    return {
        HERE / "README.md": readme(records),
        HERE / "rivals.csv": rows_csv(records),
        HERE / "growth.csv": growth_csv(records),
    }


def main() -> None:
    records = load()
    pictures = {HERE / "rivals.png": winners(records)}
    if grown_families(records):
        pictures[HERE / "growth.png"] = slopes(growth(records))
    if "covariance" in records:
        pictures[HERE / "covariance.png"] = covariances(records["covariance"])
    write_page(texts(records), pictures)
    project = HERE.parent.parent / "README.md"
    if "<!-- rivals -->" in project.read_text():
        write_block(project, "rivals", main_block(records))


if __name__ == "__main__":
    main()
