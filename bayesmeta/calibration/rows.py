"""Measures as rows of a long table, for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayesmeta.calibration.scenarios import each_world

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
BALLS = {
    f"{name} (ball)": {
        "coverage": f"{part}_within",
        "coverage_error": f"{part}_within_error",
        "width": f"{part}_radius",
    }
    for name, part in (("mu", "mean"), ("Sigma", "cov"))
}
"""The same of the paper's events E_m and E_s, where intervals are radii."""


def rows_of(found: xr.Dataset) -> list[dict[str, Any]]:
    """A row for every estimator, number of tasks, quantity and level (and ``data`` and ``wrong``,
    where there are several); the last quantities are the next task and, of radii, the balls. What
    there is not is None."""
    rows: list[dict[str, Any]] = []
    for world, one in each_world(found):
        for name in one.estimator.values:
            for tasks in one.tasks.values:
                at = one.sel(estimator=name, tasks=tasks)
                rows += _of({**world, "estimator": str(name), "tasks": int(tasks)}, at)
    return rows


def _of(head: dict[str, Any], at: xr.Dataset) -> list[dict[str, Any]]:
    """All rows of an estimator at one number of tasks."""
    keys = {str(name): KEYS for name in at.quantity.values} | {NEXT: OF_NEXT}
    keys |= BALLS if "mean_within" in at else {}
    rows = []
    for quantity, measures in keys.items():
        own = at.sel(quantity=quantity) if measures is KEYS else at
        for level in map(float, at.level.values):
            values = {key: _value(own, measures.get(key), level) for key in KEYS}
            rows.append(head | {"quantity": quantity, "level": level} | values)
    return rows


def _value(own: xr.Dataset, measure: str | None, level: float) -> float | None:
    if measure is None:
        return None
    value = own[measure]
    number = float(value.sel(level=level) if "level" in value.dims else value)
    return number if math.isfinite(number) else None
