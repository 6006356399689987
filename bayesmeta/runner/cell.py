"""One cell of a study: computed by a worker, checked, and sent back as a Result."""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.runner.provenance import versions

if TYPE_CHECKING:
    import xarray as xr

CELL = "cell"
"""The dimension along which cells are stacked."""
OURS = "study_"
"""Prefix of the variables that are stored with a cell beside its result."""


class Result(NamedTuple):
    """What a worker sends back: a Dataset, or how the cell failed."""

    data: xr.Dataset | None
    seconds: float
    versions: dict[str, str]
    error: str = ""
    traceback: str = ""


_alone = threading.RLock()  # a Dask worker may have several threads; cells run one at a time


def compute_cell(
    function: Callable[..., xr.Dataset], settings: str, seed: int, shared: Mapping[str, Any]
) -> Result:
    """Compute a cell; what the function raises is raised."""
    with _alone:
        start = time.perf_counter()
        try:
            data = _checked(function(json.loads(settings), seed, **shared))
        except SystemError as error:
            # what Python makes of Ctrl-C where compiled code returns a result nevertheless
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise
        return Result(data, time.perf_counter() - start, versions())


def run_cell(
    function: Callable[..., xr.Dataset], settings: str, seed: int, shared: Mapping[str, Any]
) -> Result:
    """Compute a cell; what the function raises is returned with its traceback."""
    start = time.perf_counter()
    try:
        return compute_cell(function, settings, seed, shared)
    except (Exception, SystemExit) as error:
        text = traceback.format_exc()[-20_000:]
        return Result(None, time.perf_counter() - start, versions(), one_line(error), text)


def load_libraries() -> None:
    """Load what a result is checked with, which takes seconds, before the time of a cell counts."""
    import xarray as xr

    xr.Dataset({"x": 0.0}).compute()
    versions()


def one_line(error: BaseException) -> str:
    """The type of an error and its message, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def source_of(function: Callable[..., Any]) -> dict[str, str]:
    """The digest of a user's file that defines the function, so that an edit shows."""
    file = getattr(sys.modules.get(function.__module__), "__file__", None)
    if file is None or function.__module__.startswith("bayesmeta."):
        return {}
    return {Path(file).name: blake2b(Path(file).read_bytes(), digest_size=6).hexdigest()}


_APPLIED = {"_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "calendar"}
"""Attributes that readers of NetCDF apply to the values."""


def _checked(data: object) -> xr.Dataset:
    """The Dataset in memory, refused where NetCDF would change it."""
    import xarray as xr

    if not isinstance(data, xr.Dataset):
        kind = "None" if data is None else f"a {type(data).__name__}"
        raise TypeError(f"a cell must return an xarray Dataset, not {kind}")
    for name in {*data.variables, *data.dims, *data.attrs}:
        if str(name) == CELL or str(name).startswith(OURS):
            raise ValueError(f"{name!r} is a name the study itself uses; choose another")
    for name, variable in data.variables.items():
        if variable.dtype.kind == "m":
            raise TypeError(f"{name!r} is a time span, which NetCDF cannot store; use numbers")
        for word, value in variable.attrs.items():
            if word in _APPLIED or (word == "units" and " since " in str(value)):
                raise ValueError(
                    f"attribute {word!r} of {name!r} has a meaning to readers of NetCDF, which "
                    "would change the values; use another name for it"
                )
    attrs = json.loads(json.dumps(data.attrs, default=_listed))
    return data.compute().assign_attrs(attrs)


def _listed(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"attribute {value!r} cannot be stored; use numbers, texts, lists and dicts")
