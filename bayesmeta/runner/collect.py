"""From the cells of a study to one Dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import InputError
from bayesmeta.runner.cell import CELL
from bayesmeta.runner.folder import Folder
from bayesmeta.runner.report import Report
from bayesmeta.runner.study import Study, check_dims, tasks_of

if TYPE_CHECKING:
    import xarray as xr


def collect(study: Study, source: Path | str | Report, *, partial: bool = False) -> xr.Dataset:
    """All cells of a study in one Dataset whose leading dimensions are the study's.

    Parameters
    ----------
    study : Study
        The study.
    source : path or Report
        The folder of its cells, or what ``run_study`` returned.
    partial : bool
        Whether cells may be missing; they are NaN (left out where the study has no dimensions).

    Returns
    -------
    xarray.Dataset
        Cells may differ in their labels and variables: what one lacks is NaN. The attribute
        ``versions`` names the versions that made the cells.

    Examples
    --------
    >>> from xarray import Dataset
    >>> study = bm.Study("halves", bm.grid(n=[1, 2]), lambda s, seed: Dataset({"half": s["n"] / 2}))
    >>> bm.collect(study, bm.run_study(study, jobs=1)).half.values
    array([0.5, 1. ])
    """
    check_dims(study)
    store = source.store if isinstance(source, Report) else Folder(source)
    found, damaged = store.find()
    tasks = list(tasks_of(study))
    here = [task for task in tasks if task.key in found]
    if not here or (len(here) < len(tasks) and not partial):
        raise InputError(
            f"{len(tasks) - len(here)} of {len(tasks)} cells of {study.name} are not in "
            f"{store.folder or 'memory'}"
            + "".join(f" ({file.name} is damaged)" for file in damaged)
            + "; run the study first"
            + (", or collect what is there with partial (--partial)" if here else "")
        )
    data = _shared_coords(store.read([task.key for task in here]))
    made_by = sorted({found[task.key] for task in here})
    text = made_by[0] if len(made_by) == 1 else "[" + ", ".join(made_by) + "]"
    data.attrs["versions"] = text
    if not study.dims:
        return data.assign_coords({CELL: [task.id for task in here]})
    settings = [json.loads(task.settings) for task in tasks]
    return _arrange(study, data, settings, [task.key in found for task in tasks])


def collect_kept(study: Study, source: Path | str | Report, *, partial: bool = False) -> xr.Dataset:
    """What the study keeps of its collected Dataset; see ``collect``."""
    data = collect(study, source, partial=partial)
    if study.keep is None:
        return data
    kept = study.keep(data)
    return kept.assign_attrs({"versions": data.attrs["versions"], **kept.attrs})


def _shared_coords(data: xr.Dataset) -> xr.Dataset:
    """Coordinates that are the same in all cells, without the dimension of cells."""
    shared = {}
    for name in data.coords:
        values = data.variables[name]
        if CELL in values.dims and name != CELL:
            first = values.isel({CELL: 0})
            if bool(((values == first) | (values.isnull() & first.isnull())).all()):
                shared[name] = first
    return data.drop_vars(list(shared)).assign_coords(shared) if shared else data


def _arrange(
    study: Study, data: xr.Dataset, settings: list[dict[str, Any]], here: list[bool]
) -> xr.Dataset:
    """From cells in a row to the study's dimensions, by the places of their labels."""
    clash = [dim for dim in study.dims if dim in data.dims or dim in data.variables]
    if clash:
        raise InputError(
            f"dimension {clash[0]!r} of study {study.name} is also a name in the cells' results"
        )
    rest = [dim for dim in data.dims if dim != CELL]
    labels = {dim: list(dict.fromkeys(one[dim] for one in settings)) for dim in study.dims}
    if len(labels) == 1 and all(here):
        (dim,) = labels
        return data.rename({CELL: dim}).assign_coords(labels).transpose(dim, *rest)
    places = {}
    for dim, values in labels.items():
        position = {value: i for i, value in enumerate(values)}
        places[dim] = np.array([position[one[dim]] for one in settings])[here]
    if len(places) == 1:
        ((dim, row),) = places.items()
        data = data.rename({CELL: dim}).assign_coords({dim: row})
    else:
        data = data.assign_coords({dim: (CELL, row) for dim, row in places.items()})
        data = data.set_index(cell=list(places)).unstack(CELL)
    data = data.reindex({dim: np.arange(len(values)) for dim, values in labels.items()})
    return data.assign_coords(labels).transpose(*study.dims, *rest)
