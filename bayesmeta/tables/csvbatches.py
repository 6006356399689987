"""CSV by way of Arrow, for tables in batches: the types of columns, and its errors in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import InputError
from bayesmeta.tables.reading import MISSING, header_of, misfit

if TYPE_CHECKING:
    from pandas import DataFrame

BLOCK = 1 << 23
"""Bytes of a CSV file that make a batch."""
_MISFIT = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)(?:: (.*))?", re.DOTALL)
_TWICE = re.compile(r"multiple columns named (.*)", re.DOTALL)


def opened_csv(path: Path, task: str) -> Any:
    """A dataset; tasks are text, whatever begins as numbers is numbers, and dates are the text that
    they are written in."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    with arrow_translated(path):
        first = ds.dataset(path, format=_csv_format({})).schema
    header_of(path, first.names)
    types = {field.name: _csv_type(field.type) for field in first} | {task: pa.string()}
    return ds.dataset(path, schema=_typed(first, types), format=_csv_format(types))


@contextmanager
def arrow_translated(path: Path) -> Iterator[None]:
    """What Arrow says of a CSV file, as ``read_table`` says it; the rest of it, without what
    comes before the reason."""
    try:
        yield
    except (InputError, UnicodeDecodeError):
        raise
    except ValueError as error:  # Arrow's are
        text = " ".join(str(error).split())
        if found := _MISFIT.search(text):
            line, wanted, got, row = found.groups()
            where = f"line {line} of {path}" if line else f"a line of {path}"
            ends = (row or "").endswith(",")
            raise InputError(misfit(where, int(got), int(wanted), ends)) from None
        if found := _TWICE.search(text):
            raise InputError(
                f"there are several columns {found[1]!r:.60}; give each a name of its own"
            ) from None
        if "Empty CSV" in text:
            raise InputError(f"{path} is empty; it must begin with a header") from None
        reason = text.rpartition("Invalid: ")[2]
        raise InputError(f"{path} cannot be read as a table ({reason:.200})") from None


def _csv_type(guessed: Any) -> Any:
    """The type of a column of CSV as pandas has it, by what Arrow makes of its first rows."""
    import pyarrow as pa

    if pa.types.is_boolean(guessed):
        return guessed
    number = pa.types.is_integer(guessed) or pa.types.is_floating(guessed)
    return pa.float64() if number or pa.types.is_null(guessed) else pa.string()


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


def mark_missing(frame: DataFrame, task: str) -> None:
    """Text of a CSV file that stands for no value, but for tasks."""
    for name, kind in frame.dtypes.items():
        if name != task and kind.kind not in "biuf":
            frame[name] = frame[name].mask(frame[name].isin(MISSING), None)
