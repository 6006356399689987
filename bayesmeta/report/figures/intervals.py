"""Figure of the study of intervals: how often each kind covers the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.report.figures.style import (
    BLUE,
    FAINT,
    INK,
    LABEL,
    ORANGE,
    clean,
    new_figure,
    note_below,
)
from bayesmeta.report.numbers import exact_share

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

_LOOKS = {"wald": (ORANGE, "s"), "profile": (INK, "o"), "bootstrap": (BLUE, "^")}


def figure_intervals(record: xr.Dataset, level: float) -> Figure:
    """Coverage of every quantity with exact 95% intervals, a panel a number of tasks."""
    sizes, names = record.n.values.tolist(), record.quantity.values.tolist()
    figure = new_figure(12, 4.2)
    panels = figure.subplots(1, len(sizes), sharex=True, sharey=True)
    for axes, n in zip(panels, sizes, strict=True):
        axes.axvline(100 * level, color=FAINT, linewidth=1)
        for k, (method, (color, marker)) in enumerate(_LOOKS.items()):
            here = record.sel(n=n, interval=method)
            for i in range(len(names)):
                of = int(here.available[i])
                if not of:
                    continue
                share, row = exact_share(int(here.covered[i]), of), i + 0.22 * (k - 1)
                axes.hlines(row, 100 * share.low, 100 * share.high, color=color, linewidth=1)
                axes.plot(100 * share.mean, row, marker, color=color, markersize=4)
                if i == 0 and n == sizes[-1]:  # beside the last panel, further apart than the bars
                    axes.text(
                        1.02, i + 0.32 * (k - 1), method, color=color, fontsize=LABEL, va="center",
                        transform=axes.get_yaxis_transform(),
                    )  # fmt: skip
        axes.set_xlabel("covered (%)")
        clean(axes, f"{n} tasks", grid="x")
    panels[0].set_yticks(np.arange(len(names)), names)
    panels[0].invert_yaxis()
    panels[0].set_xticks(range(80, 101, 5))
    note_below(figure, "bars: exact 95% intervals over runs; line: the nominal coverage")
    return figure
