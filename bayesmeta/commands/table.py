"""What ``fit`` and ``sample`` share: a table of one's own, its options, advice that names them."""

from __future__ import annotations

import argparse
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.checks import Advice, InputError, real

if TYPE_CHECKING:
    from pandas import DataFrame

    from bayesmeta.statistics import TaskStatistics

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
    from bayesmeta.commands.reading import read_table
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
    for label in map(str, stats.tasks or ()):
        if not label.strip() or "\0" in label:
            raise InputError(f"column {options.task!r} has the label {label!r}; give tasks a name")
    return stats, noise


def _columns(frame: DataFrame, given: list[str]) -> list[str]:
    """The columns of --features: each is a column as it stands, or several with commas."""
    names = []
    for text in given:
        for part in [text] if text in frame.columns else text.split(","):
            name = part.strip()
            if part != name and part in frame.columns:
                if name in frame.columns and part != text:
                    raise InputError(
                        f"--features: there are columns {name!r} and {part!r}; name each by itself"
                    )
                name = part
            if name:
                names.append(name)
    return names


def say_alike(stats: TaskStatistics) -> None:
    """Say where two labels of tasks differ in what is not seen; once nothing can be refused any
    more, as a refusal is one line."""
    seen: dict[str, str] = {}
    for label in map(str, stats.tasks or ()):
        shown = _as_seen(label)
        if shown in seen:
            note = f"tasks {seen[shown]!a} and {label!a} look the same and are kept apart"
            print(f"bayesmeta: {note}", file=sys.stderr)
            return
        seen[shown] = label


def _as_seen(label: str) -> str:
    """A label as one sees it: without blanks at its ends and characters that do not show."""
    if label.isascii():
        return " ".join(label.split())
    text = "".join(c for c in label if unicodedata.category(c) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", text).split())


def say(text: str) -> None:
    """Print at once: what cannot be printed is an error here, not when the program ends.

    A reader that closed the pipe, as ``head`` does, has what it wanted.
    """
    try:
        try:
            print(text, flush=True)
        except UnicodeEncodeError:  # a terminal that does not know the characters
            coding = sys.stdout.encoding
            print(text.encode(coding, "backslashreplace").decode(coding), flush=True)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        raise InputError(f"cannot write to standard output ({error.strerror or error})") from None
