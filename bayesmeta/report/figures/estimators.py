"""Figure of the study of estimators: error and definiteness against the number of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayesmeta.report.figures.style import (
    End,
    clean,
    label_ends,
    method_look,
    new_figure,
    note_below,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ERRORS = ("moment", "moment-clipped", "moment-widened", "split", "ml", "reml")
_INDEFINITE = ("moment", "moment-widened", "split")
"""The methods drawn above, and those below, whose estimates can have a negative eigenvalue."""


def figure_estimators(record: xr.Dataset, d: int) -> Figure:
    """Error of the estimated covariance, and how often it is none, against the number of tasks."""
    rules = record.rule.values.tolist()
    figure = new_figure(15, 6.8)
    panels = figure.subplots(2, len(rules), sharex=True, sharey="row")
    ends: tuple[list[End], list[End]] = ([], [])
    for column, rule in enumerate(rules):
        upper, lower = panels[:, column]
        here = record.sel(d=d, rule=rule)
        here = here.where(here.available == 1)
        upper.set(xscale="log", yscale="log")
        lower.set(xlabel="tasks $n$ (log scale)", ylim=(-4, 104))
        ends = (
            _lines(upper, here.cov_rmse, _ERRORS),
            _lines(lower, 100 * here.not_psd, _INDEFINITE),
        )
        what = "until threshold" if rule == "threshold" else f"{rule.removeprefix('tau=')} steps"
        clean(upper, f"exploration: {what}")
        clean(lower)
    for axes, last in zip(panels[:, -1], ends, strict=True):
        label_ends(axes, last)
    panels[0, 0].set_ylabel("RMSE of the worst entry\nof the covariance (log scale)")
    panels[1, 0].set_ylabel("estimates with a\nnegative eigenvalue (%)")
    note_below(
        figure,
        f"d = {d}; clipped, ML and REML never have a negative eigenvalue; a line that is missing "
        "or stops: the method cannot be used there",
    )
    return figure


def _lines(axes: Axes, values: xr.DataArray, methods: tuple[str, ...]) -> list[End]:
    """Draw a line a method; where each ends."""
    ends = []
    for method in methods:
        one, style = values.sel(estimator=method), method_look(method)
        axes.plot(values.n, one, **style.options())
        ends.append(End(float(values.n[-1]), float(one[-1]), style))
    return ends
