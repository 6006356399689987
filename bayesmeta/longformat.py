"""From long format, a row for every step, to the sums of tasks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesmeta.checks import Array, InputError, array
from bayesmeta.columns import check_columns, numbers, row_labels, tasks_of
from bayesmeta.units import check_sizes

if TYPE_CHECKING:
    from pandas import DataFrame


class Summed(NamedTuple):
    """Rows, multiplied by the roots of their weights, and the sums of tasks."""

    sums: tuple[Array, Array, Array, Array]
    """gram, moment, count and energy"""
    log_weights: Array | None
    tasks: tuple[Hashable, ...]
    place: NDArray[np.intp]
    """which task each row has"""
    rows: Array


def sum_rows(
    task: ArrayLike, reward: ArrayLike, features: ArrayLike, weights: ArrayLike | None
) -> Summed:
    """The arguments of ``TaskStatistics.from_arrays``, checked and summed up."""
    from bayesmeta.kernels.grams import sums_of_rows

    labels = row_labels(task)
    rewards = array("reward", reward, (None,))
    rows = array("features", features, (len(rewards), None))
    if len(labels) != len(rewards):
        raise InputError(f"task must have one label a row, {len(rewards)}, got {len(labels)}")
    if not len(rewards):
        raise InputError("there are no rows")
    check_sizes("reward", rewards)
    check_sizes("features", rows)
    found, index = tasks_of(labels)
    log_weights = None
    if weights is not None:
        heavy = array("weights", weights, (len(rewards),))
        if not (heavy > 0).all():
            raise InputError("weights must be positive; leave out rows that do not count")
        check_sizes("weights", heavy)
        log_weights = np.bincount(index, np.log(heavy), minlength=len(found))
        rewards, rows = rewards * np.sqrt(heavy), rows * np.sqrt(heavy)[:, None]
    sums = sums_of_rows(index, rewards, rows, len(found))
    return Summed(sums, log_weights, tuple(found), index, rows)


class Columns(NamedTuple):
    """The columns of a table as ``TaskStatistics.from_arrays`` takes them."""

    task: list[Any]
    reward: Array
    features: Array
    names: list[str]
    weights: Array | None
    varying: list[bool]


def read_columns(
    frame: DataFrame,
    task: str,
    reward: str,
    features: Sequence[str],
    intercept: bool,
    fixed: Sequence[str],
    weights: str | None,
) -> Columns:
    """The arguments of ``TaskStatistics.from_frame``, checked and read."""
    if not hasattr(frame, "columns"):
        raise InputError(f"frame must be a pandas DataFrame, got {type(frame).__name__}")
    own = [features] if isinstance(features, str) else list(features)
    same = [fixed] if isinstance(fixed, str) else list(fixed)
    names = own + same
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(f"feature {min(twice)!r} is named twice")
    if not own and not intercept:
        raise InputError("features is empty; name at least one column, or ask for an intercept")
    others = [] if weights is None else [weights]
    check_columns(frame, task, reward, names + others)
    labels = frame[task].tolist()
    missing = frame[task].isna().to_numpy(dtype=bool)
    missing = missing | np.array([isinstance(one, str) and not one for one in labels], dtype=bool)
    if missing.any():
        row = int(np.argmax(missing))
        raise InputError(f"column {task!r} has no value in row {row + 1} (not counting the header)")
    values = {name: numbers(frame, name) for name in (reward, *names, *others)}
    columns = [values[name] for name in names]
    if intercept:
        if "intercept" in names:
            raise InputError("there is a feature called 'intercept' already; rename it")
        columns, names = [np.ones(len(frame)), *columns], ["intercept", *names]
    return Columns(
        labels,
        values[reward],
        np.column_stack(columns),
        list(map(str, names)),
        None if weights is None else values[weights],
        [True] * (len(names) - len(same)) + [False] * len(same),
    )
