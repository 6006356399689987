"""Measures as rows of a long table, for JSON and CSV."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayesmeta.calibration.kinds import NEXT, kind_of, kinds_of, side_by_side

if TYPE_CHECKING:
    import xarray as xr

KEYS = (
    "coverage",
    "coverage_error",
    "width",
    "interval_score",
    "bias",
    "bias_error",
    "rmse",
)
"""Measures of a quantity that a row has."""
OF_NEXT = {
    "coverage": "next_coverage",
    "coverage_error": "next_coverage_error",
    "width": "next_width",
}
"""Those of the next task's theta, which has no estimate, and so no bias."""


def rows_of(found: xr.Dataset) -> list[dict[str, Any]]:
    """A row for every estimator, number of tasks, quantity and level; the last quantity is the
    next task. What there is not is None.

    Quantities have the numbers of features, from 0: ``mu[0]``, ``sd[1]``, ``corr[1, 0]``.
    """
    found = side_by_side(found)
    numbered = numbers_of(found)
    rows: list[dict[str, Any]] = []
    for name in found.estimator.values:
        for tasks in found.tasks.values:
            at = found.sel(estimator=name, tasks=tasks)
            for quantity, number in numbered.items():
                own = at if quantity == NEXT else at.sel(quantity=quantity)
                for level in map(float, found.level.values):
                    head = {"estimator": str(name), "tasks": int(tasks)}
                    one = head | {"quantity": number, "level": level}
                    for key in KEYS:
                        measure = OF_NEXT.get(key) if quantity == NEXT else key
                        one[key] = _value(own, measure, level)
                    rows.append(one)
    return rows


def numbers_of(found: xr.Dataset) -> dict[str, str]:
    """Name of every quantity -> the same with numbers of features; the last is the next task.

    >>> import xarray as xr
    >>> numbers_of(xr.Dataset(coords={"quantity": ["mu[a]", "mu[b]", "sd[b]"]}))
    {'mu[a]': 'mu[0]', 'mu[b]': 'mu[1]', 'sd[b]': 'sd[1]', 'next task': 'next task'}
    """
    names = [str(name) for name in found.quantity.values]
    labels = [name.removeprefix("mu[").removesuffix("]") for name in names if kind_of(name) == "mu"]
    known = {}
    for kind in kinds_of(found):  # a label may have brackets and commas, so names are not parsed
        for i, one in enumerate(labels):
            known[f"{kind}[{one}]"] = f"{kind}[{i}]"
            known |= {f"{kind}[{one}, {two}]": f"{kind}[{i}, {j}]" for j, two in enumerate(labels)}
    return {name: known.get(name, name) for name in (*names, NEXT)}


def _value(own: xr.Dataset, measure: str | None, level: float) -> float | None:
    if measure is None:
        return None
    value = own[measure]
    number = float(value.sel(level=level) if "level" in value.dims else value)
    return number if math.isfinite(number) else None
