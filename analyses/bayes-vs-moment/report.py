"""Write this folder's page, figure and table, and the README's block, from the records.

python analyses/bayes-vs-moment/report.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from bayesmeta.report.figures.compared import figure_compared
from bayesmeta.report.markdown import write_block
from bayesmeta.report.numbers import csv_text, exact_share, ratio_of_means
from bayesmeta.report.page import made_from, render, write_page
from bayesmeta.simulation.records import read_record
from bayesmeta.simulation.summaries import Interval, interval
from bayesmeta.studies.bayes import HORIZON, LEVEL, METHODS, NEXT, PLAYED, RADII, explored

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
DIM = 5
PAPER, DEFINED = RADII[3:]
"""The radii of the paper's lemmas, at 95% and at the level of the events E_m and E_s."""


def mean_of(values: xr.DataArray) -> Interval:
    """The mean over the runs that have a value."""
    there = values.dropna("run").values
    return interval(there) if there.size else Interval(math.nan, math.nan, math.nan)


def applies(radius: str, n: int) -> bool:
    """Whether the lemma on the covariance speaks of n tasks: n + 1 > 5d + 2 ln(1/eta)."""
    if radius not in (PAPER, DEFINED):
        return True
    eta = (1 - LEVEL) / 6 if radius == PAPER else 1 / (DIM * (n + 1) * HORIZON)
    return n + 1 > 5 * DIM - 2 * math.log(eta)


def estimates(here: xr.Dataset, runs: int) -> Iterator[tuple[str, str, Interval]]:
    """Errors of every estimate, and shares that are positive definite or wider than Sigma."""
    for name in METHODS:
        one = here.sel(estimate=name)
        yield "error of the mean", name, mean_of(one.mean_error)
        yield "error of the covariance", name, mean_of(one.cov_error)
        definite, wider = int((one.lowest_eigenvalue > 1e-9).sum()), int(one.dominates.sum())
        yield "positive definite, share", name, exact_share(definite, runs)
        yield "wider than Sigma, share", name, exact_share(wider, runs)


def radii(here: xr.Dataset, runs: int, n: int) -> Iterator[tuple[str, str, Interval]]:
    """Radii at 95%, how often the error was within them, and coverage of single entries."""
    for name in RADII:
        about = name if name in METHODS else "moment"
        for part, what in (("mean", "mean"), ("cov", "covariance")):
            radius = here[f"{part}_radius"].sel(radius=name)
            if radius.isnull().all() or (part == "cov" and not applies(name, n)):
                continue
            held = int((here[f"{part}_error"].sel(estimate=about) <= radius).sum())
            yield f"radius of the {what}", name, mean_of(radius)
            yield f"error of the {what} within its radius, share", name, exact_share(held, runs)
        for part, what in (("mu", "mu"), ("cov", "Sigma")):
            inside = here[f"{part}_in"].sel(radius=name)
            if not inside.isnull().all():
                there = exact_share(int(inside.notnull().sum()), runs)
                yield f"runs with intervals of {what}, share", name, there
                yield f"entries of {what} covered, share", name, mean_of(inside)
                width = here[f"{part}_width"].sel(radius=name)
                yield f"width of an interval of {what}", name, mean_of(width)


def regrets(here: xr.Dataset) -> Iterator[tuple[str, str, Interval]]:
    """Regret of the next task as a multiple of KTS's."""
    for name in PLAYED:
        yield "regret of the next task (KTS = 1)", name, next_task(here, name)


def next_task(here: xr.Dataset, first: str, less: str = "") -> Interval:
    """Regret of the next task as a multiple of KTS's, or the difference of two of them."""
    regret = here.regret.sel(played=first).values
    if less:
        regret = regret - here.regret.sel(played=less).values
    return ratio_of_means(regret, here.regret.sel(played="KTS").values)


def all_numbers(record: xr.Dataset, priors: xr.Dataset) -> str:
    """Every quantity of every rule and number of tasks, a line each."""
    runs = record.sizes["run"]
    rows: list[list[object]] = []
    for rule in record.rule.values.tolist():
        for n in record.n.values.tolist():
            here = record.sel(rule=rule, n=n)
            for found in (estimates(here, runs), radii(here, runs, n), regrets(here)):
                rows += [[rule, n, quantity, name, *value] for quantity, name, value in found]
    for eta in priors.eta.values.tolist():
        for n in priors.n.values.tolist():
            for part, quantity in (
                ("cov_in", "entries of Sigma covered, share"),
                ("cov_error", "error of the covariance"),
                ("corr", "posterior mean of a correlation"),
            ):
                value = mean_of(priors[part].sel(eta=eta, n=n))
                rows.append(["threshold", n, quantity, f"posterior, LKJ({eta:g})", *value])
    return csv_text(["exploration", "tasks", "quantity", "of", "value", "low", "high"], rows)


def explored_enough(tasks: int = 2000) -> tuple[int, int]:
    """In how many tasks with 50 steps of exploration E_v holds, lambda_min(V) >= lambda_A d / 2."""
    family, stats = explored({"rule": "tau=50", "n": tasks}, 0)
    least = family.told().action_min * family.dim / 2
    return int((np.linalg.eigvalsh(stats.gram)[:, 0] >= least).sum()), tasks


def values(record: xr.Dataset, priors: xr.Dataset) -> dict[str, Any]:
    """What the templates speak of: Section 6's exploration, unless said otherwise."""
    here, runs = record.sel(rule="threshold"), record.sizes["run"]
    first, last = int(record.n[0]), int(record.n[-1])

    def looseness(part: str, radius: str, estimate: str) -> float:
        """A radius over the error it is about at 1,000 tasks, median over runs."""
        error = here[f"{part}_error"].sel(estimate=estimate, n=1000)
        return float((here[f"{part}_radius"].sel(radius=radius, n=1000) / error).median("run"))

    definite = (here.lowest_eigenvalue > 1e-9).mean("run")
    covered = here.cov_in.sel(radius="posterior").mean("run")
    errors = here.cov_error.sel(n=first)
    gap = here.cov_error.sel(estimate="posterior", n=100) - here.cov_error.sel(
        estimate="REML", n=100
    )
    theory = record.lowest_eigenvalue.sel(estimate="widened, theory") > 0
    return {
        "command": "python analyses/bayes-vs-moment/report.py",
        "made_from": made_from([record, priors]),
        "runs": runs,
        "first": first,
        "last": last,
        "played": PLAYED,
        "error": {
            name: {n: mean_of(here.cov_error.sel(estimate=name, n=n)) for n in (first, last)}
            for name in METHODS
        },
        "next": {
            name: {n: next_task(here.sel(n=n), name) for n in (first, last)} for name in PLAYED
        },
        "next_tasks": NEXT,
        "less_reml": {
            n: next_task(here.sel(n=n), "posterior", "REML") for n in (first, 100, 1000, last)
        },
        "loose": {
            part: {
                "paper": looseness(part, PAPER, "moment"),
                "posterior": looseness(part, "posterior", "posterior"),
            }
            for part in ("mean", "cov")
        },
        "loose_reml": looseness("mean", "REML", "REML"),
        "fewest_error": ratio_of_means(
            errors.sel(estimate="posterior").values, errors.sel(estimate="REML").values
        ),
        "most_definite": float(definite.sel(estimate="moment").max()),
        "theory_definite": exact_share(int(theory.sum()), theory.size),
        "theory_eigenvalue": float(here.trace.sel(estimate="widened, theory", n=last).mean()) / DIM,
        "least_covered": float(covered.min()),
        "least_covered_at": int(covered.idxmin("n")),
        "error_gap": interval(gap.values),
        "trusted": (int(record.trusted.sum()), record.trusted.size),
        "enough": explored_enough(),
        "horizon": HORIZON,
        "prior_runs": priors.sizes["run"],
        "prior_sizes": priors.n.values.tolist(),
        "coverage": {
            eta: [mean_of(priors.cov_in.sel(eta=eta, n=n)) for n in priors.n.values]
            for eta in priors.eta.values.tolist()
        },
    }


def readme(record: xr.Dataset, priors: xr.Dataset) -> str:
    """The README of this folder."""
    return render(HERE / "README.md.j2", **values(record, priors))


def main_block(record: xr.Dataset, priors: xr.Dataset) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(record, priors)).strip()


def texts(record: xr.Dataset, priors: xr.Dataset) -> dict[Path, str]:
    """Every file of text that is made from the records."""
    return {
        HERE / "README.md": readme(record, priors),
        HERE / "numbers.csv": all_numbers(record, priors),
    }


def main() -> None:
    record, priors = (read_record(HERE / f"{name}.nc") for name in ("compared", "priors"))
    write_page(texts(record, priors), {HERE / "compared.png": figure_compared(record)})
    write_block(ROOT / "README.md", "bayes-vs-moment", main_block(record, priors))


if __name__ == "__main__":
    main()
