"""The rows of another table, as a prediction needs them: features, weights, tasks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError, array, warn
from bayesmeta.columns import label_key, numbers, plain_label
from bayesmeta.statistics import TaskStatistics
from bayesmeta.tables.design import Design

if TYPE_CHECKING:
    from pandas import DataFrame

NEW = -1
"""The place of a task of which nothing is known."""
SHOWN = 3
"""Labels in a message."""

Sums = tuple[Array, Array, float, float]
"""Gram, moment, count and energy of a task."""


class NewTaskWarning(UserWarning):
    """Rows were predicted for a new task, since the fit does not know their label."""


class Asked(NamedTuple):
    """What to predict: features (rows, d), the place of each row's task, and its weight.

    Places count the tasks that were fitted, then ``others``: the tasks of ``given``, and last, at
    ``NEW``, one without rows.
    """

    features: Array
    task: NDArray[np.intp]
    weights: Array
    labels: Any
    others: TaskStatistics


def asked_rows(
    design: Design, new: Any, task: Hashable | None, rewards: bool, given: Any = None
) -> Asked:
    """The rows of a table, or of an array of features; weights are read where ``rewards`` are
    predicted.

    ``given`` has rows of new tasks. They are matched by their labels where both tables have the
    column of tasks; without it, they are of one task, and so must the new rows be.
    """
    table = hasattr(new, "columns")
    if rewards and design.stats.log_weights is not None and not (table and design.weights):
        raise InputError(
            "rewards have variances of their own, which new does not say; predict means "
            "(rewards=False), or fit a table and give one with its column of variances or weights"
        )
    if given is not None and task is not None:
        raise InputError("given is of a new task, so task must not be named with it")
    labels: list[Hashable] | None = None
    if table:
        frame: DataFrame = new
        if not len(frame):
            raise InputError("new has no rows to predict")
        features = design.matrix(frame)
        weights = np.ones(len(frame))
        if rewards and design.weights is not None:
            weights = design.weights(frame)
        if design.task in frame.columns:
            labels = frame[design.task].tolist()
    elif isinstance(new, Mapping):
        raise InputError("new must be a table or an array of features; give pd.DataFrame(new)")
    else:
        features = array("new", new, (None, design.stats.dim))
        weights = np.ones(len(features))
    where = np.full(len(features), NEW)
    if task is not None:
        where = _places(design, [task] * len(features), "new")
        if NEW in where:
            raise InputError(
                f"task {task!r} is not among the {len(design.stats)} that were fitted; leave task "
                "out to predict a new one, and give its own rows as given"
            )
    elif labels is not None:
        where = _places(design, labels, "new")
    own: dict[str | None, Sums] = {}
    if given is not None:
        own = _given(design, given)
        _match(where, labels, list(own), len(design.stats), design.task)
    d = design.stats.dim
    nothing = np.zeros((d, d)), np.zeros(d), 0.0, 0.0
    others = TaskStatistics.trusted(*map(np.array, zip(*own.values(), nothing, strict=True)))
    if labels is not None and task is None:
        _say_new([one for one, at in zip(labels, where, strict=True) if at == NEW])
    return Asked(features, where, weights, new.index if table else None, others)


def _places(design: Design, labels: Sequence[Hashable], what: str) -> NDArray[np.intp]:
    """Where tasks are among those that were fitted, ``NEW`` where they were not: 3 is also 3.0, as
    pandas has it of a column with gaps, and "3", as a file has it."""
    import pandas as pd

    if pd.isna(np.array(labels, dtype=object)).any():
        raise InputError(f"{what} has rows without a task; fill the column {design.task!r} in")
    known = design.stats.task_labels
    near: dict[str, int] = {}
    for k, label in enumerate(known):
        near.setdefault(label_key(label), k)
    same = {str(label): k for k, label in enumerate(known)}  # of "3" and "3.0", the one that it is
    found = [same.get(str(label), near.get(label_key(label), NEW)) for label in labels]
    return np.array(found, dtype=np.intp)


def _match(
    where: NDArray[np.intp],
    labels: list[Hashable] | None,
    given: list[str | None],
    fitted: int,
    column: str,
) -> None:
    """Let the rows of new tasks be of those that are given, whose labels are None for one task
    without; they come after those that were ``fitted``."""
    rows = np.flatnonzero(where == NEW).tolist()
    if labels is None:
        if len(given) > 1:
            raise InputError(
                f"given has rows of {len(given)} tasks; add the column {column!r} to new, which "
                "says whose rows these are"
            )
        where[rows] = fitted
        return
    asked = {label_key(labels[row]) for row in rows}
    if given == [None]:
        if len(asked) > 1:
            raise InputError(
                f"new has rows of {len(asked)} new tasks; add the column {column!r} to given, "
                "which says whose rows it has"
            )
        given = [*asked] or given
    places = {one: fitted + k for k, one in enumerate(given)}
    if not asked & set(places):
        raise InputError(
            f"given has no rows of a task that new asks for: {_listed(given)}; leave it out, or "
            f"mend the column {column!r}"
        )
    for row in rows:
        where[row] = places.get(label_key(labels[row]), NEW)


def _listed(labels: Sequence[object]) -> str:
    """The first labels."""
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    named = [f"{plain_label(one)!r:.60}" for one in labels[:SHOWN] if one is not None]
    return ", ".join(named) + more if named else "all of them were fitted"


def _say_new(labels: list[Hashable]) -> None:
    """Warn where labels are not known, since one may be misspelt."""
    if labels:
        different = list({label_key(one): one for one in reversed(labels)}.values())[::-1]
        what = "1 row is" if len(labels) == 1 else f"{len(labels)} rows are"
        warn(
            f"{what} predicted for a new task, as the fit does not know {_listed(different)}",
            NewTaskWarning,
        )


def _given(design: Design, given: Any) -> dict[str | None, Sums]:
    """The sums of the rows of every new task, by its label."""
    if not hasattr(given, "columns"):
        raise InputError("given must be a table with the columns of the one that was fitted")
    frame: DataFrame = given
    if not len(frame):
        raise InputError("given has no rows; leave it out")
    keys: list[str | None] = [None] * len(frame)
    if design.task in frame.columns:
        labels = frame[design.task].tolist()
        known = [
            one
            for one, at in zip(labels, _places(design, labels, "given"), strict=True)
            if at != NEW
        ]
        if known:
            raise InputError(
                f"given has rows of tasks that were fitted, {_listed(list(dict.fromkeys(known)))}; "
                "it must have those of new tasks: fit all rows together, or rename them"
            )
        keys = [label_key(one) for one in labels]
    features = design.matrix(frame)
    if design.reward not in frame.columns:
        raise InputError(f"given has no column {design.reward!r}, the reward; add it")
    reward = numbers(frame, design.reward)
    weights = np.ones(len(frame)) if design.weights is None else design.weights(frame)
    rows: dict[str | None, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    found = {}
    for key, own in rows.items():
        a, x, w = features[own], reward[own], weights[own]
        found[key] = a.T @ (a * w[:, None]), a.T @ (w * x), float(len(own)), float(w @ x**2)
    return found
