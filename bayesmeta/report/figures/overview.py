"""Closed form or posterior? Error, coverage, width and regret against the number of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayesmeta.report.figures.compared import draw_curves, in_units
from bayesmeta.report.figures.comparison import CHANCE, TITLES, panel_by_tasks
from bayesmeta.report.figures.style import (
    FAINT,
    End,
    clean,
    label_ends,
    method_look,
    new_figure,
    note_below,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = {
    "moment": "moment",
    "widened, theory": "widened, theory",
    "reml": "REML",
    "posterior": "posterior",
}
"""Methods: their names in the lab's records and in that of regret."""
KIND = "mu"
"""Whose intervals: eqs. (11) and (12) have some for the mean alone."""


def figure_overview(
    lines: Mapping[str, xr.Dataset], regret: xr.DataArray, dim: int, level: float, note: str
) -> Figure:
    """Four panels: the error of the covariance, coverage and width of intervals of the mean, and
    the regret of the next task.

    ``lines``: from methods to measures of the lab, as ``figure_by_tasks`` takes them. ``regret``:
    by run, n and played.
    """
    shown = {name: lines[name] for name in SHOWN}
    figure = new_figure(17.5, 3.5)
    panels = figure.subplots(1, 4)
    ends = [_errors(panels[0], shown, dim)]
    for axes, measure in zip(panels[1:3], ("coverage", "width"), strict=True):
        ends.append(panel_by_tasks(axes, shown, measure, KIND, dim, level))
    panels[3].axhline(1, color=FAINT, linewidth=0.8)
    titles = (
        "error of the covariance",
        f"coverage, {TITLES[KIND]}",
        f"width, {TITLES[KIND]}",
        "regret of the next task",
    )
    words = (
        "operator norm",
        f"held by {100 * level:g}% intervals, %",
        "mean width",
        "true prior = 1",
    )
    for axes, title, said in zip(panels, titles, words, strict=True):
        clean(axes, title)
        axes.set(xlabel="number of tasks", ylabel=said, xscale="log")
    note_below(figure, note)
    relative = in_units(regret, regret.sel(played="KTS"))
    played = [(relative.sel(played=SHOWN[name]), method_look(name)) for name in SHOWN]
    figure.draw_without_rendering()
    draw_curves(panels[3], played)
    panels[3].set_yticks([1, 2, 3, 5], ["1", "2", "3", "5"])
    panels[3].minorticks_off()
    for axes, found in zip(panels, ends, strict=False):
        label_ends(axes, found)
    return figure


def _errors(axes: Axes, lines: Mapping[str, xr.Dataset], dim: int) -> list[End]:
    """Operator-norm errors of the covariance with bars; where the lines end."""
    ends = []
    for name, one in lines.items():
        at, look = one.sel(dim=dim), method_look(name)
        error = at.cov_error.dropna("tasks")
        half = CHANCE * at.cov_error_error.sel(tasks=error.tasks)
        axes.plot(error.tasks, error, **look.options())
        low = (error - half).clip(min=0.1 * error)  # on a log scale
        axes.vlines(error.tasks, low, error + half, color=look.color, linewidth=1)
        ends.append(End(float(error.tasks[-1]), float(error[-1]), look))
    axes.set_yscale("log")
    return ends
