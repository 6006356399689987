"""What stands behind lines: bands of their 95% intervals over runs, and a level of reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.report.figures.style import FAINT, INK, NOTE, SMALL, Look, tone
from bayesmeta.simulation.summaries import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def band(axes: Axes, x: Array, low: Array, high: Array, style: Look) -> None:
    """A band in the colour of its line."""
    axes.fill_between(
        x, low, high, color=style.color, alpha=0.18, linewidth=0, zorder=1, label="_band"
    )


def ends(values: Array) -> tuple[Array, Array]:
    """Ends of the 95% interval of a mean over runs: values (runs, x)."""
    found = [interval(column) for column in values.T]
    return np.array([one.low for one in found]), np.array([one.high for one in found])


def log_ends(values: Array, power: float = 1.0) -> tuple[Array, Array]:
    """Ends of the 95% interval of a mean over runs, for a log axis: values (runs, x), all means
    positive; of the mean to a ``power``, such as the 0.5 of a root mean square.

    The interval is one of the logarithm, so that its lower end is positive, too.
    """
    found = [interval(column) for column in values.T]
    mean = np.array([one.mean for one in found])
    half = np.array([one.high - one.mean for one in found])
    spread = np.exp(half / mean)
    return (mean / spread) ** power, (mean * spread) ** power


def level_line(axes: Axes, height: float, words: str, decides: bool = False) -> None:
    """A line across, with its words above its right end: faint, or dark where it decides."""
    line, text = (INK, INK) if decides else (FAINT, NOTE)
    axes.axhline(height, color=tone(line), linewidth=1)
    axes.annotate(
        words,
        (1, height),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 3),
        textcoords="offset points",
        ha="right",
        fontsize=SMALL,
        color=tone(text),
    )
