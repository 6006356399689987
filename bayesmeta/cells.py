"""What a study is: cells, and the function that computes one."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import InputError, whole
from bayesmeta.provenance import versions
from bayesmeta.streams import cell_seed

if TYPE_CHECKING:
    import xarray as xr

Settings = Mapping[str, Any]
"""What distinguishes a cell: names and plain values, all that JSON can hold."""


@dataclass(frozen=True)
class Study:
    """Cells, and the function that computes one: (settings, seed) -> xarray Dataset.

    ``cells`` maps readable ids to settings. A cell's seed is made of the study's ``seed`` and the
    cell's id alone, so adding or reordering cells changes no other's result. The function stands at
    the top of a module that workers can import, draws all its randomness from its seed, and gets
    its settings as JSON gives them back (tuples as lists).

    ``dims`` are the settings that become dimensions when the study is collected (without any, the
    one dimension is ``cell``), ``keep`` turns the collected Dataset into what is worth keeping, and
    ``record`` is the file in ``analyses/`` where that is recorded.
    """

    name: str
    cells: Mapping[str, Settings]
    function: Callable[[dict[str, Any], int], xr.Dataset]
    seed: int = 0
    dims: tuple[str, ...] = ()
    note: str = ""
    keep: Callable[[xr.Dataset], xr.Dataset] | None = None
    record: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"name must be a word, got {self.name!r}")
        if not isinstance(self.cells, Mapping):
            raise InputError(f"cells must map ids to settings, got {self.cells!r}; see grid(…)")
        if not callable(self.function):
            raise InputError(f"function must be a function, got {self.function!r}")
        whole("seed", self.seed)
        object.__setattr__(self, "dims", tuple(self.dims))

    @property
    def function_name(self) -> str:
        """Where the function is found."""
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"{getattr(self.function, '__module__', '?')}.{name}"


def grid(common: Settings | None = None, /, **axes: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Cells for all combinations: ``grid({"d": 5}, agent=["th-mts"], n=[10, 1000], run=range(3))``.

    Ids read ``th-mts/n=10/run=0``; every cell has the ``common`` settings, too.
    """
    values = {name: [_python(value) for value in axis] for name, axis in axes.items()}
    for name, axis in values.items():
        if not axis:
            raise InputError(f"{name} has no values; give at least one")
        if len(set(map(repr, axis))) < len(axis):
            raise InputError(f"{name} has a value twice: {axis}")
    cells = {}
    for point in product(*values.values()):
        own = dict(zip(values, point, strict=True))
        parts = [v if isinstance(v, str) else f"{name}={v}" for name, v in own.items()]
        cells["/".join(parts)] = dict(common or {}) | own
    return cells


class CellTask(NamedTuple):
    """A cell as it is sent out."""

    id: str
    key: str
    settings: str
    seed: int


def tasks_of(study: Study) -> Iterator[CellTask]:
    """Every cell, checked. The key is what a result depends on: function, id, settings, seed."""
    for name, settings in study.cells.items():
        if not isinstance(name, str) or not name or len(name) > 200 or not name.isprintable():
            raise InputError(f"cell ids are short printable texts, got {name!r}")
        if not isinstance(settings, Mapping):
            raise InputError(f"settings of cell {name} must be a dict, got {settings!r}")
        try:
            text = json.dumps(dict(settings), sort_keys=True, allow_nan=False, default=plain)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"settings of cell {name} cannot be written as JSON ({error}); use numbers, "
                "texts, lists and dicts of them"
            ) from None
        seed = cell_seed(study.seed, name)
        content = f"{study.function_name}\0{name}\0{text}\0{seed}"
        yield CellTask(name, blake2b(content.encode(), digest_size=12).hexdigest(), text, seed)


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def plain(value: Any) -> Any:
    """For JSON: a number of NumPy's as one of Python's; nothing else is plain data."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not plain data")


class Result(NamedTuple):
    """What a worker sends back: a Dataset, or how the cell failed."""

    data: xr.Dataset | None
    seconds: float
    versions: dict[str, str]
    error: str = ""
    traceback: str = ""


_alone = threading.RLock()  # a Dask worker may have threads; cells need not know of each other


def run_cell(
    function: Callable[[dict[str, Any], int], xr.Dataset], settings: str, seed: int
) -> Result:
    """Compute a cell, wherever this is; whatever the function raises is a result, too."""
    import xarray as xr

    with _alone:
        start = time.perf_counter()
        try:
            data = function(json.loads(settings), seed)
            if not isinstance(data, xr.Dataset):
                raise TypeError(f"a cell must return an xarray Dataset, not {_kind(data)}")
            data = data.compute()
        except (Exception, SystemExit) as error:
            line = f"{type(error).__name__}: {error}".strip().splitlines()[0]
            text = traceback.format_exc()
            return Result(None, time.perf_counter() - start, versions(), line[:500], text[-20_000:])
        return Result(data, time.perf_counter() - start, versions())


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
