"""Where finished cells are kept: what a run asks of a store, and a store in memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bayesmeta.runner.shards import Cell, alike, join, stack

if TYPE_CHECKING:
    import xarray as xr


class Failure(NamedTuple):
    """A cell that raised."""

    id: str
    key: str
    error: str
    traceback: str


class Store(Protocol):
    """Keeps finished cells and failures by the cells' keys."""

    @property
    def folder(self) -> Path | None:
        """The folder of the store; None in memory."""

    def lock(self) -> AbstractContextManager[None]:
        """Allow one writer at a time."""
        ...

    def find(self) -> tuple[dict[str, str], list[Path]]:
        """The finished cells, key -> versions that made it, and the files that are damaged."""
        ...

    def add(self, cell: Cell) -> None:
        """Take a finished cell, to be written with the next ``flush``."""
        ...

    def is_due(self) -> bool:
        """Whether it is time to write."""
        ...

    def flush(self) -> tuple[list[str], list[Failure]]:
        """Write; returns the keys that are safe now, and the cells that cannot be written."""
        ...

    def read(self, keys: list[str]) -> xr.Dataset:
        """Cells that ``find`` has found, stacked along ``cell`` in the order of the keys."""
        ...

    def failures(self) -> dict[str, Failure]:
        """The latest failure of every cell that failed, by key."""
        ...

    def fail(self, failure: Failure) -> None:
        """Note a cell that raised."""
        ...

    def forget_failures(self, keys: set[str]) -> None:
        """Drop the failures of cells that are finished by now."""
        ...

    def manifest(self) -> dict[str, Any]:
        """What is written about the study; empty where nothing is."""
        ...

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Write what was run, when, by which versions."""
        ...


class Memory:
    """A store that lasts as long as the process."""

    folder: Path | None = None

    def __init__(self) -> None:
        self._cells: dict[str, Cell] = {}
        self._failures: dict[str, Failure] = {}

    def lock(self) -> AbstractContextManager[None]:
        return nullcontext()

    def find(self) -> tuple[dict[str, str], list[Path]]:
        return {key: cell.versions for key, cell in self._cells.items()}, []

    def add(self, cell: Cell) -> None:
        self._cells[cell.key] = cell

    def is_due(self) -> bool:
        return False

    def flush(self) -> tuple[list[str], list[Failure]]:
        return list(self._cells), []

    def read(self, keys: list[str]) -> xr.Dataset:
        place = {key: i for i, key in enumerate(keys)}
        groups = alike([self._cells[key] for key in keys])
        return join([(stack(cells), [place[cell.key] for cell in cells]) for cells in groups])

    def failures(self) -> dict[str, Failure]:
        return dict(self._failures)

    def fail(self, failure: Failure) -> None:
        self._failures[failure.key] = failure

    def forget_failures(self, keys: set[str]) -> None:
        for key in keys:
            self._failures.pop(key, None)

    def manifest(self) -> dict[str, Any]:
        return {}

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Nothing is written."""
