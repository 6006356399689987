"""Figures of the calibration lab: do intervals hold what they promise, and at what width?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.calibration.kinds import NEXT, kinds_of, of_kind, side_by_side
from bayesmeta.calibration.measures import measures
from bayesmeta.calibration.ranks import band
from bayesmeta.checks import Array, InputError, one_of
from bayesmeta.report.figures.style import (
    BAND,
    FAINT,
    LABEL,
    THIN,
    End,
    Look,
    clean,
    label_ends,
    looks_of,
    new_figure,
    note_below,
    tone,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = ("mu", "sd", "corr")
"""Kinds of quantities that have a panel unless others are asked for; the next task has one, too."""
TITLES = {
    "mu": "mean μ",
    "sd": "standard deviations",
    "corr": "correlations",
    "cov": "entries of Σ",
}
FEW = 0.95
"""Share of replications with an interval below which a line's name says how many there are."""

FEWER = "; (in 50%): half of the replications have a region"
"""What such a name says, for notes."""


def plot_coverage(
    lab: xr.Dataset,
    tasks: int | None = None,
    *,
    kinds: str | Sequence[str] | None = None,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Coverage less its level against the level, with bands that hold at all levels together.

    A panel for means, standard deviations and correlations, of which the mean over features is
    drawn, and one for ellipsoids of the next task's theta, with bars of two Monte-Carlo errors.

    Parameters
    ----------
    lab : xarray.Dataset
        What ``calibrate`` returned.
    tasks : int, optional
        Which number of tasks; the largest where None.
    kinds : str or list of str, optional
        Which panels, of ``"mu"``, ``"sd"``, ``"corr"``, ``"cov"`` and ``"next task"``.
    axes : matplotlib.axes.Axes, or several, optional
        Where to draw, one for each panel; a new figure where None.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> family = bm.paper_family(dim=2, horizon=30)
    >>> lab = bm.calibrate(family, tasks=20, replications=20, jobs=1)
    >>> len(bm.plot_coverage(lab).axes)
    4
    >>> [panel.get_title() for panel in bm.plot_coverage(lab, kinds="mu").axes]
    ['mean μ']
    """
    found = side_by_side(measures(lab))
    at = found.sel(tasks=chosen_tasks(found, tasks))
    looks = looks_of([str(name) for name in at.estimator.values])
    names = _kinds(found, kinds)
    figure, panels = panels_of(axes, len(names))
    percent = 100 * at.level.values
    grey = [100 * end - percent for end in band(int(at.drawn), at.level.values)]
    for panel, kind in zip(panels, names, strict=True):
        own = _of(at, kind)
        clean(panel, TITLES.get(kind, kind))
        gaps = 100 * (own.coverage - own.level)
        if kind == NEXT:
            for name, look in looks.items():
                gap, error = (one.sel(estimator=name).values for one in (gaps, own.error))
                panel.errorbar(percent, gap, yerr=200 * error, fmt="none", ecolor=look.color)
        else:
            panel.fill_between(percent, *grey, color=tone(BAND), linewidth=0)
        points_scale(panel, gaps, *grey)
        _draw(panel, percent, gaps, looks, own.available)
        panel.set_xlabel("level, %", fontsize=LABEL)
        panel.set_ylabel("coverage less level, points", fontsize=LABEL)
    if axes is None:
        note_below(
            figure,
            f"{int(at.tasks)} tasks, {int(at.drawn)} replications, mean over features; grey: where "
            "right intervals of one feature stay with probability 95%, at all levels together"
            f"{FEWER}",
        )
    return figure


def plot_coverage_by_tasks(
    lab: xr.Dataset,
    level: float | None = None,
    *,
    kinds: str | Sequence[str] | None = None,
    axes: Sequence[Axes] | None = None,
) -> Figure:
    """Coverage and width of regions of one level against the number of tasks.

    Above the mean coverage over features, with the range in which that of one feature lies with
    probability 95%; below the geometric mean of their widths.

    Parameters
    ----------
    lab : xarray.Dataset
        What ``calibrate`` returned for two or more numbers of tasks.
    level : float, optional
        Which level; the largest where None.
    kinds : str or list of str, optional
        Which columns of panels, of ``"mu"``, ``"sd"``, ``"corr"``, ``"cov"`` and ``"next task"``;
        all but the entries of Sigma and the correlations where None.
    axes : list of matplotlib.axes.Axes, optional
        Where to draw: for every kind those of coverages, then for every kind those of widths.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> family = bm.paper_family(dim=2, horizon=30)
    >>> lab = bm.calibrate(family, tasks=[10, 20], replications=20, jobs=1)
    >>> len(bm.plot_coverage_by_tasks(lab, 0.9, kinds=["mu", "next task"]).axes)
    4
    """
    found = side_by_side(measures(lab))
    if found.sizes["tasks"] < 2:
        raise InputError("there is one number of tasks only; give calibrate two or more")
    chosen = float(found.level.max()) if level is None else level
    if chosen not in found.level.values:
        raise InputError(f"there is no level {chosen} in this lab, only {found.level.values}")
    at = found.sel(level=chosen)
    looks = looks_of([str(name) for name in at.estimator.values])
    names = [k for k in _kinds(found, kinds) if kinds is not None or k != "corr"]
    figure, panels = panels_of(axes, 2 * len(names), len(names))
    grey = [100 * (end - chosen) for end in band(int(at.drawn), np.array([chosen]))]
    for kind, above, below in zip(names, panels[: len(names)], panels[len(names) :], strict=True):
        own = _of(at, kind)
        gaps = 100 * (own.coverage - chosen)
        clean(above, TITLES.get(kind, kind))
        if kind != NEXT:
            above.axhspan(*(float(end[0]) for end in grey), color=tone(BAND), linewidth=0)
        points_scale(above, gaps, *grey)
        above.set_ylabel(f"coverage less {100 * chosen:g}, points", fontsize=LABEL)
        clean(below)
        log_scale(below)
        below.set_ylabel("width", fontsize=LABEL)
        below.set_xlabel("number of tasks", fontsize=LABEL)
        for panel, values in ((above, gaps), (below, own.width)):
            panel.set_xscale("log")
            panel.set_xticks(own.tasks.values, [str(one) for one in own.tasks.values])
            panel.xaxis.minorticks_off()
            _draw(panel, own.tasks.values, values, looks, own.available)
    if axes is None:
        note_below(
            figure,
            f"{int(at.drawn)} replications; coverage: mean over features, grey: where that of one "
            "feature lies with probability 95% if it is right; width: geometric mean over features"
            f"{FEWER}",
        )
    return figure


def panels_of(
    axes: Axes | Sequence[Axes] | None, count: int, columns: int = 2
) -> tuple[Figure, list[Axes]]:
    """The axes given, or those of a new figure, and their figure."""
    if axes is None:
        columns = min(columns, count)
        rows = -(-count // columns)
        figure = new_figure(1.0 + 4.4 * columns, 0.6 + 3.0 * rows)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for one in grid[count:]:
            one.remove()
        return figure, list(grid[:count])
    given = list(np.ravel(np.array(axes, dtype=object)))
    if len(given) != count:
        raise InputError(f"axes has {len(given)} panels where {count} are drawn")
    owner = given[0].get_figure(root=True)
    assert owner is not None
    return owner, given


def chosen_tasks(found: xr.Dataset, tasks: int | None) -> int:
    """The number of tasks asked for, the largest where None."""
    chosen = int(found.tasks.max()) if tasks is None else tasks
    if chosen not in found.tasks.values:
        raise InputError(f"there are no {chosen} tasks in this lab, only {found.tasks.values}")
    return chosen


def _kinds(found: xr.Dataset, kinds: str | Sequence[str] | None) -> list[str]:
    there = [*kinds_of(found), NEXT]
    if kinds is None:
        return [kind for kind in (*SHOWN, NEXT) if kind in there]
    asked = [kinds] if isinstance(kinds, str) else list(kinds)
    return [one_of("kinds", kind, there) for kind in asked]


def _of(at: xr.Dataset, kind: str) -> xr.Dataset:
    """Coverage, width and share of replications that have one, over a kind's features."""
    if kind == NEXT:
        return at[["next_coverage", "next_coverage_error", "next_width", "next_available"]].rename(
            next_coverage="coverage",
            next_coverage_error="error",
            next_width="width",
            next_available="available",
        )
    own = of_kind(at, kind)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = own.width.copy(data=np.log(own.width.values)).mean("quantity")
    return (
        own[["coverage"]]
        .mean("quantity")
        .assign(
            width=width.copy(data=np.exp(width.values)), available=own.available.min("quantity")
        )
    )


def named(look: Look, available: Array) -> Look:
    """The name of a line says how many replications have an interval, where they are few."""
    least = float(np.min(available))
    if least >= FEW:
        return look
    return look._replace(label=f"{look.label} (in {100 * least:.0f}%)")


def _draw(
    axes: Axes,
    places: Array,
    values: xr.DataArray,
    looks: dict[str, Look],
    available: xr.DataArray,
) -> None:
    """A line for every estimator that has values, with its name at its end."""
    ends = []
    for name, look in looks.items():
        own = values.sel(estimator=name).values
        there = np.flatnonzero(np.isfinite(own))
        if there.size:
            axes.plot(places, own, label=name, **look.options())
            said = named(look, available.sel(estimator=name).values)
            ends.append(End(float(places[there[-1]]), float(own[there[-1]]), said))
    label_ends(axes, ends)


def points_scale(axes: Axes, gaps: xr.DataArray, *grey: Array) -> None:
    """Points near 0 as they are, far from it by their logarithm, so that what is a little wrong
    shows beside what is quite wrong."""
    every = np.concatenate([np.ravel(gaps.values), *map(np.ravel, grey)])
    axes.axhline(0, color=tone(FAINT), linewidth=THIN)
    axes.set_yscale("symlog", linthresh=10, linscale=1.5)
    ticks = [-50, -20, -10, -5, 0, 5, 10, 20, 50]
    axes.set_yticks(ticks, [f"{tick}" for tick in ticks])
    axes.set_ylim(min(-5.0, 1.2 * np.nanmin(every)), max(5.0, 1.2 * np.nanmax(every)))


def log_scale(axes: Axes) -> None:
    """Numbers at 1, 2 and 5 times powers of ten."""
    from matplotlib.ticker import LogLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(lambda value, place: f"{value:g}")
    axes.yaxis.minorticks_off()
