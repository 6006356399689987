"""Records on disk: NetCDF, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.checks import Array, InputError
from bayesmeta.runner.files import Writer, check_room, writable_folder, write_atomically

if TYPE_CHECKING:
    import xarray as xr


def record_writer(record: xr.Dataset) -> Writer:
    """Writes a record as NetCDF, compressed."""
    encoding = {name: {"zlib": True, "complevel": 4} for name in record.data_vars}

    def write(to: Path) -> None:
        check_room(to, record.to_netcdf(engine="h5netcdf", encoding=encoding))
        record.to_netcdf(to, engine="h5netcdf", encoding=encoding)

    return write


def write_record(record: xr.Dataset, path: Path | str) -> None:
    """Write a record as NetCDF, whole or not at all; folders are made.

    Parameters
    ----------
    record : xarray.Dataset
        What ``simulate``, ``thin`` or ``collect`` returned.
    path : path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> record = bm.simulate(bm.paper_family(dim=2, horizon=10), "KTS", tasks=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bm.write_record(record, f"{folder}/kts.nc")
    ...     bm.read_record(f"{folder}/kts.nc").identical(record)
    True
    """
    folder = writable_folder(Path(path).parent)
    write_atomically(folder / Path(path).name, record_writer(record))


def read_record(path: Path | str) -> xr.Dataset:
    """Read a record into memory.

    Parameters
    ----------
    path : path
        A file that ``write_record``, ``bayesmeta reproduce`` or ``study collect`` wrote.

    Returns
    -------
    xarray.Dataset
        The record.

    Examples
    --------
    >>> bm.read_record("nothing.nc")
    Traceback (most recent call last):
    bayesmeta.checks.InputError: no record at nothing.nc; run the study that writes it first
    """
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
    "regret",
    "relative_regret",
    "exploration_steps",
    "not_positive_definite",
    "singular",
)


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
    """A record small enough to commit: cumulative, at log-spaced tasks, the half-way one kept.

    Parameters
    ----------
    record : xarray.Dataset
        What ``simulate`` returned.
    points : int
        About how many tasks are kept.

    Returns
    -------
    xarray.Dataset
        With ``cumulative_…`` in place of all that adds up over tasks.

    Examples
    --------
    >>> record = bm.simulate(bm.paper_family(dim=2, horizon=10), "KTS", tasks=40)
    >>> bm.simulation.thin(record, points=5).task.values
    array([ 1,  3,  4,  6, 16, 20, 40])
    """
    last = int(record.task[-1])
    keep = log_spaced(last, points, (last // 2, last // 10))
    thinned = cumulative(record).sel(task=keep)
    thinned.attrs["thinned"] = f"cumulative values at {len(keep)} of {last} tasks"
    return thinned
