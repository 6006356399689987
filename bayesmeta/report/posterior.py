"""A posterior as plain data, as tables, and as a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import Advice
from bayesmeta.fitted.tables import percent, posterior_title
from bayesmeta.posterior.centring import centred_in_words, taken_off
from bayesmeta.posterior.diagnostics import trustworthy
from bayesmeta.posterior.mixture import TaskMixtures, of_tasks
from bayesmeta.posterior.tree import correlations, differs_in, task_sums
from bayesmeta.report.console import print_tasks, quantity_rows, same_in_json, table
from bayesmeta.runner.files import check_room
from bayesmeta.runner.plain import without_nan

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

LEVEL = 0.95
"""Of the intervals, whose tails are equal, unless another is asked for."""
WIDE = 3
"""Features up to which tasks are printed: more do not fit a terminal."""


class Row(NamedTuple):
    """One quantity of the posterior."""

    quantity: str
    mean: float
    sd: float
    low: float
    high: float
    ess: float
    rhat: float


def summary_rows(tree: xr.DataTree, level: float = LEVEL) -> list[Row]:
    """Mean, sd, interval (equal tails), bulk ESS and R-hat of mu, sd, corr and sigma."""
    import arviz_stats as azs

    posterior = tree["posterior"].to_dataset()
    rows = []
    for name, index, quantity in quantities(posterior):
        values = posterior[name].isel(index)
        flat = values.values.ravel()
        low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2])
        rhat = float(azs.rhat(values)) if values.sizes["chain"] > 1 else float("nan")
        mean, sd, ess = float(flat.mean()), float(_sd(values)), float(azs.ess(values))
        rows.append(Row(quantity, mean, sd, float(low), float(high), ess, rhat))
    return rows


def quantities(posterior: xr.Dataset) -> list[tuple[str, dict[str, int], str]]:
    """The quantities of the summary: variable, place in it, label."""
    found: list[tuple[str, dict[str, int], str]] = []
    for part in ("mu", "sd"):
        dim = str(posterior[part].dims[-1])
        found += [
            (part, {dim: i}, f"{part}[{name}]") for i, name in enumerate(posterior[dim].values)
        ]
    found += [("corr", index, f"corr[{pair}]") for index, pair in correlations(posterior)]
    return found + ([("sigma", {}, "sigma")] if "sigma" in posterior else [])


def as_json(
    tree: xr.DataTree, wording: Callable[[Advice], str] = str, level: float = LEVEL
) -> dict[str, Any]:
    """All of a fit as plain data, under the names the other methods use where they have them.
    Estimates of tasks are of the features in ``varying``: the others are the same in all tasks.

    ``wording`` turns advice into text: that of Python, or of a command.
    """
    posterior, data = tree["posterior"].to_dataset(), task_sums(tree)
    tasks = of_tasks(tree)
    over, trust = ["chain", "draw"], trustworthy(tree)
    found: dict[str, Any] = without_nan(
        {
            "method": "posterior",
            "drawn_by": drawn_by(tree),
            "status": "ok" if trust else "not_trusted",
            "advice": "; ".join(f"{c.name}: {wording(c.advice)}" for c in trust.failed),
            "tasks": data.sizes["task"],
            "rows": int(data["count"].sum()) if "count" in data else None,
            "features": [str(name) for name in posterior["feature"].values],
            "varying": posterior["feature"].values[differs_in(posterior)].tolist(),
            "mean": posterior["mu"].mean(over).values.tolist(),
            "mean_sd": _sd(posterior["mu"]).values.tolist(),
            "cov": posterior["Sigma"].mean(over).values.tolist(),
            "cov_sd": _sd(posterior["Sigma"]).values.tolist(),
            "noise_sd": _noise_sd(tree),
            "prior": _prior(tree),
            "centred": taken_off(tree),
            "level": level,
            "quantities": [row._asdict() for row in summary_rows(tree, level)],
            "diagnostics": [
                {"check": c.name, "value": c.value, "wanted": c.wanted, "passed": c.passed}
                for c in trust
            ],
            "notes": [
                *same_in_json(posterior["feature"].values[~differs_in(posterior)].tolist()),
                *([f"task_estimates: {tasks.thinned}"] if tasks.thinned else []),
            ],
            "task_estimates": _task_estimates(tree, tasks),
        }
    )
    return found


def _task_estimates(tree: xr.DataTree, tasks: TaskMixtures) -> list[dict[str, Any]]:
    """Mean and standard deviation of every theta given all data, in the features that differ."""
    differs = differs_in(tree["posterior"].to_dataset())
    mean, sd = (part[:, differs] for part in tasks.mixed[:2] if part is not None)
    labels = [str(name) for name in task_sums(tree)["task"].values]
    return [
        {"task": name, "mean": one.tolist(), "sd": spread.tolist()}
        for name, one, spread in zip(labels, mean, sd, strict=True)
    ]


def _noise_sd(tree: xr.DataTree) -> float | None:
    """Its posterior mean, or what was given; None where the noise of every row is known."""
    posterior = tree["posterior"].to_dataset()
    if "sigma" in posterior:
        return float(posterior["sigma"].mean())
    given = float(tree.attrs["noise_sd"])
    return None if given == 1.0 and "log_weights" in task_sums(tree) else given


def _prior(tree: xr.DataTree) -> dict[str, Any]:
    """The prior as it was given; features that do not differ between tasks have no scale, nor has
    a noise that is known."""
    found: dict[str, Any] = json.loads(tree.attrs["prior"])
    posterior = tree["posterior"].to_dataset()
    differs = differs_in(posterior)
    if "noise_scale" in found and "sigma" not in posterior:
        found["noise_scale"] = None
    if found["type"] == "LKJ":
        scale = np.broadcast_to(found["scale"], differs.shape).tolist()
        found["scale"] = [one if own else None for one, own in zip(scale, differs, strict=True)]
    return found


def drawn_by(tree: xr.DataTree) -> str:
    """The method that made the draws, and what became of the other where both were tried."""
    used, tried = tree.attrs.get("method", "nuts"), tree.attrs.get("laplace", "not tried")
    if used == "laplace":
        return "laplace: a Gaussian at the mode with importance weights"
    if tried == "not tried":
        return "nuts"
    weights = json.loads(tried)
    if "apart" in weights:
        errors = f"{weights['apart']:.2g} standard errors"
        return f"nuts; laplace not tried, since in some direction tasks differ by {errors} alone"
    why = ", ".join(f"{name} {value:.3g}" for name, value in weights.items() if value is not None)
    return f"nuts, since laplace would not do ({why or 'no mode was found'})"


def prior_in_words(prior: dict[str, Any], noisy: bool) -> str:
    """The prior over (mu, Sigma) in a line; ``noisy``: that of the noise, too."""

    def numbers(values: Any) -> str:
        return ", ".join(f"{value:.4g}" for value in np.ravel(values) if value is not None)

    if prior["type"] == "LKJ":
        said = (
            f"mu ~ N({numbers(prior['mean'])}; sd {numbers(prior['mean_sd'])}), sds of Sigma ~ "
            f"half-normal({numbers(prior['scale'])})"
        )
        if sum(one is not None for one in np.ravel(prior["scale"])) > 1:
            said += f", correlations ~ LKJ({prior['eta']:g})"
    else:
        rest = "; ".join(
            f"{key} {numbers(value)}"
            for key, value in prior.items()
            if key not in ("type", "noise_scale")
        )
        said = f"{prior['type']} with {rest}"
    noise = f", sigma ~ half-normal({prior['noise_scale']:.4g})" if noisy else ""
    return f"before the data: {said}{noise}"


def _sd(draws: xr.DataArray) -> xr.DataArray:
    """Standard deviations over all draws; NaN for a single one."""
    over = ["chain", "draw"]
    many = draws.sizes["chain"] * draws.sizes["draw"] > 1
    return draws.std(over, ddof=1) if many else draws.mean(over) * np.nan


def print_posterior(
    console: Console,
    tree: xr.DataTree,
    wording: Callable[[Advice], str] = str,
    level: float = LEVEL,
) -> None:
    """Tables of the posterior and of the tasks, then whether the draws can be trusted."""
    posterior = tree["posterior"].to_dataset()
    names, differs = posterior["feature"].values.astype(str), differs_in(posterior)
    features, same = names[differs].tolist(), names[~differs].tolist()
    mixed = of_tasks(tree)
    tasks = _task_estimates(tree, mixed)
    found = summary_rows(tree, level)
    numbers = [
        [
            *(f"{value:.5g}" for value in (row.mean, row.sd, row.low, row.high)),
            f"{row.ess:.0f}",
            f"{row.rhat:.3f}",
        ]
        for row in found
    ]
    names_of = [row.quantity for row in found]
    rows = quantity_rows(console, names_of, numbers)
    title = posterior_title(len(tasks), posterior.sizes)
    ends = percent((1 - level) / 2), percent((1 + level) / 2)
    columns = ["quantity", "mean", "sd", *ends, "ESS", "R-hat"]
    console.print(table(title, columns, rows))
    prior = prior_in_words(_prior(tree), "sigma" in posterior)
    console.print(prior, highlight=False)
    if centred := centred_in_words(tree):
        console.print(wording(centred), markup=False, emoji=False, highlight=False)
    console.print(f"drawn by {drawn_by(tree)}", highlight=False)
    if len(features) > WIDE:
        console.print(f"{len(tasks)} tasks, {len(features)} features: --json has them")
    else:
        said = ("the uncertainty about the prior is included", mixed.thinned)
        note = "; ".join(filter(None, said))
        print_tasks(console, "Tasks given the data", features, tasks, note, digits=5, same=same)
    checks = trustworthy(tree).text(wording)
    console.print(checks, markup=False, emoji=False, highlight=False)


def write_tree(tree: xr.DataTree, path: Path) -> None:
    """A tree as NetCDF, compressed; ``arviz.from_netcdf`` reads it."""
    small = {"zlib": True, "complevel": 4}
    encoding = {
        f"/{name}": {str(v): small for v, one in group.data_vars.items() if one.dtype.kind == "f"}
        for name, group in tree.children.items()
    }
    check_room(path, tree.to_netcdf(engine="h5netcdf", encoding=encoding))
    tree.to_netcdf(path, engine="h5netcdf", encoding=encoding)
