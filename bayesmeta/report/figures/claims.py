"""How much larger printed constants are than the smallest that a check would still accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bayesmeta.report.figures.style import BLUE, NOTE, SMALL, clean, new_figure, note_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HIGH = 100.0
"""Ratios beyond are drawn here."""


def figure_teeth(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Every printed inequality that holds: its constant over the smallest that the check accepts.
    At 1 nothing can be cut: the constant is sharp, and the check notices any less. ``rows`` are
    those of ``claims.json``."""
    shown = [
        row
        for row in rows
        if row["group"] == "printed"
        and row["kind"] != "S"
        and row["teeth"] is not None
        and row["teeth"]["printed"] is not None
    ]
    figure = new_figure(8.2, 0.19 * len(shown) + 1.1)
    axes = figure.subplots()
    places = list(range(len(shown)))[::-1]  # the first on top
    for place, row in zip(places, shown, strict=True):
        _point(axes, place, row["teeth"])
    _sections(axes, places, [row["section"] for row in shown])
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.9, _HIGH * 2)
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.set_ylim(-0.7, len(shown) - 0.3)
    axes.set_yticks(places, [row["id"] for row in shown], fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("printed constant / smallest that the check would accept (log scale)")
    clean(axes, grid="x")
    note_below(figure, "beside a dot: the smallest constant accepted, and the one printed")
    return figure


def _point(axes: Axes, place: int, teeth: Mapping[str, float]) -> None:
    """One claim: its ratio, and in words what it is made of."""
    ratio = teeth["printed"] / teeth["accepts"] if teeth["accepts"] else _HIGH
    x = min(ratio, _HIGH)
    axes.plot([1, x], [place, place], color="#bbbbbb", linewidth=1, zorder=1)
    axes.plot(x, place, "o", color=BLUE, markersize=5)
    if teeth["printed"] != 1 and ratio > 1.05:
        axes.annotate(
            f"{teeth['accepts']:.3g} for {teeth['printed']:g}",
            (x, place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=6.5,
            color=NOTE,
        )


def _sections(axes: Axes, places: Sequence[int], names: Sequence[str]) -> None:
    """The name of each section at the right, beside its first claim, and a rule above it."""
    before = ""
    for place, name in zip(places, names, strict=True):
        if name == before:
            continue
        if before:
            axes.axhline(place + 0.5, color="#cccccc", linewidth=0.6)
        axes.annotate(
            name,
            (1.0, place),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=NOTE,
            annotation_clip=False,
        )
        before = name
