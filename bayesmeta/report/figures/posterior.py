"""Figures of posteriors: their calibration, and how they compare with closed forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.report.figures.style import End, Look, evenly, forest, label_ends

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHOD_LOOKS = {
    "moment": Look("moment, eq. (11)", "#0072B2", "-", "D"),
    "widened, c_w = 10": Look("eq. (12), $c_w=10$", "#777777", (0, (5, 1, 1, 1)), "v"),
    "widened, theory": Look("eq. (12), theory", "#E69F00", (0, (6, 2)), "s"),
    "REML": Look("REML", "#D55E00", (0, (3, 1)), "o"),
    "posterior": Look("posterior", "#000000", "-", "*"),
    "posterior draws": Look("draws of it", "#009E73", (0, (1, 1)), "P"),
}
_BOUNDS = {
    "E_m, E_s at 95%": Look("paper's radius, 95%", "#AA3377", (0, (1, 2)), "x"),
    "posterior": Look("posterior's, 95%", "#000000", (0, (1, 2)), "+"),
}


def figure_compared(record: xr.Dataset) -> Figure:
    """Errors of mean and covariance with the radii stated for them, and the next task's regret."""
    from matplotlib.figure import Figure

    rules = record.rule.values.tolist()
    figure = Figure(figsize=(14.5, 4.1 * len(rules)), layout="constrained")
    panels = figure.subplots(len(rules), 3, squeeze=False)
    for row, rule in zip(panels, rules, strict=True):
        here = record.sel(rule=rule).mean("run")
        what = "until threshold" if rule == "threshold" else f"{rule.removeprefix('tau=')} steps"
        for axes, error, radius, symbol in (
            (row[0], "mean_error", "mean_radius", r"$\|\hat\mu-\mu_*\|$"),
            (row[1], "cov_error", "cov_radius", r"$\|\hat\Sigma-\Sigma_*\|_{\rm op}$"),
        ):
            names = [name for name in METHOD_LOOKS if name in here.estimate]
            if error == "mean_error":  # widening leaves the mean alone
                names = [name for name in names if not name.startswith("widened")]
            curves = [(here[error].sel(estimate=name), METHOD_LOOKS[name]) for name in names]
            curves += [(here[radius].sel(radius=name), look) for name, look in _BOUNDS.items()]
            _curves(axes, curves, log=True)
            axes.set(ylabel=f"{symbol} (log scale)", title=f"exploration: {what}")
        regret = here.regret / here.regret.sel(played="KTS")
        curves = [(regret.sel(played=name), look) for name, look in METHOD_LOOKS.items()]
        _curves(row[2], curves, log=True)
        row[2].axhline(1, color="#999999", linewidth=0.8)
        row[2].set(ylabel="regret of the next task\n(KTS = 1, log scale)",
                   title=f"exploration: {what}")  # fmt: skip
        row[2].set_yticks([1, 2, 3, 5], ["1", "2", "3", "5"])
        row[2].minorticks_off()
    for axes in panels[-1]:
        axes.set_xlabel("tasks $n$ (log scale)")
    figure.supxlabel(
        "lines: means over runs; dotted: what is said about the error, with probability 95%",
        fontsize=9, color="#555555",
    )  # fmt: skip
    return figure


def _curves(axes: Axes, curves: list[tuple[xr.DataArray, Look]], log: bool) -> None:
    """Lines against n, with their names at the end."""
    for values, style in curves:
        options: dict[str, Any] = {
            "color": style.color, "linestyle": style.line, "marker": style.marker,
            "markersize": 4.5, "linewidth": 1.5,
        }  # fmt: skip
        axes.plot(values.n, values, **options)
    axes.set(xscale="log", yscale="log" if log else "linear")
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    label_ends(axes, [End(float(v.n[-1]), float(v[-1]), style) for v, style in curves])


def figure_tasks(tree: xr.DataTree, draws: int = 1000) -> Figure:
    """Every task's theta given all data, feature by feature, as ``figure_fit`` has it for one
    estimate of the prior: here the doubt about the prior is in the bars and the band."""
    import xarray as xr

    from bayesmeta.posterior.predictive import add_theta, task_means
    from bayesmeta.statistics import TaskStatistics

    data, posterior = tree["observed_data"].to_dataset(), tree["posterior"].to_dataset()
    n, d = data["moment"].shape
    data = data.isel(task=evenly(task_means(tree)[0][:, -1]))
    total = posterior.sizes["chain"] * posterior.sizes["draw"]
    thin = posterior.drop_vars("theta", errors="ignore").isel(
        draw=slice(0, None, -(-total // draws))
    )
    few = add_theta(xr.DataTree.from_dict({"posterior": thin, "observed_data": data}))
    theta = few["posterior"].to_dataset()["theta"].values.reshape(-1, data.sizes["task"], d)
    low, high = np.quantile(theta, [0.025, 0.975], axis=0)
    stats = TaskStatistics(data["gram"].values, data["moment"].values)
    good, own = stats.determined(), np.full(stats.moment.shape, np.nan)
    own[good] = TaskStatistics(stats.gram[good], stats.moment[good]).ols()
    mu, sd = (thin[name].values.reshape(-1, d) for name in ("mu", "sd"))
    rng = np.random.default_rng(0)
    new = mu + sd * rng.standard_normal(mu.shape)  # of one more task, each coefficient by itself
    return forest(
        data["feature"].values.tolist(), data["task"].values.tolist(), theta.mean(axis=0), low,
        high, own, mu.mean(axis=0), np.quantile(new, [0.025, 0.975], axis=0), n,
        ("posterior mean, 95% interval",
         "mean of tasks, and where one more lies with probability 95%",
         "(the doubt about the prior included)"),
    )  # fmt: skip
