"""``--predict`` of ``fit`` and ``sample``: the rows of another table with their mean rewards."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from warnings import catch_warnings

from bayesmeta.checks import InputError
from bayesmeta.commands.table import in_options

if TYPE_CHECKING:
    from pandas import DataFrame

    from bayesmeta.tables.design import Design

COLUMNS = ("mean", "sd", "low", "high", "conditional")
"""Of a prediction."""


class New(NamedTuple):
    """Rows to predict, where they go, and what to say of them."""

    rows: DataFrame
    place: Path
    notes: tuple[str, ...]


def add_predict_options(parser: argparse.ArgumentParser) -> None:
    """Which rows, and where they go."""
    group = parser.add_argument_group("predictions")
    group.add_argument(
        "--predict",
        type=Path,
        metavar="NEW",
        help="rows to predict, CSV or Parquet with the columns of FILE, the reward aside; a label "
        "that FILE does not have, or no column of tasks, means a new task",
    )
    group.add_argument(
        "--predictions",
        type=Path,
        metavar="OUT.csv",
        help="where they go: the rows with mean reward, sd, the ends of its interval, and whether "
        "these are conditional on a singular covariance (default: "
        "predictions.csv)",
    )
    group.add_argument(
        "--with-noise",
        action="store_true",
        help="predict single rewards, noise included, instead of mean rewards",
    )


def read_new(options: argparse.Namespace, design: Design) -> New | None:
    """The rows of ``--predict``, all of which can be predicted; None where none are asked for.

    Everything is checked here, before the work.
    """
    from bayesmeta.fitted.rows import NewTaskWarning, asked_rows
    from bayesmeta.runner.files import writable_folder
    from bayesmeta.tables.missing import Missing
    from bayesmeta.tables.reading import read_table

    path: Path | None = options.predict
    if path is None:
        for option, given in (
            ("--predictions", options.predictions),
            ("--with-noise", options.with_noise),
        ):
            if given:
                raise InputError(f"{option} is of predictions; give --predict, too")
        return None
    place = options.predictions or Path("predictions.csv")
    if place.suffix.lower() != ".csv" or place.is_dir():
        raise InputError(f"--predictions must end in .csv, got {place}")
    if place.resolve() in (path.resolve(), options.file.resolve()):
        raise InputError(f"--predictions must be another file than those that are read: {place}")
    columns = design.columns or {}
    words = [name for name, kind in columns.items() if kind is not None]
    frame = read_table(path, design.task, words)
    with _about(path):
        if not len(frame):
            raise InputError("there are no rows")
        _check_names(frame, [design.task, *columns])
        missing = Missing()
        read = [name for name in (design.task, *columns) if name in frame.columns]
        lacking = missing.look(frame, design.task, read)
        if not options.drop_missing:
            missing.refuse()
        frame = frame[~lacking]
        if not len(frame):
            raise InputError("there are no rows with all values")
        with catch_warnings(record=True, action="always", category=NewTaskWarning) as told:
            asked_rows(design, frame, None, options.with_noise)
    notes = [missing.note(), *(str(one.message) for one in told)]
    if design.task not in frame.columns:
        notes.append(
            f"there is no column {design.task!r}, so its rows are predicted for a new task"
        )
    writable_folder(place.parent)
    return New(frame, place, tuple(f"{path}: {note}" for note in notes if note))


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Errors raised inside name the file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {in_options(error.args[0])}") from None


def _check_names(frame: DataFrame, read: list[str]) -> None:
    """No column is there twice, or has the name of a prediction."""
    names = [str(one) for one in frame.columns]
    for name in read:
        if names.count(name) > 1:
            raise InputError(
                f"there are {names.count(name)} columns {name!r}; give each a name of its own"
            )
    for name in COLUMNS:
        if name in names:
            raise InputError(f"there is a column {name!r}, as predictions have; rename it")


def predicted(new: New, predict: Callable[[DataFrame], DataFrame]) -> Callable[[Path], None]:
    """What writes the rows with their predictions to a file."""
    from bayesmeta.fitted.rows import NewTaskWarning

    with catch_warnings(action="ignore", category=NewTaskWarning):  # they are told
        found = predict(new.rows)
    table = new.rows.assign(**{name: found[name].to_numpy() for name in COLUMNS})
    return lambda to: table.to_csv(to, index=False)
