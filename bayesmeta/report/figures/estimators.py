"""Figure of the study of estimators: error and definiteness against the number of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.report.figures.bands import band, log_ends
from bayesmeta.report.figures.style import (
    End,
    Look,
    clean,
    label_ends,
    method_look,
    new_figure,
    note_below,
)
from bayesmeta.report.numbers import exact_share

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
        ends = (_errors(upper, here.cov_error), _shares(lower, here.not_psd, record.sizes["run"]))
        what = "until threshold" if rule == "threshold" else f"{rule.removeprefix('tau=')} steps"
        clean(upper, f"exploration: {what}")
        clean(lower)
    for axes, last in zip(panels[:, -1], ends, strict=True):
        label_ends(axes, last)
    panels[0, 0].set_ylabel(
        "root mean square of\n" r"$\|\hat\Sigma-\Sigma_*\|_{\rm op}$ (log scale)"
    )
    panels[1, 0].set_ylabel("estimates with a\nnegative eigenvalue (%)")
    note_below(
        figure,
        f"d = {d}; bands: 95% intervals over {record.sizes['run']} runs    clipped, ML and REML "
        "never have a negative eigenvalue    a line that is missing or stops: the method cannot be "
        "used there",
    )
    return figure


def _errors(axes: Axes, values: xr.DataArray) -> list[End]:
    """Root mean square errors over runs; where each line ends."""
    ends = []
    for method in _ERRORS:
        squares = values.sel(estimator=method).transpose("run", "n").dropna("n") ** 2
        if squares.n.size:
            style, root = method_look(method), squares.mean("run") ** 0.5
            band(axes, squares.n.values, *log_ends(squares.values, 0.5), style)
            ends.append(_line(axes, root, style))
    return ends


def _shares(axes: Axes, values: xr.DataArray, runs: int) -> list[End]:
    """Shares of runs in per cent, with exact intervals; where each line ends."""
    ends = []
    for method in _INDEFINITE:
        one, style = values.sel(estimator=method).dropna("n"), method_look(method)
        if one.n.size:
            found = [exact_share(round(float(share) * runs), runs) for share in one]
            low, high = (100 * np.array([each[end] for each in found]) for end in (1, 2))
            band(axes, one.n.values, low, high, style)
            ends.append(_line(axes, 100 * one, style))
    return ends


def _line(axes: Axes, values: xr.DataArray, style: Look) -> End:
    """A line, and where it ends."""
    axes.plot(values.n, values, **style.options())
    return End(float(values.n[-1]), float(values[-1]), style)
