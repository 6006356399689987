"""``--predict`` of ``fit`` and ``sample``: the rows of another table with their mean rewards."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bayesmeta.checks import InputError
from bayesmeta.columns import label_key
from bayesmeta.commands.table import in_options

if TYPE_CHECKING:
    from pandas import DataFrame

    from bayesmeta.tables.design import Design

COLUMNS = ("mean", "sd", "low", "high", "conditional")
"""Of a prediction."""
SHOWN = 3
"""Labels of new tasks in a note."""


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
    from bayesmeta.fitted.rows import asked_rows
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
        with _saying_so():
            asked_rows(design, frame, None, options.with_noise)
    notes = [note for note in (missing.note(), _new_tasks(frame, design)) if note]
    writable_folder(place.parent)
    return New(frame, place, tuple(f"{path}: {note}" for note in notes))


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Errors raised inside name the file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {in_options(error.args[0])}") from None


@contextmanager
def _saying_so() -> Iterator[None]:
    """Without the warning of new tasks, which ``_new_tasks`` puts in words."""
    import warnings

    from bayesmeta.fitted.rows import NewTaskWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewTaskWarning)
        yield


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


def _new_tasks(frame: DataFrame, design: Design) -> str:
    """What to say where tasks are new, since a label may be misspelt."""
    if design.task not in frame.columns:
        return f"there is no column {design.task!r}, so its rows are predicted for a new task"
    known = set(map(label_key, design.stats.task_labels))
    rows = [str(one) for one in frame[design.task] if label_key(one) not in known]
    if not rows:
        return ""
    labels = list(dict.fromkeys(rows))
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    what = "1 row is of a new task" if len(rows) == 1 else f"{len(rows)} rows are of new tasks"
    return f"{what}: {', '.join(map(repr, labels[:SHOWN]))}{more}"


def predicted(new: New, predict: Callable[[DataFrame], DataFrame]) -> Callable[[Path], None]:
    """What writes the rows with their predictions to a file."""
    with _saying_so():
        found = predict(new.rows)
    if "conditional" not in found:  # draws of the prior include its uncertainty
        found = found.assign(conditional=False)
    table = new.rows.assign(**{name: found[name].to_numpy() for name in COLUMNS})
    return lambda to: table.to_csv(to, index=False)
