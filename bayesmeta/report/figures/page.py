"""A posterior on one page: means and spreads before and after the data, and the diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.display import visible
from bayesmeta.fitted.tables import percent
from bayesmeta.posterior.diagnostics import Trust, trustworthy
from bayesmeta.posterior.tree import correlations, task_sums
from bayesmeta.report.figures.style import few_ticks, note_below, shortened

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _AFTER, _BEFORE = "#000000", "#0072B2", "#D55E00"
_CHAINS: tuple[tuple[str, Any], ...] = (
    ("#000000", "-"),
    ("#009E73", (0, (5, 1.5))),
    ("#CC79A7", (0, (1, 1))),
    ("#E69F00", (0, (5, 1, 1, 1))),
    ("#56B4E9", "-"),
    ("#332288", (0, (5, 1.5))),
    ("#999933", (0, (1, 1))),
    ("#882255", (0, (5, 1, 1, 1))),
)
"""Looks of chains; where there are more of them, all look alike."""
_WORDS = {
    "mu": (r"$\mu$", "mean of tasks"),
    "sd": (r"$\sqrt{\Sigma_{ii}}$", "spread of tasks"),
    "sigma": (r"$\sigma$", "noise of a reward"),
}
NUMBERED = 12
"""Correlations up to which their numbers are written beside them."""


def posterior_page(tree: xr.DataTree, level: float = 0.95) -> Figure:
    """To the left mu and sd of each feature, then mu of those that are the same in all tasks and
    the noise; to the right correlations, ranks of the chains and the checks, as far as there are
    any. Intervals have the probability ``level``."""
    from matplotlib.figure import Figure

    trust = trustworthy(tree)
    after, before = tree["posterior"].to_dataset(), tree["prior"].to_dataset()
    beside = _beside(after, len(list(trust)))
    panels = _panels(after)
    needed, rows = sum(beside.values()), -(-len(panels) // 2)
    figure = Figure(figsize=(12.5, 0.9 + max(1.7 * rows, needed)), layout="constrained")
    sides = figure.add_gridspec(1, 2, width_ratios=(2, 1.25))
    grid = sides[0].subgridspec(rows, 2)
    for place, (part, index, name) in enumerate(panels):
        alone = place % 2 == 0 and place == len(panels) - 1
        row, column = divmod(place, 2)
        axes = figure.add_subplot(grid[row, :] if alone else grid[row, column])
        own, told = after[part].isel(index), before[part].isel(index)
        _quantity(axes, own, told, part, name, _same(after, name), level)
    below = sides[1].subgridspec(len(beside), 1, height_ratios=list(beside.values()))
    for place, what in enumerate(beside):
        axes = figure.add_subplot(below[place])
        if what == "correlations":
            _correlations(axes, after, before, level)
        elif what == "ranks":
            _ranks(axes, after)
        else:
            _checks(axes, trust)
    n = task_sums(tree).sizes["task"]
    warning = "" if trust else " — DO NOT TRUST THESE DRAWS"
    drawn = f"{after.sizes['chain']} x {after.sizes['draw']} draws"
    figure.suptitle(
        f"The prior of {n} tasks, before and after their data ({drawn}){warning}", fontsize=12
    )
    note_below(
        figure,
        f"filled: posterior    dashed: prior    bar and dot: {percent(level)} interval and mean of "
        "the posterior    in the units of the data",
    )
    return figure


def _panels(after: xr.Dataset) -> list[tuple[str, dict[str, int], str]]:
    """Variable, place in it and feature: mu beside sd where tasks differ, then mu of the others,
    and the noise."""
    names, dim = after["feature"].values.astype(str).tolist(), str(after["sd"].dims[-1])
    own = after[dim].values.astype(str).tolist()
    found: list[tuple[str, dict[str, int], str]] = []
    for place, name in enumerate(own):
        found += [("mu", {"feature": names.index(name)}, name), ("sd", {dim: place}, name)]
    found += [("mu", {"feature": i}, name) for i, name in enumerate(names) if name not in own]
    return found + ([("sigma", {}, "")] if "sigma" in after else [])


def _same(after: xr.Dataset, name: str) -> bool:
    """Whether a feature is the same in all tasks."""
    return name not in after[after["sd"].dims[-1]].values.astype(str)


def _beside(after: xr.Dataset, checks: int) -> dict[str, float]:
    """What stands to the right, and the inches it needs."""
    found, pairs = {}, len(correlations(after))
    if pairs:
        found["correlations"] = 0.9 + (0.5 if pairs <= NUMBERED else 0.2) * pairs
    if after.sizes["chain"] > 1:
        found["ranks"] = 2.3
    return found | {"checks": 0.15 * (checks + 2)}


def _quantity(
    axes: Axes,
    after: xr.DataArray,
    before: xr.DataArray,
    part: str,
    name: str,
    same: bool,
    level: float,
) -> None:
    """The mean (``mu``) or the spread (``sd``) of tasks in one feature, or the noise."""
    values = after.values.ravel()
    known = part != "sigma" and float(values.std()) <= 1e-9 * float(np.abs(values).max())
    _density(axes, values, before.values.ravel(), part != "mu", known, level)
    symbol, what = _WORDS[part]
    if same and part == "mu":
        what = "same in all tasks"
    title = f"{symbol} of {shortened(name, 24)}: {what}"
    if len(visible(name)) > 14:  # else it would run into its neighbour's
        title = f"{symbol}, {what}:\n{shortened(name, 24)}"
    axes.set_title(title if name else f"{symbol}: {what}", fontsize=9.5, loc="left")


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
    """Their intervals, before and after; bars end in ticks, which show also where a bar is too
    short to be seen, as it is near +-1."""
    pairs = correlations(after)
    numbered = len(pairs) <= NUMBERED
    for row, (index, _) in enumerate(pairs):
        for data, color, width, where in ((before, _BEFORE, 1.2, 0.22), (after, _INK, 2.2, 0.0)):
            values = data["corr"].isel(index).values.ravel()
            ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
            line = (0, (4, 2)) if data is before else "-"
            at = [row + where] * 2
            axes.plot(ends, at, color=color, linewidth=width, linestyle=line)
            axes.plot(ends, at, "|", color=color, markersize=8 if numbered else 4)
            if data is after:
                axes.plot(values.mean(), row, "o", color=_INK, markersize=5)
                if numbered:
                    said = f"{values.mean():.3f}  [{ends[0]:.3f}, {ends[1]:.3f}]"
                    axes.annotate(said, (1.05, row - 0.14), ha="right", va="bottom", fontsize=8.5)
    dim = str(after["sd"].dims[-1])
    own = [shortened(str(name), 16) for name in after[dim].values]
    between = ",\n" if numbered else ", "
    labels = [f"{own[j]}{between}{own[i]}" for i in range(len(own)) for j in range(i)]
    axes.set_yticks(range(len(pairs)), labels, fontsize=9 if numbered else 7)
    axes.axvline(0, color="#999999", linewidth=0.8)
    axes.set(xlim=(-1.06, 1.06), ylim=(len(pairs) - 0.4, -0.6), xlabel="correlation")
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.set_title(f"Correlations: {percent(level)} intervals", fontsize=9.5, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _ranks(axes: Axes, after: xr.Dataset) -> None:
    """Shares of each chain's draws among all of them, for the quantity that mixes worst."""
    import arviz_stats as azs

    chains = after.sizes["chain"]
    found = [
        one
        for one in _quantities(after)
        if float(after[one[0]].isel(one[1]).std()) > 1e-9 * float(np.abs(after[one[0]]).max())
    ]
    name, index, label = max(found, key=lambda one: float(azs.rhat(after[one[0]].isel(one[1]))))
    values = after[name].isel(index).transpose("chain", "draw").values
    ranks = values.ravel().argsort().argsort().reshape(values.shape) / values.size
    bins = np.linspace(0, 1, 21)
    few = chains <= len(_CHAINS)
    most = 1.5
    for chain, row in enumerate(ranks):
        share = np.histogram(row, bins)[0] / len(row) * 20
        most = max(most, 1.05 * float(share.max()))
        color, line = _CHAINS[chain] if few else ("#777777", "-")
        look: dict[str, Any] = {"color": color, "linestyle": line, "linewidth": 1.3 if few else 0.6}
        axes.stairs(share, bins, baseline=None, label=f"chain {chain + 1}", **look)
    axes.axhline(1, color="#999999", linewidth=0.8)
    lines = -(-chains // 4) if few else 0
    axes.set(xlim=(0, 1), ylim=(0, most * (1 + 0.17 * lines)))  # with room for the names of chains
    if few:
        axes.legend(
            loc="upper center",
            ncols=4,
            fontsize=8.5,
            frameon=False,
            handlelength=2.2,
            columnspacing=1.2,
        )
    axes.set(xlabel="rank among the draws of all chains", ylabel="share (1 is even)")
    title = f"Do {chains} chains agree? {shortened(label, 30)}{'' if few else ', a line each'}"
    axes.set_title(title, fontsize=9.5, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _quantities(posterior: xr.Dataset) -> list[tuple[str, dict[str, int], str]]:
    """What a summary lists: variable, place in it, label."""
    found: list[tuple[str, dict[str, int], str]] = []
    for part in ("mu", "sd"):
        dim = str(posterior[part].dims[-1])
        found += [
            (part, {dim: i}, f"{part}[{name}]") for i, name in enumerate(posterior[dim].values)
        ]
    found += [("corr", index, f"corr[{pair}]") for index, pair in correlations(posterior)]
    return found + ([("sigma", {}, "sigma")] if "sigma" in posterior else [])


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
