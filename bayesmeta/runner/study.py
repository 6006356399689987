"""What a study is: cells, and the function that computes one."""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import InputError, whole
from bayesmeta.runner.plain import plain
from bayesmeta.runner.provenance import versions
from bayesmeta.streams import cell_seed

if TYPE_CHECKING:
    import xarray as xr

CELL = "cell"
"""The dimension of cells in a row."""
OURS = "study_"
"""Begins the names of what is kept with a cell."""
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
        if not hasattr(self.function, "__qualname__"):
            raise InputError(
                f"function must be a plain function, got {self.function!r}: results are kept under "
                "its name; what a partial or an object fixes can be a setting"
            )
        object.__setattr__(self, "seed", whole("seed", self.seed))
        dims: object = self.dims
        if isinstance(dims, str):
            raise InputError(f"dims must be a tuple of names, got {self.dims!r}")
        object.__setattr__(self, "dims", tuple(self.dims))

    @property
    def function_name(self) -> str:
        """Where the function is found; that of a script is found by the script's name."""
        module = self.function.__module__
        if module == "__main__":
            module = Path(getattr(sys.modules[module], "__file__", module)).stem
        return f"{module}.{self.function.__qualname__}"


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
        if isinstance(axes[name], str):
            raise InputError(f"{name} must be a list of values, got the text {axes[name]!r}")
    cells = {}
    for point in product(*values.values()):
        own = dict(zip(values, point, strict=True))
        parts = [v if isinstance(v, str) else f"{name}={v}" for name, v in own.items()]
        if "/".join(parts) in cells:
            raise InputError(f"two cells would be called {'/'.join(parts)}; use values without '/'")
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


def check_dims(study: Study) -> None:
    """Refuse dimensions that collecting could not make, before anything is computed."""
    kinds: dict[str, set[type]] = {dim: set() for dim in study.dims}
    if len(kinds) < len(study.dims) or CELL in kinds:
        raise InputError(f"dims must be different names, and not {CELL!r}, got {study.dims}")
    points = set()
    for name, settings in study.cells.items():
        for dim in study.dims:
            value = _python(settings.get(dim))
            if not isinstance(value, (str, int, float)):
                raise InputError(
                    f"dimension {dim!r} of study {study.name} must be a number or a text in the "
                    f"settings of every cell; cell {name} has {value!r}"
                )
            kinds[dim].add(str if isinstance(value, str) else float)
        points.add(tuple(_python(settings[dim]) for dim in study.dims))
    for dim, found in kinds.items():
        if len(found) > 1:
            raise InputError(f"dimension {dim!r} of study {study.name} has both numbers and texts")
    if study.dims and len(points) < len(study.cells):
        raise InputError(
            f"two cells of study {study.name} have the same {', '.join(study.dims)}; name the "
            "dimensions that tell them apart"
        )


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
    with _alone:
        start = time.perf_counter()
        try:
            data = _checked(function(json.loads(settings), seed))
        except (Exception, SystemExit) as error:
            text = traceback.format_exc()[-20_000:]
            return Result(None, time.perf_counter() - start, versions(), one_line(error), text)
        return Result(data, time.perf_counter() - start, versions())


def one_line(error: BaseException) -> str:
    """The kind of an error and what it says, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def source_of(function: Callable[..., Any]) -> dict[str, str]:
    """The digest of the file of a function that is not ours, so that an edit shows."""
    file = getattr(sys.modules.get(function.__module__), "__file__", None)
    if file is None or function.__module__.startswith("bayesmeta."):
        return {}
    return {Path(file).name: blake2b(Path(file).read_bytes(), digest_size=6).hexdigest()}


_APPLIED = {"_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "calendar"}
"""Attributes that readers of NetCDF apply to the values."""


def _checked(data: object) -> xr.Dataset:
    """The Dataset in memory, if it comes back from NetCDF as it is."""
    import xarray as xr

    if not isinstance(data, xr.Dataset):
        kind = "None" if data is None else f"a {type(data).__name__}"
        raise TypeError(f"a cell must return an xarray Dataset, not {kind}")
    for name in {*data.variables, *data.dims, *data.attrs}:
        if str(name) == CELL or str(name).startswith(OURS):
            raise ValueError(f"{name!r} is a name of the study's own; choose another")
    for name, variable in data.variables.items():
        if variable.dtype.kind == "m":
            raise TypeError(f"{name!r} is a time span, which NetCDF does not know; use numbers")
        for word, value in variable.attrs.items():
            if word in _APPLIED or (word == "units" and " since " in str(value)):
                raise ValueError(
                    f"attribute {word!r} of {name!r} means something to readers of NetCDF, which "
                    "would change the values; call it something else"
                )
    attrs = json.loads(json.dumps(data.attrs, default=_listed))
    return data.compute().assign_attrs(attrs)


def _listed(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"attribute {value!r} cannot be kept; use numbers, texts, lists and dicts")
