"""Bias, spread, positive definiteness and time of every estimator of the prior."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.exploration import Exploration, first_steps, until_eigenvalue
from bayesmeta.agents.roster import ROSTER
from bayesmeta.checks import InputError
from bayesmeta.environment import TaskFamily, paper_family
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.fit import fit_prior
from bayesmeta.runner.study import Study, grid
from bayesmeta.simulation.played import steps_of
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import xarray as xr

RULES: dict[str, Exploration] = {
    "threshold": until_eigenvalue(0.03),
    "tau=20": first_steps(20),
    "tau=50": first_steps(50),
    "tau=200": first_steps(200),
}
"""How long a task explores: Section 6's rule, or a fixed number of steps."""
METHODS = (
    "moment",
    "moment-clipped",
    "moment-widened",
    "split",
    "gls-known",
    "ml",
    "reml",
)
"""As ``fit_prior`` calls them; gls-known is told the true covariance."""
WIDENING = 10.0
"""c_w of Section 6."""
HORIZON = 200
DOUBTFUL = (Status.NOT_CONVERGED, Status.NOT_IDENTIFIED, Status.IMPRECISE)
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)


def explore(
    family: TaskFamily, rule: Exploration, tasks: int, seed: int
) -> tuple[TaskStatistics, tuple[TaskStatistics, TaskStatistics]]:
    """What the exploration steps of tasks leave behind: all of them, and every other one."""
    row = replace(ROSTER["KTS"], exploration=rule)
    d = family.dim
    gram, moment = np.empty((3, tasks, d, d)), np.empty((3, tasks, d))
    for n, (actions, rewards) in enumerate(steps_of(family, row, tasks, seed, opening=True)):
        for i, part in enumerate((slice(None), slice(0, None, 2), slice(1, None, 2))):
            gram[i, n] = actions[part].T @ actions[part]
            moment[i, n] = actions[part].T @ rewards[part]
    whole, odd, even = (TaskStatistics(gram[i], moment[i]) for i in range(3))
    return whole, (odd, even)


def estimate_all(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: explore n tasks, then estimate the prior in every way."""
    import xarray as xr

    d, n = settings["d"], settings["n"]
    rule = RULES[settings["rule"]]
    family = paper_family(dim=d, horizon=rule.tau or HORIZON)  # no step after the exploration
    stats, halves = explore(family, rule, n, seed)
    sd, truth = family.noise_sd, family.prior
    work: dict[str, Callable[[], PriorEstimate]] = {
        "moment": lambda: fit_prior(stats, sd, "moment"),
        "moment-clipped": lambda: fit_prior(stats, sd, "moment-clipped"),
        "moment-widened": lambda: fit_prior(
            stats, sd, "moment-widened", widening=WIDENING, horizon=HORIZON
        ),
        "split": lambda: fit_prior(halves, None, "split"),
        "gls-known": lambda: fit_prior(stats, sd, "gls", cov=truth.cov),
        "ml": lambda: fit_prior(stats, sd, "ml"),
        "reml": lambda: fit_prior(stats, sd, "reml"),
    }
    mean = np.full((len(METHODS), d), np.nan)
    cov = np.full((len(METHODS), d, d), np.nan)
    seconds, lowest, error, doubtful = (np.full(len(METHODS), np.nan) for _ in range(4))
    for i, method in enumerate(METHODS):
        start = time.perf_counter()
        try:
            found = work[method]()
        except InputError:  # some tasks, or halves of them, do not determine theta
            continue
        seconds[i] = time.perf_counter() - start
        mean[i] = found.prior.mean - truth.mean
        cov[i] = found.prior.cov - truth.cov
        lowest[i] = np.linalg.eigvalsh(found.prior.cov)[0]
        error[i] = np.abs(np.linalg.eigvalsh(cov[i])).max()
        doubtful[i] = found.status in DOUBTFUL
    labels = np.arange(d)
    return xr.Dataset(
        {
            "mean_gap": (("method", "row"), mean),
            "cov_gap": (("method", "row", "column"), cov),
            "lowest_eigenvalue": ("method", lowest),
            "cov_error": ("method", error),
            "doubtful": ("method", doubtful),
            "seconds": ("method", seconds),
        },
        coords={"method": list(METHODS), "row": labels, "column": labels},
    )


def summary(record: xr.Dataset) -> xr.Dataset:
    """Over runs: bias and root mean square error, how often there is a covariance, the time.

    Bias and error of the covariance are those of its worst entry, of the mean its worst
    coefficient; ``…_bias_z`` is the largest bias in standard errors of the mean over runs.
    """
    import xarray as xr

    record = record.rename(method="estimator")  # sel(method=…) means something else to xarray
    runs = record.seconds.notnull().sum("run")
    out = xr.Dataset({"available": runs / record.sizes["run"]})
    for name, axes in (("mean", ["row"]), ("cov", ["row", "column"])):
        gap = record[f"{name}_gap"]
        bias, spread = gap.mean("run"), gap.std("run", ddof=1)
        z = abs(bias) / (spread / np.sqrt(runs)).where(spread > 0)
        out[f"{name}_bias"] = abs(bias).max(axes)
        out[f"{name}_bias_z"] = z.max(axes)
        out[f"{name}_rmse"] = (gap**2).mean("run").max(axes) ** 0.5
    low = record.lowest_eigenvalue
    out["not_psd"] = (low < -1e-12).where(low.notnull()).mean("run")
    out["singular"] = (abs(low) <= 1e-9).where(low.notnull()).mean("run")
    out["doubtful"] = record.doubtful.mean("run")
    out["cov_bias_error"] = (record.cov_gap.std("run", ddof=1) / np.sqrt(runs)).max(
        ["row", "column"]
    )
    out["cov_error"] = record.cov_error  # run by run
    out["lowest_eigenvalue"] = low.mean("run")
    out["milliseconds"] = 1000 * record.seconds.median("run")
    return out.where(out.available > 0)


STUDIES = (
    Study(
        "estimators",
        grid(d=[2, 5, 10], rule=list(RULES), n=SIZES, run=range(20)),
        estimate_all,
        random_seed=3,
        dims=("d", "rule", "n", "run"),
        note="bias, error, definiteness and time of every estimator",
        keep=summary,
        record="estimators/estimators.nc",
    ),
)
"""What is recorded in analyses/estimators."""
