"""What a study is: cells, and the function that computes one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import InputError, renamed, whole
from bayesmeta.runner.cell import CELL
from bayesmeta.runner.plain import describe, plain
from bayesmeta.streams import cell_seed

if TYPE_CHECKING:
    import xarray as xr

Settings = Mapping[str, Any]
"""What distinguishes a cell: names and plain values, all that JSON can hold."""


@dataclass(frozen=True, repr=False)
class Study:
    """Cells, and the function that computes one: (settings, seed) -> xarray Dataset.

    Parameters
    ----------
    name : str
        Names the study in reports and commands.
    cells : mapping of str to dict
        Ids and settings; ``grid`` makes them. A cell's seed is made of ``random_seed`` and the
        cell's id alone, so that adding or reordering cells changes no other cell's result.
    function : callable
        Called as ``function(settings, seed, **shared)``. It stands at the top of a module that
        workers can import, draws all its randomness from its seed, and gets its settings as JSON
        returns them (tuples as lists).
    random_seed : int
        Seed of the study (also accepted as ``seed``).
    dims : tuple of str
        Settings that become dimensions when the study is collected; without any, the one dimension
        is ``cell``.
    note : str
        What the study is for, in a line.
    keep : callable, optional
        Turns the collected Dataset into what is recorded.
    record : str
        Where that is written below the folder of records, as in ``"figure1/figure1.nc"``.
    shared : mapping of str to object
        Further arguments of the function, the same for all cells; objects that JSON cannot hold.
        A cell counts as done only if it was computed with the same ones (see ``plain.describe``).

    Examples
    --------
    >>> import xarray as xr
    >>> def square(settings, seed):
    ...     return xr.Dataset({"square": settings["n"] ** 2})
    >>> bm.Study("squares", bm.grid(n=[1, 2, 3]), square, dims=("n",))
    Study('squares', 3 cells, dims=('n',), function=bayesmeta.runner.study.square)
    """

    name: str
    cells: Mapping[str, Settings]
    function: Callable[..., xr.Dataset]
    random_seed: int = 0
    dims: tuple[str, ...] = ()
    note: str = ""
    keep: Callable[[xr.Dataset], xr.Dataset] | None = None
    record: str = ""
    shared: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"name must be a word, got {self.name!r}")
        if not isinstance(self.cells, Mapping):
            raise InputError(f"cells must map ids to settings, got {self.cells!r}; see grid(…)")
        if not hasattr(self.function, "__qualname__"):
            raise InputError(
                f"function must be a plain function, got {self.function!r}: results are stored "
                "under its name; what a partial or an object fixes can be a setting"
            )
        object.__setattr__(self, "random_seed", whole("random_seed", self.random_seed))
        dims: object = self.dims
        if isinstance(dims, str):
            raise InputError(f"dims must be a tuple of names, got {self.dims!r}")
        object.__setattr__(self, "dims", tuple(self.dims))

    @property
    def function_name(self) -> str:
        """The function's module and name; a script's module is the name of its file."""
        module = self.function.__module__
        if module == "__main__":
            module = Path(getattr(sys.modules[module], "__file__", module)).stem
        return f"{module}.{self.function.__qualname__}"

    def __repr__(self) -> str:
        return (
            f"Study({self.name!r}, {len(self.cells)} cells, dims={self.dims}, "
            f"function={self.function_name})"
        )

    def _repr_html_(self) -> str:
        rows = {
            "cells": str(len(self.cells)),
            "dims": ", ".join(self.dims) or CELL,
            "function": self.function_name,
            "note": self.note,
        }
        cells = "".join(f"<tr><th>{k}</th><td>{escape(v)}</td></tr>" for k, v in rows.items() if v)
        return f"<table><caption>Study {escape(self.name)}</caption>{cells}</table>"


Study.__init__ = renamed(seed="random_seed")(Study.__init__)  # type: ignore[method-assign]


def grid(common: Settings | None = None, /, **axes: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Cells for all combinations of the values of some settings.

    Parameters
    ----------
    common : dict, optional
        Settings that every cell has, too.
    **axes : iterables
        Names of settings and their values.

    Returns
    -------
    dict of str to dict
        Ids (texts bare, numbers with their names) and settings.

    Examples
    --------
    >>> cells = bm.grid({"d": 5}, agent=["All-MTS"], n=[10, 1000])
    >>> list(cells)
    ['All-MTS/n=10', 'All-MTS/n=1000']
    >>> cells["All-MTS/n=10"]
    {'d': 5, 'agent': 'All-MTS', 'n': 10}
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
    """Every cell, checked. The key digests what a result depends on: function, id, settings, seed,
    shared arguments."""
    shared = ""
    if study.shared:
        shared = "\0" + json.dumps(describe(dict(study.shared)), sort_keys=True)
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
        seed = cell_seed(study.random_seed, name)
        content = f"{study.function_name}\0{name}\0{text}\0{seed}{shared}"
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
