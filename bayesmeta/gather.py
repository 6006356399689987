"""From the cells of a study to one Dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.cells import Study, tasks_of
from bayesmeta.checks import InputError
from bayesmeta.store import CELL, Store

if TYPE_CHECKING:
    import xarray as xr


def collect(study: Study, folder: Path | str, *, partial: bool = False) -> xr.Dataset:
    """All cells in one Dataset whose leading dimensions are the study's.

    Cells may differ in their labels and variables: what one lacks is NaN. Cells that are not done
    are an error, unless ``partial`` is set; then they are NaN, too.
    """
    store = Store(folder)
    found, _ = store.find()
    tasks = list(tasks_of(study))
    here = [task for task in tasks if task.key in found]
    if not here or (len(here) < len(tasks) and not partial):
        raise InputError(
            f"{len(tasks) - len(here)} of {len(tasks)} cells of {study.name} are not in {folder}; "
            "run the study first" + (", or collect what is there (partial)" if here else "")
        )
    data = store.read([found[task.key] for task in here])
    data = _unstacked_coords(data)
    if not study.dims:
        return data.assign_coords({CELL: [task.id for task in here]})
    return _arrange(study, data, [json.loads(task.settings) for task in here])


def collect_kept(study: Study, folder: Path | str) -> xr.Dataset:
    """What the study keeps of its collected Dataset."""
    data = collect(study, folder)
    return study.keep(data) if study.keep is not None else data


def _unstacked_coords(data: xr.Dataset) -> xr.Dataset:
    """Coordinates that are the same in all cells need not say so for each."""
    for name in data.coords:
        values = data[name]
        if CELL in values.dims and name != CELL and bool((values == values[{CELL: 0}]).all()):
            data = data.drop_vars([name]).assign_coords({name: values[{CELL: 0}]})
    return data


def _arrange(study: Study, data: xr.Dataset, settings: list[dict[str, Any]]) -> xr.Dataset:
    """From cells in a row to the study's dimensions."""
    clash = [dim for dim in study.dims if dim in data.dims or dim in data.variables]
    missing = [dim for dim in study.dims if any(dim not in one for one in settings)]
    if clash or missing:
        what = "is also a name in the cells' results" if clash else "is not a setting of every cell"
        raise InputError(f"dimension {(clash or missing)[0]!r} of study {study.name} {what}")
    columns = {dim: [one[dim] for one in settings] for dim in study.dims}
    points = list(zip(*columns.values(), strict=True))
    if len(set(points)) < len(points):
        raise InputError(
            f"two cells of study {study.name} have the same {', '.join(study.dims)}; name the "
            "dimensions that tell them apart"
        )
    order = {dim: list(dict.fromkeys(values)) for dim, values in columns.items()}
    rest = [dim for dim in data.dims if dim != CELL]
    if len(columns) == 1:
        ((dim, values),) = columns.items()
        return data.rename({CELL: dim}).assign_coords({dim: values}).transpose(dim, *rest)
    data = data.assign_coords({dim: (CELL, values) for dim, values in columns.items()})
    data = data.set_index(cell=list(columns)).unstack(CELL)
    return data.reindex(order).transpose(*study.dims, *rest)
