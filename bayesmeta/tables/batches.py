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
from bayesmeta.columns import numbers, row_labels, tasks_of
from bayesmeta.statistics import TaskStatistics
from bayesmeta.tables.coding import (
    Categories,
    Coder,
    check_categories,
    is_text,
    one_column,
    stateful,
)
from bayesmeta.tables.missing import Missing
from bayesmeta.tables.reading import MISSING, refuse_devices, translated
from bayesmeta.tables.request import Request
from bayesmeta.tables.totals import Totals

if TYPE_CHECKING:
    from pandas import DataFrame

LARGE = 200_000_000
"""Files of more bytes are read in batches, unless one says otherwise."""
ROWS = 1 << 18
"""Of a batch; up to some thirty of them wait in memory when reading is faster than summing."""
BLOCK = 1 << 23
"""Bytes of a CSV file that make a batch."""


class Batch(NamedTuple):
    """Some rows: the columns, the tasks among them, which of those each row has."""

    frame: DataFrame
    labels: Any
    place: NDArray[np.intp]
    """-1 where a row has no task"""


class Source(NamedTuple):
    """A table in batches, as often as it is asked for."""

    columns: list[str]
    text: Callable[[str], bool]
    """whether a column is one of text"""
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
    columns = {name: _categories(source, name) for name in names}
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


def _categories(source: Source, name: str) -> Categories:
    """All categories of a column, None where it holds numbers: a pass over that column."""
    import pandas as pd

    if not source.text(name):
        return None
    found: dict[str, None] = {}
    for frame, _, _ in source.batches([name], None):
        found |= dict.fromkeys(frame[name].dropna().astype(object).unique())
        if len(found) > 100_000:
            break
    values = pd.Series(list(found), dtype=object)
    if is_text(values):
        return check_categories(tuple(sorted(found)), name)
    return None


def from_file(path: Path, task: str) -> Source:
    """A Parquet or CSV file, by way of pyarrow's datasets."""
    with translated(path):
        import pyarrow as pa

        table = opened(path, task)
        names = table.schema.names
        twice = {name for name in names if names.count(name) > 1}
        if task in twice:
            raise InputError(f"there are 2 columns {task!r}; give each a name of its own")

    def text(name: str) -> bool:
        kind = table.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))

    def batches(columns: list[str], label: str | None) -> Iterator[Batch]:
        with translated(path):
            scanner = table.scanner(
                columns=columns, batch_size=ROWS, batch_readahead=4, fragment_readahead=1
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield _batch(batch, task, label)

    return Source([str(one) for one in names], text, batches)


def in_batches(path: Path, batches: bool | None) -> bool:
    """Whether a file is summed up in batches: if one says so, or it is large."""
    with translated(path):
        refuse_devices(path)
        size = path.stat().st_size if path.is_file() else 0
    return size > LARGE if batches is None else batches


def opened(path: Path, task: str) -> Any:
    """A dataset; in CSV, tasks are text and whatever begins as numbers is numbers."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if path.suffix.lower() in (".parquet", ".pq"):
        # buffers of the whole file would be kept until its end
        lean = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        return ds.dataset(path, format=ds.ParquetFileFormat(default_fragment_scan_options=lean))
    first = ds.dataset(path, format=_csv_format({})).schema
    types = {
        field.name: pa.string() if field.name == task else pa.float64()
        for field in first
        if field.name == task or not pa.types.is_string(field.type)
    }
    return ds.dataset(path, schema=_typed(first, types), format=_csv_format(types))


def _csv_format(types: dict[str, Any]) -> Any:
    """CSV with columns of these types; text is never missing here, as "NA" may be a task."""
    import pyarrow.csv as pc
    import pyarrow.dataset as ds

    convert = pc.ConvertOptions(
        column_types=types, null_values=list(MISSING), strings_can_be_null=False
    )
    return ds.CsvFileFormat(
        default_fragment_scan_options=ds.CsvFragmentScanOptions(
            convert_options=convert, read_options=pc.ReadOptions(block_size=BLOCK)
        )
    )


def _typed(schema: Any, types: dict[str, Any]) -> Any:
    """A schema with other types."""
    import pyarrow as pa

    return pa.schema([(field.name, types.get(field.name, field.type)) for field in schema])


def _batch(batch: Any, label: str, task: str | None) -> Batch:
    """The columns for pandas; tasks by Arrow's dictionary, in the order in which they come."""
    import pyarrow as pa

    frame = batch.to_pandas(split_blocks=True, ignore_metadata=True)
    for name, kind in frame.dtypes.items():
        if name != label and kind.kind not in "biuf":
            frame[name] = frame[name].mask(frame[name].isin(MISSING), None)
    if task is None:
        return Batch(frame, None, np.zeros(0, dtype=np.intp))
    column = batch.column(batch.schema.get_field_index(task))
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    coded = column.dictionary_encode()
    place = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    return Batch(frame, coded.dictionary.to_pandas().to_numpy(), place)


def from_dask(table: Any) -> Source:
    """A Dask DataFrame, partition by partition."""
    import pandas as pd

    def text(name: str) -> bool:
        kind = table.dtypes[name]
        if isinstance(kind, pd.CategoricalDtype):
            return True
        return bool(kind.kind == "O" or pd.api.types.is_string_dtype(kind))

    return Source(list(table.columns), text, partial(_partitions, table))


def _partitions(table: Any, columns: list[str], task: str | None) -> Iterator[Batch]:
    """One after another; each is computed where Dask computes."""
    for part in table[columns].partitions:
        frame = part.compute().reset_index(drop=True)
        if not len(frame):
            continue
        if task is None:
            yield Batch(frame, None, np.zeros(0, dtype=np.intp))
            continue
        column = frame[task]
        lacks = column.isna().to_numpy(dtype=bool)
        found, place = tasks_of(row_labels(column[~lacks].tolist()))
        places = np.full(len(frame), -1, dtype=np.intp)
        places[~lacks] = place
        yield Batch(frame, np.array(found, dtype=None if _whole(found) else object), places)


def _whole(labels: list[Any]) -> bool:
    """Whether all are whole numbers."""
    return all(type(one) is int for one in labels)
