"""The folder of a study: finished cells in NetCDF files, failures, a manifest, a lock.

    cells/NAME.DIGEST.nc    one finished cell, or a shard of small ones stacked along ``cell``
    failures.jsonl          cells that raised, with their tracebacks, the latest last
    manifest.json           what was run, when, by which versions
    lock                    held by the one driver that may write

What is finished is what the files in ``cells`` say, and nothing else. A name holds the digest of
its file, so that a damaged one shows; a file appears under its name whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import InputError
from bayesmeta.records import writable_folder, write_atomically

if TYPE_CHECKING:
    import xarray as xr

CELL = "cell"
"""The dimension along which a shard stacks cells."""
_OURS = "study_"  # begins the names of what a shard says about its cells
SHARD_BYTES, SHARD_SECONDS, LONG_SECONDS = 4 << 20, 1.0, 0.5
"""Cells wait to be written together until so large or old; one that took long does not wait."""


class Cell(NamedTuple):
    """A finished cell."""

    id: str
    key: str
    settings: str
    seconds: float
    versions: str
    data: xr.Dataset


class Place(NamedTuple):
    """Where a finished cell is kept."""

    file: Path
    row: int
    seconds: float
    versions: str


class Failure(NamedTuple):
    """A cell that raised."""

    id: str
    key: str
    error: str
    traceback: str


class Store:
    """A study's folder, to write in or to read."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self._waiting: list[Cell] = []
        self._bytes, self._since = 0, 0.0

    # ---- finished cells

    def find(self) -> tuple[dict[str, Place], list[Path]]:
        """Every finished cell by its key, and the files that are damaged."""
        found: dict[str, Place] = {}
        damaged = []
        for file in sorted(self.cells.glob("[!.]*.nc")):
            try:
                if file.suffixes[-2:-1] != [f".{_digest(file.read_bytes())}"]:
                    raise OSError("it is not what was written")
                found |= _places(file)
            except (OSError, KeyError, ValueError):
                damaged.append(file)
        return found, damaged

    def add(self, cell: Cell) -> list[Failure]:
        """Keep a finished cell: a long or large one at once, small ones together soon."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(cell)
        self._bytes += cell.data.nbytes
        return self.flush(due=cell.seconds < LONG_SECONDS)

    def flush(self, due: bool = False) -> list[Failure]:
        """Write what is waiting (if ``due``: only when it is time); cells NetCDF cannot hold."""
        young = time.monotonic() - self._since < SHARD_SECONDS
        if not self._waiting or (due and young and self._bytes < SHARD_BYTES):
            return []
        alike: dict[bytes, list[Cell]] = {}
        for cell in self._waiting:
            alike.setdefault(_shape(cell), []).append(cell)
        refused = [failure for cells in alike.values() for failure in self._write(cells)]
        self._waiting, self._bytes = [], 0
        return refused

    def _write(self, cells: list[Cell]) -> list[Failure]:
        try:
            content = bytes(_stack(cells).to_netcdf(engine="h5netcdf"))
        except Exception as error:
            if len(cells) > 1:
                return [failure for cell in cells for failure in self._write([cell])]
            text = f"its result cannot be written as NetCDF: {type(error).__name__}: {error}"
            return [Failure(cells[0].id, cells[0].key, text, "")]
        name = re.sub(r"[^\w=+-]+", "~", cells[0].id, flags=re.ASCII)[:80]
        more = f"+{len(cells) - 1}" if len(cells) > 1 else ""
        file = self.cells / f"{name}{more}.{_digest(content)}.nc"
        try:
            write_cells(file, content)
        except OSError as error:
            raise InputError(
                f"cannot write in {self.cells} ({error.strerror or error}); cells written before "
                "are safe: make room and run again"
            ) from None
        return []

    def read(self, places: list[Place]) -> xr.Dataset:
        """Finished cells, stacked along ``cell`` in the order asked for."""
        import xarray as xr

        rows: dict[Path, list[int]] = {}
        for i, place in enumerate(places):
            rows.setdefault(place.file, []).append(i)
        parts = []
        for file, wanted in rows.items():
            with xr.open_dataset(file, engine="h5netcdf") as shard:
                part = shard.load().isel({CELL: [places[i].row for i in wanted]})
            coords = json.loads(part.attrs["study_coords"])
            part = part.set_coords(coords).drop_vars(
                [name for name in part.variables if str(name).startswith(_OURS)]
            )
            part.attrs = {k: v for k, v in part.attrs.items() if not k.startswith(_OURS)}
            parts.append(part)
        whole = (
            parts[0]
            if len(parts) == 1
            else xr.concat(
                parts,
                CELL,
                data_vars="all",
                coords="different",
                compat="equals",
                join="outer",
                combine_attrs="drop_conflicts",
            )
        )
        order = np.argsort([i for wanted in rows.values() for i in wanted])
        return whole.isel({CELL: order})

    # ---- failures

    @property
    def _failures(self) -> Path:
        return self.folder / "failures.jsonl"

    def failures(self) -> dict[str, Failure]:
        """The latest failure of every cell that failed, by key; a half-written line is no line."""
        found = {}
        if self._failures.exists():
            for line in self._failures.read_text().splitlines():
                try:
                    failure = Failure(**json.loads(line))
                except (ValueError, TypeError):
                    continue
                found[failure.key] = failure
        return found

    def fail(self, failure: Failure) -> None:
        """Note a cell that raised."""
        with self._failures.open("a") as file:
            file.write("\n" * self._torn() + json.dumps(failure._asdict()) + "\n")

    def _torn(self) -> bool:
        """Whether the last line was cut short."""
        with self._failures.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read() != b"\n"

    def forget_failures(self, keys: set[str]) -> None:
        """Drop the failures of cells that are finished by now."""
        kept = [f for key, f in self.failures().items() if key not in keys]
        if kept:
            text = "".join(json.dumps(failure._asdict()) + "\n" for failure in kept)
            write_atomically(self._failures, lambda to: to.write_text(text))
        else:
            self._failures.unlink(missing_ok=True)

    # ---- manifest and lock

    def manifest(self) -> dict[str, Any]:
        """What the manifest says; empty where there is none."""
        try:
            found = json.loads((self.folder / "manifest.json").read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write_manifest(self, content: dict[str, Any]) -> None:
        text = json.dumps(content, indent=2) + "\n"
        write_atomically(self.folder / "manifest.json", lambda to: to.write_text(text))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only driver. A driver that died, however, holds no lock."""
        import fcntl

        was_there = self.folder.exists()
        writable_folder(self.cells)
        path = self.folder / "lock"
        with path.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    raise BlockingIOError  # another driver was here a moment ago
            except (BlockingIOError, FileNotFoundError):
                file.seek(0)
                raise InputError(
                    f"{self.folder} is in use by {file.read().strip() or 'another process'}; wait "
                    "for it, or choose another folder"
                ) from None
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            self._sweep()
            try:
                yield
            finally:
                if not any(self.cells.iterdir()) and not self._failures.exists():
                    self._clear(was_there)

    def _sweep(self) -> None:
        """Remove what a killed driver was about to write."""
        for pattern in ("cells/.*.nc", ".manifest.*.json", ".failures.*.jsonl"):
            for file in self.folder.glob(pattern):
                file.unlink()

    def _clear(self, keep_folder: bool) -> None:
        """Leave nothing where nothing was done."""
        self.cells.rmdir()
        for name in ("manifest.json", "lock"):
            (self.folder / name).unlink(missing_ok=True)
        if not keep_folder:
            self.folder.rmdir()


def write_cells(file: Path, content: bytes) -> None:
    """Put a file of cells in place."""
    write_atomically(file, lambda to: to.write_bytes(content))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _places(file: Path) -> dict[str, Place]:
    import h5py  # ten times quicker than xarray where only labels are wanted

    with h5py.File(file) as shard:
        keys = shard["study_key"].asstr()[()].tolist()
        seconds = shard["study_seconds"][()].tolist()
        versions = str(shard.attrs["study_versions"])
    return {key: Place(file, i, seconds[i], versions) for i, key in enumerate(keys)}


def _shape(cell: Cell) -> bytes:
    """What cells must share to be stacked: names, dimensions, types, labels, attributes."""
    variables = [
        (
            name,
            name in cell.data.coords,
            variable.dims,
            variable.shape,
            variable.dtype.str,
            variable.attrs,
            variable.values.tolist() if name in cell.data.indexes else None,
        )
        for name, variable in cell.data.variables.items()
    ]
    return pickle.dumps((cell.versions, cell.data.attrs, variables))


def _stack(cells: list[Cell]) -> xr.Dataset:
    """One Dataset with a leading dimension ``cell``; coordinates that are no index stacked too."""
    import xarray as xr

    first = cells[0].data
    content: dict[Any, Any] = {}
    for name, variable in first.variables.items():
        if name in first.indexes:
            content[name] = variable
        else:
            values = np.stack([cell.data.variables[name].values for cell in cells])
            content[name] = ((CELL, *variable.dims), values, variable.attrs)
    for name in ("id", "key", "settings", "seconds"):
        content[_OURS + name] = (CELL, [getattr(cell, name) for cell in cells])
    coords = [str(name) for name in first.coords if name not in first.indexes]
    attrs = {"study_versions": cells[0].versions, "study_coords": json.dumps(coords)}
    return xr.Dataset(content, attrs=dict(first.attrs) | attrs)
