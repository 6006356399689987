"""Write the page, figures and tables of this folder, and the README's block, from the records.

python analyses/calibration/report.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import binomtest, norm

from bayesmeta.calibration.ranks import coverage, uniformity
from bayesmeta.report.figures.calibration import Covered, figure_calibration, figure_coverage
from bayesmeta.report.figures.style import DPI
from bayesmeta.report.markdown import write_block
from bayesmeta.report.numbers import exact_share
from bayesmeta.report.page import made_from, render
from bayesmeta.runner.files import write_atomically
from bayesmeta.simulation.records import read_record
from bayesmeta.simulation.summaries import Interval
from bayesmeta.studies.calibration import (
    CONJUGATE,
    DATA,
    DRAWS,
    MODELS,
    NOISE,
    PRIOR,
    RIGHT,
    THIN,
    TOLD,
)

HERE = Path(__file__).parent
RECORDS = ("random", "adaptive", "methods")
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
CHOSEN = "right, on data a learner chose"
"""The right model, noise known, on all steps of an agent."""
WRONG = tuple(model for model in MODELS if model not in RIGHT)
OLS = "least squares, on data a learner chose"


def p_values(record: xr.Dataset) -> dict[str, float]:
    """The p-value of every quantity that was ranked."""
    found = {}
    for quantity in record.quantity.values.tolist():
        ranks = record["rank"].sel(quantity=quantity).values
        if not np.isnan(ranks).any():
            found[quantity] = uniformity(ranks, DRAWS).p_value
    return found


def calibrated(values: dict[str, float]) -> bool:
    """Whether no p-value is below 5% divided by their number."""
    return min(values.values()) > 0.05 / len(values)


def with_interval(share: float, count: int) -> Interval:
    """A share with its exact 95% interval."""
    return exact_share(round(share * count), count)._replace(mean=share)


def covered(random: xr.Dataset, adaptive: xr.Dataset) -> list[Covered]:
    """How often intervals hold the truth: those of the right models, those of the posterior on data
    that a learner chose, and Gaussian ones of the mean of least squares there. That of a variance
    is that of its root."""
    levels = np.array(LEVELS)
    panels = []
    for title, record in {**{m: random.sel(model=m) for m in RIGHT}, CHOSEN: adaptive}.items():
        ranks = record["rank"].dropna("quantity")
        names = ranks.quantity.values.tolist()
        shares = {q: coverage(ranks.sel(quantity=q).values, DRAWS, levels) for q in names}
        panels.append(Covered(title, LEVELS, shares, record.sizes["run"]))
    far = np.abs(adaptive.ols_z)
    inside = {
        direction: np.array(
            [float((far.sel(direction=direction) <= norm.isf((1 - p) / 2)).mean()) for p in LEVELS]
        )
        for direction in ("mu 1", "mu 2", "along mu")
    }
    return [*panels, Covered(OLS, LEVELS, inside, adaptive.sizes["run"])]


def coverage_csv(panels: list[Covered]) -> str:
    """coverage.csv: every share with its exact 95% interval."""
    rows = [
        {"model": panel.title, "quantity": quantity, "level": level}
        | with_interval(float(share), panel.runs)._asdict()
        for panel in panels
        for quantity, shares in panel.shares.items()
        for level, share in zip(panel.levels, shares, strict=True)
    ]
    return as_csv(rows, share="mean")


def ranked(random: xr.Dataset, adaptive: xr.Dataset) -> list[dict[str, Any]]:
    """The rows of ranks.csv: p-values of uniform ranks, and how often the truth lies below all
    draws, with the p-value of that."""
    rows = []
    records = {model: random.sel(model=model) for model in MODELS} | {CHOSEN: adaptive}
    for model in (*RIGHT, CHOSEN, *WRONG):
        for quantity, p in p_values(records[model]).items():
            ranks = records[model]["rank"].sel(quantity=quantity)
            below = int((ranks == 0).sum())
            chance = float(binomtest(below, ranks.size, 1 / (DRAWS + 1)).pvalue)
            row = {"model": model, "quantity": quantity, "p_value": p, "runs": ranks.size}
            rows.append(row | {"below_all_draws": below, "p_of_below": chance})
    return rows


def by_method(methods: xr.Dataset) -> list[dict[str, Any]]:
    """A row for every method of drawing and model: all replications, and those by weights."""
    rows = []
    for case in methods.case.values.tolist():
        for model in methods.model.values.tolist():
            here = methods.sel(case=case, model=model)
            weighed = here.isel(run=(here.weighed > 0).values)
            p = p_values(here)
            row = {"case": case, "model": model, "runs": here.sizes["run"], "p": min(p.values())}
            row |= {"calibrated": calibrated(p), "weighed": weighed.sizes["run"], "p_weighed": None}
            if weighed.sizes["run"] >= 50:
                among = p_values(weighed)
                row |= {"p_weighed": min(among.values())}
                row["calibrated"] = row["calibrated"] and calibrated(among)
            rows.append(row)
    return rows


def as_csv(rows: list[dict[str, Any]], **renamed: str) -> str:
    """A table as text; ``renamed`` has old names by new ones."""
    frame = pd.DataFrame(rows).rename(columns={old: new for new, old in renamed.items()})
    text: str = frame.to_csv(index=False, float_format="%.4g")
    return text


def values(random: xr.Dataset, adaptive: xr.Dataset, methods: xr.Dataset) -> dict[str, Any]:
    """What the templates are filled with."""
    rows = ranked(random, adaptive)
    judged: dict[str, dict[str, float]] = {}
    for row in rows:
        judged.setdefault(row["model"], {})[row["quantity"]] = row["p_value"]
    panels = {panel.title: panel for panel in covered(random, adaptive)}
    runs = adaptive.sizes["run"]

    def at_95(title: str, quantity: str) -> Interval:
        return with_interval(float(panels[title].shares[quantity][LEVELS.index(0.95)]), runs)

    return {
        "models": [
            {
                "name": model,
                "what": {**MODELS, CHOSEN: DATA["adaptive"]}[model],
                "p": p,
                "worst": min(p, key=lambda quantity: p[quantity]),
                "calibrated": calibrated(p),
                "right": model in (*RIGHT, CHOSEN),
            }
            for model, p in judged.items()
        ],
        "quantities": random.quantity.values.tolist(),
        "runs": random.sizes["run"],
        "runs_chosen": runs,
        "ours": at_95(CHOSEN, "mu 1"),
        "theirs": at_95(OLS, "mu 1"),
        "along": at_95(OLS, "along mu"),
        "small": [r for r in rows if r["model"] in RIGHT and r["quantity"] in ("sd 1", "sd 2")],
        "diverged": {m: int((random.sel(model=m).divergent > 0).sum()) for m in RIGHT},
        "diverged_chosen": int((adaptive.divergent > 0).sum()),
        "data": DATA,
        "prior": PRIOR,
        "conjugate": CONJUGATE,
        "noise": NOISE,
        "told": TOLD,
        "draws": DRAWS,
        "thin": THIN,
        "command": "python analyses/calibration/report.py",
        "by_method": by_method(methods),
        "made_from": made_from([random, adaptive, methods]),
    }


def readme(random: xr.Dataset, adaptive: xr.Dataset, methods: xr.Dataset) -> str:
    """The page of this folder."""
    return render(HERE / "README.md.j2", **values(random, adaptive, methods))


def main_block(random: xr.Dataset, adaptive: xr.Dataset, methods: xr.Dataset) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(random, adaptive, methods))


def main() -> None:
    random, adaptive, methods = (read_record(HERE / f"{name}.nc") for name in RECORDS)
    panels = covered(random, adaptive)
    figures = {
        "calibration": figure_calibration(random, DRAWS),
        "coverage": figure_coverage(panels),
    }
    for name, figure in figures.items():
        write_atomically(HERE / f"{name}.png", lambda to, f=figure: f.savefig(to, dpi=DPI))
    texts = {
        "README.md": readme(random, adaptive, methods),
        "coverage.csv": coverage_csv(panels),
        "ranks.csv": as_csv(ranked(random, adaptive)),
    }
    for name, text in texts.items():
        write_atomically(HERE / name, lambda to, t=text: to.write_text(t))
    write_block(
        HERE.parent.parent / "README.md", "calibration", main_block(random, adaptive, methods)
    )


if __name__ == "__main__":
    main()
