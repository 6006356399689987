"""Figure of closed forms and the posterior side by side, on the same data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayesmeta.report.figures.bands import band, log_ends
from bayesmeta.report.figures.style import (
    FAINT,
    End,
    Look,
    clean,
    label_ends,
    method_look,
    new_figure,
    note_below,
)
from bayesmeta.studies.bayes import METHODS, PLAYED

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RULES = {"threshold": "explored as in Section 6", "tau=50": "50 steps of exploration"}


def figure_compared(record: xr.Dataset) -> Figure:
    """Errors of mean and covariance with the radii stated for them, and the next task's regret."""
    rules = record.rule.values.tolist()
    figure = new_figure(15, 4.3 * len(rules))
    panels = figure.subplots(len(rules), 3, squeeze=False)
    for row, rule in zip(panels, rules, strict=True):
        here, where = record.sel(rule=rule), _RULES[rule]
        same_mean = [name for name in METHODS if not name.startswith("widened")]
        _errors(row[0], here, "mean", same_mean)  # widening leaves the mean alone
        row[0].set_ylabel(r"$\|\hat\mu-\mu_*\|$ (log scale)")
        _errors(row[1], here, "cov", METHODS)
        row[1].set_ylabel(r"$\|\hat\Sigma-\Sigma_*\|_{\rm op}$ (log scale)")
        regret = in_units(here.regret, here.regret.sel(played="KTS"))
        row[2].set_ylim(0.9, 6)
        row[2].axhline(1, color=FAINT, linewidth=0.8)
        draw_curves(row[2], [(regret.sel(played=name), method_look(name)) for name in PLAYED])
        row[2].set_yticks([1, 2, 3, 5], ["1", "2", "3", "5"])
        row[2].minorticks_off()
        row[2].set_ylabel("regret of the next task\n(KTS = 1, log scale)")
        titles = ("Error of the mean", "Error of the covariance", "Next task")
        for axes, title in zip(row, titles, strict=True):
            clean(axes, f"{title}, {where}")
    for axes in panels[-1]:
        axes.set_xlabel("tasks $n$ (log scale)")
    note_below(
        figure,
        f"lines: means over {record.sizes['run']} runs, with 95% intervals    dotted: what is said "
        "about the error with probability 95%",
    )
    return figure


def _errors(axes: Axes, here: xr.Dataset, part: str, methods: Sequence[str]) -> None:
    """Errors of estimates, and the radii that the paper and the posterior state for them."""
    error, radius = here[f"{part}_error"], here[f"{part}_radius"]
    curves = [(error.sel(estimate=name), method_look(name)) for name in methods]
    curves.append((radius.sel(radius="E_m, E_s at 95%"), method_look("E_m, E_s at 95%")))
    curves.append((radius.sel(radius="posterior"), method_look("posterior radius")))
    draw_curves(axes, curves)


def in_units(regret: xr.DataArray, of: xr.DataArray) -> xr.DataArray:
    """Runs whose mean is the ratio of mean regrets, and whose spread is that of the ratio, regret
    and unit being those of the same tasks (the delta method)."""
    unit = of.mean("run")
    return (regret - regret.mean("run") / unit * (of - unit)) / unit


def draw_curves(axes: Axes, curves: Sequence[tuple[xr.DataArray, Look]]) -> None:
    """Lines of means over runs against n, with their intervals and their names at the end."""
    axes.set(xscale="log", yscale="log")
    ends = []
    for values, style in curves:
        mean = values.mean("run")
        band(axes, values.n.values, *log_ends(values.transpose("run", "n").values), style)
        axes.plot(values.n, mean, **style.options())
        ends.append(End(float(values.n[-1]), float(mean[-1]), style))
    label_ends(axes, ends)
