"""What a table says: the statistics of its tasks, and how to make features of other rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    from pandas import DataFrame


class Rows(NamedTuple):
    """The rows that statistics were made of, where they are kept."""

    task: NDArray[np.intp]
    """(rows,), which of the statistics' tasks a row belongs to"""
    reward: Array
    """(rows,)"""
    features: Array
    """(rows, d)"""
    weights: Array | None = None
    """(rows,); None: all are 1"""


class Design(NamedTuple):
    """A table of one's own, ready to be fitted.

    Parameters
    ----------
    stats
        What its tasks leave behind; ``stats.varying`` says which features differ between tasks.
    task, reward
        The names of these columns.
    matrix
        Makes the (rows, d) features of a table with the same columns, by the same coding; an
        ``InputError`` names a column that is lacking, or a category that was not there.
    noise_sd
        1 where the variances of all rows are known, None where the noise is to be estimated.
    rows
        The rows themselves, unless they are too many.
    weights
        Of rows of a new table, None where all are 1.
    dropped
        Rows left out for want of a value.
    formula
        As it was given, or made of the columns' names.
    """

    stats: TaskStatistics
    task: str
    reward: str
    matrix: Callable[[DataFrame], Array]
    noise_sd: float | None = None
    rows: Rows | None = None
    weights: Callable[[DataFrame], Array] | None = None
    dropped: int = 0
    formula: str = ""


def tabulate(
    source: Any,
    formula: str | None = None,
    *,
    task: str | None = None,
    reward: str | None = None,
    features: Any = (),
    intercept: bool = False,
) -> Design:
    """Read a table and sum up its tasks."""
    from bayesmeta.columns import numbers, row_labels, tasks_of

    if formula is not None or task is None or reward is None:
        raise NotImplementedError
    names = [features] if isinstance(features, str) else list(features)
    stats = TaskStatistics.from_frame(source, task, reward, names, intercept=intercept)

    def matrix(frame: DataFrame) -> Array:
        columns = [numbers(frame, name) for name in names]
        return np.column_stack([np.ones(len(frame)), *columns] if intercept else columns)

    index = tasks_of(row_labels(source[task].tolist()))[1]
    rows = Rows(index, numbers(source, reward), matrix(source))
    terms = " + ".join(["1" if intercept else "0", *map(str, names)])
    return Design(
        stats, task, reward, matrix, rows=rows, formula=f"{reward} ~ {terms} + ({terms} | {task})"
    )
