"""What ``fit`` and ``sample`` share: a table of one's own, its options, advice that names them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.checks import Advice, InputError, real

if TYPE_CHECKING:
    from pandas import DataFrame

    from bayesmeta.statistics import TaskStatistics

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")
"""What stands for no number in a CSV file."""
OPTIONS = {
    "random_seed": "--seed",
    "prior": "--prior-scale, --prior-eta, …",
    "scale": "--prior-scale",
    "noise_scale": "--prior-noise-scale",
    "sample_posterior": "bayesmeta sample",
    "limit": "limit (in Python, fit_prior)",
}
"""Arguments whose option has another name than theirs."""


def in_options(text: str) -> str:
    """Advice with the names of options; other text as it is."""
    return text.in_options(OPTIONS) if isinstance(text, Advice) else text


@contextmanager
def naming_options() -> Iterator[None]:
    """Errors raised inside name options instead of arguments."""
    try:
        yield
    except InputError as error:
        raise InputError(in_options(error.args[0])) from None


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """The table, and which of its columns are what."""
    parser.add_argument("file", type=Path, metavar="FILE", help="CSV or Parquet, with a header")
    parser.add_argument(
        "--task", required=True, metavar="COLUMN", help="which task a row belongs to"
    )
    parser.add_argument(
        "--reward", required=True, metavar="COLUMN", help="the reward (the response)"
    )
    parser.add_argument(
        "--features",
        action="append",
        default=[],
        metavar="A,B,…",
        help="columns, with commas; may be repeated, and a name that has a comma stands alone",
    )
    parser.add_argument("--intercept", action="store_true", help="add a feature that is always 1")
    parser.add_argument(
        "--noise-sd", default="estimate", metavar="S", help="a number, or 'estimate' (the default)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--plot", type=Path, metavar="OUT.png", help="draw tasks and prior")


def read_tasks(options: argparse.Namespace) -> tuple[TaskStatistics, float | None]:
    """The statistics of the tasks in the table, and the noise, None where it is estimated."""
    from bayesmeta.statistics import TaskStatistics

    noise = (
        None if options.noise_sd == "estimate" else real("--noise-sd", options.noise_sd, above=0.0)
    )
    if options.plot is not None and options.plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InputError(f"--plot must end in .png, .pdf or .svg, got {options.plot}")
    frame = read_table(options.file, options.task)
    stats = TaskStatistics.from_frame(
        frame,
        options.task,
        options.reward,
        _columns(frame, options.features),
        intercept=options.intercept,
    )
    if len(frame) < stats.dim:
        raise InputError(
            f"{options.file} has {len(frame)} rows, fewer than the {stats.dim} features"
        )
    return stats, noise


def _columns(frame: DataFrame, given: list[str]) -> list[str]:
    """The columns of --features: each is a column as it stands, or several with commas."""
    return [
        name
        for text in given
        for name in ([text] if text in frame.columns else map(str.strip, text.split(",")))
        if name
    ]


def read_table(path: Path, task: str) -> DataFrame:
    """A CSV or Parquet file as a table; the labels of tasks stay text: 01 and 1 are two tasks."""
    try:
        return _read(path, task)
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


def _read(path: Path, task: str) -> DataFrame:
    import pandas as pd

    if path.suffix.lower() in (".parquet", ".pq"):
        return pd.read_parquet(path)
    missing = {name: MISSING for name in pd.read_csv(path, nrows=0).columns if name != task}
    frame = pd.read_csv(path, dtype={task: str}, keep_default_na=False, na_values=missing)
    if len(frame.columns) == 1 and any(mark in str(frame.columns[0]) for mark in ";\t|"):
        raise InputError(
            f"{path} has a single column, {str(frame.columns[0])!r:.60}; separate columns by commas"
        )
    return frame
