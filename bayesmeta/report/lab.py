"""What the calibration lab found: tables, sentences and files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.calibration.kinds import NEXT, kinds_of, of_kind, relative, side_by_side
from bayesmeta.calibration.rows import numbers_of, rows_of
from bayesmeta.calibration.verdict import in_words
from bayesmeta.display import visible
from bayesmeta.report.console import label, table
from bayesmeta.report.numbers import csv_text
from bayesmeta.report.page import figure_writer, text_writer
from bayesmeta.simulation.records import record_writer

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.text import Text

    from bayesmeta.runner.files import Writer

COLUMNS = ("estimator", "mu", "sd", NEXT, "width", "score", "rmse", "bias")
NAME = 19
"""Letters of an estimator's name, for a table of 80 columns."""
BOTH = ("mu", "sd")
"""Kinds that the last columns are about."""


def print_lab(to: Console, found: xr.Dataset, wording: Callable[[str], str] = str) -> None:
    """For every number of tasks a table with a row an estimator and the verdict in a sentence;
    then what the columns are, and what went wrong, in the ``wording`` of a command or of Python."""
    found = side_by_side(found)
    level = float(found.level.max())
    line = partial(to.print, markup=False, emoji=False, highlight=False)
    for tasks in map(int, found.tasks.values):
        title = f"{tasks} tasks: coverage of {100 * level:g}% regions in percent"
        to.print(table(title, COLUMNS, _rows(found.sel(tasks=tasks, level=level))))
        line(in_words(found, tasks, level) + "\n")
    line(
        f"{int(found.drawn)} replications; ± is the Monte-Carlo error. width, score (the interval "
        "score) and rmse: of mu and sd together, 1 is the smallest. bias: the largest one "
        "of mu and sd, in percent of its rmse."
    )
    for said in _shortfalls(found, level, wording):
        line(said)


def _rows(at: xr.Dataset) -> list[list[str | Text]]:
    """Of one number of tasks and one level."""
    both = of_kind(at, *BOTH)
    sizes = [relative(both[name]) for name in ("width", "interval_score", "rmse")]
    bias = (abs(both.bias) / both.rmse.where(both.rmse > 0)).max("quantity")
    rows: list[list[str | Text]] = []
    for i, name in enumerate(at.estimator.values):
        own = at.isel(estimator=i)
        cells = [_of_features(of_kind(own, kind)) for kind in BOTH]
        cells.append(_percent(float(own.next_coverage), float(own.next_coverage_error)))
        cells += [_number(float(one[i]), ".2f") for one in sizes]
        cells.append(_number(100 * float(bias[i]), ".0f"))
        rows.append([label(name, NAME), *cells])
    return rows


def _of_features(own: xr.Dataset) -> str:
    """The mean coverage over features, with the error of one: coverages of features go together."""
    error = float(np.max(np.nan_to_num(own.coverage_error.values), initial=0.0))
    return _percent(float(own.coverage.mean()), error)


def _percent(value: float, error: float) -> str:
    """A share and its error, with as many digits as this has."""
    if not math.isfinite(value):
        return "none"
    if not math.isfinite(error) or error == 0:
        return f"{100 * value:.4g}"
    digits = 0 if error >= 0.01 else 1
    return f"{100 * value:.{digits}f} ± {100 * error:.{digits}f}"


def _number(value: float, how: str) -> str:
    if not math.isfinite(value):
        return "none"
    return f"{value:{how}}" if abs(value) < 100 else f"{value:.0f}"


def _shortfalls(found: xr.Dataset, level: float, wording: Callable[[str], str]) -> list[str]:
    """Where estimates or intervals are lacking: nothing is left out without a word."""
    lines = []
    for tasks in map(int, found.tasks.values):
        for name in map(str, found.estimator.values):
            at = found.sel(estimator=name, tasks=tasks, level=level)
            parts = _lacking(at)
            if parts:
                lines.append(f"{visible(name)}, {tasks} tasks: {'; '.join(parts)}")
    for name, texts in json.loads(found.attrs.get("problems", "{}")).items():
        text, count = next(iter(texts.items()))
        more = f", and {len(texts) - 1} other problems" if len(texts) > 1 else ""
        lines.append(f"{visible(name)}: {wording(visible(text))} ({count} times{more})")
    return lines


def _lacking(at: xr.Dataset) -> list[str]:
    """Of one estimator and number of tasks, in percent of replications."""
    if at.failed > 0:
        return [f"failed in {100 * float(at.failed):.3g}% of replications"]
    parts = []
    for kind in kinds_of(at):
        share = 1 - float(of_kind(at, kind).available.min())
        if share > 0:
            parts.append(f"of {kind} in {100 * share:.3g}%")
    said = [f"no interval {', '.join(parts)}"] if parts else []
    if at.next_available < 1:
        said.append(f"no prior for the next task in {100 * (1 - float(at.next_available)):.3g}%")
    return said


def lab_files(lab: xr.Dataset, found: xr.Dataset, folder: Path) -> dict[Path, Writer]:
    """The Dataset, its measures as JSON and CSV, and the figures."""
    rows, names = rows_of(found), {number: name for name, number in numbers_of(found).items()}
    as_json = json.dumps(rows, indent=2, allow_nan=False) + "\n"
    named = ([*row.values(), names.get(row["quantity"], row["quantity"])] for row in rows)
    as_csv = csv_text([*rows[0], "name"], named)
    files: dict[Path, Writer] = {
        folder / "lab.nc": record_writer(lab),
        folder / "measures.json": text_writer(as_json),
        folder / "measures.csv": text_writer(as_csv),
    }
    return files | {
        folder / f"{name}.png": figure_writer(one) for name, one in _figures(lab).items()
    }


def _figures(lab: xr.Dataset) -> dict[str, Figure]:
    from bayesmeta.report.figures.biases import plot_biases
    from bayesmeta.report.figures.forecasts import plot_next_task
    from bayesmeta.report.figures.lab import plot_coverage, plot_coverage_by_tasks

    found = {
        "coverage": plot_coverage(lab),
        "next-task": plot_next_task(lab),
        "biases": plot_biases(lab),
    }
    if lab.sizes["tasks"] > 1:
        found["tasks"] = plot_coverage_by_tasks(lab)
    return found
