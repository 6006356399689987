"""A fitted prior for people: read their table, print the estimate, write it down."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import InputError
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.estimators.fit import task_posteriors
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Console

SHOWN = 20
"""Tasks printed; all of them are in the JSON."""


MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")
"""What stands for no number in a CSV file."""


def read_table(path: Path, task: str) -> DataFrame:
    """A CSV or Parquet file as a table; the labels of tasks stay text: 01 and 1 are two tasks."""
    import pandas as pd

    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(path)
        missing = {name: MISSING for name in pd.read_csv(path, nrows=0).columns if name != task}
        frame = pd.read_csv(path, dtype={task: str}, keep_default_na=False, na_values=missing)
        if len(frame.columns) == 1 and any(mark in str(frame.columns[0]) for mark in ";\t|"):
            raise InputError(
                f"{path} has a single column, {str(frame.columns[0])!r:.60}; separate columns by "
                "commas"
            )
        return frame
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; save it as CSV in UTF-8") from None
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except ImportError:
        raise InputError(
            "reading Parquet needs the package pyarrow; install bayesmeta[parquet], or use CSV"
        ) from None
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise InputError(f"{path} cannot be read as a table ({text})") from None


def correlation(cov: np.ndarray) -> np.ndarray:
    """Correlations; NaN where there is none, a variance or the matrix not being positive."""
    sd = np.sqrt(np.where(np.diag(cov) > 0, np.diag(cov), np.nan))
    found = cov / np.outer(sd, sd)
    return np.asarray(np.where(np.abs(found) <= 1 + 1e-9, found, np.nan))


def as_json(stats: TaskStatistics, estimate: PriorEstimate, method: str) -> dict[str, Any]:
    """All of a fit as plain data; what a method does not have is null."""
    tasks: list[dict[str, Any]] = []
    if estimate.usable and estimate.noise_sd is not None:
        mean, cov = task_posteriors(stats, estimate)
        sd = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
        tasks = [
            {"task": name, "mean": one.tolist(), "sd": spread.tolist()}
            for name, one, spread in zip(map(str, stats.task_labels), mean, sd, strict=True)
        ]

    def plain(value: np.ndarray | None) -> Any:
        if value is None:
            return None
        made = value.astype(object)
        made[~np.isfinite(value)] = None  # JSON has no NaN
        return made.tolist()

    return {
        "method": method,
        "status": estimate.status.name.lower(),
        "advice": estimate.status.value,
        "tasks": len(stats),
        "rows": None if stats.count is None else int(stats.count.sum()),
        "features": stats.feature_labels,
        "mean": plain(estimate.prior.mean),
        "mean_sd": plain(estimate.mean_sd),
        "cov": plain(estimate.prior.cov),
        "cov_sd": plain(estimate.cov_sd),
        "noise_sd": estimate.noise_sd,
        "log_likelihood": estimate.log_likelihood,
        "iterations": estimate.iterations,
        "passed_over": estimate.passed_over,
        "negative_eigenvalues": estimate.negative,
        "task_estimates": tasks,
    }


def print_fit(
    console: Console, stats: TaskStatistics, estimate: PriorEstimate, method: str
) -> None:
    """Tables of the estimate with standard errors, the tasks shrunken towards it, the status."""
    from rich import box
    from rich.table import Table

    def table(title: str, columns: list[str]) -> Table:
        made = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
        for i, column in enumerate(columns):
            made.add_column(column, justify="right" if i else "left", no_wrap=True)
        return made

    names, cov = [_label(name) for name in stats.feature_labels], estimate.prior.cov
    rows = "" if stats.count is None else f", {int(stats.count.sum())} rows"
    prior = table(
        f"The prior by {method} ({len(stats)} tasks{rows})",
        ["feature", "mean", "s.e.", "variance", "s.e.", "sd"],
    )
    for i, name in enumerate(names):
        variance = float(cov[i, i])
        prior.add_row(
            name,
            _number(estimate.prior.mean[i]),
            _number(None if estimate.mean_sd is None else estimate.mean_sd[i]),
            _number(variance),
            _number(None if estimate.cov_sd is None else estimate.cov_sd[i, i]),
            _number(variance**0.5 if variance >= 0 else None),
        )
    console.print(prior)
    if len(names) > 1:
        both = table("Covariances below the diagonal, correlations above", ["", *names])
        r = correlation(cov)
        for i, name in enumerate(names):
            cells = [_number(cov[i, j]) if j < i else "" if i == j else _number(r[i, j].round(2))
                     for j in range(len(names))]  # fmt: skip
            both.add_row(name, *cells)
        console.print(both)
    if estimate.noise_sd is not None:
        console.print(f"noise: variance {_number(estimate.noise_sd**2)}, "
                      f"sd {_number(estimate.noise_sd)}")  # fmt: skip
    if estimate.log_likelihood is not None:
        steps = f", {estimate.iterations} iterations" if estimate.iterations else ""
        console.print(f"log-likelihood {estimate.log_likelihood:.3f}{steps}")
    tasks = as_json(stats, estimate, method)["task_estimates"]
    if tasks:
        columns = [part for name in names for part in (name, "± sd")]
        shrunken = table("Tasks, shrunken towards the prior", ["task", *columns])
        for row in tasks[:SHOWN]:
            cells = [
                part
                for mean, sd in zip(row["mean"], row["sd"], strict=True)
                for part in (_number(mean), _number(sd))
            ]
            shrunken.add_row(_label(row["task"]), *cells)
        console.print(shrunken)
        console.print("± sd: as if the estimated prior were known")
        if len(tasks) > SHOWN:
            console.print(f"and {len(tasks) - SHOWN} more tasks; --json has them all")
    if estimate.passed_over:
        console.print(f"tasks passed over, since they do not determine all features by themselves "
                      f"(ml and reml use them): {estimate.passed_over}")  # fmt: skip
    if estimate.negative:
        console.print(f"negative eigenvalues of the bias-corrected covariance: {estimate.negative}")
    console.print(f"status: {estimate.status.value}")


def _label(text: str) -> str:
    """A label as it is, not as markup, and not too long for a table."""
    from rich.markup import escape

    return escape(text if len(text) <= 24 else f"{text[:23]}…")


def _number(value: float | None, digits: int = 6) -> str:
    if value is None or not np.isfinite(value):
        return ""
    return f"{value:.{digits}g}"
