"""A posterior on one page: means and spreads before and after the data, and the diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.display import visible
from bayesmeta.fitted.tables import percent
from bayesmeta.posterior.diagnostics import Trust, trustworthy
from bayesmeta.posterior.tree import correlations, task_sums
from bayesmeta.report.figures.style import few_ticks, shortened

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _AFTER, _BEFORE = "#000000", "#0072B2", "#D55E00"


def posterior_page(tree: xr.DataTree, level: float = 0.95) -> Figure:
    """Rows: features. Columns: mu, sd, then correlations, ranks of the chains and the checks;
    intervals have the probability ``level``."""
    from matplotlib.figure import Figure

    trust = trustworthy(tree)
    after, before = tree["posterior"].to_dataset(), tree["prior"].to_dataset()
    names = [str(name) for name in after["feature"].values]
    d, noisy = len(names), "sigma" in after
    rows = max(d + noisy, 4)
    figure = Figure(figsize=(12.5, 1.2 + 1.55 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, 3, width_ratios=(1, 1, 1.25))
    for column, part in enumerate(("mu", "sd")):
        dim = str(after[part].dims[-1])  # features without a spread have a mean alone
        for place, name in enumerate(map(str, after[dim].values)):
            i = names.index(name)
            axes = figure.add_subplot(grid[i, column])
            own = {dim: place}
            _feature(axes, after[part].isel(own), before[part].isel(own), part, name, level)
    if noisy:
        axes = figure.add_subplot(grid[d, 0])
        noise, told = after["sigma"].values.ravel(), before["sigma"].values.ravel()
        _density(axes, noise, told, True, False, level)
        axes.set_title(r"$\sigma$: noise of a reward", fontsize=9.5, loc="left")
    half = rows // 2
    upper = figure.add_subplot(grid[:half, 2])
    if correlations(after):
        _correlations(upper, after, before, level)
    else:
        upper.set_axis_off()
    _ranks(figure.add_subplot(grid[half : rows - 1, 2]), after)
    _checks(figure.add_subplot(grid[rows - 1, 2]), trust)
    n = task_sums(tree).sizes["task"]
    warning = "" if trust else " — DO NOT TRUST THESE DRAWS"
    drawn = f"{after.sizes['chain']} x {after.sizes['draw']} draws"
    figure.suptitle(
        f"The prior of {n} tasks, before and after their data ({drawn}){warning}", fontsize=12
    )
    figure.supxlabel(
        f"filled: posterior    dashed: prior    bar and dot: {percent(level)} interval and mean of "
        "the posterior    in the units of the data",
        fontsize=9,
        color="#555555",
    )
    return figure


def _feature(
    axes: Axes, after: xr.DataArray, before: xr.DataArray, part: str, name: str, level: float
) -> None:
    """The mean (``mu``) or the spread (``sd``) of tasks in one feature."""
    values = after.values.ravel()
    known = float(values.std()) <= 1e-9 * float(np.abs(values).max())
    _density(axes, values, before.values.ravel(), part == "sd", known, level)
    symbol, what = (r"$\mu$", "mean") if part == "mu" else (r"$\sqrt{\Sigma_{ii}}$", "spread")
    title = f"{symbol} of {shortened(name, 24)}: {what} of tasks"
    if len(visible(name)) > 14:  # else it would run into its neighbour's
        title = f"{symbol}, {what} of tasks:\n{shortened(name, 24)}"
    axes.set_title(title, fontsize=9.5, loc="left")


def _density(
    axes: Axes, after: Array, before: Array, positive: bool, known: bool, level: float
) -> None:
    """A histogram of the posterior over the prior's density."""
    from scipy.stats import gaussian_kde

    axes.set_yticks([])
    few_ticks(axes)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    if known:
        axes.axvline(after.flat[0], color=_AFTER)
        axes.annotate(" known", (after.flat[0], 0.5), xycoords=("data", "axes fraction"))
        return
    low, high = np.quantile(after, [0.001, 0.999])
    edge = 0.15 * (high - low) or float(before.std())  # where no draw differs from another
    low, high = (max(low - edge, 0.0) if positive else low - edge), high + edge
    heights, _, _ = axes.hist(
        after, bins=50, range=(low, high), density=True, color=_AFTER, alpha=0.35
    )
    grid = np.linspace(low, high, 200)
    if positive:  # a density that ends at zero: reflect it there
        density = 2 * gaussian_kde(np.concatenate([before, -before]))(grid)
    else:
        density = gaussian_kde(before)(grid)
    axes.plot(grid, density, color=_BEFORE, linestyle=(0, (4, 2)), linewidth=1.4)
    top = max(float(np.max(heights)), float(density.max()))
    ends = np.quantile(after, [(1 - level) / 2, (1 + level) / 2])
    axes.plot(ends, [-0.07 * top] * 2, color=_INK, linewidth=2.2, solid_capstyle="butt")
    axes.plot(after.mean(), -0.07 * top, "o", color=_INK, markersize=5)
    axes.set(xlim=(low, high), ylim=(-0.16 * top, 1.4 * top))
    axes.annotate(
        f"{after.mean():.4g}  [{ends[0]:.4g}, {ends[1]:.4g}]",
        (0.99, 0.97),
        xycoords="axes fraction",
        ha="right",
        va="top",
        fontsize=8.5,
    )


def _correlations(axes: Axes, after: xr.Dataset, before: xr.Dataset, level: float) -> None:
    """Their intervals, before and after."""
    pairs = correlations(after)
    for row, (index, _) in enumerate(pairs):
        for data, color, width, where in ((before, _BEFORE, 1.2, 0.18), (after, _INK, 2.2, 0.0)):
            values = data["corr"].isel(index).values.ravel()
            low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
            line = (0, (4, 2)) if data is before else "-"
            ends = [row + where] * 2
            axes.plot([low, high], ends, color=color, linewidth=width, linestyle=line)
            if data is after:
                axes.plot(values.mean(), row, "o", color=_INK, markersize=5)
    dim = str(after["sd"].dims[-1])
    own = [shortened(str(name), 16) for name in after[dim].values]
    labels = [f"{own[j]},\n{own[i]}" for i in range(len(own)) for j in range(i)]
    axes.set_yticks(range(len(pairs)), labels, fontsize=9 if len(pairs) < 12 else 7)
    axes.axvline(0, color="#999999", linewidth=0.8)
    axes.set(xlim=(-1, 1), ylim=(len(pairs) - 0.4, -0.6), xlabel="correlation")
    axes.set_title(f"Correlations: {percent(level)} intervals", fontsize=9.5, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _ranks(axes: Axes, after: xr.Dataset) -> None:
    """Shares of each chain's draws among all of them, for the quantity that mixes worst."""
    import arviz_stats as azs

    from bayesmeta.report.posterior import quantities

    chains = after.sizes["chain"]
    if chains == 1:
        axes.set_axis_off()
        return
    found = [
        one
        for one in quantities(after)
        if float(after[one[0]].isel(one[1]).std()) > 1e-9 * float(np.abs(after[one[0]]).max())
    ]
    name, index, label = max(found, key=lambda one: float(azs.rhat(after[one[0]].isel(one[1]))))
    values = after[name].isel(index).transpose("chain", "draw").values
    ranks = values.ravel().argsort().argsort().reshape(values.shape) / values.size
    bins = np.linspace(0, 1, 21)
    lines: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
    most = 2.0
    for chain, row in enumerate(ranks):
        share = np.histogram(row, bins)[0] / len(row) * 20
        most = max(most, 1.05 * float(share.max()))
        axes.stairs(share, bins, color=_INK, linestyle=lines[chain % 4], linewidth=1.1)
    axes.axhline(1, color="#999999", linewidth=0.8)
    axes.set(xlim=(0, 1), ylim=(0, most))
    axes.set(xlabel="rank among the draws of all chains", ylabel="share (1 is even)")
    title = f"Do {chains} chains agree? {shortened(label, 30)}"
    axes.set_title(title, fontsize=9.5, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _checks(axes: Axes, trust: Trust) -> None:
    """The checks as text, in the last panel."""
    axes.set_axis_off()
    lines = [
        f"{c.name:<22}{c.value:>10.4g}  {c.wanted:<9}{'ok' if c.passed else 'BAD'}" for c in trust
    ]
    last = "the draws can be trusted" if trust else "DO NOT TRUST THESE DRAWS"
    axes.annotate(
        "\n".join([*lines, last]),
        (0.0, 1.0),
        xycoords="axes fraction",
        va="top",
        fontsize=8,
        family="monospace",
    )
