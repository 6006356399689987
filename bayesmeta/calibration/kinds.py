"""Kinds of quantities, whose members are shown and judged together: ``mu[x1]``, ``mu[x2]``, …"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.calibration.scenarios import AXES

if TYPE_CHECKING:
    import xarray as xr

NEXT = "next task"
"""The kind that has one member: the next task's theta, with measures of its own."""


def kind_of(quantity: str) -> str:
    """``mu`` of ``mu[x1]``."""
    return quantity.split("[")[0]


def kinds_of(found: xr.Dataset) -> list[str]:
    """Those of the quantities of a lab, or of its measures, in their order."""
    return list(dict.fromkeys(kind_of(str(name)) for name in found.quantity.values))


def of_kind(found: xr.Dataset, *kinds: str) -> xr.Dataset:
    """The quantities of some kinds."""
    return found.isel(quantity=[kind_of(str(name)) in kinds for name in found.quantity.values])


def side_by_side(found: xr.Dataset) -> xr.Dataset:
    """Several ways of data and wrong models as further estimators, named ``reml, KTS``; a lab, or
    its measures, without such dimensions as it is."""
    more = [name for name in AXES if name in found.dims]
    if not more:
        return found
    names = [f"{one}" for one in found.estimator.values]
    for name in more:
        names = [f"{first}, {one}" for first in names for one in found[name].values]
    flat = found.stack(judge=("estimator", *more), create_index=False)
    flat = flat.drop_vars(["estimator", *more]).rename(judge="estimator")
    return flat.assign_coords(estimator=names)


def relative(values: xr.DataArray) -> xr.DataArray:
    """By estimator, how much larger widths, scores or errors are than the best estimator's.

    The ratio is taken quantity by quantity, so that units do not matter, and its geometric mean
    over quantities; NaN where an estimator lacks one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = values.copy(data=np.log(values.values))
        ratios = (logs - logs.min("estimator")).mean("quantity", skipna=False)
        return ratios.copy(data=np.exp(ratios.values))
