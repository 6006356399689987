"""Figures of the calibration lab: is the next task where the prior says it is?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.calibration.kinds import side_by_side
from bayesmeta.calibration.measures import measures
from bayesmeta.calibration.ranks import Uniformity, uniformity
from bayesmeta.report.figures.calibration import label_peaks, peak_of
from bayesmeta.report.figures.lab import chosen_tasks, named, panels_of
from bayesmeta.report.figures.style import (
    BAND,
    FAINT,
    LABEL,
    THIN,
    Look,
    clean,
    looks_of,
    note_below,
    shortened,
    tone,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = 100
"""Places at which values in (0, 1) are counted."""
FEATURES = 5
"""Panels of features at most, beside that of the distance."""
FEWEST = 10
"""Replications without which no distribution is drawn."""


def plot_next_task(
    lab: xr.Dataset, tasks: int | None = None, *, axes: Axes | Sequence[Axes] | None = None
) -> Figure:
    """The PIT of the next task's theta: its distribution less the uniform one.

    A panel for the Mahalanobis distance from the forecast's centre, whose PIT is the level of the
    ellipsoid that theta is on, and one for each of the first five features. A line that rises above
    the band at first and falls below it (or the reverse) is of a forecast that is too narrow (too
    wide); of the distance, one that stays below is too narrow.

    Parameters
    ----------
    lab : xarray.Dataset
        What ``calibrate`` returned.
    tasks : int, optional
        Which number of tasks; the largest where None.
    axes : matplotlib.axes.Axes, or several, optional
        Where to draw, one for each panel (a single one: that of the distance); a new figure where
        None.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> family = bm.paper_family(dim=2, horizon=30)
    >>> lab = bm.calibrate(family, tasks=20, estimators="reml", replications=20, jobs=1)
    >>> [panel.get_title() for panel in bm.plot_next_task(lab).axes]
    ['distance from the centre', 'x1', 'x2']
    """
    flat = side_by_side(lab)
    own = flat.sel(tasks=chosen_tasks(measures(lab), tasks))
    features = [str(name) for name in own.varying.values]
    shown = {"distance from the centre": own.pit_distance}
    one_alone = axes is not None and np.size(np.array(axes, dtype=object)) == 1
    if not one_alone:
        shown |= {name: own.pit.sel(varying=name) for name in features[:FEATURES]}
    looks = looks_of([str(name) for name in own.estimator.values])
    figure, panels = panels_of(axes, len(shown), 3)
    for panel, (title, values) in zip(panels, shown.items(), strict=True):
        clean(panel, shortened(title, 30), grid="")
        _draw(panel, values, looks)
        panel.set_xlabel("PIT of the next task", fontsize=LABEL)
        panel.set_ylabel("its distribution, less the uniform one", fontsize=LABEL)
    if axes is None:
        more = len(features) - FEATURES
        counts = own.pit_distance.notnull().sum("replication")
        few = [look.label for name, look in looks.items() if counts.sel(estimator=name) < FEWEST]
        note_below(
            figure,
            f"{int(own.tasks)} tasks, one next task of each of {own.sizes['replication']} "
            "replications; grey: where right forecasts stay with probability 95%, all points "
            "together"
            + (f"; {more} more features are not shown" if more > 0 else "")
            + (f"; with fewer than {FEWEST} forecasts, not shown: {', '.join(few)}" if few else ""),
        )
    return figure


def _draw(axes: Axes, values: xr.DataArray, looks: dict[str, Look]) -> None:
    found: dict[str, Uniformity] = {}
    axes.axhline(0, color=tone(FAINT), linewidth=THIN)
    for name in looks:
        pit = values.sel(estimator=name).dropna("replication").values
        if len(pit) >= FEWEST:
            found[name] = uniformity(np.minimum(np.floor(STEPS * pit), STEPS - 1), STEPS - 1)
    if not found:
        return
    widest = max(found.values(), key=lambda one: float((one.high - one.low).max()))
    grey = tone(BAND)
    axes.fill_between(widest.points, widest.low, widest.high, color=grey, linewidth=0, zorder=0)
    for name, one in found.items():
        axes.plot(one.points, one.difference, label=name, **looks[name].options(marked=False))
    shares = values.notnull().mean("replication")
    peaks = [
        peak_of(one, named(looks[name], shares.sel(estimator=name).values))
        for name, one in found.items()
    ]
    limit = 1.6 * max(max(abs(end.y) for end in peaks), float(widest.high.max()))
    axes.set_ylim(-limit, limit)
    label_peaks(axes, peaks, limit, rows=2)
