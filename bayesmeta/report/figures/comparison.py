"""Figures of the recorded comparison of estimators, by the calibration lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.calibration.verdict import LACKING
from bayesmeta.report.figures.style import (
    BAND,
    FAINT,
    MARKER,
    End,
    Look,
    clean,
    label_ends,
    method_look,
    new_figure,
    note_below,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {
    "mu": "mean μ",
    "sd": "standard deviations",
    "corr": "correlations",
    "cov": "entries of Σ",
    "next": "next task's θ",
}
CHANCE = 1.96
"""Monte-Carlo errors that a bar reaches."""
LOWEST = 60.0
"""Per cent: lower coverages are drawn at this edge."""
FEWEST = 0.05
"""Share of replications with a region below which nothing is drawn."""
EDGE = (
    f"at the edge: {LOWEST:g}% or less; open: fewer than {100 * (1 - LACKING):g}% of replications "
    "have a region"
)
"""What such marks say, for notes."""
_SAID = {"nothing": "nothing is wrong"}
"""Rows that are called otherwise than in the record."""
PER_LINE = 7
"""Names in a line of a key."""


def figure_by_tasks(
    lines: Mapping[str, xr.Dataset], measure: str, kinds: Sequence[str], level: float, note: str
) -> Figure:
    """A measure against the number of tasks, a row of panels a dimension, a column a kind.

    ``lines``: from estimators to their measures, with ``dim``, ``tasks``, ``kind`` and ``level``.
    """
    dims = next(iter(lines.values())).dim.values.tolist()
    figure = new_figure(4.4 * len(kinds), 3.3 * len(dims))
    panels = figure.subplots(len(dims), len(kinds), squeeze=False, sharex=True)
    ends: list[list[tuple[Axes, list[End]]]] = []
    for row, dim in zip(panels, dims, strict=True):
        ends.append(
            [
                (axes, panel_by_tasks(axes, lines, measure, k, dim, level))
                for axes, k in zip(row, kinds, strict=True)
            ]
        )
        row[0].set_ylabel(f"{_said(measure, level)}, d = {dim}")
    for axes, kind in zip(panels[0], kinds, strict=True):
        axes.set_title(TITLES[kind], fontsize=11)
    for axes in panels[-1]:
        axes.set_xlabel("number of tasks")
    note_below(figure, note)
    figure.draw_without_rendering()
    for axes, those in (pair for row in ends for pair in row[-1:]):
        label_ends(axes, those)
    return figure


def _said(measure: str, level: float) -> str:
    names = {"coverage": f"covered by {100 * level:g}% regions (%)", "width": "width"}
    return names[measure]


def panel_by_tasks(
    axes: Axes, lines: Mapping[str, xr.Dataset], measure: str, kind: str, dim: int, level: float
) -> list[End]:
    """One panel of ``figure_by_tasks``; where its lines end."""
    ends = []
    size = 100 if measure == "coverage" else 1
    for name, found in lines.items():
        look = method_look(name)
        at = found.sel(dim=dim, kind=kind).sel(level=level, method="nearest")
        y = size * at[measure].where(at.available > FEWEST)
        error = CHANCE * size * at[f"{measure}_error"]
        low, high = y - error, y + error
        if measure == "coverage":
            y, low, high = (one.clip(min=LOWEST) for one in (y, low, high))
        there = y.notnull().values
        if not there.any():
            continue
        x = at.tasks.values[there]
        axes.plot(x, y.values[there], **look.options())
        axes.vlines(x, low.values[there], high.values[there], color=look.color, linewidth=1)
        few = at.available.values[there] < 1 - LACKING
        axes.plot(x[few], y.values[there][few], look.marker, **_open(look, MARKER))
        ends.append(End(float(x[-1]), float(y.values[there][-1]), look))
    axes.set_xscale("log")
    clean(axes)
    if measure == "coverage":
        axes.axhline(100 * level, color=FAINT, linewidth=1, zorder=0)
        axes.set_ylim(max(axes.get_ylim()[0], LOWEST - 1), 101)
    else:
        axes.set_yscale("log")
    return ends


def _open(look: Look, size: float) -> dict[str, Any]:
    """A marker whose middle is white."""
    return {"color": look.color, "markerfacecolor": "white", "markersize": size}


def figure_pit(
    rows: Mapping[str, xr.DataArray], replications: Mapping[str, int], note: str
) -> Figure:
    """Where the next task's theta lies in its forecast: a histogram an estimator, flat if right.

    ``rows``: shares of places by ``bin``.
    """
    figure = new_figure(2.5 * len(rows), 2.7)
    panels = np.atleast_1d(figure.subplots(1, len(rows), sharey=True))
    for axes, (name, shares) in zip(panels, rows.items(), strict=True):
        bins, look = len(shares), method_look(name)
        density = bins * shares.values
        half = CHANCE * np.sqrt((bins - 1) / replications[name])
        axes.axhspan(1 - half, 1 + half, color=BAND, zorder=0)
        axes.bar(shares.bin.values, density, width=1 / bins, color=look.color, alpha=0.75)
        axes.axhline(1, color=FAINT, linewidth=1)
        axes.set_xlabel("place in the forecast")
        clean(axes, look.label, grid="y")
    panels[0].set_ylabel("density")
    note_below(figure, note)
    return figure


def figure_rows(
    table: xr.Dataset,
    rows: Sequence[str],
    along: str,
    looks: Mapping[str, Look],
    kinds: Sequence[str],
    level: float,
    note: str,
) -> Figure:
    """Coverage of estimators (``looks`` by their names) in several settings (``rows`` of
    ``along``), side by side, a panel a kind."""
    figure = new_figure(3.6 * len(kinds) + 1.2, max(0.62, 0.11 * len(looks)) * len(rows) + 1.7)
    panels = np.atleast_1d(figure.subplots(1, len(kinds), sharey=True))
    for axes, kind in zip(panels, kinds, strict=True):
        axes.axvline(100 * level, color=FAINT, linewidth=1)
        for k, (name, look) in enumerate(looks.items()):
            shift = 0.8 * ((k + 0.5) / len(looks) - 0.5)
            for i, row in enumerate(rows):
                at = table.sel({"kind": kind, "estimator": name, along: row})
                at = at.sel(level=level, method="nearest")
                if not float(at.available) > FEWEST:
                    continue
                middle, half = 100 * float(at.coverage), 100 * CHANCE * float(at.coverage_error)
                low, middle, high = np.maximum([middle - half, middle, middle + half], LOWEST)
                axes.hlines(i + shift, low, high, color=look.color, linewidth=1)
                filled = {"color": look.color, "markersize": 4.5}
                few = float(at.available) < 1 - LACKING
                axes.plot(middle, i + shift, look.marker, **(_open(look, 4.5) if few else filled))
        axes.set_xlabel(f"covered by {100 * level:g}% regions (%)")
        axes.set_xlim(max(axes.get_xlim()[0], LOWEST - 1), min(axes.get_xlim()[1], 101.0))
        clean(axes, TITLES[kind], grid="x")
        for i in range(1, len(rows)):
            axes.axhline(i - 0.5, color=BAND, linewidth=0.6, zorder=0)
    panels[0].set_yticks(range(len(rows)), [_SAID.get(row, row) for row in rows])
    panels[0].invert_yaxis()
    _key(figure, list(looks.values()))
    note_below(figure, note)
    return figure


def _key(figure: Figure, looks: Sequence[Look]) -> None:
    """Markers and their names above the panels, in the order in which they stand in a row."""
    from matplotlib.lines import Line2D

    marks: list[Any] = [
        Line2D([], [], color=one.color, marker=one.marker, linestyle="", label=one.label)
        for one in looks
    ]
    figure.legend(
        handles=marks,
        loc="outside upper center",
        ncols=min(len(marks), PER_LINE),
        frameon=False,
        fontsize=8.5,
    )
