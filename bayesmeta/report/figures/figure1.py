"""Figure 1 of the paper, and the interval plot of what Section 6 says about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayesmeta.report.figures.played import draw_errors, draw_regret, note_of
from bayesmeta.report.figures.style import (
    BLUE,
    INK,
    LABEL,
    LINE,
    MARKER,
    ORANGE,
    TITLE,
    clean,
    new_figure,
    note_below,
    tone,
)
from bayesmeta.simulation.summaries import Comparison, normaliser

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure_1(record: xr.Dataset, agents: Sequence[str]) -> Figure:
    """Figure 1: (a) normalised Bayesian regret, (b) mean error, (c) covariance error.

    Lines are means over runs, error bars one standard deviation over runs.
    """
    normaliser(record)  # refuses a record without KTS
    figure = new_figure(15, 5.0)
    left, *others = figure.subplots(1, 3)
    draw_regret(left, record, agents)
    draw_errors(others, record, agents)
    for letter, axes in zip("abc", figure.axes, strict=True):
        axes.set_title(f"({letter}) {axes.get_title()}", fontsize=TITLE)
    note_below(figure, note_of(record))
    return figure


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
    axes.axvline(0, color=tone(INK), linewidth=0.8)
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
                color=tone(INK),
            )
    labels = [text.replace("_tau", r"$_\tau$") for text in statements]
    axes.set_yticks(range(len(labels)), labels, fontsize=LABEL)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
