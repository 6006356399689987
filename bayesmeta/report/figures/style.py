"""Figures: they draw what ``summaries`` and ``records`` computed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array
from bayesmeta.simulation.records import cumulative
from bayesmeta.simulation.summaries import normaliser

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayesmeta.estimators.estimate import PriorEstimate
    from bayesmeta.statistics import TaskStatistics


INK, NOTE, FAINT, GRID = "#222222", "#555555", "#999999", "#e6e6e6"
"""Colours of labels, of notes, of lines of reference and of grids."""
BLUE, ORANGE, BAND = "#0072B2", "#D55E00", "#dddddd"
"""Two colours that contrast for everybody, and what fills a band."""
TITLE, LABEL, SMALL = 11.0, 9.5, 8.0
"""Sizes of type: titles of panels; labels and notes; ticks with long names."""
LINE, THIN, MARKER = 1.6, 0.7, 4.5
"""Widths of lines and leaders, and size of markers, in points."""
DPI = 110
"""Resolution of the figures that are kept."""


class Look(NamedTuple):
    """How a line is drawn: label, colour, dashes and marker, readable without the colour."""

    label: str
    color: str
    line: Any
    marker: str

    def options(self, marked: bool = True) -> dict[str, Any]:
        """The arguments of matplotlib's ``plot``."""
        dots = {"marker": self.marker, "markersize": MARKER} if marked else {}
        return {"color": self.color, "linestyle": self.line, "linewidth": LINE, **dots}


# colours of Okabe and Ito, told apart by all common kinds of colour vision
_LOOKS = {
    "KTS": Look("KTS", "#000000", "-", "o"),
    "KMTS": Look("KMTS", "#E69F00", (0, (6, 2)), "s"),
    "UKTS": Look("UKTS", "#777777", (0, (1, 1)), "^"),
    "Th-MTS_tau": Look(r"Th-MTS$_\tau$", "#0072B2", "-", "D"),
    "All-MTS_tau": Look(r"All-MTS$_\tau$", "#009E73", (0, (5, 1, 1, 1)), "v"),
    "All-MTS": Look("All-MTS", "#D55E00", (0, (3, 1)), "P"),
    "REML-TS": Look("REML-TS (ours)", "#AA3377", "--", "*"),
    "ML-TS": Look("ML-TS (ours)", "#56B4E9", "--", "x"),
    "HB-TS": Look("HB-TS (ours)", "#332288", (0, (2, 1)), "h"),
    "HB-mean-TS": Look("HB-mean-TS (ours)", "#999933", (0, (4, 1, 1, 1)), "<"),
}
_SPARE = ("#CC79A7", "#56B4E9", "#F0E442", "#332288", "#882255", "#44AA99")


def look(agent: str) -> Look:
    """The look of an agent; rows the paper does not draw get a colour and marker by their name."""
    if agent in _LOOKS:
        return _LOOKS[agent]
    label = agent.replace("_tau", r"$_\tau$").replace("_rescue", r"$_{\mathrm{rescue}}$")
    order = sum(agent.encode())
    marker = "x*<>hp"[order % 6]
    return Look(label, _SPARE[order % len(_SPARE)], (0, (4, 1, 1, 1, 1, 1)), marker)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def clean(axes: Axes, title: str = "", grid: str = "both") -> None:
    """No frame, a faint grid behind the data (``grid``: "x", "y", "both" or ""), and a title."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if grid in ("x", "y", "both"):
        axes.grid(axis=grid, color=GRID, linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, fontsize=TITLE)


def note_below(figure: Figure, text: str) -> None:
    """A note under all panels."""
    figure.supxlabel(text, fontsize=LABEL, color=NOTE)


def figure_1(record: xr.Dataset, agents: Sequence[str]) -> Figure:
    """Figure 1: (a) normalised Bayesian regret, (b) mean error, (c) covariance error.

    Lines are means over runs, error bars one standard deviation over runs.
    """
    from matplotlib.figure import Figure

    total = cumulative(record)
    unit = normaliser(record)
    figure = Figure(figsize=(13.5, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    runs, last = record.sizes["run"], int(record.task[-1])
    warmups = sorted({int(n) for n in record.warmup.sel(agent=list(agents)).values if 0 < n < last})
    # before the first warm-up ends every learner uses the same prior: nothing to see
    start = max(1, round(warmups[0] * 0.8)) if warmups and last > 4 * warmups[0] else 1

    _lines(left, total.cumulative_regret / unit, agents, points=np.linspace(0, 1, 9)[1:])
    left.set(
        xlabel="task $n$",
        ylabel="Bayesian regret (KTS at the end = 1)",
        title="(a) Regret over tasks so far",
        xlim=(0, max(last, 2)),
    )
    left.set_ylim(bottom=0)
    panels = (
        (middle, total.mean_error, r"$\|\hat\mu_n-\mu_*\|$", "(b) Error of the prior mean"),
        (right, total.covariance_error, r"$\|\hat\Sigma_n-\Sigma_*\|_{\rm op}$",
         "(c) Error of the prior covariance"),
    )  # fmt: skip
    for axes, error, symbol, title in panels:
        shown = [name for name in agents if float(error.sel(agent=name).max()) > 0]
        shown_tasks = error.sel(task=error.task >= start)
        _lines(axes, shown_tasks, shown, points=np.geomspace(start / last, 1, 8)[1:], log=True)
        axes.set(
            xlabel="task $n$ (log scale)",
            ylabel=f"{symbol} (log scale)",
            title=title,
            xscale="log",
            yscale="log",
            xlim=(start, max(last, start + 1)),
        )
        for i, warmup in enumerate(warmups):
            axes.axvline(warmup, color="#bbbbbb", linewidth=0.8)
            axes.annotate(
                f" warm-up ends, $N_0={warmup}$", (warmup, 0.0), xycoords=("data", "axes fraction"),
                xytext=(0, 4 + 11 * i), textcoords="offset points", fontsize=8, color="#777777",
            )  # fmt: skip
    bars = (
        f"mean over {runs} runs, error bars: one standard deviation" if runs > 1 else "a single run"
    )
    kept = [str(name) for name in record.agent.values[record.recorded.values]] if (
        "recorded" in record.coords) else []  # fmt: skip
    source = f"; {', '.join(kept)} from the recorded study" if kept else ""
    figure.supxlabel(
        f"{bars}; exact zeros are not drawn on log scales{source}",
        fontsize=9, color="#555555",
    )  # fmt: skip
    return figure


def figure_fit(stats: TaskStatistics, estimate: PriorEstimate) -> Figure:
    """Every task's own estimate and its shrunken one, feature by feature, with the prior.

    Open circles: least squares, where a task determines it. Dots with bars: posterior mean and 95%
    interval under the estimated prior, whose mean and 95% range are the line and the band.
    """
    from bayesmeta.estimators.fit import task_posteriors
    from bayesmeta.statistics import TaskStatistics

    mean, cov = task_posteriors(stats, estimate)
    sd = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
    own = np.full_like(mean, np.nan)
    good = stats.determined()
    own[good] = TaskStatistics(stats.gram[good], stats.moment[good]).ols()
    order = evenly(mean[:, -1])
    half = 1.96 * np.sqrt(np.maximum(np.diag(estimate.prior.cov), 0.0))
    band = np.stack([estimate.prior.mean - half, estimate.prior.mean + half])
    return forest(
        stats.feature_labels, [stats.task_labels[j] for j in order], mean[order],
        (mean - 1.96 * sd)[order], (mean + 1.96 * sd)[order], own[order], estimate.prior.mean, band,
        len(stats), ("shrunken estimate, 95% interval", "prior mean, and where 95% of tasks lie",
                     "(bars as if the prior were known)"),
    )  # fmt: skip


SHOWN = 60
"""Tasks in a figure of tasks at most: a figure, not a phone book."""


def evenly(values: Array) -> NDArray[np.intp]:
    """Tasks in the order of a value, at most ``SHOWN`` of them, evenly spaced in rank."""
    order = np.argsort(values)
    if len(order) > SHOWN:
        order = order[np.linspace(0, len(order) - 1, SHOWN).round().astype(int)]
    return order


def forest(
    features: Sequence[Hashable], tasks: Sequence[Hashable], mean: Array, low: Array, high: Array,
    own: Array, centre: Array, band: Array, total: int, words: tuple[str, str, str],
) -> Figure:  # fmt: skip
    """Tasks below each other, a panel a feature: (tasks, features) each with dot, bar and open
    circle, and a line and a band for the prior. ``words`` say what dot, line and the whole are."""
    from matplotlib.figure import Figure

    d, rows = len(features), np.arange(len(tasks))
    figure = Figure(figsize=(1.6 + 3.6 * d, 1.8 + 0.19 * len(rows)), layout="constrained")
    panels = figure.subplots(1, d, sharey=True, squeeze=False)[0]
    for i, axes in enumerate(panels):
        axes.axvspan(*band[:, i], color="#0072B2", alpha=0.10, linewidth=0)
        axes.axvline(centre[i], color="#0072B2", linewidth=1.2)
        axes.hlines(rows, low[:, i], high[:, i], color="#000000", linewidth=1)
        axes.plot(mean[:, i], rows, "o", color="#000000", markersize=4)
        axes.plot(own[:, i], rows, "o", color="#D55E00", markersize=5, fillstyle="none")
        axes.set(xlabel="coefficient", title=shortened(str(features[i]), 36))
        axes.title.set_fontsize(10)
        axes.grid(axis="x", color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0].set_yticks(rows, [shortened(str(label), 40) for label in tasks], fontsize=8)
    last = shortened(str(features[-1]), 36)
    some = f"task ({len(rows)} of {total}, evenly by rank in {last})"
    panels[0].set_ylabel("task" if total == len(rows) else some)
    panels[0].set_ylim(-0.8, len(rows) - 0.2)
    between = "    " if d > 1 else "\n"
    figure.supxlabel(
        f"dot and bar: {words[0]}{between}open circle: the task's own least squares\n"
        f"line and band: {words[1]}\n{words[2]}",
        fontsize=9, color="#555555",
    )  # fmt: skip
    return figure


def shortened(text: str, most: int) -> str:
    """A label that fits and is no formula: cut in the middle, since long names often differ at
    their ends."""
    if len(text) > most:
        text = f"{text[: (most - 1) // 2]}…{text[len(text) - most // 2 :]}"
    return text.replace("$", r"\$")


_METHOD_LOOKS = {
    "moment": Look("moment, eq. (11)", "#0072B2", "-", "D"),
    "moment-clipped": Look("clipped", "#56B4E9", (0, (1, 1)), "^"),
    "moment-widened": Look("widened, eq. (12)", "#777777", (0, (5, 1, 1, 1)), "v"),
    "split": Look("split halves", "#E69F00", (0, (6, 2)), "s"),
    "ml": Look("ML", "#009E73", (0, (3, 1)), "P"),
    "reml": Look("REML", "#D55E00", "-", "o"),
}


def figure_estimators(record: xr.Dataset, d: int) -> Figure:
    """Error of the estimated covariance, and how often it is none, against the number of tasks."""
    from matplotlib.figure import Figure

    rules = record.rule.values.tolist()
    figure = Figure(figsize=(14.5, 6.6), layout="constrained")
    panels = figure.subplots(2, len(rules), sharex=True, sharey="row")
    for column, rule in enumerate(rules):
        upper, lower = panels[:, column]
        here = record.sel(d=d, rule=rule)
        for method, style in _METHOD_LOOKS.items():
            one = here.sel(estimator=method).where(here.available.sel(estimator=method) == 1)
            options: dict[str, Any] = {
                "color": style.color, "linestyle": style.line, "marker": style.marker,
                "markersize": 4.5, "linewidth": 1.6,
            }  # fmt: skip
            upper.plot(record.n, one.cov_rmse, **options)
            if method in ("moment", "moment-widened", "split"):
                lower.plot(record.n, 100 * one.not_psd, **options)
        what = "until threshold" if rule == "threshold" else f"{rule.removeprefix('tau=')} steps"
        upper.set(xscale="log", yscale="log", title=f"exploration: {what}")
        lower.set(xlabel="tasks $n$ (log scale)", ylim=(-4, 104))
        for axes in (upper, lower):
            axes.grid(True, color="#e6e6e6", linewidth=0.6)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
    panels[0, 0].set_ylabel("RMSE of the worst entry\nof the covariance (log scale)")
    panels[1, 0].set_ylabel("estimates with a\nnegative eigenvalue (%)")
    last = record.sel(d=d, rule=rules[-1]).isel(n=-1)
    size = float(record.n[-1])
    label_ends(
        panels[0, -1],
        [
            End(size, float(last.cov_rmse.sel(estimator=method)), style)
            for method, style in _METHOD_LOOKS.items()
        ],
    )
    label_ends(
        panels[1, -1],
        [
            End(size, float(100 * last.not_psd.sel(estimator=method)), _METHOD_LOOKS[method])
            for method in ("moment", "moment-widened", "split")
        ],
    )
    figure.supxlabel(
        f"d = {d}; clipped, ML and REML never have a negative eigenvalue; a line that is missing "
        "or stops: the method cannot be used there",
        fontsize=9, color="#555555",
    )  # fmt: skip
    return figure


def _lines(
    axes: Axes, values: xr.DataArray, agents: Sequence[str], points: Any, log: bool = False
) -> None:
    task = values.task.values
    where = np.unique(
        np.searchsorted(task, np.maximum(points * task[-1], 1)).clip(max=len(task) - 1)
    )
    ends = []
    for name in agents:
        style = look(name)
        rows = values.sel(agent=name).values
        mean = rows.mean(axis=0)
        axes.plot(task, mean, color=style.color, linestyle=style.line, linewidth=1.6)
        spread = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros_like(mean)
        axes.errorbar(
            task[where], mean[where], yerr=spread[where], linestyle="none", color=style.color,
            marker=style.marker, markersize=4.5, capsize=2, elinewidth=1,
        )  # fmt: skip
        ends.append(End(float(task[-1]), float(mean[-1]), style))
    label_ends(axes, ends)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


class End(NamedTuple):
    """Where a line ends, in the units of the data, and its look."""

    x: float
    y: float
    look: Look


def label_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Write each line's name beside the axes, with its marker and a thin leader to its end.

    Names keep the order of the ends and move as little as it takes for none to touch another. Call
    it when scales and limits are final: it fixes the limits of the axes.
    """
    if not ends:
        return
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    figure = axes.get_figure(root=True)
    assert figure is not None
    pixels = axes.transData.transform([(end.x, end.y) for end in ends])
    fractions = axes.transAxes.inverted().transform(pixels)
    inches = axes.get_window_extent().height / figure.dpi
    places = apart(fractions[:, 1], 1.35 * LABEL / 72 / inches)

    def beside(points: float) -> Any:
        """Fractions of the axes, moved to the right by so many points."""
        return axes.transAxes + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)

    for end, (x, y), place in zip(ends, fractions, places, strict=True):
        leader = {"arrowstyle": "-", "color": end.look.color, "linewidth": THIN}
        axes.annotate(
            "", (x, y), xycoords=axes.transAxes, xytext=(1.0, place), textcoords=beside(20),
            arrowprops=leader | {"shrinkA": 0, "shrinkB": 0}, annotation_clip=False,
        ).set_gid("leader")  # fmt: skip
        key = Line2D(
            [1.0], [place], marker=end.look.marker, color=end.look.color, markersize=MARKER + 1,
            transform=beside(24), clip_on=False,
        )  # fmt: skip
        axes.add_artist(key)
        axes.annotate(
            end.look.label, (1.0, place), xycoords=beside(31), va="center", color=INK,
            fontsize=LABEL, annotation_clip=False,
        ).set_gid("label")  # fmt: skip


def apart(places: Array, gap: float) -> Array:
    """The nearest places (least squares) in the same order that are at least ``gap`` apart and
    within 0 and 1 where there is room; equal places keep the order in which they are given."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(-places, kind="stable")  # from the top, as names are read
    steps = gap * np.arange(len(places))
    free = isotonic_regression(places[order] + steps, increasing=False).x
    if steps[-1] <= 1:
        free = free.clip(steps[-1], 1.0)
    out = np.empty(len(places))
    out[order] = free - steps
    return out
