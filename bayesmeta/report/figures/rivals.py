"""The rivals: who wins in the paper's experiment, how regret grows, what a told covariance does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bayesmeta.checks import Array
from bayesmeta.report.figures.style import (
    BLUE,
    FAINT,
    INK,
    LABEL,
    NOTE,
    ORANGE,
    SMALL,
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

_KINDS = {
    "the prior": ("#000000", "s"),
    "part of the prior": (ORANGE, "^"),
    "bounds, or nothing": (BLUE, "o"),
}
"""Colour and marker by what a row is told."""


class Winner(NamedTuple):
    """A row of the first figure: regret with its interval, that of its own reference, what it is
    told, in words and by kind, and whether it played fewer tasks."""

    name: str
    regret: Interval
    reference: float
    told: str
    kind: str
    fewer: bool


def figure_winners(rows: Sequence[Winner], unit: str) -> Figure:
    """A line for every row, the least regret on top; a bar is the regret of its own reference."""
    figure = new_figure(10.5, 1.2 + 0.235 * len(rows))
    axes = figure.subplots()
    for y, row in enumerate(rows):
        color, marker = _KINDS[row.kind]
        ends = [[row.regret.mean - row.regret.low], [row.regret.high - row.regret.mean]]
        face = "white" if row.fewer else color
        axes.plot([row.reference, row.regret.mean], [y, y], color=FAINT, linewidth=0.8, zorder=1)
        axes.errorbar(
            [row.regret.mean], [y], xerr=ends, color=color, marker=marker, mfc=face, markersize=6
        )
        axes.plot([row.reference], [y], marker="|", markersize=11, color=INK, zorder=1)
        axes.annotate(
            row.told,
            (1.01, y),
            xycoords=axes.get_yaxis_transform(),
            va="center",
            fontsize=SMALL,
            color=NOTE,
            annotation_clip=False,
        )
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=SMALL)
    axes.set(xscale="log", xlabel=unit, ylim=(len(rows) - 0.4, -0.6))
    ticks = [0.5, 0.7, 1, 2, 3, 5]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    clean(axes)
    axes.annotate(
        "told:", (1.01, -0.9), xycoords=axes.get_yaxis_transform(), fontsize=SMALL, color=NOTE
    )
    note_below(
        figure,
        "square: knows the prior    triangle: told a part of it    circle: told bounds or nothing"
        "    bar: the same policy with the true prior    hollow: fewer tasks",
    )
    return figure


class Slopes(NamedTuple):
    """A panel of the second figure: by system and family, the exponent (None where there is none),
    and what is printed."""

    title: str
    measured: Mapping[str, Mapping[str, Interval | None]]
    printed: Mapping[str, Mapping[str, float]]


_FAMILIES = {"linear": (BLUE, "o"), "arms": (ORANGE, "s")}


def figure_slopes(panels: Sequence[Slopes]) -> Figure:
    """Exponents with intervals, and beside each a bar where a bound is printed for this family."""
    names = list(panels[0].measured)
    figure = new_figure(12, 1.4 + 0.25 * len(names))
    grid = figure.subplots(1, len(panels), sharey=True)
    for axes, panel in zip(grid, panels, strict=True):
        for y, name in enumerate(names):
            for shift, (family, (color, marker)) in zip(
                (-0.16, 0.16), _FAMILIES.items(), strict=True
            ):
                _exponent(axes, y + shift, panel.measured[name].get(family), color, marker)
                if family in panel.printed.get(name, {}):
                    bound = panel.printed[name][family]
                    axes.plot([bound], [y + shift], marker="|", markersize=8, mew=2, color=color)
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set(ylim=(len(names) - 0.4, -0.6), xlabel="exponent of relative regret")
        axes.set_yticks(range(len(names)), names, fontsize=SMALL)
        clean(axes, panel.title)
    note_below(
        figure,
        "circle: linear bandit, at one $\\mu_*$    square: arms, mean over the hyper-prior    "
        "bar of its colour: printed, at most    nothing: relative regret is not positive, or not "
        "defined",
    )
    return figure


def _exponent(axes: Axes, y: float, found: Interval | None, color: str, marker: str) -> None:
    if found is None:
        return
    ends = [[max(0.0, found.mean - found.low)], [max(0.0, found.high - found.mean)]]
    axes.errorbar([found.mean], [y], xerr=ends, color=color, marker=marker, markersize=4.5)


class Known(NamedTuple):
    """A panel of the third figure: regret over that of KTS by the factor on the told covariance,
    and of rows that are told none."""

    title: str
    factors: Array
    told: Mapping[str, tuple[Look, Array]]
    untold: Mapping[str, tuple[Look, float]]


def figure_covariance(panels: Sequence[Sequence[Known]]) -> Figure:
    """A row of panels for every family: few tasks, many tasks."""
    figure = new_figure(12, 3.1 * len(panels))
    grid = figure.subplots(len(panels), len(panels[0]), squeeze=False)
    ends: dict[Axes, list[End]] = {}
    for row, here in zip(grid, panels, strict=True):
        for axes, panel in zip(row, here, strict=True):
            ends[axes] = []
            for style, values in panel.told.values():
                axes.plot(panel.factors, values, **style.options())
                ends[axes].append(End(float(panel.factors[-1]), float(values[-1]), style))
            for style, value in panel.untold.values():
                line = style.options(marked=False) | {"alpha": 0.9}
                axes.plot(panel.factors[[0, -1]], [value, value], **line)
                ends[axes].append(End(float(panel.factors[-1]), value, style))
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(panel.factors, [f"{factor:g}" for factor in panel.factors])
            axes.axvline(1, color=FAINT, linewidth=0.8)
            _plain_ticks(axes)
            clean(axes, panel.title)
        row[0].set_ylabel("regret (KTS = 1)", fontsize=LABEL)
    for axes in grid[-1]:
        axes.set_xlabel("told covariance / true one")
    for axes, lines in ends.items():
        label_ends(axes, lines)
    return figure


def _plain_ticks(axes: Axes) -> None:
    """Plain numbers at 1, 2 and 5 times powers of ten, inside the limits."""
    low, high = axes.get_ylim()
    ticks = [a * 10.0**b for b in range(-2, 4) for a in (1, 1.5, 2, 3, 5, 7)]
    inside = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(inside, [f"{tick:g}" for tick in inside])
    axes.minorticks_off()
    axes.set_ylim(low, high)


def kind_of(told: str) -> str:
    """The kind of what a row is told."""
    if told.startswith("the prior"):
        return "the prior"
    part = any(word in told for word in ("Sigma_*", "mu_*"))
    return "part of the prior" if part else "bounds, or nothing"


def told_in_symbols(told: str) -> str:
    """What a row is told, for a figure."""
    for name, symbol in (("Sigma_*", r"$\Sigma_*$"), ("mu_*", r"$\mu_*$"), ("lambda_max", "λ_max")):
        told = told.replace(name, symbol)
    return told
