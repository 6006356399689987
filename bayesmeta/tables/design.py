"""What a table says: the statistics of its tasks, and how to make features of other rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError
from bayesmeta.columns import numbers, row_labels, tasks_of
from bayesmeta.statistics import TaskStatistics
from bayesmeta.tables.batches import Source, from_dask, from_file, in_batches, sum_up
from bayesmeta.tables.categories import Categories, categories_of
from bayesmeta.tables.coding import Coder, one_column
from bayesmeta.tables.missing import Missing
from bayesmeta.tables.reading import read_table
from bayesmeta.tables.request import Request, request_of

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
    notes
        What to tell the user: rows that were left out, columns that were coded.
    columns
        Those that ``matrix`` reads, with their categories, None for numbers.
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
    notes: tuple[str, ...] = ()
    columns: dict[str, Categories] | None = None


def tabulate(
    source: DataFrame | str | Path | Any,
    formula: str | None = None,
    *,
    task: str | None = None,
    reward: str | None = None,
    features: str | Sequence[str] = (),
    intercept: bool = False,
    fixed: str | Sequence[str] = (),
    weights: str | None = None,
    noise_var: str | None = None,
    noise_se: str | None = None,
    drop_missing: bool = False,
    batches: bool | None = None,
) -> Design:
    """Read a table and sum up its tasks.

    Parameters
    ----------
    source : pandas.DataFrame, path, or dask.dataframe.DataFrame
        A row for every reward. A path leads to a CSV or Parquet file with a header. Text, and a
        categorical of anything, are categories: a pandas categorical's in its order, also in
        Parquet, all others sorted.
    formula : str, optional
        In lme4's syntax, such as ``"Reaction ~ Days + (Days | Subject)"``: the reward, the
        features, and in the term with the bar those whose coefficients differ between tasks.
        Terms are formulaic's: categories, interactions, ``0 +``, ``center(x)``, ``np.log(x)``.
    task, reward : str
        Without a formula: the columns that say which task a row belongs to, and its reward.
    features : sequence of str
        Without a formula: columns whose coefficients differ between tasks; of categories the
        first is the reference.
    intercept : bool
        Without a formula: whether to add a first feature, "intercept", that is always 1.
    fixed : sequence of str
        Without a formula: columns whose coefficients are the same in all tasks.
    weights : str, optional
        A column; the noise of a row has the variance sigma^2 / weight.
    noise_var, noise_se : str, optional
        A column of the known variances of rows, or of their standard errors.
    drop_missing : bool
        Leave out rows without a value in a column that is read, instead of refusing them.
    batches : bool, optional
        Sum up a file in batches and keep no rows; by default where it is larger than 200 MB. A
        Dask table always is.

    Returns
    -------
    Design
        Statistics of the tasks, and how to make features of other rows.

    Examples
    --------
    >>> import bayesmeta as bm
    >>> table = bm.load_data("sleepstudy")
    >>> design = bm.tabulate(table, "Reaction ~ Days + (Days | Subject)")
    >>> design.stats
    TaskStatistics: 18 tasks, d = 2 (intercept, Days), 180 rows
    >>> design.matrix(table[:2])
    array([[1., 0.],
           [1., 1.]])
    """
    request = request_of(
        formula,
        task=task,
        reward=reward,
        features=features,
        intercept=intercept,
        fixed=fixed,
        weights=weights,
        noise_var=noise_var,
        noise_se=noise_se,
        drop_missing=drop_missing,
    )
    if isinstance(source, (str, Path)):
        path = Path(source)
        if in_batches(path, batches):
            return _summed(from_file(path, request.task), request)
        return _whole(read_table(path, request.task), request)
    if hasattr(source, "npartitions") and hasattr(source, "dtypes"):
        return _summed(from_dask(source), request)
    if not hasattr(source, "columns") or not hasattr(source, "iloc"):
        raise InputError(
            f"source must be a pandas or Dask DataFrame or a path, got {type(source).__name__}"
        )
    return _whole(source, request)


def _summed(source: Source, request: Request) -> Design:
    """In batches."""
    stats, coder, missing = sum_up(source, request)
    return _design(stats, coder, request, missing, None)


def _whole(frame: DataFrame, request: Request) -> Design:
    """At once, and the rows are kept."""
    names = request.columns(frame.columns)
    missing = Missing()
    lacking = missing.look(frame, request.task, request.read(names))
    if not request.drop_missing:
        missing.refuse()
    kept = np.flatnonzero(~lacking) + 1
    if not len(kept):
        raise InputError("there are no rows" + (" with all values" if missing.count else ""))
    frame = frame[~lacking] if missing.count else frame
    dates = request.may_be_dates()
    columns = {name: categories_of(frame[name], name, name in dates) for name in names}
    values = {name: one_column(frame, name, kind, kept) for name, kind in columns.items()}
    rewards = numbers(frame, request.reward, kept)
    weights = None if request.noise is None else request.noise.weights(frame, kept)
    coder = request.coder(values, columns)
    features = coder.made(values, len(frame), kept)
    labels = row_labels(frame[request.task].tolist())
    stats = TaskStatistics.from_arrays(
        labels, rewards, features, coder.names, weights=weights, varying=coder.varying
    )
    rows = Rows(tasks_of(labels)[1], rewards, features, weights)
    return _design(stats, coder, request, missing, rows)


def _design(
    stats: TaskStatistics, coder: Coder, request: Request, missing: Missing, rows: Rows | None
) -> Design:
    """With notes: what was left out, and what was coded."""
    notes = [missing.note(), *_coded(coder)]
    noise = request.noise
    return Design(
        stats,
        request.task,
        request.reward,
        coder.matrix,
        noise_sd=1.0 if noise is not None and noise.known else None,
        rows=rows,
        weights=None if noise is None else noise.weights,
        dropped=missing.count,
        formula=request.formula,
        notes=tuple(note for note in notes if note),
        columns=coder.columns,
    )


def _coded(coder: Coder) -> list[str]:
    """Which columns are categories, and compared with which; the reader may have meant numbers."""
    found = []
    for name, kind in coder.columns.items():
        if kind is not None:
            beside = len(kind) > 1 and _reference(name, kind[1]) & set(coder.names)
            first = f", compared with {kind[0]!r}" if beside else ""
            found.append(f"column {name!r} has {len(kind)} categories{first}")
    return found


def _reference(name: str, second: str) -> set[str]:
    """What formulaic may call the feature of the second category where the first has none."""
    return {f"{name}[T.{second}]", f"C({name})[T.{second}]"}
