"""Measures as rows of a long table, for JSON and CSV."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayesmeta.calibration.kinds import NEXT, kind_of, kinds_of
from bayesmeta.calibration.scenarios import each_world

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
BALLS = {
    f"{name} (ball)": {
        "coverage": f"{part}_within",
        "coverage_error": f"{part}_within_error",
        "width": f"{part}_radius",
    }
    for name, part in (("mu", "mean"), ("Sigma", "cov"))
}
"""Those of the paper's events E_m and E_s, where intervals are radii."""


def rows_of(found: xr.Dataset) -> list[dict[str, Any]]:
    """A row for every estimator, number of tasks, quantity and level (and ``data`` and ``wrong``,
    where there are several); the last quantities are the next task and, of radii, the balls. What
    there is not is None.

    Quantities have the numbers of features, from 0: ``mu[0]``, ``sd[1]``, ``corr[1, 0]``.
    """
    numbered = numbers_of(found)
    rows: list[dict[str, Any]] = []
    for world, one in each_world(found):
        for name in one.estimator.values:
            for tasks in one.tasks.values:
                at = one.sel(estimator=name, tasks=tasks)
                head = {**world, "estimator": str(name), "tasks": int(tasks)}
                rows += _of(head, at, numbered)
    return rows


def _of(head: dict[str, Any], at: xr.Dataset, numbered: dict[str, str]) -> list[dict[str, Any]]:
    """All rows of an estimator at one number of tasks."""
    same = {key: key for key in KEYS}
    keys = {name: OF_NEXT if name == NEXT else same for name in numbered}
    keys |= BALLS if "mean_within" in at else {}
    rows = []
    for quantity, measures in keys.items():
        own = at.sel(quantity=quantity) if measures is same else at
        for level in map(float, at.level.values):
            values = {key: _value(own, measures.get(key), level) for key in KEYS}
            named = {"quantity": numbered.get(quantity, quantity), "level": level}
            rows.append(head | named | values)
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
