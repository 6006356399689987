"""Pictures of notebooks 01 and 05: what agents choose, and agents side by side as lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesmeta.checks import Array
from bayesmeta.report.figures.bands import band, ends, level_line, log_ends
from bayesmeta.report.figures.lab import panels_of
from bayesmeta.report.figures.style import (
    INK,
    LABEL,
    LINE,
    NOTE,
    End,
    clean,
    label_ends,
    looks_of_agents,
    new_figure,
    note_below,
    tone,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RING = 1500
"""Area of the ring of an action that is always chosen, in square points."""


def figure_choices(actions: Array, counts: Mapping[str, NDArray[np.intp]], best: int) -> Figure:
    """Actions with two features, a panel an agent: rings by how often each one is chosen."""
    figure = new_figure(4.2 * len(counts), 4.4)
    panels = figure.subplots(1, len(counts), sharex=True, sharey=True, squeeze=False)[0]
    room = 1.25 * float(np.abs(actions).max())
    for panel, (name, look) in zip(panels, looks_of_agents(list(counts)).items(), strict=True):
        share = counts[name] / counts[name].sum()
        panel.plot(*actions.T, ".", color=tone(NOTE), markersize=6, gid="actions")
        panel.scatter(
            *actions.T, s=RING * share, facecolor="none", edgecolor=look.color, linewidth=LINE
        )
        panel.plot(*actions[best], "*", color=tone(INK), markersize=11, gid="best")
        panel.set(xlim=(-room, room), ylim=(-room, room), aspect="equal")
        panel.set_xlabel("feature 1 of the action", fontsize=LABEL)
        clean(panel, name)
    panels[0].set_ylabel("feature 2", fontsize=LABEL)
    note_below(figure, "area of a ring: how often chosen    star: the best action")
    return figure


def figure_curves(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    xlabel: str,
    ylabel: str,
    *,
    labels: Mapping[str, str] | None = None,
    logs: str = "",
    level: tuple[float, str] | None = None,
    title: str = "",
    axes: Axes | None = None,
) -> Figure:
    """Agents as lines, their names (or ``labels``) at the ends. Where there is a row for each of
    several runs a line is their mean, with a band for its 95% interval. ``logs`` names the axes
    with a log scale, "", "x" or "xy"; ``level`` is a height of reference, and its words."""
    places = np.asarray(x, dtype=float)
    figure, (panel,) = _panel() if axes is None else panels_of(axes, 1)
    last, banded = [], False
    for name, look in looks_of_agents(list(curves)).items():
        rows = np.atleast_2d(np.asarray(curves[name], dtype=float))
        own = look._replace(label=(labels or {}).get(name, look.label))
        mean = rows.mean(axis=0)
        if len(rows) > 1:
            banded = True
            band(panel, places, *(log_ends(rows) if "y" in logs else ends(rows)), own)
        panel.plot(places, mean, label=name, **own.options(marked=len(places) < 25))
        far = int(np.argmax(places))
        last.append(End(float(places[far]), float(mean[far]), own))
    panel.set(xscale="log" if "x" in logs else "linear", yscale="log" if "y" in logs else "linear")
    if level is not None:
        level_line(panel, *level)
    if "y" not in logs and panel.dataLim.y0 >= 0:
        panel.set_ylim(bottom=0)
    clean(panel, title)
    panel.set_xlabel(xlabel, fontsize=LABEL)
    panel.set_ylabel(ylabel, fontsize=LABEL)
    label_ends(panel, last)
    if axes is None and banded:
        note_below(figure, "bands: 95% intervals of means over runs")
    return figure


def _panel() -> tuple[Figure, list[Axes]]:
    """A figure with one panel, wide enough for names at its right."""
    figure = new_figure(7.2, 3.5)
    return figure, [figure.subplots()]
