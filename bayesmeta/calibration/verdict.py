"""Which estimators are calibrated, and which of those is sharpest, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesmeta.calibration.scenarios import each_world, one_world
from bayesmeta.calibration.shares import exact_interval
from bayesmeta.checks import Array

if TYPE_CHECKING:
    import xarray as xr

SLACK = 0.02
"""How far from its level a coverage may be and still count as calibrated."""
SURE = 0.95
"""Probability of the simultaneous intervals of coverages."""
LACKING = 0.05
"""Share of replications without an interval from which on an estimator is not called calibrated."""
NEXT = "next task"
KINDS = ("mu", "sd", NEXT)


class Verdict(NamedTuple):
    """Of one kind of quantities: which estimators are calibrated, the narrowest of them first."""

    kind: str
    calibrated: list[str]


def verdicts(found: xr.Dataset, tasks: int, level: float) -> list[Verdict]:
    """Of means, standard deviations and the next task, at one number of tasks and one level.

    An estimator is calibrated where nothing shows that a coverage is off by more than ``SLACK``:
    exact binomial intervals, simultaneous over the kind's quantities (of the next task plus and
    minus standard errors), reach that far, and where few intervals are lacking.
    """
    at = one_world(found).sel(tasks=tasks, level=level)
    return [Verdict(kind, _calibrated(at, kind, level)) for kind in KINDS]


def _calibrated(at: xr.Dataset, kind: str, level: float) -> list[str]:
    widths: dict[str, float] = {}
    chosen = [str(q) for q in at.quantity.values if str(q).startswith(f"{kind}[")]
    for name in map(str, at.estimator.values):
        own = at.sel(estimator=name)
        if kind == NEXT:
            low, high = _normal(own)
            share, width = own.next_available.values[None], float(own.next_width)
        else:
            own = own.sel(quantity=chosen)
            low, high = _exact(own)
            share, width = own.available.values, float(own.width.mean())
        near = (low <= level + SLACK) & (high >= level - SLACK)
        if near.all() and (share >= 1 - LACKING).all():
            widths[name] = width
    return sorted(widths, key=lambda name: widths[name])


def _exact(own: xr.Dataset) -> tuple[Array, Array]:
    """Clopper and Pearson's intervals, the quantities sharing what they may miss."""
    n = np.round(own.available.values * float(own.drawn))
    k = np.round(np.nan_to_num(own.coverage.values) * n)
    return exact_interval(k, n, 1 - (1 - SURE) / len(n))


def _normal(own: xr.Dataset) -> tuple[Array, Array]:
    from scipy.stats import norm

    half = float(norm.isf((1 - SURE) / 2)) * np.nan_to_num(own.next_coverage_error.values[None])
    centre = own.next_coverage.values[None]
    return centre - half, centre + half


def in_words(found: xr.Dataset, tasks: int, level: float) -> str:
    """A sentence; one for every world, where there are several."""
    said = []
    for world, one in each_world(found):
        where = "; ".join(f"{axis}: {label}" for axis, label in world.items())
        said.append((f"({where}) " if where else "") + _sentence(one, tasks, level))
    return "\n".join(said)


def _sentence(found: xr.Dataset, tasks: int, level: float) -> str:
    names = {"mu": "of mu", "sd": "of sd", NEXT: "of the next task's theta"}
    parts = []
    for kind, those in verdicts(found, tasks, level):
        said = "by none of them"
        if len(those) == 1:
            said = f"by {those[0]} alone"
        elif those:
            listed = ", ".join(those[:-1]) + f" and {those[-1]}"
            said = f"by {listed} (sharpest: {those[0]})"
        parts.append(f"{names[kind]} {said}")
    return (
        f"With {tasks} tasks, {100 * level:g}% regions are calibrated (to within "
        f"{100 * SLACK:g} points, as far as {int(found.drawn)} replications show) "
        f"{parts[0]}, {parts[1]}, and {parts[2]}."
    )
