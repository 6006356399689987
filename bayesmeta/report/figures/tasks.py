"""Figures of tasks: each task's own estimate, its shrunken one, and the prior they share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, of_type, one_of
from bayesmeta.estimators.moments import least_squares
from bayesmeta.fitted.tables import percent
from bayesmeta.report.console import same_in_words
from bayesmeta.report.figures.lab import panels_of
from bayesmeta.report.figures.style import (
    APART,
    BLUE,
    INK,
    MARKER,
    ORANGE,
    SMALL,
    clean,
    few_ticks,
    new_figure,
    note_below,
    shortened,
    tone,
)
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayesmeta.fitted.posterior import FittedPosterior
    from bayesmeta.fitted.prior import FittedPrior

SHOWN = 60
"""Tasks in a figure of tasks at most."""
FLAT = 1e-6
"""Part of a panel's width below which its band does not show."""
CONDITIONAL = "dashed bars: conditional on a covariance that is singular or not determined"
"""Below a figure with such bars."""


class Forest(NamedTuple):
    """What a figure of tasks shows, with dimensions (tasks, features).

    ``mean``, ``low`` and ``high`` are a dot and its bar, ``own`` an open circle (NaN: none);
    ``centre`` (features) and ``band`` (2, features) are the line and the band of the prior.
    """

    mean: Array
    low: Array
    high: Array
    own: Array
    centre: Array
    band: Array

    def says(self, line: str, band: str) -> str:
        """What the line is, and the band where a panel shows one."""
        ends = np.concatenate([self.low, self.high, self.band])
        wide = np.diff(self.band, axis=0) > FLAT * (ends.max(axis=0) - ends.min(axis=0))
        if wide.any():
            return f"line and band: {line}, and {band}"
        return f"line: {line}, from which tasks are not found to differ"

    def circles(self) -> str:
        """What the open circles are; nothing where there are none."""
        found = np.isfinite(self.own)
        if not found.any():
            return ""
        where = "" if found.all() else ", where it has one"
        return f"open circle: the task's own least squares{where}"

    def among(self, features: NDArray[np.bool_]) -> Forest:
        """The same for some features."""
        return Forest(*(part[..., features] for part in self))


def plot_tasks(
    fitted: FittedPrior | FittedPosterior,
    sort: str | None = None,
    *,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """A forest of tasks with shrinkage: each one's least squares, what the fit makes of it, the
    prior.

    A panel for every feature that differs between tasks, at most 60 tasks, evenly spaced in rank.
    Open circles are least squares, where a task determines them; dots with bars are posterior means
    and intervals of the fit's level; line and band are the prior's mean and where tasks lie. Bars
    of a ``FittedPosterior`` have the doubt about the prior in them.

    Parameters
    ----------
    fitted : FittedPrior or FittedPosterior
        What ``fit`` returned.
    sort : str, optional
        The feature that orders tasks; the last one where None.
    axes : matplotlib.axes.Axes, or several, optional
        Where to draw, one for each panel; a new figure where None.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> fit = bm.fit(bm.load_data("sleepstudy"), "Reaction ~ Days + (Days | Subject)")
    >>> [panel.get_title() for panel in bm.plot_tasks(fit, sort="Days").axes]
    ['intercept', 'Days']
    """
    from bayesmeta.fitted.posterior import FittedPosterior
    from bayesmeta.fitted.prior import FittedPrior

    if isinstance(fitted, FittedPosterior):
        return figure_tasks(fitted, sort, axes)
    of_type("fitted", fitted, FittedPrior, "give what fit returned")
    return figure_fit(fitted, sort, axes)


def figure_fit(
    fitted: FittedPrior, sort: str | None = None, axes: Axes | Sequence[Axes] | None = None
) -> Figure:
    """Every task's own estimate and its shrunken one, feature by feature, with the prior.
    Tasks are in the order of the feature ``sort``, the last one where None. Features that are the
    same in all tasks are left out.

    Open circles: least squares, where a task determines it. Dots with bars: posterior mean and
    interval, of the fit's level, under the estimated prior, whose mean and range are the line and
    the band.
    """
    from scipy.stats import norm

    stats, estimate = fitted.stats, fitted.estimate
    mean, cov = fitted.moments(stats.gram, stats.moment)
    vary = stats.differs
    names = np.array(stats.feature_labels, dtype=object)
    by = place_of(sort, names[vary].tolist())
    level, z = percent(fitted.level), float(norm.isf((1 - fitted.level) / 2))
    half = z * np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
    spread = z * np.sqrt(np.maximum(np.diag(estimate.prior.cov), 0.0))
    centre = estimate.prior.mean
    order = evenly(mean[:, vary][:, by])
    mean, half, own = mean[order], half[order], least_squares(stats, undetermined="nan")[order]
    band = np.stack([centre - spread, centre + spread])
    shown = Forest(mean, mean - half, mean + half, own, centre, band).among(vary)
    return forest(
        names[vary].tolist(),
        [stats.task_labels[j] for j in order],
        shown,
        len(stats),
        f"dot and bar: shrunken estimate, {level} interval",
        shown.says("prior mean", f"where {level} of tasks lie")
        + "\n"
        + (CONDITIONAL if fitted.conditional else "(bars as if the covariance were known)")
        + _same(names[~vary].tolist()),
        by,
        fitted.conditional,
        axes,
    )


def _same(features: Sequence[Hashable]) -> str:
    """A line on features without a panel; nothing where all have one."""
    said = same_in_words(features).replace("among these columns", "shown").replace("$", r"\$")
    return f"\n{said}" if said else ""


def place_of(sort: str | None, features: Sequence[Hashable]) -> int:
    """Which feature tasks are sorted by; the last one where none is named."""
    names = [str(one) for one in features]
    return len(names) - 1 if sort is None else names.index(one_of("sort", sort, names))


def figure_tasks(
    fitted: FittedPosterior, sort: str | None = None, axes: Axes | Sequence[Axes] | None = None
) -> Figure:
    """Every task's theta given all data, feature by feature, as ``figure_fit`` has it for one
    estimate of the prior: here the doubt about the prior is in the bars and the band, which have
    the fit's level and are exact given the draws."""
    from bayesmeta.posterior.mixture import mixture_quantile, of_tasks
    from bayesmeta.posterior.tree import task_sums

    tree, stats, level = fitted.tree, fitted.stats, fitted.level
    vary, names = stats.differs, np.array(stats.feature_labels, dtype=object)
    by = place_of(sort, names[vary].tolist())
    order = evenly(fitted.task_mixtures.mixed.mean[:, vary][:, by])
    data = task_sums(tree)[["gram", "moment"]].isel(task=order)
    few = tree.from_dict(
        {"posterior": tree["posterior"], "constant_data": data, "observed_data": data}
    )
    mean, _, low, high = of_tasks(few, level).mixed  # ends take time: of those that are shown
    assert low is not None and high is not None
    posterior = tree["posterior"].to_dataset()
    mu = posterior["mu"].transpose("chain", "draw", ...).values.reshape(-1, stats.dim)
    sd = np.zeros_like(mu)
    own_sd = posterior["sd"].transpose("chain", "draw", ...).values
    sd[:, vary] = own_sd.reshape(len(mu), -1)
    ends = (1 - level) / 2, (1 + level) / 2
    band = np.stack([mixture_quantile(mu, sd, one) for one in ends])  # of one more task
    own = least_squares(
        TaskStatistics(data["gram"].values, data["moment"].values), undetermined="nan"
    )
    shown = Forest(mean, low, high, own, mu.mean(axis=0), band).among(vary)
    return forest(
        names[vary].tolist(),
        [stats.task_labels[j] for j in order],
        shown,
        len(stats),
        f"dot and bar: posterior mean, {percent(level)} interval",
        shown.says("mean of tasks", f"where one more lies with probability {percent(level)}")
        + "\n(the doubt about the prior included)"
        + _same(names[~vary].tolist()),
        by,
        given=axes,
    )


def evenly(values: Array) -> NDArray[np.intp]:
    """Tasks in the order of a value, at most ``SHOWN`` of them, evenly spaced in rank."""
    order = np.argsort(values)
    if len(order) > SHOWN:
        order = order[np.linspace(0, len(order) - 1, SHOWN).round().astype(int)]
    return order


def forest(
    features: Sequence[Hashable],
    tasks: Sequence[Hashable],
    shown: Forest,
    total: int,
    dots: str,
    band: str,
    by: int = -1,
    conditional: bool = False,
    given: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Tasks below each other, a panel a feature, of ``total`` tasks; ``dots`` and ``band`` say
    what the dots and the band are, ``by`` which feature orders tasks; bars that are conditional
    are dashed. On the axes ``given``, without a note, where there are some."""
    line = (0, (2, 1.5)) if conditional else "-"
    d, rows = len(features), np.arange(len(tasks))
    if given is None:
        figure = new_figure(1.6 + 3.6 * d, 1.8 + 0.19 * len(rows))
        panels = list(figure.subplots(1, d, sharey=True, squeeze=False)[0])
    else:
        figure, panels = panels_of(given, d)
    for i, axes in enumerate(panels):
        axes.axvspan(*shown.band[:, i], color=tone(BLUE), alpha=0.10, linewidth=0)
        axes.axvline(shown.centre[i], color=tone(BLUE), linewidth=1.2)
        low, high = shown.low[:, i], shown.high[:, i]
        axes.hlines(rows, low, high, color=tone(INK), linewidth=1, linestyle=line)
        axes.plot(shown.mean[:, i], rows, "o", color=tone(INK), markersize=MARKER)
        own = shown.own[:, i]
        axes.plot(own, rows, "o", color=tone(ORANGE), markersize=MARKER, fillstyle="none")
        axes.set_xlabel("coefficient")
        few_ticks(axes)
        clean(axes, shortened(str(features[i]), 36), grid="x")
    names = [shortened(str(label), 40) for label in tasks]
    for axes in panels[1:] if given is not None else []:  # they may share no axis
        axes.set_yticks(rows, [])
        axes.set_ylim(-0.8, len(rows) - 0.2)
    panels[0].set_yticks(rows, names, fontsize=SMALL)
    some = f"task ({len(rows)} of {total}, evenly by rank)"
    panels[0].set_ylabel("task" if total == len(rows) else some)
    panels[0].set_ylim(-0.8, len(rows) - 0.2)
    order = f"tasks in the order of {shortened(str(features[by]), 36)}"
    if given is None:
        note_below(figure, APART.join(filter(None, (dots, shown.circles(), order))) + f"\n{band}")
    return figure
