"""Figure of simulation-based calibration: ranks against the uniform law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def figure_calibration(record: xr.Dataset, draws: int) -> Figure:
    """Distribution functions of ranks less the uniform one, with bands that hold simultaneously."""
    from matplotlib.figure import Figure

    from bayesmeta.calibration.ranks import Uniformity, uniformity

    models = record.model.values.tolist()
    figure = Figure(figsize=(11, 3.2 * -(-len(models) // 3)), layout="constrained")
    panels = figure.subplots(-(-len(models) // 3), 3, squeeze=False).ravel()
    lines = ("-", (0, (6, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1)), (0, (8, 1)), "-.")
    colors = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
    for axes in panels[len(models) :]:
        axes.set_visible(False)
    for axes, model in zip(panels, models, strict=False):
        ends: list[tuple[str, Uniformity]] = []
        for k, quantity in enumerate(record.quantity.values.tolist()):
            ranks = record["rank"].sel(model=model, quantity=quantity).values
            if np.isnan(ranks).any():
                continue
            found = uniformity(ranks, draws)
            if not ends:
                axes.fill_between(found.points, found.low, found.high, color="#dddddd", linewidth=0)
            axes.plot(found.points, found.difference, color=colors[k], linestyle=lines[k],
                      label=quantity)  # fmt: skip
            ends.append((quantity, found))
        far = [(q, f) for q, f in ends if f.p_value < 0.01]
        largest = max(float(np.abs(f.difference).max()) for _, f in ends)
        limit = 0.1 if largest < 0.09 else 0.8
        for k, (q, f) in enumerate(far):
            place = int(len(f.points) * (0.2 + 0.25 * k))
            axes.annotate(q, (f.points[place], f.difference[place]), fontsize=8, ha="center",
                          xytext=(0, 6 if f.difference[place] > 0 else -12),
                          textcoords="offset points")  # fmt: skip
        if not far:
            axes.legend(fontsize=7, ncols=2, frameon=False, loc="lower center", handlelength=2.5)
        axes.set_ylim(-limit, limit)
        axes.set(title=model, xlabel="share of draws below the truth")
        axes.title.set_fontsize(10)
        axes.axhline(0, color="#888888", linewidth=0.7)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.supylabel("share of runs with such a rank or a smaller one, less the uniform law",
                     fontsize=9)  # fmt: skip
    figure.supxlabel(
        "grey: where uniform ranks stay with probability 95%, all points together; lines that "
        "leave it far are named; the vertical scales differ",
        fontsize=9, color="#555555",
    )  # fmt: skip
    return figure
