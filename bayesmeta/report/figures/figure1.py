"""Figure 1 of the paper, and the interval plot of what Section 6 says about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.report.figures.style import (
    BLUE,
    FAINT,
    INK,
    LABEL,
    LINE,
    MARKER,
    NOTE,
    ORANGE,
    SMALL,
    End,
    clean,
    label_ends,
    look,
    new_figure,
    note_below,
)
from bayesmeta.simulation.records import cumulative
from bayesmeta.simulation.summaries import Comparison, normaliser

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure_1(record: xr.Dataset, agents: Sequence[str]) -> Figure:
    """Figure 1: (a) normalised Bayesian regret, (b) mean error, (c) covariance error.

    Lines are means over runs, error bars one standard deviation over runs.
    """
    total = cumulative(record)
    figure = new_figure(15, 5.0)
    left, *others = figure.subplots(1, 3)
    last = int(record.task[-1])
    warmups = sorted({int(n) for n in record.warmup.sel(agent=list(agents)).values if 0 < n < last})
    # before the first warm-up ends every learner uses the same prior: nothing to see
    start = max(1, round(warmups[0] * 0.8)) if warmups and last > 4 * warmups[0] else 1

    ends = _lines(left, total.cumulative_regret / normaliser(record), agents, _evenly(last))
    left.set(
        xlabel="task $n$", ylabel="Bayesian regret (KTS at the end = 1)", xlim=(0, max(last, 2))
    )
    left.set_ylim(bottom=0)
    left.xaxis.set_major_formatter("{x:,.0f}")
    clean(left, "(a) Regret over tasks so far")
    label_ends(left, ends)
    panels = (
        (total.mean_error, r"$\|\hat\mu_n-\mu_*\|$", "(b) Error of the prior mean"),
        (
            total.covariance_error,
            r"$\|\hat\Sigma_n-\Sigma_*\|_{\rm op}$",
            "(c) Error of the prior covariance",
        ),
    )
    for axes, (error, symbol, title) in zip(others, panels, strict=True):
        shown = [name for name in agents if float(error.sel(agent=name).max()) > 0]
        axes.set(
            xlabel="task $n$ (log scale)",
            ylabel=f"{symbol} (log scale)",
            xscale="log",
            yscale="log",
            xlim=(start, max(last, start + 1)),
        )
        points = np.geomspace(start, last, 8)[1:]
        ends = _lines(axes, error.sel(task=error.task >= start), shown, points)
        low, high = axes.get_ylim()
        if high < 2 * low:  # an error that does not change
            low, high = low / 1.5, 1.5 * high
        axes.set_ylim(low * (low / high) ** 0.06, high)  # room for the words on warm-ups
        _warmups(axes, warmups)
        clean(axes, title)
        label_ends(axes, ends)
    note_below(figure, _note(record))
    return figure


def _evenly(last: int) -> Array:
    """Eight tasks at equal distances."""
    return np.linspace(0, last, 9)[1:]


def _note(record: xr.Dataset) -> str:
    """What lines and bars are, and which rows were not played but recorded."""
    runs = record.sizes["run"]
    bars = (
        f"mean over {runs} runs, error bars: one standard deviation" if runs > 1 else "a single run"
    )
    text = f"{bars}; exact zeros are not drawn on log scales"
    if "recorded" in record.coords and record.recorded.any():
        kept = ", ".join(str(name) for name in record.agent.values[record.recorded.values])
        text += f"; {kept} from the recorded study"
    return text


def _warmups(axes: Axes, warmups: Sequence[int]) -> None:
    """Where warm-ups end."""
    for i, warmup in enumerate(warmups):
        axes.axvline(warmup, color=FAINT, linewidth=0.8)
        axes.annotate(
            f" warm-up ends, $N_0={warmup}$",
            (warmup, 0.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 4 + 11 * i),
            textcoords="offset points",
            fontsize=SMALL,
            color=NOTE,
        )


def _lines(axes: Axes, values: xr.DataArray, agents: Sequence[str], points: Array) -> list[End]:
    """A line an agent, with marker and bar at the tasks nearest above ``points``; their ends."""
    task = values.task.values
    where = np.unique(np.searchsorted(task, points.clip(min=1)).clip(max=len(task) - 1))
    ends = []
    for name in agents:
        style, rows = look(name), values.sel(agent=name).values
        mean = rows.mean(axis=0)
        spread = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros_like(mean)
        axes.plot(task, mean, **style.options(marked=False))
        axes.errorbar(
            task[where],
            mean[where],
            yerr=spread[where],
            linestyle="none",
            color=style.color,
            marker=style.marker,
            markersize=MARKER,
            capsize=2,
            elinewidth=1,
            clip_on=False,
        )
        ends.append(End(float(task[-1]), float(mean[-1]), style))
    return ends


_SPANS = {"all tasks": ("o", -0.16), "the last half": ("s", 0.16), "the last decade": ("D", 0.0)}
"""Marker of a span of tasks, and how far below the middle of its row it stands."""


def figure_orderings(found: Sequence[Comparison]) -> Figure:
    """What Section 6 states, an interval each: a statement holds where it lies left of zero.

    Statements about regret stand above, those about errors of the mean below; whatever does not
    hold is named beside its interval.
    """
    regret = [one for one in found if one.span != "the last decade"]
    errors = [one for one in found if one.span == "the last decade"]
    counts = [len(dict.fromkeys(one.statement for one in part)) for part in (regret, errors)]
    figure = new_figure(11.5, 2.2 + 0.36 * sum(counts))
    upper, lower = figure.subplots(2, 1, height_ratios=counts)
    upper.set_xscale("symlog", linthresh=0.1, linscale=0.7)
    _intervals(upper, regret)
    upper.set_xticks([-3, -1, -0.3, -0.1, 0, 0.1])
    upper.xaxis.set_major_formatter("{x:g}")
    upper.minorticks_off()
    upper.set(
        xlim=(-6, 0.5),
        xlabel="difference of regrets, KTS's total = 1 (linear within ±0.1, logarithmic beyond)",
    )
    _intervals(lower, errors)
    lower.set(xlim=(-0.6, 0.6), xlabel="slope of log mean error on log tasks, or its difference")
    holds = sum(one.verdict == "holds" for one in found)
    clean(upper, f"Section 6: {holds} of {len(found)} statements hold", grid="x")
    clean(lower, grid="x")
    note_below(
        figure,
        "circle: all tasks; square: the last half; diamond: the last decade\n"
        "intervals hold all together with probability 95%; filled and left of zero: the statement "
        "holds; open: undecided; cross: fails",
    )
    return figure


def _intervals(axes: Axes, found: Sequence[Comparison]) -> None:
    """Statements below each other, with an interval for every span of tasks."""
    statements = list(dict.fromkeys(one.statement for one in found))
    axes.axvline(0, color=INK, linewidth=0.8)
    for one in found:
        marker, down = _SPANS[one.span]
        place, good = statements.index(one.statement) + down, one.verdict == "holds"
        color = BLUE if good else ORANGE
        axes.plot([one.value.low, one.value.high], [place, place], color=color, linewidth=LINE)
        axes.plot(
            one.value.mean,
            place,
            "X" if one.verdict == "fails" else marker,
            color=color,
            markersize=MARKER + (3 if one.verdict == "fails" else 1),
            markerfacecolor="white" if one.verdict == "undecided" else color,
        )
        if not good:
            words = "fails" if one.verdict == "fails" else f"undecided over {one.span}"
            axes.annotate(
                words,
                (one.value.high, place),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=LABEL,
                color=INK,
            )
    labels = [text.replace("_tau", r"$_\tau$") for text in statements]
    axes.set_yticks(range(len(labels)), labels, fontsize=LABEL)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
