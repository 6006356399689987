"""Tables that are too large for memory: summed up in batches, rows of a task anywhere.

A batch is a pandas table of the columns that are read, and the tasks of its rows. Nothing is kept
of a batch but its sums; categories take a first pass over their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Advice, InputError
from bayesmeta.columns import numbers, plain_label, row_labels, tasks_of
from bayesmeta.statistics import TaskStatistics
from bayesmeta.tables.categories import Categories, Seen, sort_dictionary
from bayesmeta.tables.coding import Coder, one_column, stateful
from bayesmeta.tables.csvbatches import arrow_translated, mark_missing, opened_csv
from bayesmeta.tables.missing import Missing
from bayesmeta.tables.parquet import category_columns, mark_categories
from bayesmeta.tables.reading import is_parquet, refuse_devices, translated
from bayesmeta.tables.request import Request
from bayesmeta.tables.totals import Totals

if TYPE_CHECKING:
    from pandas import DataFrame

LARGE = 200_000_000
"""Files of more bytes are read in batches, unless one says otherwise."""
ROWS = 1 << 18
"""Of a batch; up to some thirty of them wait in memory when reading is faster than summing."""


class Batch(NamedTuple):
    """Some rows: the columns, labels of tasks (perhaps repeated), which of those each row has."""

    frame: DataFrame
    labels: Any
    place: NDArray[np.intp]
    """-1 where a row has no task"""


class Source(NamedTuple):
    """A table in batches, as often as it is asked for."""

    columns: list[str]
    words: Callable[[str], bool]
    """whether a column may be one of categories"""
    batches: Callable[[list[str], str | None], Iterator[Batch]]
    """of columns; with tasks where their column is named"""


class Summed(NamedTuple):
    """What is left of a table."""

    stats: TaskStatistics
    coder: Coder
    missing: Missing


def sum_up(source: Source, request: Request) -> Summed:
    """The statistics of a table in batches."""
    names = request.columns(source.columns)
    columns = _categories(source, request, names)
    missing, before = Missing(), 0
    coder: Coder | None = None
    totals = Totals(0)
    read = request.read(names)
    for frame, labels, index in source.batches(read, request.task):
        rows = np.arange(before + 1, before + len(frame) + 1)
        lacking = missing.look(frame, request.task, read, before)
        before += len(frame)
        if lacking.any():
            if not request.drop_missing:
                continue  # to count them all
            frame, rows = frame[~lacking], rows[~lacking]
            labels, index = _present(labels, index[~lacking])
        if not len(frame) or (missing.count and not request.drop_missing):
            continue
        values = {name: one_column(frame, name, kind, rows) for name, kind in columns.items()}
        if coder is None:
            coder = request.coder(values, columns)
            if stateful(coder):
                raise InputError(
                    Advice(
                        "formula: {term} needs all rows at once; make a column of it, or read the "
                        "table whole ({batches} off)",
                        term=repr(stateful(coder)),
                    )
                )
            totals = Totals(len(coder.names))
        if coder.plain:
            features = [None if name is None else values[name] for name in coder.plain]
        else:
            features = list(np.ascontiguousarray(coder.coded(values, rows).T))
        weights = None if request.noise is None else request.noise.weights(frame, rows)
        totals.add(labels, index, numbers(frame, request.reward, rows), features, weights)
    if not request.drop_missing:
        missing.refuse()
    if coder is None:
        raise InputError("there are no rows" + (" with all values" if missing.count else ""))
    stats = totals.statistics(coder.names, coder.varying, request.noise is not None)
    return Summed(stats, coder, missing)


def _present(labels: Any, place: NDArray[np.intp]) -> tuple[Any, NDArray[np.intp]]:
    """The tasks that still have rows, in their order."""
    found, again = np.unique(place, return_inverse=True)
    return labels[found], again


def _categories(source: Source, request: Request, names: list[str]) -> dict[str, Categories]:
    """The categories of every column, None where it holds numbers: a pass over those with words.

    Where rows are left out the pass reads all columns, since the categories of such rows do not
    count.
    """
    seen = {name: Seen() for name in names if source.words(name)}
    read = request.read(names) if request.drop_missing else list(seen)
    for frame, _, _ in source.batches(read, None) if seen else ():
        if request.drop_missing:
            frame = frame[~Missing().look(frame, request.task, read)]
        for name, one in seen.items():
            if not one.enough:
                one.add(frame[name])
        if all(one.enough for one in seen.values()):
            break
    dates = request.may_be_dates()
    return {
        name: seen[name].categories(name, name in dates) if name in seen else None for name in names
    }


def from_file(path: Path, task: str) -> Source:
    """A Parquet or CSV file, by way of pyarrow's datasets."""
    with translated(path):
        import pyarrow as pa

        table = opened(path, task)
        names, kinds = table.schema.names, category_columns(table.schema)
        kinds.pop(task, None)
        csv = not is_parquet(path)
        twice = {name for name in names if names.count(name) > 1}
        if task in twice:
            raise InputError(f"there are 2 columns {task!r}; give each a name of its own")

    def words(name: str) -> bool:
        kind = table.schema.field(name).type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        return bool(text or name in kinds)

    def batches(columns: list[str], label: str | None) -> Iterator[Batch]:
        with translated(path), arrow_translated(path):
            scanner = table.scanner(
                columns=columns, batch_size=ROWS, batch_readahead=4, fragment_readahead=1
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    made = _plain(_batch(batch, label))
                    if csv:
                        mark_missing(made.frame, task)
                    mark_categories(made.frame, kinds)
                    yield made

    return Source([str(one) for one in names], words, batches)


def in_batches(path: Path, batches: bool | None) -> bool:
    """Whether a file is summed up in batches: if one says so, or it is large."""
    with translated(path):
        refuse_devices(path)
        size = path.stat().st_size if path.is_file() else 0
    return size > LARGE if batches is None else batches


def opened(path: Path, task: str) -> Any:
    """A dataset; in CSV tasks are text."""
    import pyarrow.dataset as ds

    if not is_parquet(path):
        return opened_csv(path, task)
    # buffers of the whole file would be kept until its end
    lean = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    return ds.dataset(path, format=ds.ParquetFileFormat(default_fragment_scan_options=lean))


def _batch(batch: Any, task: str | None) -> Batch:
    """The columns for pandas; tasks by Arrow's dictionary, in the order in which they come."""
    import pyarrow as pa

    frame = batch.to_pandas(split_blocks=True, ignore_metadata=True)
    if task is None:
        return Batch(frame, None, np.zeros(0, dtype=np.intp))
    column = batch.column(batch.schema.get_field_index(task))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type) and not column.null_count:
        return Batch(frame, column.to_numpy(), np.arange(len(column)))  # quicker to look up
    coded = column.dictionary_encode()
    place = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    return Batch(frame, coded.dictionary.to_pandas().to_numpy(), place)


def _plain(batch: Batch) -> Batch:
    """With the labels 308.0 as 308, where they are numbers."""
    import pandas as pd

    if batch.labels is None or batch.labels.dtype.kind != "f":
        return batch
    texts = batch.labels.tolist()
    plain = [plain_label(one) for one in texts]
    if list(map(type, plain)) == list(map(type, texts)) and plain == texts:
        return batch
    place, found = pd.factorize(np.array(plain, dtype=object))  # -1 where there is no label
    labels = np.array(found.tolist(), dtype=None if _whole(found.tolist()) else object)
    return Batch(batch.frame, labels, np.append(place, -1)[batch.place])


def from_dask(table: Any) -> Source:
    """A Dask DataFrame, partition by partition."""
    import pandas as pd

    def words(name: str) -> bool:
        kind = table.dtypes[name]
        if isinstance(kind, pd.CategoricalDtype):
            return True
        return bool(kind.kind == "O" or pd.api.types.is_string_dtype(kind))

    return Source(list(table.columns), words, partial(_partitions, table))


def _partitions(table: Any, columns: list[str], task: str | None) -> Iterator[Batch]:
    """One after another; each is computed where Dask computes."""
    unknown = _unknown(table, columns)
    for part in table[columns].partitions:
        frame = part.compute().reset_index(drop=True)
        if not len(frame):
            continue
        for name in unknown:
            if not all(isinstance(one, str) for one in frame[name].cat.categories):
                sort_dictionary(frame, name)  # Parquet keeps no order of numbers
        if task is None:
            yield Batch(frame, None, np.zeros(0, dtype=np.intp))
            continue
        column = frame[task]
        lacks = column.isna().to_numpy(dtype=bool)
        found, place = tasks_of(row_labels(column[~lacks].tolist()))
        places = np.full(len(frame), -1, dtype=np.intp)
        places[~lacks] = place
        yield Batch(frame, np.array(found, dtype=None if _whole(found) else object), places)


def _unknown(table: Any, columns: list[str]) -> list[str]:
    """Columns whose categories Dask does not know, and so neither their order."""
    import pandas as pd

    kinds = ((name, table.dtypes[name]) for name in columns)
    found = [name for name, kind in kinds if isinstance(kind, pd.CategoricalDtype)]
    return [name for name in found if not table[name].cat.known]


def _whole(labels: list[Any]) -> bool:
    """Whether all are whole numbers."""
    return all(type(one) is int for one in labels)
