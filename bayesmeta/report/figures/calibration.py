"""Calibration: the ranks of truths among draws, and how often intervals hold the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesmeta.calibration.ranks import Uniformity, band, uniformity
from bayesmeta.checks import Array
from bayesmeta.report.figures.style import (
    BAND,
    FAINT,
    INK,
    LABEL,
    SMALL,
    THIN,
    End,
    Look,
    clean,
    label_ends,
    new_figure,
    note_below,
    tone,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOOKS = {
    "mu 1": Look(r"$\mu_1$", "#000000", "-", "o"),
    "mu 2": Look(r"$\mu_2$", "#0072B2", (0, (6, 2)), "s"),
    "sd 1": Look("sd 1", "#D55E00", (0, (1, 1)), "^"),
    "sd 2": Look("sd 2", "#009E73", (0, (5, 1, 1, 1)), "v"),
    "corr": Look("corr", "#CC79A7", (0, (3, 1)), "D"),
    "Sigma 12": Look(r"$\Sigma_{12}$", "#56B4E9", (0, (8, 1)), "P"),
    "sigma": Look(r"$\sigma$", "#E69F00", "-.", "X"),
    "along mu": Look(r"along $\mu$", "#AA3377", (0, (2, 1)), "<"),
}


def figure_calibration(record: xr.Dataset, draws: int) -> Figure:
    """Distribution functions of ranks less the uniform one, with bands that hold simultaneously; a
    panel a model. The right models are drawn on a scale of their own."""
    models = record.model.values.tolist()
    figure = new_figure(11, 3.4 * -(-len(models) // 3))
    panels = figure.subplots(-(-len(models) // 3), 3, squeeze=False).ravel()
    for axes in panels[len(models) :]:
        axes.set_visible(False)
    for axes, model in zip(panels, models, strict=False):
        ranks = record["rank"].sel(model=model).dropna("quantity")
        found = {
            quantity: uniformity(ranks.sel(quantity=quantity).values, draws)
            for quantity in ranks.quantity.values.tolist()
        }
        _ranks(axes, found)
        clean(axes, model, grid="")
        axes.set_xlabel("share of draws below the truth")
    figure.supylabel("distribution of the truth's rank, less the uniform one", fontsize=LABEL)
    note_below(
        figure,
        "grey: where uniform ranks stay with probability 95%, all points together\n"
        "wrong models: on another scale; lines that leave the band far are named",
    )
    return figure


def _ranks(axes: Axes, found: Mapping[str, Uniformity]) -> None:
    """One model: its band, a line a quantity, and names with leaders to where lines are extreme."""
    largest = max(float(np.abs(one.difference).max()) for one in found.values())
    limit = 0.1 if largest < 0.09 else 0.9
    first = next(iter(found.values()))
    axes.fill_between(first.points, first.low, first.high, color=BAND, linewidth=0)
    axes.axhline(0, color=FAINT, linewidth=THIN)
    for quantity, one in found.items():
        axes.plot(one.points, one.difference, **_LOOKS[quantity].options(marked=False))
    named = {q: one for q, one in found.items() if limit < 0.5 or one.p_value < 0.01}
    axes.set_ylim(-limit, limit)
    label_peaks(axes, [peak_of(one, _LOOKS[quantity]) for quantity, one in named.items()], limit)


def peak_of(one: Uniformity, look: Look) -> End:
    """Where the distribution of ranks is furthest from the uniform one."""
    place = int(np.abs(one.difference).argmax())
    return End(float(one.points[place]), float(one.difference[place]), look)


class Covered(NamedTuple):
    """How often intervals hold the truth, at each level, by quantity."""

    title: str
    levels: Sequence[float]
    shares: Mapping[str, Array]
    runs: int


def figure_coverage(panels: Sequence[Covered]) -> Figure:
    """How often intervals hold the truth, less their level, with the band in which a line of a
    right model stays with probability 95%."""
    columns = 3
    figure = new_figure(13, 3.6 * -(-len(panels) // columns))
    grid = figure.subplots(-(-len(panels) // columns), columns, squeeze=False).ravel()
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid, panels, strict=False):
        level = np.array(panel.levels)
        low, high = band(panel.runs, level)
        axes.fill_between(level, low - level, high - level, color=BAND, linewidth=0)
        axes.axhline(0, color=FAINT, linewidth=THIN)
        ends = []
        for quantity, shares in panel.shares.items():
            axes.plot(level, shares - level, **_LOOKS[quantity].options())
            ends.append(End(float(level[-1]), float(shares[-1] - level[-1]), _LOOKS[quantity]))
        worst = max(float(np.abs(shares - level).max()) for shares in panel.shares.values())
        axes.set_ylim(*((-0.1, 0.1) if worst < 0.1 else (-0.36, 0.06)))
        axes.tick_params(labelsize=SMALL)
        clean(axes, panel.title)
        axes.set_xlabel("level of the interval")
        label_ends(axes, ends)
    figure.supylabel("share of truths inside, less the level", fontsize=LABEL)
    note_below(
        figure,
        "grey: where a line of a right model stays with probability 95%, at all levels together",
    )
    return figure


def label_peaks(axes: Axes, peaks: Sequence[End], limit: float, rows: int = 1) -> None:
    """Names with leaders to where lines are extreme: those of peaks above 0 along the top of the
    axes, which go from 0 to 1 and end at ``limit``, the others along the bottom. Long names stand
    in two ``rows``, the first and the last of them within the axes."""
    for side in (1, -1):
        those = sorted((end.x, end.y, end.look.label) for end in peaks if np.sign(end.y) == side)
        slots = (np.arange(len(those)) + 0.5) / max(len(those), 1)
        aligned = ["center"] * len(those)
        if rows > 1 and len(those) > 1:
            slots[[0, -1]], aligned[0], aligned[-1] = (0.02, 0.98), "left", "right"
        for k, ((x, y, name), slot, ha) in enumerate(zip(those, slots, aligned, strict=True)):
            axes.annotate(
                name,
                (x, y),
                xytext=(slot, side * (0.88 - 0.12 * (k % rows)) * limit),
                ha=ha,
                va="center",
                fontsize=LABEL,
                color=tone(INK),
                arrowprops={
                    "arrowstyle": "-",
                    "color": tone(FAINT),
                    "linewidth": THIN,
                    "shrinkB": 0,
                },
            ).set_gid("label")
