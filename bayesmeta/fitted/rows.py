"""The rows of another table, as a prediction needs them: features, weights, tasks."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError, array
from bayesmeta.tables.design import Design

if TYPE_CHECKING:
    from pandas import DataFrame

NEW = -1
"""The place of a task that was not there."""


class Asked(NamedTuple):
    """What to predict: features (rows, d), the place of each row's task, and its weight."""

    features: Array
    task: NDArray[np.intp]
    weights: Array
    labels: Any


def asked_rows(design: Design, new: Any, task: Hashable | None, rewards: bool) -> Asked:
    """The rows of a table, or of an array of features; weights are read where ``rewards`` are
    predicted."""
    table = hasattr(new, "columns")
    if rewards and design.stats.log_weights is not None and not (table and design.weights):
        raise InputError(
            "rewards have variances of their own, which new does not say; predict means "
            "(rewards=False), or fit a table and give one with its column of variances or weights"
        )
    if not table:
        features = array("new", new, (None, design.stats.dim))
        where = _places(design, [task] * len(features)) if task is not None else None
        return Asked(features, _or_new(where, len(features)), np.ones(len(features)), None)
    frame: DataFrame = new
    if not len(frame):
        raise InputError("new has no rows to predict")
    features = design.matrix(frame)
    weights = np.ones(len(frame))
    if rewards and design.weights is not None:
        weights = design.weights(frame)
    where = None
    if task is not None:
        where = _places(design, [task] * len(frame))
    elif design.task in frame.columns:
        where = _places(design, frame[design.task].tolist(), strict=False)
    return Asked(features, _or_new(where, len(frame)), weights, frame.index)


def _or_new(where: NDArray[np.intp] | None, rows: int) -> NDArray[np.intp]:
    return np.full(rows, NEW) if where is None else where


def _places(design: Design, labels: list[Hashable], strict: bool = True) -> NDArray[np.intp]:
    """Where tasks are among those that were fitted, ``NEW`` where they were not: 3 is also 3.0, as
    pandas has it of a column with gaps, and "3", as a file has it."""
    known = design.stats.task_labels
    place: dict[Hashable, int] = {str(label): k for k, label in enumerate(known)}
    place |= {label: k for k, label in enumerate(known)}
    if any(label is None or label != label for label in labels):
        raise InputError(f"new has rows without a task; fill the column {design.task!r} in")
    found = [place.get(label, place.get(str(label), NEW)) for label in labels]
    if strict and NEW in found:
        label = labels[found.index(NEW)]
        raise InputError(
            f"task {label!r} is not among the {len(known)} that were fitted; leave task out to "
            "predict a new one, and give its own rows as given"
        )
    return np.array(found, dtype=np.intp)


def own_sums(design: Design, given: Any) -> tuple[Array, Array]:
    """Gram and moment of the rows that a new task has of its own."""
    if not hasattr(given, "columns"):
        raise InputError("given must be a table with the columns of the one that was fitted")
    frame: DataFrame = given
    from bayesmeta.columns import numbers

    if not len(frame):
        raise InputError("given has no rows; leave it out")
    if design.task in frame.columns:
        labels = frame[design.task].tolist()
        if len(set(labels)) > 1 or (_places(design, labels, strict=False) != NEW).any():
            raise InputError(
                f"given must have the rows of one new task; its column {design.task!r} names "
                "several, or one that was fitted"
            )
    features = design.matrix(frame)
    if design.reward not in frame.columns:
        raise InputError(f"given has no column {design.reward!r}, the reward; add it")
    reward = numbers(frame, design.reward)
    weights = np.ones(len(frame)) if design.weights is None else design.weights(frame)
    return features.T @ (features * weights[:, None]), features.T @ (weights * reward)
