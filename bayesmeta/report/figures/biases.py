"""Figures of the calibration lab: which estimates are biased, and how much of their error it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.calibration.kinds import of_kind, side_by_side
from bayesmeta.calibration.measures import measures
from bayesmeta.report.figures.lab import SHOWN, chosen_tasks, panels_of
from bayesmeta.report.figures.style import (
    FAINT,
    LABEL,
    MARKER,
    SMALL,
    THIN,
    End,
    clean,
    label_ends,
    looks_of,
    new_figure,
    note_below,
    shortened,
    tone,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGE = 1.05
"""Of the axis: a bias is at most the root mean squared error."""


def plot_biases(lab: xr.Dataset, tasks: int | None = None, *, axes: Axes | None = None) -> Figure:
    """A forest of biases, each as a part of the root mean squared error, with 95% intervals.

    At -1 or 1 all of an estimate's error is bias; units do not matter. Intervals are 1.96
    Monte-Carlo errors either way.

    Parameters
    ----------
    lab : xarray.Dataset
        What ``calibrate`` returned.
    tasks : int, optional
        Which number of tasks; the largest where None.
    axes : matplotlib.axes.Axes, optional
        Where to draw; a new figure where None.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> family = bm.paper_family(dim=2, horizon=30)
    >>> lab = bm.calibrate(family, tasks=20, replications=20, jobs=1)
    >>> [tick.get_text() for tick in bm.plot_biases(lab).axes[0].get_yticklabels()]
    ['mu[x1]', 'mu[x2]', 'sd[x1]', 'sd[x2]', 'corr[x2, x1]']
    """
    found = side_by_side(measures(lab))
    at = of_kind(found.sel(tasks=chosen_tasks(found, tasks)), *SHOWN)
    looks = looks_of([str(name) for name in at.estimator.values])
    names = [str(name) for name in at.quantity.values]
    rows = np.arange(len(names))
    if axes is None:
        height = 1.2 + 0.13 * len(names) * (len(looks) + 1)
        figure = new_figure(7.6, min(max(height, 2.6), 12.0))
        panel = figure.subplots()
    else:
        figure, (panel,) = panels_of(axes, 1)
    panel.axvline(0, color=tone(FAINT), linewidth=THIN)
    ends = []
    for k, (name, look) in enumerate(looks.items()):
        own = at.sel(estimator=name)
        part = (own.bias / own.rmse).values
        half = (1.96 * own.bias_error / own.rmse).values
        if not np.isfinite(part).any():
            continue
        place = rows + 0.7 * ((k + 0.5) / len(looks) - 0.5)
        panel.errorbar(
            part, place, xerr=half, fmt=look.marker, color=look.color, markersize=MARKER,
            linewidth=1.2, label=name,
        )  # fmt: skip
        first = int(np.flatnonzero(np.isfinite(part))[0])
        ends.append(End(min(float(part[first] + half[first]), EDGE), float(place[first]), look))
    panel.set_xlim(-EDGE, EDGE)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_yticks(rows, [shortened(name, 30) for name in names], fontsize=SMALL)
    clean(panel, grid="x")
    panel.set_xlabel("bias, as a part of the root mean squared error", fontsize=LABEL)
    label_ends(panel, ends)
    if axes is None:
        note_below(
            figure,
            f"{int(at.tasks)} tasks, {int(at.drawn)} replications; bars: 95% intervals of the bias",
        )
    return figure
