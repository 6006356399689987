"""Cells stacked into one Dataset (a shard), and shards joined again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import InputError
from bayesmeta.runner.cell import CELL, OURS

if TYPE_CHECKING:
    import xarray as xr


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


def alike(cells: list[Cell]) -> list[list[Cell]]:
    """The cells in groups that can be stacked: same versions, names, dimensions, types, labels."""
    if len(cells) == 1:
        return [cells]
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_shape(cell), []).append(cell)
    return list(groups.values())


def _shape(cell: Cell) -> str:
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


def stack(cells: list[Cell]) -> xr.Dataset:
    """One Dataset with a leading dimension ``cell``, with what is known of each cell.

    Labels of dimensions are stored once; other coordinates are stacked as variables are.
    """
    import xarray as xr

    first = cells[0].data
    content: dict[Any, Any] = {}
    for name, variable in first.variables.items():
        if variable.dims == (name,):
            content[name] = variable
        else:
            values = np.stack([cell.data.variables[name].values for cell in cells])
            content[name] = ((CELL, *variable.dims), values, variable.attrs)
    for name in ("id", "key", "settings", "seconds", "attrs"):
        content[OURS + name] = (CELL, [getattr(cell, name) for cell in cells])
    coords = [str(name) for name, c in first.coords.items() if c.dims != (name,)]
    attrs = {"study_versions": cells[0].versions, "study_coords": json.dumps(coords)}
    return xr.Dataset(content, attrs=attrs)


def join(shards: list[tuple[xr.Dataset, list[int]]]) -> xr.Dataset:
    """Shards along ``cell``; the list with each gives the positions of its cells in the result.

    An attribute is kept where all cells have it with the same value.
    """
    parts, texts = [], set()
    for shard, _ in shards:
        texts |= set(shard["study_attrs"].values.tolist())
        part = shard.set_coords(json.loads(shard.attrs["study_coords"]))
        ours = [name for name in part.variables if str(name).startswith(OURS)]
        parts.append(part.drop_vars(ours).drop_attrs(deep=False))
    try:
        whole = parts[0] if len(parts) == 1 else _concatenate(parts)
    except ValueError as error:
        raise InputError(
            f"the cells' results do not fit together ({error}); where lengths differ, give the "
            "dimension labels"
        ) from None
    places = [i for _, positions in shards for i in positions]
    if places != sorted(places):
        whole = whole.isel({CELL: np.argsort(places)})
    attrs = [json.loads(text) for text in texts]
    shared = {k: v for k, v in attrs[0].items() if all(a.get(k) == v for a in attrs)}
    return whole.assign_attrs(shared)


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
