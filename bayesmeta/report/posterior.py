"""A fitted posterior for people: its numbers in a table, as plain data, in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.posterior.diagnostics import Diagnosis, diagnose
from bayesmeta.posterior.predictive import task_means
from bayesmeta.runner.plain import without_nan

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

SHOWN = 20
"""Tasks printed; all of them are in the JSON."""
LEVEL = 0.95
"""Of the intervals, whose tails are equal."""
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


def summary_rows(tree: xr.DataTree) -> list[Row]:
    """Mean, sd, 95% interval (equal tails), bulk ESS and R-hat of mu, sd, corr and sigma."""
    import arviz_stats as azs

    posterior = tree["posterior"].to_dataset()
    rows = []
    for name, index, label in quantities(posterior):
        values = posterior[name].isel(index)
        flat = values.values.ravel()
        low, high = np.quantile(flat, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        several = values.sizes["chain"] > 1
        rows.append(
            Row(label, float(flat.mean()), float(_sd(values)), float(low), float(high),
                float(azs.ess(values)), float(azs.rhat(values)) if several else float("nan"))
        )  # fmt: skip
    return rows


def quantities(posterior: xr.Dataset) -> list[tuple[str, dict[str, int], str]]:
    """What there is to see: variable, place, label."""
    names = [str(name) for name in posterior["feature"].values]
    found = [
        (part, {"feature": i}, f"{part}[{name}]")
        for part in ("mu", "sd")
        for i, name in enumerate(names)
    ]
    found += [
        ("corr", {"feature": i, "feature_bis": j}, f"corr[{names[i]}, {names[j]}]")
        for i in range(len(names))
        for j in range(i)
    ]
    return found + ([("sigma", {}, "sigma")] if "sigma" in posterior else [])


def as_json(tree: xr.DataTree, verdict: Diagnosis | None = None) -> dict[str, Any]:
    """All of a fit as plain data, under the names the other methods use where they have them.

    ``verdict``: that of ``diagnose``, or the same in other words.
    """
    posterior = tree["posterior"].to_dataset()
    over = ["chain", "draw"]
    data = tree["observed_data"].to_dataset()
    tasks = [str(label) for label in data["task"].values]
    mean, sd = task_means(tree)
    verdict = diagnose(tree) if verdict is None else verdict
    sigma = float(posterior["sigma"].mean()) if "sigma" in posterior else tree.attrs["noise_sd"]
    found: dict[str, Any] = without_nan(
        {
            "method": "posterior",
            "status": "ok" if verdict else "not_trusted",
            "advice": "; ".join(f"{c.name}: {c.advice}" for c in verdict if not c.passed),
            "tasks": len(tasks),
            "rows": int(data["count"].sum()) if "count" in data else None,
            "features": [str(name) for name in posterior["feature"].values],
            "mean": posterior["mu"].mean(over).values.tolist(),
            "mean_sd": _sd(posterior["mu"]).values.tolist(),
            "cov": posterior["Sigma"].mean(over).values.tolist(),
            "cov_sd": _sd(posterior["Sigma"]).values.tolist(),
            "noise_sd": sigma,
            "prior": json.loads(tree.attrs["prior"]),
            "level": LEVEL,
            "quantities": [row._asdict() for row in summary_rows(tree)],
            "diagnostics": [
                {"check": c.name, "value": c.value, "wanted": c.wanted, "passed": c.passed}
                for c in verdict
            ],
            "task_estimates": [
                {"task": name, "mean": one.tolist(), "sd": spread.tolist()}
                for name, one, spread in zip(tasks, mean, sd, strict=True)
            ],
        }
    )
    return found


def prior_in_words(prior: dict[str, Any], noisy: bool) -> str:
    """What was believed before, in a line; ``noisy``: of the noise, too."""

    def numbers(values: Any) -> str:
        return ", ".join(f"{value:.4g}" for value in np.ravel(values))

    if prior["type"] == "LKJ":
        said = (
            f"mu ~ N({numbers(prior['mean'])}; sd {numbers(prior['mean_sd'])}), sds of Sigma ~ "
            f"half-normal({numbers(prior['scale'])}), correlations ~ LKJ({prior['eta']:g})"
        )
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


def print_posterior(console: Console, tree: xr.DataTree, verdict: Diagnosis | None = None) -> None:
    """Tables of the posterior, of the tasks, and the verdict, also in other words."""
    from rich import box
    from rich.table import Table

    def table(title: str, columns: list[str]) -> Table:
        made = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
        for i, column in enumerate(columns):
            made.add_column(column, justify="right" if i else "left", no_wrap=True)
        return made

    verdict = diagnose(tree) if verdict is None else verdict
    found = as_json(tree, verdict)
    drawn = tree["posterior"].sizes
    shown = table(
        f"The prior of {found['tasks']} tasks, its posterior "
        f"({drawn['chain']} chains of {drawn['draw']} draws)",
        ["quantity", "mean", "sd", "2.5%", "97.5%", "ESS", "R-hat"],
    )
    for row in summary_rows(tree):
        numbers = [f"{value:.5g}" for value in (row.mean, row.sd, row.low, row.high)]
        shown.add_row(_short(row.quantity, 40), *numbers, f"{row.ess:.0f}", f"{row.rhat:.3f}")
    console.print(shown)
    console.print(prior_in_words(found["prior"], "sigma" in tree["posterior"]), highlight=False)
    if len(found["features"]) > WIDE:
        console.print(f"{found['tasks']} tasks, {len(found['features'])} features: --json has them")
        console.print(str(verdict), markup=False, highlight=False)
        return
    columns = [part for name in found["features"] for part in (_short(name, 16), "± sd")]
    tasks = table("Tasks given the data", ["task", *columns])
    for one in found["task_estimates"][:SHOWN]:
        cells = [
            f"{value:.5g}"
            for pair in zip(one["mean"], one["sd"], strict=True)
            for value in pair
        ]  # fmt: skip
        tasks.add_row(_short(one["task"], 16), *cells)
    console.print(tasks)
    console.print("± sd: the doubt about the prior included")
    if found["tasks"] > SHOWN:
        console.print(f"and {found['tasks'] - SHOWN} more tasks; --json has them all")
    console.print(str(verdict), markup=False, highlight=False)


def _short(text: str, most: int) -> str:
    """A label as it is, not as markup, and cut rather than the numbers beside it."""
    from rich.markup import escape

    return escape(text if len(text) <= most else f"{text[: most - 1]}…")


def write_tree(tree: xr.DataTree, path: Path) -> None:
    """A tree as NetCDF, compressed; ``arviz.from_netcdf`` reads it."""
    encoding = {
        f"/{name}": {str(v): {"zlib": True, "complevel": 4} for v, one in group.data_vars.items()
                     if one.dtype.kind == "f"}
        for name, group in tree.children.items()
    }  # fmt: skip
    tree.to_netcdf(path, engine="h5netcdf", encoding=encoding)
