"""Which estimators are calibrated, and which of those is sharpest, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesmeta.calibration.kinds import NEXT, of_kind, relative
from bayesmeta.calibration.scenarios import each_world, one_world
from bayesmeta.calibration.shares import exact_interval

if TYPE_CHECKING:
    import xarray as xr

SLACK = 0.02
"""How far from its level a coverage may be and still count as calibrated."""
SURE = 0.95
"""Probability of the simultaneous intervals of coverages."""
LACKING = 0.05
"""Share of replications without an interval from which on an estimator is not called calibrated."""
KINDS = ("mu", "sd", NEXT)


class Verdict(NamedTuple):
    """Of one kind of quantities: which estimators are calibrated, the sharpest of them first."""

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
    """The sharpest first: whose regions are narrowest, in ratios to the narrowest of every
    quantity."""
    if kind == NEXT:
        low, high = _normal(at)
        share, width = at.next_available, at.next_width
    else:
        at = of_kind(at, kind)
        low, high = _exact(at)
        share, width = at.available, relative(at.width)
    fine = (low <= level + SLACK) & (high >= level - SLACK) & (share >= 1 - LACKING)
    those = fine if kind == NEXT else fine.all("quantity")
    return [str(name) for name in width[those.values].sortby(width[those.values]).estimator.values]


def _exact(at: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Clopper and Pearson's intervals, the quantities sharing what they may miss."""
    n = np.round(at.available * at.drawn)
    k = np.round(at.coverage.fillna(0.0) * n)
    low, high = exact_interval(k.values, n.values, 1 - (1 - SURE) / at.sizes["quantity"])
    return k.copy(data=low), k.copy(data=high)


def _normal(at: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    from scipy.stats import norm

    half = float(norm.isf((1 - SURE) / 2)) * at.next_coverage_error.fillna(0.0)
    return at.next_coverage - half, at.next_coverage + half


def in_words(found: xr.Dataset, tasks: int, level: float) -> str:
    """A sentence: which estimators are calibrated there, and which of those is sharpest; one for
    every world, where there are several."""
    said = []
    for world, one in each_world(found):
        where = "; ".join(f"{axis}: {label}" for axis, label in world.items())
        said.append((f"({where}) " if where else "") + _sentence(one, tasks, level))
    return "\n".join(said)


def _sentence(found: xr.Dataset, tasks: int, level: float) -> str:
    parts = []
    for kind, those in verdicts(found, tasks, level):
        said = "none of them"
        if len(those) == 1:
            said = f"{those[0]} alone"
        elif those:
            said = f"{', '.join(those[:-1])} and {those[-1]} (sharpest: {those[0]})"
        parts.append(f"of {"the next task's theta" if kind == NEXT else kind} by {said}")
    return (
        f"With {tasks} tasks, {100 * level:g}% regions are calibrated (to within "
        f"{100 * SLACK:g} points, as far as {int(found.drawn)} replications show) "
        f"{parts[0]}, {parts[1]}, and {parts[2]}.{_hidden(found, level)}{_lacking(found, tasks)}"
    )


def _hidden(found: xr.Dataset, level: float) -> str:
    """What so few replications cannot show: 1.96 Monte-Carlo errors of a coverage."""
    unseen = 1.96 * np.sqrt(level * (1 - level) / max(int(found.drawn), 1))
    if unseen <= SLACK:
        return ""
    return f" A coverage that is off by less than {100 * unseen:.0f} points may not show."


def _lacking(found: xr.Dataset, tasks: int) -> str:
    """Who is not called calibrated because replications lack a region, whatever the others say."""
    at = one_world(found).sel(tasks=tasks)
    said = []
    for name in at.estimator.values:
        one = at.sel(estimator=name)
        shares = {kind: of_kind(one, kind).available.min() for kind in KINDS[:-1]}
        shares[NEXT] = one.next_available
        worst = min(shares, key=lambda kind: float(shares[kind]))
        if float(shares[worst]) < 1 - LACKING:
            missing = 100 * (1 - float(shares[worst]))
            what = "the next task" if worst == NEXT else worst
            said.append(f"{name} (no region of {what} in {missing:.0f}% of replications)")
    return f" Not counted where regions are lacking: {', '.join(said)}." if said else ""
