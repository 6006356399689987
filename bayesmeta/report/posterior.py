"""A posterior as plain data, as tables, and as a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.fitted.tables import percent, posterior_title
from bayesmeta.posterior.centring import centred_in_words, taken_off
from bayesmeta.posterior.diagnostics import trustworthy
from bayesmeta.posterior.tree import differs_in
from bayesmeta.report.console import (
    features_of,
    noise_in_words,
    number,
    print_tasks,
    quantity_rows,
    same_in_json,
    table,
    task_estimates,
)
from bayesmeta.runner.files import check_room
from bayesmeta.runner.plain import without_nan

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

    from bayesmeta.fitted.posterior import FittedPosterior


def as_json(fitted: FittedPosterior, wording: Callable[[str], str] = str) -> dict[str, Any]:
    """All of a posterior as plain data, under the names and in the shapes that ``report.fitted``
    gives an estimate: ``mean`` and ``cov`` are the posterior means of mu and Sigma, ``mean_sd`` and
    ``cov_sd`` their standard deviations. Estimates of tasks are of the features in ``varying``: the
    others are the same in all tasks.

    ``wording`` turns advice into text: that of Python, or of a command.
    """
    tree, stats, trust = fitted.tree, fitted.stats, trustworthy(fitted.tree)
    mean_sd, cov_sd = fitted.prior_sd
    tasks = fitted.task_mixtures
    found: dict[str, Any] = without_nan(
        {
            "method": "posterior",
            "drawn_by": drawn_by(tree),
            "status": "ok" if trust else "not_trusted",
            "advice": "; ".join(f"{c.name}: {wording(c.advice)}" for c in trust.failed),
            "tasks": len(stats),
            "rows": fitted.nobs,
            "features": stats.feature_labels,
            "varying": features_of(stats, True),
            "mean": fitted.prior.mean.tolist(),
            "mean_sd": mean_sd.tolist(),
            "cov": fitted.prior.cov.tolist(),
            "cov_sd": cov_sd.tolist(),
            "noise_sd": _noise_sd(fitted),
            "prior": _prior(tree),
            "centred": taken_off(tree),
            "intervals": _intervals(fitted),
            "conditional": False,
            "diagnostics": [
                {"check": c.name, "value": c.value, "wanted": c.wanted, "passed": c.passed}
                for c in trust
            ],
            "notes": [
                *map(wording, fitted.design.notes),
                *same_in_json(features_of(stats, False)),
                *([f"task_estimates: {tasks.thinned}"] if tasks.thinned else []),
            ],
            "task_estimates": task_estimates(stats, *tasks.mixed[:2], conditional=False),
        }
    )
    return found


def _intervals(fitted: FittedPosterior) -> list[dict[str, Any]]:
    """The rows of the summary; intervals have equal tails."""
    rows = fitted.summary().reset_index().to_dict("records")
    return [{**row, "method": "eti", "level": fitted.level} for row in rows]


def _noise_sd(fitted: FittedPosterior) -> float | None:
    """Its posterior mean, or what was given; None where the noise of every row is known."""
    if fitted.quantities.noisy:
        return float(fitted.tree["posterior"]["sigma"].mean())
    given = float(fitted.tree.attrs["noise_sd"])
    return None if given == 1.0 and fitted.stats.log_weights is not None else given


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


def print_posterior(
    console: Console, fitted: FittedPosterior, wording: Callable[[str], str] = str
) -> None:
    """Tables of the posterior and of the tasks, then whether the draws can be trusted."""
    tree, stats, level = fitted.tree, fitted.stats, fitted.level
    shown = fitted.summary()
    numbers = [
        [*(number(value, 5) for value in values), f"{ess:.0f}", f"{rhat:.3f}"]
        for *values, ess, rhat in shown.to_numpy(dtype=float).tolist()
    ]
    rows = quantity_rows(console, list(map(str, shown.index)), numbers)
    ends = percent((1 - level) / 2), percent((1 + level) / 2)
    columns = ["quantity", "mean", "sd", *ends, "ESS", "R-hat"]
    console.print(table(posterior_title(len(stats), tree["posterior"].sizes), columns, rows))
    if not fitted.quantities.noisy:
        console.print(noise_in_words(_noise_sd(fitted)))
    prior = prior_in_words(_prior(tree), fitted.quantities.noisy)
    console.print(prior, highlight=False)
    if centred := centred_in_words(tree):
        console.print(wording(centred), markup=False, emoji=False, highlight=False)
    console.print(f"drawn by {drawn_by(tree)}", highlight=False)
    mixed = fitted.task_mixtures
    note = "; ".join(filter(None, ("the uncertainty about the prior is included", mixed.thinned)))
    print_tasks(
        console,
        "Tasks given the data",
        features_of(stats, True),
        task_estimates(stats, *mixed.mixed[:2], conditional=False),
        note,
        digits=5,
        same=features_of(stats, False),
    )
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
