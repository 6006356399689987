"""Picture of estimators side by side: error, coverage, width and regret by number of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.calibration.kinds import of_kind, side_by_side
from bayesmeta.calibration.measures import measures
from bayesmeta.checks import InputError
from bayesmeta.report.figures.lab import SHOWN, log_scale, named, panels_of, points_scale
from bayesmeta.report.figures.style import (
    LABEL,
    End,
    Look,
    clean,
    label_ends,
    looks_of,
    note_below,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ERRORS = 2.0
"""Monte-Carlo errors that a bar reaches."""


def plot_compare(
    lab: xr.Dataset,
    level: float | None = None,
    *,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Closed form or posterior? Error, coverage, width and regret against the number of tasks.

    Panels: the error of the mean and of the covariance (operator norm); coverage of intervals of
    means, standard deviations and correlations, as far as an estimator has them, and their width
    over that of the first estimator; and the regret of the next task over that with the true prior,
    where the lab was asked for it (``regret=True``). Bars are two Monte-Carlo errors.

    Parameters
    ----------
    lab : xarray.Dataset
        What ``calibrate`` returned for two or more numbers of tasks.
    level : float, optional
        Of the intervals; the largest where None.
    axes : list of matplotlib.axes.Axes, optional
        Where to draw: four panels, or five with regret; a new figure where None.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> family = bm.paper_family(dim=2, horizon=30)
    >>> names = ["moment", "moment-widened(10)", "reml"]  # and "posterior", which takes longer
    >>> lab = bm.calibrate(
    ...     family, tasks=[10, 40], estimators=names, replications=10, regret=5, jobs=1
    ... )
    >>> [panel.get_title() for panel in bm.plot_compare(lab).axes][2:]
    ['coverage', 'width', 'regret of the next task']
    """
    found = side_by_side(measures(lab))
    if found.sizes["tasks"] < 2:
        raise InputError("there is one number of tasks only; give calibrate two or more")
    chosen = float(found.level.max()) if level is None else level
    if chosen not in found.level.values:
        raise InputError(f"there is no level {chosen} in this lab, only {found.level.values}")
    at = found.sel(level=chosen)
    own = of_kind(at, *SHOWN)
    looks = looks_of([str(name) for name in at.estimator.values])
    available = own.available.mean("quantity")
    contents = {
        "error of the mean": (at.mean_error, at.mean_error_error),
        "error of the covariance": (at.cov_error, at.cov_error_error),
        "coverage": (100 * (own.coverage.mean("quantity") - chosen), None),
        "width": (widths(own.width), None),
    }
    if "relative_regret" in at:
        known = at.known_regret
        contents["regret of the next task"] = (
            (at.relative_regret + known) / known,
            at.relative_regret_error / known,
        )
    words = {
        "error of the mean": "norm",
        "error of the covariance": "operator norm",
        "coverage": f"coverage less {100 * chosen:g}, points",
        "width": "width of intervals, relative",
        "regret of the next task": "regret (true prior = 1)",
    }
    figure, panels = panels_of(axes, len(contents), 3 if len(contents) == 5 else 2)
    for panel, (title, (values, error)) in zip(panels, contents.items(), strict=True):
        clean(panel, title)
        if title == "coverage":
            points_scale(panel, values)
        else:
            log_scale(panel)
        tasks = values.tasks.values
        panel.set_xscale("log")
        panel.set_xticks(tasks, [str(one) for one in tasks])
        panel.xaxis.minorticks_off()
        panel.set_xlabel("number of tasks", fontsize=LABEL)
        panel.set_ylabel(words[title], fontsize=LABEL)
        intervals = title in ("coverage", "width")
        _draw(panel, values, error, looks, available if intervals else None)
    if axes is None:
        note_below(
            figure,
            f"{int(at.drawn)} replications, bars: two Monte-Carlo errors; coverage and width: of "
            f"{100 * chosen:g}% intervals, mean over those that exist, (in 50%): of "
            "half of the quantities and replications",
        )
    return figure


def widths(width: xr.DataArray) -> xr.DataArray:
    """Geometric means over the quantities that an estimator has intervals of; each width is over
    that of the first estimator that has one at the largest number of tasks."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = width.copy(data=np.log(width.values))
    last = logs.isel(tasks=-1).transpose("estimator", "quantity").values
    first = np.isfinite(last).argmax(axis=0)
    unit = logs.isel(tasks=-1, estimator=0).copy(data=last[first, np.arange(len(first))])
    means = (logs - unit).mean("quantity")
    return means.copy(data=np.exp(means.values))


def _draw(
    axes: Axes,
    values: xr.DataArray,
    error: xr.DataArray | None,
    looks: dict[str, Look],
    available: xr.DataArray | None,
) -> None:
    """A line for every estimator that has values, with bars and its name at its end."""
    ends = []
    tasks = values.tasks.values
    for name, look in looks.items():
        own = values.sel(estimator=name).values
        there = np.flatnonzero(np.isfinite(own))
        if not there.size:
            continue
        axes.plot(tasks, own, label=name, **look.options())
        if error is not None:
            half = ERRORS * error.sel(estimator=name).values
            low = np.maximum(own - half, 0.02 * own)  # on a log scale
            axes.vlines(tasks, low, own + half, color=look.color, linewidth=1)
        said = look if available is None else named(look, available.sel(estimator=name).values)
        ends.append(End(float(tasks[there[-1]]), float(own[there[-1]]), said))
    label_ends(axes, ends)
