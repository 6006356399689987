"""Theorems 1 and 2, measured: what a wrong prior costs, and how relative regret grows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.report.figures.style import (
    BLUE,
    LABEL,
    NOTE,
    ORANGE,
    End,
    Look,
    clean,
    label_ends,
    new_figure,
    note_below,
)
from bayesmeta.simulation.summaries import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DEVIATIONS = {
    "mean": {
        "mean +{} along": Look("along, too high", ORANGE, "-", "o"),
        "mean -{} along": Look("along, too low", BLUE, (0, (5, 2)), "v"),
        "mean {} across": Look("across", "#009E73", (0, (1, 1)), "s"),
    },
    "covariance": {
        "covariance +{} I": Look("all directions", ORANGE, "-", "o"),
        "covariance +{} along": Look("along", BLUE, (0, (5, 2)), "v"),
        "covariance +{} across": Look("across", "#009E73", (0, (1, 1)), "s"),
    },
}
_TITLES = {"mean": "mean off", "covariance": "covariance too wide"}


def figure_deviations(
    shares: Mapping[str, Mapping[str, Interval]],
    bounds: Mapping[str, float],
    sizes: Sequence[float],
) -> Figure:
    """Relative regret over regret, with intervals, as the prior deviates: ``shares`` by policy and
    deviation, ``bounds`` (k_1 of Theorem 1 at size 1) by kind of deviation."""
    figure = new_figure(10.5, 6.2)
    grid = figure.subplots(len(shares), len(_DEVIATIONS), sharex=True, sharey=True)
    ends = {}
    for row, (policy, share) in zip(grid, shares.items(), strict=True):
        for axes, (kind, looks) in zip(row, _DEVIATIONS.items(), strict=True):
            lines = looks.items()
            ends[axes] = [_cost(axes, share, name, style, sizes) for name, style in lines]
            axes.axhline(0, color="black", linewidth=0.8)
            clean(axes, f"{policy}: {_TITLES[kind]}")
            allowed = f"$k_1$ of Theorem 1 at 1: {bounds[kind]:,.0f}"
            axes.text(0.03, 1.1, allowed, va="top", fontsize=LABEL, color=NOTE)
        row[0].set_ylabel("relative regret / regret of the\npolicy that knows the prior")
    for axes, here in ends.items():  # now that the limits, which panels share, are final
        label_ends(axes, here)
    for axes in grid[-1]:
        axes.set_xlabel("size of the deviation (norm)")
    note_below(figure, "means over runs; bars: 95% intervals (mostly smaller than the markers)")
    return figure


def _cost(
    axes: Axes, share: Mapping[str, Interval], name: str, style: Look, sizes: Sequence[float]
) -> End:
    """One line, from a right prior, which costs nothing, to the largest deviation."""
    found = [share[name.format(f"{size:g}")] for size in sizes]
    mean, low, high = np.array([(0.0, 0.0, 0.0), *found]).T
    ends = np.array([mean - low, high - mean])
    axes.errorbar([0.0, *sizes], mean, yerr=ends, capsize=2, **style.options())
    return End(sizes[-1], float(mean[-1]), style)


class Growth(NamedTuple):
    """What a panel of growth shows: relative regret of each agent, (runs, x), by its name."""

    x: Array
    label: str
    ticks: Sequence[int]
    rate: float
    printed: str
    curves: Mapping[str, tuple[Look, Array]]


def figure_growth(panels: Sequence[Growth]) -> Figure:
    """Relative regret against N, T and d on log scales, with the rate that Theorem 2 prints."""
    figure = new_figure(14, 4)
    row = figure.subplots(1, len(panels))
    for axes, panel in zip(row, panels, strict=True):
        x, ends = panel.x, []
        every = max(1, len(x) // 6)
        for style, values in panel.curves.values():
            mean = values.mean(axis=0)
            half = 1.96 * values.std(axis=0, ddof=1) / math.sqrt(len(values))
            options = {"markevery": every, "errorevery": every, "capsize": 2}
            axes.errorbar(x, mean, yerr=half, **options, **style.options())
            ends.append(End(float(x[-1]), float(mean[-1]), style))
        _, first = next(iter(panel.curves.values()))
        base = float(first.mean(axis=0)[0])
        last = base * float(x[-1] / x[0]) ** panel.rate
        rate = Look(panel.printed, NOTE, (0, (6, 2)), "")
        axes.plot([x[0], x[-1]], [base, last], **rate.options(marked=False))
        ends.append(End(float(x[-1]), last, rate))
        axes.set(xscale="log", yscale="log", xlabel=f"{panel.label} (log scale)")
        axes.set_xticks(panel.ticks, [f"{tick:,}" for tick in panel.ticks])
        axes.minorticks_off()
        clean(axes)
        label_ends(axes, ends)
    row[0].set_ylabel("relative regret, units of reward (log scale)")
    note_below(figure, "means over runs; bars: 95% intervals (mostly smaller than the markers)")
    return figure
