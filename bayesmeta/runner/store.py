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
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import InputError
from bayesmeta.runner.files import writable_folder, write_atomically
from bayesmeta.runner.study import CELL, OURS, one_line

if TYPE_CHECKING:
    import xarray as xr

SHARD_BYTES, SHARD_SECONDS = 4 << 20, 1.0
"""Cells wait to be written together until they are so large, or the first of them so old."""


class Cell(NamedTuple):
    """A finished cell."""

    id: str
    key: str
    settings: str
    seconds: float
    versions: str
    data: xr.Dataset

    @property
    def attrs(self) -> str:
        return json.dumps(self.data.attrs)


class Place(NamedTuple):
    """Where a finished cell is kept, and what made it."""

    file: Path
    row: int
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
        self._made: list[Path] = []

    # ---- finished cells

    def find(self) -> tuple[dict[str, Place], list[Path]]:
        """Every finished cell by its key, and the files that are damaged."""
        found: dict[str, Place] = {}
        damaged = []
        for file in sorted(self.cells.glob("[!.]*.nc")):
            try:
                content = file.read_bytes()
            except OSError as error:
                raise InputError(f"cannot read {file} ({error.strerror or error})") from None
            if file.suffixes[-2:-1] == [f".{_digest(content)}"]:
                found |= _places(file)
            else:
                damaged.append(file)
        return found, damaged

    def add(self, cell: Cell) -> None:
        """Keep a finished cell; it is written with the next ``flush``."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(cell)
        self._bytes += cell.data.nbytes

    def is_due(self) -> bool:
        """Whether it is time to write."""
        old = time.monotonic() - self._since >= SHARD_SECONDS
        return bool(self._waiting) and (old or self._bytes >= SHARD_BYTES)

    def flush(self) -> tuple[list[str], list[Failure]]:
        """Write what is waiting: the keys that are safe now, and cells NetCDF cannot hold."""
        alike: dict[str, list[Cell]] = {}
        for cell in self._waiting:
            alike.setdefault(_shape(cell), []).append(cell)
        refused = [failure for cells in alike.values() for failure in self._write(cells)]
        failed = {failure.key for failure in refused}
        written = [cell.key for cell in self._waiting if cell.key not in failed]
        self._waiting, self._bytes = [], 0
        return written, refused

    def _write(self, cells: list[Cell]) -> list[Failure]:
        try:
            content = bytes(_stack(cells).to_netcdf(engine="h5netcdf"))
        except Exception as error:
            if len(cells) > 1:
                return [failure for cell in cells for failure in self._write([cell])]
            text = f"its result cannot be written as NetCDF: {one_line(error)}"
            return [Failure(cells[0].id, cells[0].key, text, "")]
        name = re.sub(r"[^\w=+-]+", "~", cells[0].id, flags=re.ASCII)[:80]
        more = f"+{len(cells) - 1}" if len(cells) > 1 else ""
        file = self.cells / f"{name}{more}.{_digest(content)}.nc"
        write_atomically(file, lambda to: to.write_bytes(content))
        return []

    def read(self, places: list[Place]) -> xr.Dataset:
        """Finished cells, stacked along ``cell`` in the order asked for."""
        import xarray as xr

        rows: dict[Path, list[int]] = {}
        for i, place in enumerate(places):
            rows.setdefault(place.file, []).append(i)
        parts, attrs = [], set()
        for file, wanted in rows.items():
            with xr.open_dataset(file, engine="h5netcdf", decode_timedelta=False) as shard:
                part = shard.load().isel({CELL: [places[i].row for i in wanted]})
            attrs |= set(part["study_attrs"].values.tolist())
            part = part.set_coords(json.loads(part.attrs["study_coords"]))
            ours = [name for name in part.variables if str(name).startswith(OURS)]
            parts.append(part.drop_vars(ours).drop_attrs(deep=False))
        try:
            whole = parts[0] if len(parts) == 1 else _concatenate(parts)
        except ValueError as error:
            raise InputError(
                f"the cells' results do not fit together ({error}); where lengths differ, give the "
                "dimension labels"
            ) from None
        order = np.argsort([i for wanted in rows.values() for i in wanted])
        found = [json.loads(text) for text in attrs]
        shared = {k: v for k, v in found[0].items() if all(a.get(k) == v for a in found)}
        return whole.isel({CELL: order}).assign_attrs(shared)

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
        try:
            with self._failures.open("a") as file:
                file.write("\n" * self._torn() + json.dumps(failure._asdict()) + "\n")
        except OSError as error:
            raise InputError(
                f"cannot write {self._failures} ({error.strerror or error})"
            ) from error

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

        path, manifest = self.folder / "lock", self.folder / "manifest.json"
        if manifest.exists() and "study" not in self.manifest():
            raise InputError(
                f"{manifest} is not a study's, or damaged; remove it, or choose another folder"
            )
        self._made = [p for p in (self.folder, self.cells, path, manifest) if not p.exists()]
        writable_folder(self.cells)
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
            except OSError as error:
                raise InputError(
                    f"cannot lock {path} ({error.strerror or error}); choose a folder on another "
                    "file system"
                ) from None
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            self._sweep()
            try:
                yield
            finally:
                if not any(self.cells.iterdir()) and not self._failures.exists():
                    self._clear()

    def _sweep(self) -> None:
        """Remove what a killed driver was about to write."""
        for pattern in ("cells/.*.nc", ".manifest.*.json", ".failures.*.jsonl"):
            for file in self.folder.glob(pattern):
                file.unlink()

    def _clear(self) -> None:
        """Leave nothing where nothing was done."""
        for path in reversed(self._made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _places(file: Path) -> dict[str, Place]:
    import h5py  # ten times quicker than xarray where only labels are wanted

    with h5py.File(file) as shard:
        keys = shard["study_key"].asstr()[()].tolist()
        versions = str(shard.attrs["study_versions"])
    return {key: Place(file, i, versions) for i, key in enumerate(keys)}


def _concatenate(parts: list[xr.Dataset]) -> xr.Dataset:
    import xarray as xr

    return xr.concat(
        parts,
        CELL,
        data_vars="all",
        coords="different",
        compat="equals",
        join="outer",
        combine_attrs="drop_conflicts",
    )


def _shape(cell: Cell) -> str:
    """What cells must share to be stacked: names, dimensions, types, labels, attributes."""
    variables = [
        (
            name,
            name in cell.data.coords,
            variable.dims,
            variable.shape,
            variable.dtype.str,
            variable.attrs,
            variable.values.tolist() if variable.dims == (name,) else None,
        )
        for name, variable in cell.data.variables.items()
    ]
    return repr((cell.versions, variables))


def _stack(cells: list[Cell]) -> xr.Dataset:
    """One Dataset with a leading dimension ``cell``; coordinates that are no index stacked too."""
    import xarray as xr

    first = cells[0].data
    content: dict[Any, Any] = {}
    for name, variable in first.variables.items():
        if variable.dims == (name,):  # labels, which all share
            content[name] = variable
        else:
            values = np.stack([cell.data.variables[name].values for cell in cells])
            content[name] = ((CELL, *variable.dims), values, variable.attrs)
    for name in ("id", "key", "settings", "seconds", "attrs"):
        content[OURS + name] = (CELL, [getattr(cell, name) for cell in cells])
    coords = [str(name) for name, c in first.coords.items() if c.dims != (name,)]
    attrs = {"study_versions": cells[0].versions, "study_coords": json.dumps(coords)}
    return xr.Dataset(content, attrs=attrs)
