"""Reads a table: a CSV or Parquet file whose rows all have the fields of its header, or none."""

from __future__ import annotations

import csv
import io
import re
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.checks import InputError
from bayesmeta.data.shipped import NAMES
from bayesmeta.tables.parquet import read_whole

if TYPE_CHECKING:
    from pandas import DataFrame

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")
"""What stands for no number in a CSV file."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Whatever goes wrong in reading a file, in one line."""
    try:
        yield
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; save it as CSV in UTF-8") from None
    except FileNotFoundError:
        shipped = f"; bm.load_data({path.name!r}) is a data set" if str(path) in NAMES else ""
        raise InputError(f"there is no file {path}{shipped}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from None
    except ImportError:
        raise InputError(
            "reading Parquet, or CSV in batches, needs the package pyarrow; install "
            "bayesmeta[parquet], or use CSV that fits into memory"
        ) from None
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        raise InputError(f"{path} cannot be read as a table ({text})") from None


def read_table(path: Path, task: str, words: Collection[str] = ()) -> DataFrame:
    """A CSV or Parquet file as a table; the labels of tasks stay text, as they are written: 01 and
    1 are two tasks. So do the columns in ``words``."""
    with translated(path):
        refuse_devices(path)
        if is_parquet(path):
            return _parquet(path)
        return _csv(path, task, words)


def is_parquet(path: Path) -> bool:
    """By its name."""
    return path.suffix.lower() in (".parquet", ".pq")


def refuse_devices(path: Path) -> None:
    """Devices, some of which never end; pipes are read like files."""
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise InputError(f"{path} is a device, not a file with a table")


def _parquet(path: Path) -> DataFrame:
    """All columns, those that pandas kept as an index included."""
    frame = read_whole(path)
    twice = [name for name in frame.index.names if name is not None and name in frame.columns]
    if twice:
        raise InputError(
            f"{path} has a column {twice[0]!r} and an index of that name; save it without the "
            "index, as of frame.reset_index(drop=True)"
        )
    return frame.reset_index() if any(frame.index.names) else frame


def _csv(path: Path, task: str, words: Collection[str]) -> DataFrame:
    """A table with the names of the header as they stand, also where two are the same.

    pandas reads the values. It would shift columns where rows are longer than the header and fill
    up rows that are shorter, so the csv module looks at the rows first.
    """
    import pandas as pd

    data = _unpacked(path)  # read once: a pipe cannot be read again
    header, rows = _structure(path, data)
    places = range(len(header))
    labels = [i for i in places if header[i] == task]
    frame = pd.read_csv(
        io.BytesIO(data),
        header=0,
        names=list(places),
        index_col=False,
        dtype={i: str for i in places if header[i] == task or header[i] in words},
        keep_default_na=False,
        na_values={i: MISSING for i in places if i not in labels},
        low_memory=False,
    )
    if len(frame) != rows:
        raise InputError(
            f"{path} can be read as {rows} or as {len(frame)} rows; look for odd quotes or lines "
            "of blanks"
        )
    frame.columns = pd.Index(header)
    return frame


def _unpacked(path: Path) -> bytes:
    """The bytes of a file, which may be compressed by what its name ends in."""
    import bz2
    import gzip
    import lzma

    unpack: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.decompress,
        ".bz2": bz2.decompress,
        ".xz": lzma.decompress,
        ".zip": _only_member,
    }
    data = path.read_bytes()
    suffix = path.suffix.lower()
    return unpack[suffix](data) if suffix in unpack else data


def _only_member(data: bytes) -> bytes:
    """The one file in a ZIP archive."""
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if len(names) != 1:
            raise InputError(f"the archive has {len(names)} files; unpack the one that is meant")
        return archive.read(names[0])


def _structure(path: Path, data: bytes) -> tuple[list[str], int]:
    """The header, and the number of rows, all of which have as many fields."""
    if b"\0" in data:
        raise InputError(f"{path} has NUL bytes, as UTF-16 has; save it as CSV in UTF-8")
    text = data.decode("utf-8-sig")
    if '"' not in text and text.count("\r") == text.count("\r\n"):
        found = _plain_structure(path, text)
        if found is not None:
            return found
    del text
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
    reader = csv.reader(lines, strict=True)
    header: list[str] = []
    rows = 0
    try:
        for row in reader:
            if not header:
                header = header_of(path, row)
            elif len(row) == len(header):
                rows += 1
            elif not _blank(row):
                raise InputError(_misfit(path, row, len(header), reader.line_num))
    except csv.Error as error:
        raise InputError(
            f"line {reader.line_num} of {path} cannot be read ({error}); a quote in a quoted field "
            "is written twice"
        ) from None
    if not header:
        raise InputError(f"{path} is empty; it must begin with a header")
    return header, rows


def _plain_structure(path: Path, text: str) -> tuple[list[str], int] | None:
    """The same where nothing is quoted and commas are all there is to count, in a quarter of the
    time; None where a line differs from the first."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    commas = set(map(str.count, lines, repeat(",")))
    if len(commas) != 1 or commas == {0}:  # without a comma a blank line is no other
        return None
    return header_of(path, lines[0].rstrip("\r").split(",")), len(lines) - 1


def header_of(path: Path, row: list[str]) -> list[str]:
    """The names of columns; nothing for a blank line before them."""
    if _blank(row):
        return []
    if len(row) == 1 and any(mark in row[0] for mark in ";\t|"):
        raise InputError(f"{path} has a single column, {row[0]!r:.60}; separate columns by commas")
    return [name or f"Unnamed: {i}" for i, name in enumerate(row)]  # as pandas calls them


def _blank(row: list[str]) -> bool:
    """Whether a line has nothing but blanks, which pandas passes over."""
    return not row or (len(row) == 1 and row[0].isspace())


def _misfit(path: Path, row: list[str], wanted: int, last: int) -> str:
    """What to say of a row with too few or too many fields, which ends at line ``last``."""
    inside = sum(len(re.findall(r"\r\n|\r|\n", field)) for field in row)
    return misfit(f"line {last - inside} of {path}", len(row), wanted, not row[-1])


def misfit(where: str, fields: int, wanted: int, comma: bool) -> str:
    """The same of a row of so many fields; ``comma``: it ends in one."""
    said = f"{where} has {fields} fields, but the header has {wanted}"
    if fields < wanted:
        return f"{said}; leave a missing field empty, between commas"
    if fields == wanted + 1 and comma:
        return f"{said}; it ends in a comma, which the header does not"
    return f"{said}; quote a field that has a comma in it, and give every column a name"
