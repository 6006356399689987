"""Figures of what the claims of the paper are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOW, _HIGH = 1e-3, 1e6


def _ratio(row: dict[str, Any]) -> float:
    """The bound over what was found; 0 where that is infinite."""
    found = row["counterexample"]
    if found is not None and found["left"] is None:
        return 0.0
    return float(row["loose_by"])


def figure_slack(rows: Sequence[dict[str, Any]]) -> Figure:
    """Every printed inequality: its bound over what was found, at the point where it is tightest;
    crosses left of the line are violated claims."""
    from matplotlib.figure import Figure

    shown = [
        row
        for row in rows
        if row["kind"] in "DPE"
        and row["group"] == "printed"
        and row["section"] != "experiment"  # orderings
        and row["loose_by"] is not None
    ]
    figure = Figure(figsize=(8.2, 0.185 * len(shown) + 1.2), layout="constrained")
    axes = figure.subplots()
    names: list[str] = []
    section = ""
    for place, row in enumerate(reversed(shown)):
        ratio = _ratio(row)
        x = min(max(ratio, _LOW), _HIGH)
        bad = row["verdict"] == "violated"
        axes.plot([1, x], [place, place], color="#bbbbbb", lw=1, zorder=1)
        marker = "x" if bad else (">" if ratio > _HIGH else "o")
        axes.plot(x, place, marker, color="#D55E00" if bad else "#0072B2", ms=5, mew=1.6, zorder=2)
        if ratio < _LOW:
            axes.annotate("fails by more", (x, place), xytext=(6, 1), textcoords="offset points",
                          fontsize=6.5, color="#D55E00")  # fmt: skip
        if names and row["section"] != section:
            axes.axhline(place - 0.5, color="#cccccc", lw=0.6)
        if row["section"] != section:
            axes.text(_HIGH * 1.5e3, place - 0.25, row["section"], fontsize=7, color="#555555",
                      ha="right", style="italic")  # fmt: skip
        section = row["section"]
        names.append(row["id"])
    axes.axvline(1, color="black", lw=1)
    axes.set_xscale("log")
    axes.set_xlim(_LOW / 2, _HIGH * 2e3)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-1, len(shown))
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_xticks([1e-2, 1, 1e2, 1e4, 1e6])
    axes.set_xlabel("bound / what was found, where the claim is tightest  (▸: more than 10⁶)")
    axes.text(0.93, len(shown) - 0.4, "violated", ha="right", fontsize=8, color="#D55E00")
    axes.text(1.08, len(shown) - 0.4, "holds", ha="left", fontsize=8, color="#0072B2")
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


_KINDS = {
    "mean": (
        ("mean +{} along", "along, too high", "o", "-", "#D55E00"),
        ("mean -{} along", "along, too low", "v", "--", "#0072B2"),
        ("mean {} across", "across", "s", ":", "#009E73"),
    ),
    "covariance": (
        ("covariance +{} I", "all directions", "o", "-", "#D55E00"),
        ("covariance +{} along", "along", "v", "--", "#0072B2"),
        ("covariance +{} across", "across", "s", ":", "#009E73"),
    ),
    "both": (
        ("both {}", "mean up, all directions", "o", "-", "#D55E00"),
        ("both -{}", "mean down", "v", "--", "#0072B2"),
    ),
}


def figure_deviations(
    shares: dict[str, dict[str, tuple[float, float, float]]],
    bounds: dict[str, list[float]],
    sizes: Sequence[float],
) -> Figure:
    """Relative regret over regret (with intervals) of each policy as the prior deviates, and k_1:
    ``shares`` by policy and deviation, ``bounds`` by kind of deviation."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5.6), layout="constrained")
    grid = figure.subplots(len(shares), 3, sharex=True, sharey=True)
    for index, (policy, share) in enumerate(shares.items()):
        for axes, (kind, lines) in zip(grid[index], _KINDS.items(), strict=True):
            axes.axhline(0, color="black", lw=0.8)
            for name, label, marker, line, color in lines:
                found = [share[name.format(f"{size:g}")] for size in sizes]
                middle = [one[0] for one in found]
                axes.errorbar(
                    sizes, middle, yerr=[[one[0] - one[1] for one in found],
                                         [one[2] - one[0] for one in found]],
                    marker=marker, ms=4, ls=line, color=color, label=label, lw=1.3, capsize=2,
                )  # fmt: skip
            axes.plot(sizes, bounds[kind], color="#555555", lw=1, ls=(0, (6, 2)))
            axes.text(sizes[0], bounds[kind][0] * 2, "$k_1$ of Theorem 1", fontsize=8,
                      color="#555555", rotation=12, rotation_mode="anchor")  # fmt: skip
            axes.set_xscale("log")
            axes.set_yscale("symlog", linthresh=0.01, linscale=0.6)
            axes.set_ylim(-1, 1e8)
            axes.set_yticks([-0.1, 0, 0.1, 1e2, 1e5, 1e8])
            axes.grid(color="#eeeeee")
            axes.set_title(f"{policy}: {kind} off", fontsize=10, loc="left")
            if index == 0:
                axes.legend(fontsize=7.5, frameon=False, loc="center right", handlelength=3,
                            bbox_to_anchor=(1, 0.88 if kind == "mean" else 0.62))  # fmt: skip
    for axes in grid[:, 0]:
        axes.set_ylabel("relative regret / regret of KQB\n(linear within ±0.01, log beyond)")
    for axes in grid[-1]:
        axes.set_xlabel("size of the deviation (norm)")
    return figure


def figure_growth(panels: Sequence[dict[str, Any]]) -> Figure:
    """Relative regret against N, T and d, with the fitted exponent and the printed rate; a panel
    has ``x``, ``label`` and ``lines``: name, values (runs, x), exponent as text, and ``rate``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    row = figure.subplots(1, len(panels))
    for axes, panel in zip(row, panels, strict=True):
        x = panel["x"]
        looks = (("D", "-", "#0072B2"), ("v", "--", "#009E73"), ("s", ":", "#D55E00"),
                 ("^", "-.", "#777777"))  # fmt: skip
        for (name, values, text), (marker, line, color) in zip(panel["lines"], looks, strict=False):
            every = max(1, len(x) // 6)
            error = 1.96 * values.std(axis=0, ddof=1) / math.sqrt(len(values))
            axes.errorbar(x, values.mean(axis=0), yerr=error, marker=marker, markevery=every,
                          errorevery=every, capsize=2, ls=line, color=color, ms=4,
                          label=f"{name}: {text}")  # fmt: skip
        base = panel["lines"][0][1].mean(axis=0)[0]
        axes.plot([x[0], x[-1]], [base, base * (x[-1] / x[0]) ** panel["rate"]], color="#555555",
                  lw=1, ls=(0, (6, 2)))  # fmt: skip
        axes.annotate(panel["printed"], (x[0], base), xytext=(2, -12), fontsize=7,
                      textcoords="offset points", color="#555555")  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(panel["ticks"], [f"{tick:,}" for tick in panel["ticks"]])
        axes.minorticks_off()
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.35)
        axes.legend(fontsize=7, frameon=False, loc="upper left", handlelength=3,
                    title="exponent [95% interval]", title_fontsize=7,
                    alignment="left")  # fmt: skip
        axes.set_xlabel(panel["label"])
        axes.grid(color="#eeeeee")
    row[0].set_ylabel("relative regret, units of reward")
    return figure
