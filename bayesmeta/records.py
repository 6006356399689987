"""Records on disk: NetCDF, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Array, InputError

if TYPE_CHECKING:
    import xarray as xr


def writable_folder(path: Path | str) -> Path:
    """Make a folder and see that files can be written in it, before any long work."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write in {folder} ({error.strerror or error}); choose another folder"
        ) from None
    return folder


Writer = Callable[[Path], object]
"""Fills the file at a path."""


def write_together(files: dict[Path, Writer]) -> None:
    """Fill a temporary file beside each path, then put all in place; on failure none is."""
    for path in files:
        if path.is_dir():
            raise InputError(f"cannot write {path}: a folder of that name is in the way")
    filled: dict[Path, Path] = {}
    try:
        for path, write in files.items():
            handle, name = tempfile.mkstemp(
                prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent
            )
            os.close(handle)
            filled[path] = Path(name)
            write(filled[path])
            filled[path].chmod(0o644)
        for path, temporary in filled.items():
            temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write {path} ({error.strerror or error}); make room, or choose another folder"
        ) from error
    finally:
        for temporary in filled.values():
            temporary.unlink(missing_ok=True)


def write_atomically(path: Path | str, write: Writer) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then put it in place."""
    write_together({Path(path): write})


def record_writer(record: xr.Dataset) -> Writer:
    """Writes a record as NetCDF, compressed."""
    encoding = {name: {"zlib": True, "complevel": 4} for name in record.data_vars}
    return lambda to: record.to_netcdf(to, engine="h5netcdf", encoding=encoding)


def write_record(record: xr.Dataset, path: Path | str) -> None:
    """Write a record as NetCDF, whole or not at all."""
    folder = writable_folder(Path(path).parent)
    write_atomically(folder / Path(path).name, record_writer(record))


def read_record(path: Path | str) -> xr.Dataset:
    """Read a record into memory."""
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="h5netcdf") as record:
            return record.load()
    except FileNotFoundError:
        raise InputError(f"no record at {path}; run the study that writes it first") from None
    except OSError as error:
        raise InputError(f"{path} is not a record that can be read ({error})") from None


def settings_of(record: xr.Dataset) -> dict[str, object]:
    """The settings that repeat a record."""
    out: dict[str, object] = json.loads(record.attrs["settings"])
    return out


def log_spaced(tasks: int, points: int, always: tuple[int, ...] = ()) -> Array:
    """About ``points`` task numbers from 1 to ``tasks``, evenly spaced in their logarithm."""
    grid = np.unique(np.geomspace(1, tasks, points).round().astype(int))
    extra = [n for n in (*always, tasks) if 1 <= n <= tasks]
    return np.union1d(grid, extra).astype(int)


_SUMMED = (
    "regret", "relative_regret", "exploration_steps", "not_positive_definite", "singular",
)  # fmt: skip


def cumulative(record: xr.Dataset) -> xr.Dataset:
    """Sums over the tasks so far of all that adds up, as ``cumulative_…``; errors as they are."""
    if any(str(name).startswith("cumulative_") for name in record.data_vars):
        return record
    summed = [name for name in _SUMMED if name in record]
    out = record.drop_vars(summed)
    for name in summed:
        total = record[name].cumsum("task").assign_coords(task=record.task)
        total.attrs["long_name"] = f"sum over tasks so far: {record[name].attrs['long_name']}"
        out[f"cumulative_{name}"] = total
    return out


def thin(record: xr.Dataset, points: int = 200) -> xr.Dataset:
    """A record small enough to commit: cumulative, at log-spaced tasks, the half-way one kept."""
    last = int(record.task[-1])
    keep = log_spaced(last, points, (last // 2, last // 10))
    thinned = cumulative(record).sel(task=keep)
    thinned.attrs["thinned"] = f"cumulative values at {len(keep)} of {last} tasks"
    return thinned


def without_nan(value: Any) -> Any:
    """Plain data as JSON knows it: numbers that are not finite become null, tuples lists."""
    if isinstance(value, dict):
        return {str(key): without_nan(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
