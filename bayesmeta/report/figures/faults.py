"""Which claim rests on which, and where the faults enter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.claims.faults import Fault
from bayesmeta.report.figures.style import (
    BLUE,
    INK,
    NOTE,
    ORANGE,
    SMALL,
    new_figure,
    note_below,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDE, _TALL, _HALF = 2.1, 0.34, 0.9
"""Inches from column to column and from row to row; the width of a box, in columns."""
CIRCLED = "①②③④⑤⑥⑦⑧⑨"
"""The numbers of faults, in pictures and text."""


def figure_graph(
    uses: Mapping[str, Sequence[str]],
    faults: Sequence[Fault],
    verdicts: Mapping[str, str],
) -> Figure:
    """From lemmas (left) to theorems (right): an arrow from a claim to each that cites it, unless
    another does so in between. Violated claims are filled, and carry the numbers of the faults that
    break them."""
    shown = without_shortcuts(uses)
    columns = _columns(shown)
    chains = _chains(shown, columns)
    places = _places(chains, columns)
    tallest = max(len(column) for column in columns)
    figure = new_figure(_WIDE * len(columns), _TALL * tallest + 1.0)
    axes = figure.subplots()
    for chain in chains:
        _arrow(axes, [places[name] for name in chain], verdicts[chain[0]] == "violated")
    for name, place in ((name, at) for name, at in places.items() if name in verdicts):
        broken = "".join(CIRCLED[k] for k, one in enumerate(faults) if name in one.breaks)
        _box(axes, place, name, verdicts[name] == "violated", broken)
    axes.set_xlim(-0.6, len(columns) - 0.4)
    axes.set_ylim(-tallest / 2 - 1.6, tallest / 2 + 0.6)
    axes.axis("off")
    lines = [
        f"{CIRCLED[k]} {fault.name}" for k, fault in enumerate(faults) if _shown(fault, places)
    ]
    half = -(-len(lines) // 2)
    rows = ["     ".join(lines[:half]), "     ".join(lines[half:])]
    axes.text(
        -0.5,
        -tallest / 2 - 0.5,
        "faults:   " + "\n               ".join(rows),
        fontsize=SMALL + 1,
        color=ORANGE,
        va="top",
    )
    note_below(
        figure,
        "box: a claim    arrow: to what cites it    filled, in bold: violated as printed    "
        "number: the fault that breaks it",
    )
    return figure


def _shown(fault: Fault, places: Mapping[str, tuple[float, float]]) -> bool:
    return any(name in places for name in fault.breaks)


def _columns(uses: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Claims by their distance from what nothing cites, the furthest first."""
    names = list(dict.fromkeys([*uses, *(one for lowers in uses.values() for one in lowers)]))
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for upper, lowers in uses.items():
            for lower in lowers:
                depth[lower] = max(depth[lower], depth[upper] + 1)
    deepest = max(depth.values())
    return [[name for name in names if depth[name] == deepest - k] for k in range(deepest + 1)]


def without_shortcuts(uses: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """What a claim cites, less what it also cites through another."""

    def below(name: str) -> set[str]:
        lowers = uses.get(name, ())
        return set(lowers).union(*(below(lower) for lower in lowers))

    return {
        upper: [one for one in lowers if not any(one in below(other) for other in lowers)]
        for upper, lowers in uses.items()
    }


def _chains(uses: Mapping[str, Sequence[str]], columns: Sequence[list[str]]) -> list[list[str]]:
    """From a claim to each that cites it; where columns lie between, through a place of its own in
    each of them, which is added to the column, so that no arrow runs behind a box."""
    column = {name: k for k, names in enumerate(columns) for name in names}
    chains = []
    for upper, lowers in uses.items():
        for lower in lowers:
            between = range(column[lower] + 1, column[upper])
            stops = {k: f"{lower} to {upper}, {k}" for k in between}
            for k, stop in stops.items():
                columns[k].append(stop)
            chains.append([lower, *stops.values(), upper])
    return chains


def _places(
    chains: Sequence[Sequence[str]], columns: Sequence[list[str]]
) -> dict[str, tuple[float, float]]:
    """Column and height of each claim: in a column by the mean height of what cites it."""
    places: dict[str, tuple[float, float]] = {}
    pairs = [pair for chain in chains for pair in pairwise(chain)]
    for k in reversed(range(len(columns))):
        citing = {
            name: [places[upper][1] for lower, upper in pairs if lower == name]
            for name in columns[k]
        }
        wanted = {name: float(np.mean(heights or [0.0])) for name, heights in citing.items()}
        order = sorted(columns[k], key=lambda name: -wanted[name])
        for row, name in enumerate(order):
            places[name] = (float(k), (len(order) - 1) / 2 - row)
    return places


def _arrow(axes: Axes, stops: Sequence[tuple[float, float]], bad: bool) -> None:
    """From the right of the first box to the left of the last, level where it passes others."""
    color, width = (ORANGE, 1.1) if bad else ("#b0b0b0", 0.7)
    path = [(x + side * _HALF / 2, y) for x, y in stops for side in (-1, 1)][1:-1]
    axes.plot(*zip(*path[:-1], strict=True), color=color, linewidth=width, zorder=1)
    axes.annotate(
        "",
        xy=path[-1],
        xytext=path[-2],
        arrowprops={
            "arrowstyle": "-|>",
            "color": color,
            "linewidth": width,
            "mutation_scale": 7,
            "shrinkA": 0,
            "shrinkB": 0,
        },
        zorder=1,
    )


def _box(axes: Axes, place: tuple[float, float], name: str, bad: bool, faults: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = place
    axes.add_patch(
        FancyBboxPatch(
            (x - _HALF / 2, y - 0.33),
            _HALF,
            0.66,
            boxstyle="round,pad=0,rounding_size=0.04",
            mutation_aspect=4,
            facecolor="#fbe3d6" if bad else "white",
            edgecolor=ORANGE if bad else BLUE,
            linewidth=1.3 if bad else 0.9,
            zorder=2,
        )
    )
    label = f"{name} {faults}".strip()
    weight = "bold" if bad else "normal"
    size = 8 if len(label) < 26 else 6.5
    axes.text(x, y, label, ha="center", va="center", fontsize=size, weight=weight, color=INK)
    if name in ("theorem-1", "theorem-2"):
        axes.text(x, y + 0.5, "survives repaired", ha="center", fontsize=SMALL, color=NOTE)
