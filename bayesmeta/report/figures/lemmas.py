"""Pictures of bounds beside what they bound, for a closer look at single lemmas (notebook 04)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.report.figures.bands import level_line
from bayesmeta.report.figures.prior import plot_prior
from bayesmeta.report.figures.style import (
    BLUE,
    FAINT,
    INK,
    LABEL,
    NOTE,
    ORANGE,
    SMALL,
    TITLE,
    End,
    Look,
    clean,
    label_ends,
    looks_of,
    new_figure,
    tone,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = (
    (BLUE, "-", "o"),
    (ORANGE, (0, (5, 2)), "s"),
    ("#009E73", (0, (1, 1)), "^"),
    ("#777777", (0, (5, 1, 1, 1)), "D"),
)
"""Colour, dashes and marker of the first line, the second, and so on."""
_RULES = {"eq. (8)": (BLUE, "D"), "Section 6's rule": (ORANGE, "s")}
"""Colour and marker of a row by the rule of exploration that its name ends with."""


def figure_events(ratios: Mapping[str, Array]) -> Figure:
    """Quantities over their bounds, on a log scale: a violin and the median of each, and its
    largest value in words. An event fails where its ratio is beyond 1."""
    figure = new_figure(9.0, 0.5 * len(ratios) + 0.8)
    axes = figure.subplots()
    places = range(len(ratios))[::-1]  # the first on top
    for place, (name, values) in zip(places, ratios.items(), strict=True):
        looks = (look for end, look in _RULES.items() if name.endswith(end))
        color, marker = next(looks, (NOTE, "o"))
        logs = np.log10(values)
        body = axes.violinplot(
            logs, [place], orientation="horizontal", showextrema=False, widths=0.9, points=200
        )
        body["bodies"][0].set(facecolor=color, alpha=0.35, edgecolor=color)  # type: ignore[index]
        axes.plot(np.median(logs), place, marker, color=tone(color), markersize=5)
        text = f"largest of {len(values):,}: 1/{10 ** -logs.max():,.3g} of the bound"
        axes.text(0.12, place, text, va="center", fontsize=SMALL, color=tone(INK))
    axes.axvline(0, color=tone(INK), linewidth=1)
    beyond = "beyond the line the event fails"
    axes.text(0.12, len(ratios) - 0.5, beyond, va="center", fontsize=SMALL, color=tone(NOTE))
    axes.set(xlim=(-4.6, 2.2), ylim=(-0.7, len(ratios) - 0.1))
    axes.set_xticks(range(-4, 1), [f"$10^{{{k}}}$" for k in range(-4, 1)])
    axes.set_yticks(places, list(ratios))
    axes.set_xlabel("quantity / its bound: distribution and median", loc="left")
    clean(axes, grid="x")
    return figure


def figure_lines(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    xlabel: str,
    ylabel: str,
    *,
    level: tuple[float, str] | None = None,
    straight: bool = False,
) -> Figure:
    """At most four lines on logarithmic scales, their names at their right ends. ``level`` is a
    height that decides, and what it says; with ``straight`` the scale of x is linear."""
    figure = new_figure(7.2, 3.3)
    panel = figure.subplots()
    ends = []
    for (name, values), style in zip(lines.items(), _LINES[: len(lines)], strict=True):
        look = Look(name, *style).toned()
        panel.plot(x, values, label=name, **look.options(marked=len(x) < 12))
        far = int(np.argmax(x))
        ends.append(End(float(x[far]), float(values[far]), look))
    panel.set(xscale="linear" if straight else "log", yscale="log")
    if level is not None:
        level_line(panel, *level, decides=True)
    panel.minorticks_off()
    panel.set_xlabel(xlabel, fontsize=LABEL)
    panel.set_ylabel(ylabel, fontsize=LABEL)
    clean(panel)
    label_ends(panel, ends)
    return figure


def figure_stages(stages: Mapping[str, float], xlabel: str) -> Figure:
    """From what happens (above) to what is claimed (below, a square), on a log scale."""
    figure = new_figure(8.0, 0.45 * len(stages) + 0.7)
    axes = figure.subplots()
    low, high = min(stages.values()) / 5, max(stages.values()) * 8
    places = range(len(stages))[::-1]
    for place, value in zip(places, stages.values(), strict=True):
        color, marker = (BLUE, "o") if place else (ORANGE, "s")
        axes.plot([low, value], [place, place], color=tone(FAINT), linewidth=1, zorder=1)
        axes.plot(value, place, marker, color=tone(color), markersize=8)
        said = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        axes.text(value * 1.25, place, said, va="center", fontsize=LABEL)
    axes.set_yticks(places, list(stages))
    axes.set_xscale("log")
    axes.set(xlim=(low, high), ylim=(-0.6, len(stages) - 0.4))
    axes.minorticks_off()
    axes.set_xlabel(xlabel, fontsize=LABEL)
    clean(axes, grid="x")
    return figure


def figure_alignment(
    priors: Mapping[str, GaussianPrior],
    actions: Mapping[str, Array],
    posteriors: Mapping[str, GaussianPrior],
    theta: Array,
) -> Figure:
    """Two learners, each by name: their priors, the actions that they explore with, and their
    posteriors, as ellipses that hold two thirds."""
    figure = new_figure(12.0, 3.6)
    left, middle, right = figure.subplots(1, 3)
    steps = len(next(iter(actions.values())))
    for axes, those, title in (
        (left, priors, "before"),
        (right, posteriors, rf"after {steps} steps (circle: $\theta$)"),
    ):
        axes.set(xlim=(-1.8, 3.0), ylim=(-1.4, 3.4), aspect="equal")
        plot_prior(those, tasks=theta[None] if axes is right else None, level=2 / 3, axes=axes)
        axes.set_title(title, fontsize=TITLE)
    far = 1.1 * max(float(np.abs(one).max()) for one in actions.values())
    middle.set(xlim=(-far, far), ylim=(-far, far), aspect="equal")
    ends = []
    for name, look in looks_of(list(actions)).items():
        arrow = {"arrowstyle": "->", "color": look.color, "linestyle": look.line}
        rows = actions[name]
        for row in rows:
            middle.annotate("", row, (0, 0), arrowprops=arrow)
        first = rows[int(np.argmax(rows[:, 0]))]
        ends.append(End(float(first[0]), float(first[1]), look))
    clean(middle, "actions of exploration")
    label_ends(middle, ends)
    return figure
