"""Figures of the calibration lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.calibration.measures import measures
from bayesmeta.calibration.ranks import uniformity
from bayesmeta.calibration.scenarios import one_world
from bayesmeta.checks import Array, InputError
from bayesmeta.report.figures.style import BAND, FAINT, THIN, Look, clean, new_figure, note_below

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#D55E00", "#000000", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777")
_LINES = ("-", (0, (3, 1)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_MARKERS = "Do^svPX*"
STEPS = 100
"""Places at which the PIT of the next task is counted."""


def plot_coverage(lab: xr.Dataset, tasks: int | None = None) -> Figure:
    """Coverage less its level against the level, with bands that hold at all levels together.

    A panel for means, standard deviations and correlations, of which the mean over features is
    drawn, and one for ellipsoids of the next task's theta.

    Parameters
    ----------
    lab : xarray.Dataset
        What ``calibrate`` returned.
    tasks : int, optional
        Which number of tasks; the largest where None.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> family = bm.paper_family(dim=2, horizon=30)
    >>> lab = bm.calibrate(family, tasks=20, replications=20, jobs=1)
    >>> bm.plot_coverage(lab).savefig  # doctest: +ELLIPSIS
    <bound method Figure.savefig of ...>
    """
    found = one_world(measures(lab))
    chosen = int(found.tasks.max()) if tasks is None else tasks
    if chosen not in found.tasks.values:
        raise InputError(f"there are no {chosen} tasks in this lab, only {found.tasks.values}")
    at, own = found.sel(tasks=chosen), lab.sel(tasks=chosen)
    names = [str(name) for name in found.quantity.values]
    kinds = [k for k in ("mu", "sd", "corr") if any(name.startswith(f"{k}[") for name in names)]
    figure = new_figure(3.2 * (len(kinds) + 1), 3.6)
    panels = figure.subplots(1, len(kinds) + 1, sharey=True)
    looks = {str(name): _look(str(name), i) for i, name in enumerate(found.estimator.values)}
    for axes, kind in zip(panels, kinds, strict=False):
        those = [name for name in names if name.startswith(f"{kind}[")]
        _levels(axes, at.sel(quantity=those), looks)
        clean(axes, kind)
        axes.set_xlabel("level")
    _next(panels[-1], own, looks)
    clean(panels[-1], "next task")
    panels[-1].set_xlabel("level")
    panels[0].set_ylabel("coverage less level")
    panels[0].legend(frameon=False, fontsize=8)
    note_below(
        figure,
        f"{chosen} tasks, {int(found.drawn)} replications; grey: where coverages of one feature "
        "stay with probability 95%, at all levels together",
    )
    return figure


def _look(name: str, i: int) -> Look:
    return Look(name, _COLOURS[i % 8], _LINES[i % 4], _MARKERS[i % 8])


def _levels(axes: Axes, at: xr.Dataset, looks: dict[str, Look]) -> None:
    """Mean coverage over features of every estimator, at the levels of its intervals."""
    levels = at.level.values
    low, high = _band(levels, int(at.drawn))
    axes.fill_between(levels, low - levels, high - levels, color=BAND, linewidth=0)
    axes.axhline(0, color=FAINT, linewidth=THIN)
    for name, look in looks.items():
        share = at.coverage.sel(estimator=name).mean("quantity").values
        axes.plot(levels, share - levels, label=look.label, **look.options())


def _band(levels: Array, n: int) -> tuple[Array, Array]:
    """Where binomial shares stay at all levels, which share what they may miss."""
    from scipy.stats import binom

    tail = 0.05 / 2 / len(levels)
    return binom.ppf(tail, n, levels) / n, binom.ppf(1 - tail, n, levels) / n


def _next(axes: Axes, own: xr.Dataset, looks: dict[str, Look]) -> None:
    """The distribution of the PIT of the distance is the coverage of ellipsoids of all levels."""
    axes.axhline(0, color=FAINT, linewidth=THIN)
    drawn = False
    for name, look in looks.items():
        pit = own.pit_distance.sel(estimator=name).dropna("replication").values
        if len(pit) < 10:  # too few for a band
            continue
        one = uniformity(np.minimum(np.floor(STEPS * pit), STEPS - 1), STEPS - 1)
        if not drawn and len(pit) == own.sizes["replication"]:
            axes.fill_between(one.points, one.low, one.high, color=BAND, linewidth=0, zorder=0)
            drawn = True
        axes.plot(one.points, one.difference, **look.options(marked=False))
