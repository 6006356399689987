"""Pictures of recorded draws of a posterior beside closed forms of the same data (notebook 03)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.fitted.tables import percent
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.report.figures.ellipse import reach
from bayesmeta.report.figures.prior import plot_prior
from bayesmeta.report.figures.style import (
    APART,
    FAINT,
    GRID,
    INK,
    LABEL,
    MARKER,
    TITLE,
    End,
    Look,
    clean,
    label_ends,
    method_look,
    new_figure,
    note_below,
    tone,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayesmeta.report.figures.shown import Source

METHODS = ("moment", "widened, c_w = 10", "REML")
"""Closed forms that are drawn: eq. (12) with the constant of the theory is beyond every scale."""
BARS = {0.95: 1.2, 0.5: 4.0}
"""Probability and width of the bars of a posterior."""
_NAMES = {"widened, c_w = 10": "moment-widened(10)", "REML": "reml"}
"""Of methods, as ``fit_prior`` has them; pictures of priors know their looks by these."""
PLAIN = 1.0
"""Size up to which values are drawn as they are; beyond, by their logarithm."""
NOTE = f"bars: 50% and 95% of the posterior's draws{APART}star: their median{APART}"


def figure_eigenvalues(
    fits: xr.Dataset, truth: GaussianPrior, methods: Sequence[str] = METHODS
) -> Figure:
    """Eigenvalues of Sigma from the smallest to the largest, a panel a number of tasks: draws as
    bars, closed forms as lines, which may be negative."""
    sizes = fits.n.values.tolist()
    figure = new_figure(4.0 * len(sizes) + 1.0, 4.0)
    panels = list(figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0])
    for panel, n in zip(panels, sizes, strict=True):
        _, covs, closed = _of(fits, n, methods)
        found = {name: np.linalg.eigvalsh(cov) for name, (_, cov) in closed.items()}
        ends = _draw(panel, np.linalg.eigvalsh(covs), found, np.linalg.eigvalsh(truth.cov), True)
        panel.set_xticks(range(truth.dim), [str(i + 1) for i in range(truth.dim)])
        panel.set_xlabel("eigenvalue, from the smallest", fontsize=LABEL)
        clean(panel, _tasks(n))
    panels[0].set_ylabel(r"eigenvalue of $\Sigma$", fontsize=LABEL)
    _scale(panels)
    label_ends(panels[-1], ends)
    note_below(figure, NOTE + f"scale: as it is between -{PLAIN:g} and {PLAIN:g}, then logarithmic")
    return figure


def figure_entries(
    fits: xr.Dataset, truth: GaussianPrior, methods: Sequence[str] = ("moment", "REML")
) -> Figure:
    """All numbers of a prior, means and then variances and covariances: a panel a number of tasks,
    draws as bars, closed forms as markers."""
    sizes, d = fits.n.values.tolist(), truth.dim
    pairs = [(i, i) for i in range(d)] + [(i, j) for i in range(d) for j in range(i)]
    at = tuple(np.transpose(pairs))
    names = [rf"$\mu_{{{i + 1}}}$" for i in range(d)]
    names += [rf"$\Sigma_{{{i + 1}{j + 1}}}$" for i, j in pairs]
    figure = new_figure(2.0 + 0.42 * len(names), 0.6 + 2.1 * len(sizes))
    panels = list(figure.subplots(len(sizes), 1, sharex=True, sharey=True, squeeze=False)[:, 0])
    last = []
    for panel, n in zip(panels, sizes, strict=True):
        means, covs, closed = _of(fits, n, methods)
        found = {name: np.append(mean, cov[at]) for name, (mean, cov) in closed.items()}
        draws = np.hstack([means, covs[:, at[0], at[1]]])
        last.append(_draw(panel, draws, found, np.append(truth.mean, truth.cov[at]), False))
        for edge in (d, 2 * d) if d > 1 else (d,):
            panel.axvline(edge - 0.5, color=tone(FAINT), linewidth=0.8)
        clean(panel, _tasks(n), grid="y")
    panels[-1].set_xticks(range(len(names)), names)
    panels[-1].set_xlim(-0.7, len(names) - 0.3)
    _scale(panels)
    for panel, ends in zip(panels, last, strict=True):
        label_ends(panel, ends)
    note_below(figure, NOTE + f"scale: as it is between -{PLAIN:g} and {PLAIN:g}, then logarithmic")
    return figure


def figure_drawn_priors(
    fits: xr.Dataset,
    truth: GaussianPrior,
    methods: Sequence[str] = METHODS[1:],
    *,
    level: float = 0.9,
    draws: int = 30,
) -> Figure:
    """Where tasks lie in their first two coefficients, as ``plot_prior`` has it, a panel a number
    of tasks, all of one scale."""
    sizes = fits.n.values.tolist()
    figure = new_figure(5.3 * len(sizes), 4.1)
    panels = figure.subplots(1, len(sizes), squeeze=False)[0]
    pair, part = slice(0, 2), np.ix_([0, 1], [0, 1])
    room, every = 0.0, []
    for n in sizes:
        means, covs, closed = _of(fits, n, methods)
        named: dict[str, Source] = {}
        for name, (mean, cov) in closed.items():
            named[_NAMES.get(name, name)] = GaussianPrior.unusable(mean[pair], cov[part])
            far = np.abs(mean - truth.mean)[pair] + reach(cov[part], level)
            room = max(room, float(far.max()))
        named["posterior"] = _tree(means[:, pair], covs[:, pair, pair])
        every.append(named)
    own = GaussianPrior(truth.mean[pair], truth.cov[part])
    for panel, n, named in zip(panels, sizes, every, strict=True):
        x, y = own.mean
        panel.set(xlim=(x - room, x + room), ylim=(y - room, y + room))
        plot_prior(named, truth=own, level=level, draws=draws, axes=panel)
        panel.set_title(_tasks(n), fontsize=TITLE)
    note_below(figure, f"each ellipse holds {percent(level)} of tasks{APART}thin: draws")
    return figure


def _of(
    fits: xr.Dataset, n: int, methods: Sequence[str]
) -> tuple[Array, Array, dict[str, tuple[Array, Array]]]:
    """Draws of mu and Sigma after n tasks, and mean and covariance by every closed form."""
    one = fits.sel(n=n)
    own = ("feature", "feature_bis")
    closed = {
        name: (
            one["mean"].sel(closed=name).values.astype(float),
            one["cov"].sel(closed=name).transpose(*own).values.astype(float),
        )
        for name in methods
    }
    means = one["mu"].transpose("sample", "feature").values.astype(float)
    return means, one["Sigma"].transpose("sample", *own).values.astype(float), closed


def _draw(
    panel: Axes, draws: Array, found: Mapping[str, Array], truth: Array, joined: bool
) -> list[End]:
    """Quantities side by side: the truth, draws (sample, quantity), and closed forms beside them,
    ``joined`` by lines or not; where each is at the last quantity."""
    places = np.arange(len(truth))
    look = Look("truth", tone(INK), "-", "_")
    panel.axhline(0, color=tone(FAINT), linewidth=0.8)
    panel.hlines(truth, places - 0.42, places + 0.42, color=look.color, linewidth=2, zorder=3)
    ends = [End(places[-1] + 0.42, float(truth[-1]), look)]
    for level, width in BARS.items():
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        panel.vlines(places, low, high, color=tone(FAINT), linewidth=width, zorder=2)
    look, middle = method_look("posterior"), np.median(draws, axis=0)
    panel.plot(places, middle, look.marker, color=look.color, markersize=MARKER + 2, zorder=4,
               label="posterior")  # fmt: skip
    ends.append(End(float(places[-1]), float(middle[-1]), look))
    shifts = np.linspace(-0.25, 0.25, len(found)) if len(found) > 1 else [0.25]
    for shift, (name, values) in zip(shifts, found.items(), strict=True):
        look = method_look(name)
        options = look.options() | ({"linewidth": 1.0} if joined else {"linestyle": ""})
        panel.plot(places + shift, values, label=name, zorder=5, **options)
        ends.append(End(float(places[-1] + shift), float(values[-1]), look))
    return ends


def _scale(panels: Sequence[Axes]) -> None:
    """As it is around 0 and logarithmic beyond, for panels that share it."""
    panels[0].set_yscale("symlog", linthresh=PLAIN)
    panels[0].margins(y=0.1)
    low, high = panels[0].get_ylim()
    ticks = [0.0] + [sign * PLAIN * 10.0**k for k in range(6) for sign in (-1, 1)]
    shown = sorted(tick for tick in ticks if low <= tick <= high)
    panels[0].set_yticks(shown, [f"{tick:,g}" for tick in shown])
    for panel in panels:
        panel.minorticks_off()
        panel.grid(axis="y", color=tone(GRID), linewidth=0.6)


def _tasks(n: int) -> str:
    """A title."""
    return f"{n:,} tasks"


def _tree(means: Array, covs: Array) -> xr.DataTree:
    """Draws as ``sample_posterior`` keeps them."""
    import xarray as xr

    names = [f"x{i + 1}" for i in range(means.shape[1])]
    sds = np.sqrt(np.diagonal(covs, axis1=1, axis2=2))
    data = {
        "mu": (("chain", "draw", "feature"), means[None]),
        "Sigma": (("chain", "draw", "feature", "feature_bis"), covs[None]),
        "sd": (("chain", "draw", "feature"), sds[None]),
    }
    coords = {"feature": names, "feature_bis": names}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(data, coords)})
