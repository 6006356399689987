"""Pictures of what agents played: regret over tasks, and errors of the priors they learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.checks import Array, InputError, of_type, one_of
from bayesmeta.report.figures.lab import log_scale, panels_of
from bayesmeta.report.figures.style import (
    FAINT,
    MARKER,
    NOTE,
    SMALL,
    End,
    clean,
    label_ends,
    looks_of_agents,
    note_below,
    tone,
)
from bayesmeta.simulation.records import cumulative
from bayesmeta.simulation.summaries import NORMALISER, normaliser

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
NARROW = 30.0
"""Ratio of limits below which an axis has numbers at 1, 2 and 5 times powers of ten."""


def plot_regret(
    record: xr.Dataset, agents: Sequence[str] | None = None, *, axes: Axes | None = None
) -> Figure:
    """Bayesian regret over the tasks so far, eq. (1) summed up: a line an agent.

    Lines are means over runs, bars one standard deviation over runs, as in Figure 1. Where KTS
    was played, its regret at the end is 1; otherwise regret is in units of reward.

    Parameters
    ----------
    record : xarray.Dataset
        What ``simulate`` returned, or ``thin`` of it.
    agents : list of str, optional
        Which agents; where None all of the record but ``KTS_rescue``, which is played along for
        eq. (2).
    axes : matplotlib.axes.Axes, optional
        Where to draw; a new figure where None.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> record = bm.simulate(bm.paper_family(dim=2, horizon=10), ["KTS", "UKTS"], tasks=20, runs=2)
    >>> bm.plot_regret(record).axes[0].get_ylabel()
    'Bayesian regret (KTS at the end = 1)'
    """
    names = agents_of(record, agents)
    figure, (panel,) = panels_of(axes, 1)
    draw_regret(panel, record, names)
    if axes is None:
        note_below(figure, note_of(record, logs=False))
    return figure


def plot_errors(
    record: xr.Dataset,
    agents: Sequence[str] | None = None,
    *,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Errors of the priors that agents played with, task by task: mean and covariance.

    The norm of the mean's error and the operator norm of the covariance's, on log scales, as in
    Figure 1: lines are means over runs, bars one standard deviation over runs. An error that is
    exactly zero (of an agent that knows the truth) is not drawn.

    Parameters
    ----------
    record : xarray.Dataset
        What ``simulate`` returned, or ``thin`` of it.
    agents : list of str, optional
        Which agents; where None all of the record but ``KTS_rescue``, which is played along for
        eq. (2).
    axes : two matplotlib.axes.Axes, optional
        Where to draw; a new figure where None.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> record = bm.simulate(bm.paper_family(dim=2, horizon=20), ["KTS", "REML-TS"], tasks=20)
    >>> [panel.get_title() for panel in bm.plot_errors(record).axes]
    ['Error of the prior mean', 'Error of the prior covariance']
    """
    names = agents_of(record, agents)
    figure, panels = panels_of(axes, 2)
    draw_errors(panels, record, names)
    if axes is None:
        note_below(figure, note_of(record))
    return figure


def agents_of(record: xr.Dataset, agents: Sequence[str] | None) -> list[str]:
    """The agents asked for, where None those that are not played along; refuses what is no
    record."""
    import xarray as xr

    of_type("record", record, xr.Dataset, "give what simulate returned")
    if "agent" not in record.dims or "task" not in record.dims or "mean_error" not in record:
        raise InputError("record has no agents and tasks; give what simulate returned")
    there = [str(name) for name in record.agent.values]
    asked = [agents] if isinstance(agents, str) else agents
    if asked is None:
        return [name for name in there if not name.endswith("_rescue")] or there
    return [one_of("agents", name, there) for name in asked]


def draw_regret(axes: Axes, record: xr.Dataset, agents: Sequence[str]) -> None:
    """The panel of ``plot_regret``."""
    known, last = NORMALISER in record.agent, int(record.task[-1])
    regret = cumulative(record).cumulative_regret
    ends = _lines(axes, regret / (normaliser(record) if known else 1.0), agents, _evenly(last))
    unit = f"{NORMALISER} at the end = 1" if known else "units of reward"
    axes.set(xlabel="task $n$", ylabel=f"Bayesian regret ({unit})", xlim=(0, max(last, 2)))
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    clean(axes, "Regret over tasks so far")
    label_ends(axes, ends)


def draw_errors(panels: Sequence[Axes], record: xr.Dataset, agents: Sequence[str]) -> None:
    """The panels of ``plot_errors``."""
    total, last = cumulative(record), int(record.task[-1])
    warmups = sorted({int(n) for n in record.warmup.sel(agent=list(agents)).values if 0 < n < last})
    # before the first warm-up ends every learner uses the same prior: nothing to see
    start = max(1, round(warmups[0] * 0.8)) if warmups and last > 4 * warmups[0] else 1
    content = (
        (total.mean_error, r"$\|\hat\mu_n-\mu_*\|$", "Error of the prior mean"),
        (
            total.covariance_error,
            r"$\|\hat\Sigma_n-\Sigma_*\|_{\rm op}$",
            "Error of the prior covariance",
        ),
    )
    for axes, (error, symbol, title) in zip(panels, content, strict=True):
        shown = [name for name in agents if float(error.sel(agent=name).max()) > 0]
        axes.set(
            xlabel="task $n$ (log scale)",
            ylabel=f"{symbol} (log scale)",
            xscale="log",
            yscale="log",
            xlim=(start, max(last, start + 1)),
        )
        points = np.geomspace(start, last, 8)[1:]
        ends = _lines(axes, error.sel(task=error.task >= start), shown, points)
        low, high = axes.get_ylim()
        if high < 2 * low:  # an error that does not change
            low, high = low / 1.5, 1.5 * high
        if high < NARROW * low:
            log_scale(axes)
        axes.set_ylim(low * (low / high) ** 0.06, high)  # room for the words on warm-ups
        _warmups(axes, warmups)
        clean(axes, title)
        label_ends(axes, ends)


def _evenly(last: int) -> Array:
    """Eight tasks at equal distances."""
    return np.linspace(0, last, 9)[1:]


def note_of(record: xr.Dataset, logs: bool = True) -> str:
    """What lines and bars are, and which rows were not played but recorded."""
    runs = record.sizes["run"]
    bars = (
        f"mean over {runs} runs, error bars: one standard deviation" if runs > 1 else "a single run"
    )
    text = f"{bars}; exact zeros are not drawn on log scales" if logs else bars
    if "recorded" in record.coords and record.recorded.any():
        kept = ", ".join(str(name) for name in record.agent.values[record.recorded.values])
        text += f"; {kept} from the recorded study"
    return text


def _warmups(axes: Axes, warmups: Sequence[int]) -> None:
    """Where warm-ups end."""
    for i, warmup in enumerate(warmups):
        axes.axvline(warmup, color=tone(FAINT), linewidth=0.8)
        axes.annotate(
            f"warm-up ends, $N_0={warmup}$",
            (warmup, 0.0),
            xycoords=("data", "axes fraction"),
            xytext=(4, 4 + 12 * i),
            textcoords="offset points",
            fontsize=SMALL,
            color=tone(NOTE),
            bbox={"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 1.0},
        )  # the words of one may cross the line of the next


def _lines(axes: Axes, values: xr.DataArray, agents: Sequence[str], points: Array) -> list[End]:
    """A line an agent, with marker and bar at the tasks nearest above ``points``; their ends."""
    task = values.task.values
    where = np.unique(np.searchsorted(task, points.clip(min=1)).clip(max=len(task) - 1))
    ends = []
    for name, style in looks_of_agents(agents).items():
        rows = values.sel(agent=name).values
        mean = rows.mean(axis=0)
        spread = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros_like(mean)
        axes.plot(task, mean, **style.options(marked=False))
        axes.errorbar(
            task[where],
            mean[where],
            yerr=spread[where],
            linestyle="none",
            color=style.color,
            marker=style.marker,
            markersize=MARKER,
            capsize=2,
            elinewidth=1,
            clip_on=False,
        )
        ends.append(End(float(task[-1]), float(mean[-1]), style))
    return ends
