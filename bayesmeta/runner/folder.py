"""A store in a folder: finished cells in NetCDF files, failures, a manifest, a lock.

    cells/NAME.DIGEST.nc    one finished cell, or a shard of small ones stacked along ``cell``
    failures.jsonl          cells that raised, with their tracebacks, the latest last
    manifest.json           what was run, when, by which versions
    lock                    held by the one driver that may write

A cell is finished when a file in ``cells`` holds it. The name of a file has the digest of its
content, so that damage is noticed; a file is written under another name first and then renamed, so
that none is ever half written.
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

from bayesmeta.checks import InputError
from bayesmeta.runner.cell import CELL, one_line
from bayesmeta.runner.files import (
    open_itself,
    reason,
    refuse_link,
    writable_folder,
    write_atomically,
)
from bayesmeta.runner.shards import Cell, alike, join, stack
from bayesmeta.runner.store import Failure

if TYPE_CHECKING:
    import xarray as xr

SHARD_BYTES, SHARD_SECONDS = 4 << 20, 1.0
"""Cells are written together once they have this size, or the first of them this age."""


class Place(NamedTuple):
    """Where a finished cell is stored, and the versions that made it."""

    file: Path
    row: int
    versions: str


class Folder:
    """A study's folder, to write in or to read; see ``store.Store``."""

    def __init__(self, folder: Path | str) -> None:
        self.folder: Path = Path(folder)
        self.cells = self.folder / "cells"
        self._waiting: list[Cell] = []
        self._bytes, self._since = 0, 0.0
        self._made: list[Path] = []
        self._lost = ""
        self._places: dict[str, Place] = {}

    # ---- finished cells

    def find(self) -> tuple[dict[str, str], list[Path]]:
        self._places, damaged = {}, []
        for file in sorted(self.cells.glob("[!.]*.nc")):
            try:
                content = file.read_bytes()
            except OSError as error:
                raise InputError(f"cannot read {file} ({reason(error)})") from None
            if file.suffixes[-2:-1] == [f".{_digest(content)}"]:
                self._places |= _places(file)
            else:
                damaged.append(file)
        if self._read_failures()[1]:
            damaged.append(self._failures)
        return {key: place.versions for key, place in self._places.items()}, damaged

    def add(self, cell: Cell) -> None:
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(cell)
        self._bytes += cell.data.nbytes

    def is_due(self) -> bool:
        old = time.monotonic() - self._since >= SHARD_SECONDS
        return bool(self._waiting) and (old or self._bytes >= SHARD_BYTES)

    def flush(self) -> tuple[list[str], list[Failure]]:
        if not self._waiting:
            return [], []
        gone = not self.cells.exists()
        if gone:
            writable_folder(self.cells)  # so that what is in memory is kept
        written, refused = self._flush()
        if gone:
            self._lost = (
                f"; the {len(written)} cells that were not written yet are in a new folder of that "
                "name"
            )
            self._check_there()
        return written, refused

    def _check_there(self) -> None:
        """Say so where somebody has deleted the folder."""
        if self._lost or not self.folder.exists():
            raise InputError(
                f"{self.folder} was deleted or renamed while the study ran{self._lost}; run the "
                "same command again"
            )

    def _flush(self) -> tuple[list[str], list[Failure]]:
        groups = alike(self._waiting)
        refused = [failure for cells in groups for failure in self._write(cells)]
        failed = {failure.key for failure in refused}
        written = [cell.key for cell in self._waiting if cell.key not in failed]
        self._waiting, self._bytes = [], 0
        return written, refused

    def _write(self, cells: list[Cell]) -> list[Failure]:
        try:
            content = bytes(stack(cells).to_netcdf(engine="h5netcdf"))
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

    def read(self, keys: list[str]) -> xr.Dataset:
        """Cells that the latest ``find`` has found."""
        import xarray as xr

        places = self._places
        positions: dict[Path, list[int]] = {}
        for i, key in enumerate(keys):
            positions.setdefault(places[key].file, []).append(i)
        shards = []
        for file, wanted in positions.items():
            with xr.open_dataset(file, engine="h5netcdf", decode_timedelta=False) as shard:
                rows = [places[keys[i]].row for i in wanted]
                shards.append((shard.load().isel({CELL: rows}), wanted))
        return join(shards)

    # ---- failures

    @property
    def _failures(self) -> Path:
        return self.folder / "failures.jsonl"

    def failures(self) -> dict[str, Failure]:
        """The latest failure of every cell that failed, by key; half-written lines are skipped."""
        return self._read_failures()[0]

    def _read_failures(self) -> tuple[dict[str, Failure], bool]:
        """The same, and whether the file is damaged other than by a line cut short."""
        found: dict[str, Failure] = {}
        damaged = False
        try:
            lines = self._failures.read_bytes().split(b"\n")
        except FileNotFoundError:
            return found, False
        except IsADirectoryError:
            return found, True
        except OSError as error:
            raise InputError(f"cannot read {self._failures} ({reason(error)})") from None
        for line in filter(None, lines):
            try:
                failure = Failure(**json.loads(line))
                found[failure.key] = failure
            except (ValueError, TypeError, RecursionError):
                torn = b'{"id": "'.startswith(line[:8]) and not line.endswith(b"}")
                damaged |= not (torn and line.isascii())
        return found, damaged

    def fail(self, failure: Failure) -> None:
        self._check_there()
        try:
            handle = open_itself(self._failures, os.O_RDWR | os.O_APPEND)
            with os.fdopen(handle, "r+b", buffering=0) as file:
                text = json.dumps(failure._asdict()) + "\n"
                file.write(b"\n" * _torn(file) + text.encode())
        except OSError as error:
            raise InputError(f"cannot write {self._failures} ({reason(error)})") from error

    def forget_failures(self, keys: set[str]) -> None:
        found, damaged = self._read_failures()
        kept = [failure for key, failure in found.items() if key not in keys]
        if damaged:
            return  # the next driver reports it
        if kept:
            text = "".join(json.dumps(failure._asdict()) + "\n" for failure in kept)
            write_atomically(self._failures, lambda to: to.write_text(text))
        else:
            self._failures.unlink(missing_ok=True)

    # ---- manifest and lock

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    def manifest(self) -> dict[str, Any]:
        try:
            found = json.loads(self._manifest.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        ours = isinstance(found, dict) and "study" in found
        return found if ours and isinstance(found.get("sessions"), list) else {}

    def manifest_fault(self) -> str:
        """What is wrong with the manifest; nothing where there is none yet."""
        wrong = self._manifest.exists() and not self.manifest()
        return f"{self._manifest} is not a study's, or damaged" if wrong else ""

    def write_manifest(self, content: dict[str, Any]) -> None:
        self._check_there()  # the counts would be of cells that are not
        text = json.dumps(content, indent=2) + "\n"
        write_atomically(self._manifest, lambda to: to.write_text(text))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Refuse a second driver; the lock of one that was killed is released by the system."""
        path = self.folder / "lock"
        for own in (path, self.cells, self._failures, self._manifest):
            refuse_link(own)
        fault = self.manifest_fault()
        if fault:
            raise InputError(f"{fault}; remove it, or choose another folder")
        self._made = [p for p in (self.folder, self.cells, path, self._manifest) if not p.exists()]
        writable_folder(self.cells)
        try:
            handle = open_itself(path, os.O_RDWR)
        except OSError as error:
            raise InputError(
                f"cannot lock {path} ({reason(error)}); remove it, or choose another folder"
            ) from None
        try:
            _lock(handle, path)
            with suppress(OSError):  # it only says who holds the lock
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
            self._sweep()
            try:
                yield
            finally:
                if not self._holds_results():
                    self._clear()
        finally:
            os.close(handle)

    def _holds_results(self) -> bool:
        try:
            return any(self.cells.iterdir()) or self._failures.exists()
        except OSError:  # deleted meanwhile
            return False

    def _sweep(self) -> None:
        """Remove the temporary files of a killed driver."""
        for pattern in ("cells/.*.nc", ".manifest.*.json", ".failures.*.jsonl"):
            for file in self.folder.glob(pattern):
                with suppress(OSError):
                    file.unlink()

    def _clear(self) -> None:
        """Remove the folders and files that this driver made, where it finished no cell."""
        for path in reversed(self._made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()


def _lock(handle: int, path: Path) -> None:
    """Lock an open file, and see that it still is the one at its path."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(handle), path.stat()):
            raise BlockingIOError  # another driver has just removed this lock
    except (BlockingIOError, FileNotFoundError):
        holder = " ".join(os.pread(handle, 200, 0).decode(errors="replace").split())
        raise InputError(
            f"{path.parent} is in use by {holder or 'another process'}; wait for it, or choose "
            "another folder"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot lock {path} ({reason(error)}); choose a folder on another file system"
        ) from None


def _torn(file: Any) -> bool:
    """Whether the last line of a file was cut short."""
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) != b"\n")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _places(file: Path) -> dict[str, Place]:
    import h5py  # ten times quicker than xarray where only labels are needed

    with h5py.File(file) as shard:
        keys = shard["study_key"].asstr()[()].tolist()
        versions = str(shard.attrs["study_versions"])
    return {key: Place(file, i, versions) for i, key in enumerate(keys)}
