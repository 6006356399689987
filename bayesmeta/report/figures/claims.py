"""How loose the paper's inequalities are, and by how much some of them fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bayesmeta.report.figures.style import BLUE, LABEL, NOTE, ORANGE, SMALL, clean, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOW, _HIGH = 1e-3, 1e6
"""Ratios beyond are drawn here."""
_HOLDS, _FAILS = BLUE, ORANGE


def figure_slack(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Every printed inequality: its bound over what was found, at the point where it is tightest;
    crosses left of the line are violated claims. ``rows`` are those of ``claims.json``."""
    shown = [
        row
        for row in rows
        if row["group"] == "printed"
        and row["kind"] in "DPE"
        and row["section"] != "experiment"  # orderings
        and row["loose_by"] is not None
    ]
    figure = new_figure(8.2, 0.19 * len(shown) + 1.2)
    axes = figure.subplots()
    places = list(range(len(shown)))[::-1]  # the first on top
    for place, row in zip(places, shown, strict=True):
        _point(axes, place, row)
    _sections(axes, places, [row["section"] for row in shown])
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(_LOW / 2, _HIGH * 2)
    axes.set_xticks([1e-2, 1, 1e2, 1e4, 1e6])
    axes.minorticks_off()
    axes.set_ylim(-0.7, len(shown) + 0.4)
    axes.set_yticks(places, [row["id"] for row in shown], fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("bound / what was found, where the claim is tightest (log scale)")
    axes.text(
        0.85, len(shown) - 0.4, "violated (crosses)", ha="right", fontsize=LABEL, color=_FAILS
    )
    axes.text(1.2, len(shown) - 0.4, "holds (dots)", ha="left", fontsize=LABEL, color=_HOLDS)
    clean(axes, grid="x")
    return figure


def _point(axes: Axes, place: int, row: Mapping[str, Any]) -> None:
    """One claim: its ratio, and a word where that is off the scale."""
    ratio, bad = _ratio(row), row["verdict"] == "violated"
    x = min(max(ratio, _LOW), _HIGH)
    color = _FAILS if bad else _HOLDS
    axes.plot([1, x], [place, place], color="#bbbbbb", linewidth=1, zorder=1)
    axes.plot(x, place, "x" if bad else "o", color=color, markersize=5, markeredgewidth=1.6)
    if not _LOW <= ratio <= _HIGH:
        axes.annotate(
            "fails by more" if bad else "looser still",
            (x, place),
            xytext=(6 if bad else -6, 2),
            textcoords="offset points",
            ha="left" if bad else "right",
            fontsize=6.5,
            color=color,
        )


def _ratio(row: Mapping[str, Any]) -> float:
    """The bound over what was found; 0 where that is infinite."""
    found = row["counterexample"]
    if found is not None and found["left"] is None:
        return 0.0
    return float(row["loose_by"])


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
