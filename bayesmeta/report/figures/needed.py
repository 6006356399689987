"""How many tasks the theorems ask for, as printed, repaired and sharpened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bayesmeta.report.figures.style import (
    BLUE,
    FAINT,
    INK,
    LABEL,
    LINE,
    NOTE,
    ORANGE,
    clean,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS = {
    "printed": (FAINT, (0, (1, 1)), "^"),
    "repaired": (ORANGE, "--", "s"),
    "sharpened": (BLUE, "-", "o"),
}


def figure_needed(
    ratios: Sequence[float],
    needed: Mapping[str, Sequence[float]],
    experiment: Mapping[str, float],
    played: int,
) -> Figure:
    """Required N against signal-to-noise: ``needed`` by version at the ``ratios``; at the ratio of
    the paper's experiment, given as ``experiment["ratio"]``, single points."""
    figure = new_figure(7.6, 4.3)
    axes = figure.subplots()
    for name, values in needed.items():
        color, line, marker = _LOOKS[name]
        axes.loglog(ratios, values, linestyle=line, color=color, linewidth=LINE)
        axes.annotate(
            name,
            (ratios[0], values[0]),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=LABEL,
            color=color if name != "printed" else NOTE,
        )
        axes.plot(experiment["ratio"], experiment[name], marker, color=color, markersize=6)
    axes.annotate(
        "the paper's\nexperiment",
        (experiment["ratio"], experiment["sharpened"]),
        xytext=(9, 4),
        textcoords="offset points",
        fontsize=LABEL - 1,
        color=NOTE,
    )
    axes.axhline(played, color=INK, linewidth=0.8)
    axes.text(ratios[-1], played * 1.5, f"N = {played:,}", ha="right", fontsize=LABEL, color=INK)
    axes.set_xlim(min(ratios) / 100, max(ratios) * 1.3)
    axes.set_ylim(1, 30 * max(values[0] for values in needed.values()))
    axes.minorticks_off()
    axes.set_xlabel(r"signal-to-noise, $\lambda_{\min}(\Sigma_*)\, a^2/\sigma^2$")
    axes.set_ylabel("tasks until the prior costs no more than R")
    clean(axes)
    return figure
