"""Picture of priors: the truth, estimates and draws, as ellipses that hold a share of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Array, InputError, is_covariance, whole
from bayesmeta.environment import TaskFamily
from bayesmeta.fitted.quantities import checked_level
from bayesmeta.fitted.tables import percent
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.report.figures.ellipse import POINTS, ellipse, within
from bayesmeta.report.figures.lab import panels_of
from bayesmeta.report.figures.shown import (
    Shown,
    among,
    by_name,
    chosen_features,
    points_of,
    shown_of,
)
from bayesmeta.report.figures.style import (
    APART,
    BAND,
    INK,
    LABEL,
    MARKER,
    ORANGE,
    THIN,
    End,
    Look,
    clean,
    few_ticks,
    label_ends,
    looks_of,
    new_figure,
    note_below,
    tone,
)
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayesmeta.report.figures.shown import Source

CROWD = 200
"""Circles beyond which they are faint, so that curves show."""
NONE = "no covariance"
"""What a name says of an estimate with a negative eigenvalue: there is no ellipse."""


def plot_prior(
    priors: Source | Mapping[str, Source],
    *,
    truth: GaussianPrior | TaskFamily | None = None,
    tasks: TaskStatistics | Array | None = None,
    features: Sequence[str] | None = None,
    level: float = 0.9,
    draws: int = 30,
    axes: Axes | Sequence[Axes] | None = None,
) -> Figure:
    """Priors as ellipses, each of which holds the same share of tasks, with its mean.

    A panel for every pair of features; densities where there is one feature. The truth is filled,
    estimates are lines with the looks of their methods, of a posterior that of its mean and, thin,
    those of some draws. An estimate that is no covariance (eq. (11) with few tasks) has a mean and
    no ellipse, and its name says so.

    Parameters
    ----------
    priors : a prior, an estimate, a fit or draws, or a dict of them by name
        What ``GaussianPrior``, ``fit_prior``, ``fit`` or ``sample_posterior`` returned. Names that
        begin with a method's, such as ``"reml"``, get its look.
    truth : GaussianPrior or TaskFamily, optional
        The true prior, where it is known.
    tasks : TaskStatistics or array, shape (n, d), optional
        Tasks to show as open circles: their least-squares estimates, or thetas.
    features : list of str, optional
        Which features to show; at most six, the first six where None.
    level : float
        Share of tasks that an ellipse holds.
    draws : int
        How many draws of a posterior are shown.
    axes : matplotlib.axes.Axes, or several, optional
        Where to draw: a panel for every pair, row by row; a new figure where None.

    Returns
    -------
    matplotlib.figure.Figure
        That of the axes.

    Examples
    --------
    >>> family = bm.paper_family(dim=2, horizon=50)
    >>> stats = bm.simulation.statistics_of(family, bm.ROSTER["UKTS"], tasks=50, seed=0)
    >>> estimates = {name: bm.fit_prior(stats, 1.0, name) for name in ("moment", "reml")}
    >>> figure = bm.plot_prior(estimates, truth=family, tasks=stats)
    >>> [text.get_text() for text in figure.axes[0].texts if text.get_text()]
    ['truth', 'moment: no covariance', 'reml']
    """
    level = checked_level(level)
    count = whole("draws", draws, least=0)
    every = {name: shown_of(one) for name, one in by_name(priors).items()}
    if not every:
        raise InputError("priors is empty; give at least one, by name")
    if truth is not None:
        if "truth" in every:
            raise InputError("priors has one called 'truth', and truth is given; give it once")
        every = {"truth": shown_of(truth)} | every
    points = points_of(tasks)
    chosen, labels = chosen_features(every, points, features)
    every = {name: among(one, chosen, count) for name, one in every.items()}
    points = None if points is None else points[:, chosen]
    looks = _looks(every)
    d = len(chosen)
    figure, panels = _panels(axes, d)
    if d == 1:
        _densities(panels[0], every, looks, points, labels[0])
    else:
        pairs = [(j, i) for i in range(d) for j in range(i)]
        for panel, (j, i) in zip(panels, pairs, strict=True):
            ends = list(_ellipses(panel, every, looks, (j, i), level))
            _circles(panel, points, j, i)
            clean(panel)
            few_ticks(panel)
            if i == d - 1 or axes is not None:
                panel.set_xlabel(labels[j], fontsize=LABEL)
            if j == 0 or axes is not None:
                panel.set_ylabel(labels[i], fontsize=LABEL)
            if d == 2:
                label_ends(panel, ends)
        if d > 2:
            _key(figure if axes is None else panels[0], looks)
    if axes is None:
        note_below(figure, _note(every, points, tasks, level, panels))
    return figure


def _looks(every: Mapping[str, Shown]) -> dict[str, Look]:
    """Looks by name; the truth has that of text, and an estimate without ellipse says so."""
    found = looks_of([name for name in every if name != "truth"])
    for name, one in every.items():
        if name in found and not is_covariance(one.cov):
            found[name] = found[name]._replace(label=f"{found[name].label}: {NONE}")
    truth = {"truth": Look("truth", tone(INK), "-", ".")} if "truth" in every else {}
    return truth | found


def _panels(axes: Axes | Sequence[Axes] | None, d: int) -> tuple[Figure, list[Axes]]:
    """A panel, or a triangle of them."""
    if axes is not None or d == 1:
        return panels_of(axes, max(d * (d - 1) // 2, 1), 1)
    figure = new_figure(*((5.8, 4.2) if d == 2 else (1.5 + 2.2 * (d - 1), 1.0 + 2.0 * (d - 1))))
    grid = figure.subplots(d - 1, d - 1, squeeze=False, sharex="col", sharey="row")
    for row, line in enumerate(grid):
        for one in line[row + 1 :]:
            one.remove()
    return figure, [grid[i, j] for i in range(d - 1) for j in range(i + 1)]


def _ellipses(
    axes: Axes,
    every: Mapping[str, Shown],
    looks: Mapping[str, Look],
    pair: tuple[int, int],
    level: float,
) -> Iterator[End]:
    """Ellipses of all priors in two features; where each reaches furthest to the right."""
    at, part = list(pair), np.ix_(pair, pair)
    for name, one in every.items():
        look, mean = looks[name], one.mean[at]
        if one.mus is not None and one.covs is not None:
            for mu, cov in zip(one.mus, one.covs, strict=True):
                thin = ellipse(mu[at], cov[part], level)
                axes.plot(*thin, color=look.color, linewidth=THIN, alpha=0.35, gid="draw")
        end = mean
        if not look.label.endswith(NONE):
            curve = ellipse(mean, one.cov[part], level)
            if name == "truth":
                axes.fill(*curve, facecolor=tone(BAND), edgecolor=look.color, zorder=0, label=name)
            else:
                axes.plot(*curve, label=name, **look.options(marked=False))
            end = curve[:, int(np.argmax(curve[0]))]
        axes.plot(*mean, look.marker, color=look.color, markersize=MARKER + 2, gid="mean")
        yield End(float(end[0]), float(end[1]), look)


def _circles(axes: Axes, points: Array | None, j: int, i: int) -> None:
    """Tasks, within limits that the ellipses set with some room around."""
    if points is None:
        return
    axes.margins(0.25)
    axes.autoscale_view()
    axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    look = {"color": tone(ORANGE), "markersize": MARKER - 1, "fillstyle": "none", "zorder": 1}
    if len(points) > CROWD:
        look["alpha"] = 0.4
    axes.plot(points[:, j], points[:, i], "o", gid="tasks", **look)  # type: ignore[arg-type]


def _densities(
    axes: Axes,
    every: Mapping[str, Shown],
    looks: Mapping[str, Look],
    points: Array | None,
    label: str,
) -> None:
    """Densities of one feature; of what has no variance a line upwards."""
    ends = []
    for name, one in every.items():
        look = looks[name]
        if one.mus is not None and one.covs is not None:
            for mu, cov in zip(one.mus, one.covs, strict=True):
                x, y = _density(mu[0], cov[0, 0])
                axes.plot(x, y, color=look.color, linewidth=THIN, alpha=0.35, gid="draw")
        if look.label.endswith(NONE) or one.cov[0, 0] <= 0:
            axes.axvline(one.mean[0], label=name, **look.options(marked=False))
            ends.append(End(float(one.mean[0]), 0.0, look))
            continue
        x, y = _density(one.mean[0], one.cov[0, 0])
        if name == "truth":
            axes.fill_between(x, y, facecolor=tone(BAND), edgecolor=look.color, label=name)
        else:
            axes.plot(x, y, label=name, **look.options(marked=False))
        where = int(np.searchsorted(x, one.mean[0] + np.sqrt(one.cov[0, 0])))
        ends.append(End(float(x[where]), float(y[where]), look))
    if points is not None:
        color = tone(ORANGE)
        axes.plot(points[:, 0], np.zeros(len(points)), "o", color=color, fillstyle="none",
                  markersize=MARKER, gid="tasks", clip_on=False)  # fmt: skip
    axes.set_ylim(bottom=0)
    clean(axes, grid="x")
    few_ticks(axes)
    axes.set_xlabel(label, fontsize=LABEL)
    axes.set_ylabel("density of tasks", fontsize=LABEL)
    label_ends(axes, ends)


def _density(mean: float, variance: float) -> tuple[Array, Array]:
    """Of N(mean, variance), within four standard deviations."""
    sd = np.sqrt(max(variance, 1e-300))
    z = np.linspace(-4, 4, POINTS)
    return mean + sd * z, np.exp(-(z**2) / 2) / (sd * np.sqrt(2 * np.pi))


def _options(look: Look) -> dict[str, Any]:
    """A marker with its line, where there is an ellipse."""
    return look.options() | ({"linestyle": ""} if look.label.endswith(NONE) else {})


def _key(where: Any, looks: Mapping[str, Look]) -> None:
    """Names beside their lines, where the triangle of panels leaves room."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=tone(BAND), edgecolor=look.color, label=look.label)
        if name == "truth"
        else Line2D([], [], label=look.label, **_options(look))
        for name, look in looks.items()
    ]
    where.legend(handles=handles, loc="upper right", frameon=False, fontsize=LABEL)


def _note(
    every: Mapping[str, Shown],
    points: Array | None,
    tasks: object,
    level: float,
    panels: Sequence[Axes],
) -> str:
    """What curves and circles are, and how many circles are outside."""
    alone = every[next(iter(every))].mean.size == 1
    parts = [
        "curves: densities of tasks" if alone else f"each ellipse holds {percent(level)} of tasks"
    ]
    if any(one.mus is not None for one in every.values()):
        parts.append("thin: draws")
    if points is not None:
        what = "least squares of a task" if isinstance(tasks, TaskStatistics) else "a task"
        outside = 0 if alone else _outside(panels, points)
        more = f" ({outside} of {len(points)} are outside)" if outside else ""
        parts.append(f"open circle: {what}{more}")
    return APART.join(parts)


def _outside(panels: Sequence[Axes], points: Array) -> int:
    """Tasks that some panel does not show."""
    d = points.shape[1]
    inside = np.ones(len(points), dtype=bool)
    pairs = [(j, i) for i in range(d) for j in range(i)]
    for panel, (j, i) in zip(panels, pairs, strict=True):
        inside &= within(panel, points[:, [j, i]])
    return int((~inside).sum())
