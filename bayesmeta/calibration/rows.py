"""Measures as rows of a long table, for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

NEXT = "next task"
KEYS = {
    "coverage": "coverage",
    "coverage_error": "coverage_error",
    "width": "width",
    "interval_score": "interval_score",
    "bias": "bias",
    "bias_error": "bias_error",
    "rmse": "rmse",
}
"""Key of a row -> measure of a quantity."""
OF_NEXT = {
    "coverage": "next_coverage",
    "coverage_error": "next_coverage_error",
    "width": "next_width",
}
"""The same of the next task's theta, which has no bias."""


def rows_of(found: xr.Dataset) -> list[dict[str, Any]]:
    """A row for every estimator, number of tasks, quantity and level; the last quantity is the
    next task. What there is not is None."""
    rows: list[dict[str, Any]] = []
    for name in found.estimator.values:
        for tasks in found.tasks.values:
            at = found.sel(estimator=name, tasks=tasks)
            head = {"estimator": str(name), "tasks": int(tasks)}
            for quantity in (*map(str, found.quantity.values), NEXT):
                own = at if quantity == NEXT else at.sel(quantity=quantity)
                keys = OF_NEXT if quantity == NEXT else KEYS
                for level in found.level.values:
                    one = head | {"quantity": quantity, "level": float(level)}
                    for key in KEYS:
                        one[key] = _value(own, keys.get(key), float(level))
                    rows.append(one)
    return rows


def _value(own: xr.Dataset, measure: str | None, level: float) -> float | None:
    if measure is None:
        return None
    value = own[measure]
    number = float(value.sel(level=level) if "level" in value.dims else value)
    return number if math.isfinite(number) else None
