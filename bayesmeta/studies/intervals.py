"""How often intervals of a fitted model cover the truth, and how wide they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.calibration.shares import counted, holds
from bayesmeta.checks import Array, InputError
from bayesmeta.fitted.bootstrap import Drawn, percentiles
from bayesmeta.fitted.prior import FittedPrior
from bayesmeta.fitted.tasks import Moments, around
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.runner.study import Study, grid
from bayesmeta.statistics import TaskStatistics
from bayesmeta.streams import stream

if TYPE_CHECKING:
    import xarray as xr

LEVEL = 0.95
TRUTH = GaussianPrior(np.array([1.0, 0.5]), np.array([[1.0, 0.21], [0.21, 0.49]]))
"""Standard deviations 1 and 0.7, correlation 0.3."""
NOISE = 1.0
ROWS = 8
"""Of a task, at evenly spaced places from -1 to 1."""
SIZES = (10, 30, 100)
RUNS = 400
BOOTSTRAPPED = 100
"""Runs that have a bootstrap, too, which is slower; the first of them."""
REPLICATIONS = 200
METHODS = ("wald", "profile", "bootstrap")
UNCERTAINTY = ("none", "mean", "bootstrap")
"""What the intervals of tasks' coefficients include."""
QUANTITIES = ("mu[intercept]", "mu[x]", "sd[intercept]", "sd[x]", "corr[x, intercept]", "sigma")
NEW = np.ones((1, 2))
"""A row of a new task, at the end of the range."""
PROFILE_BOUNDS = {10: (0.86, 0.99), 30: (0.91, 0.985), 100: (0.91, 0.985)}
"""Coverage of profile intervals, of each quantity, by tasks: set before the first run. With 400
runs a share of 95% has a standard error of 1.1%; ten tasks are too few for asymptotics."""
PREDICTION_BOUNDS = {10: (0.86, 0.98), 30: (0.91, 0.98), 100: (0.91, 0.98)}
"""The same of predictions for a new task, whose intervals leave out the doubt about Sigma."""
BOOTSTRAP_BOUNDS = {10: (0.86, 1.0), 30: (0.88, 1.0), 100: (0.88, 1.0)}
"""The same where a bootstrap adds that doubt, set before the first run that has it. The first runs
have one, 100 of them, so that a share of 95% has a standard error of 2.2%."""


def tasks_of(tasks: int, rng: np.random.Generator) -> tuple[TaskStatistics, Array]:
    """Data of tasks of the truth, and their coefficients."""
    rows = np.column_stack([np.ones(ROWS), np.linspace(-1.0, 1.0, ROWS)])
    theta = TRUTH.sample(rng, tasks)
    rewards = theta @ rows.T + NOISE * rng.standard_normal((tasks, ROWS))
    labels = np.arange(tasks).repeat(ROWS)
    features = np.tile(rows, (tasks, 1))
    stats = TaskStatistics.from_arrays(labels, rewards.ravel(), features, ["intercept", "x"])
    return stats, theta


def replicate(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: ends of all intervals of one fit by REML, whether a new task's reward and the
    tasks' coefficients are covered, and whether Sigma was singular."""
    import xarray as xr

    from bayesmeta.fitted.fit import fit

    rng = stream(seed, "truth")
    stats, theta = tasks_of(settings["n"], rng)
    fitted = fit(stats, level=LEVEL)
    assert isinstance(fitted, FittedPrior)
    low, high = (np.full((len(METHODS), len(QUANTITIES)), np.nan) for _ in range(2))
    inside = np.full(len(UNCERTAINTY), np.nan)
    predicted, width = (np.full(len(UNCERTAINTY), np.nan) for _ in range(2))
    target = float(TRUTH.sample(rng) @ NEW[0])
    for i, method in enumerate(METHODS[:2]):
        try:
            found = fitted.confint(method)
        except InputError:
            continue
        low[i], high[i] = found["low"], found["high"]
    for i, kind in enumerate(UNCERTAINTY[:2]):
        own = fitted.moments(stats.gram, stats.moment, kind == "mean")
        inside[i] = share_inside(own, theta)
        new = fitted.predict(NEW, uncertainty=kind)
        ends = new["low"].iloc[0], new["high"].iloc[0]
        predicted[i], width[i] = float(holds(*ends, target)), ends[1] - ends[0]
    if settings["run"] < BOOTSTRAPPED:
        drawn = fitted.redrawn(REPLICATIONS, seed % 2**31)
        values = fitted.quantities.values(drawn.mean, drawn.cov, drawn.noise)
        low[2], high[2] = percentiles(values, LEVEL)
        centre = fitted.moments(stats.gram, stats.moment).mean
        inside[2] = share_inside(around(centre, drawn, stats.gram, stats.moment), theta)
        predicted[2], width[2] = of_a_new_task(fitted, drawn, target)
    return xr.Dataset(
        {
            "low": (("interval", "quantity"), low),
            "high": (("interval", "quantity"), high),
            "inside": ("uncertainty", inside),
            "predicted": ("uncertainty", predicted),
            "predicted_width": ("uncertainty", width),
            "singular": float(fitted.conditional),
        },
        coords={
            "interval": list(METHODS),
            "quantity": list(QUANTITIES),
            "uncertainty": list(UNCERTAINTY),
        },
    )


def share_inside(moments: Moments, theta: Array) -> float:
    """The share of tasks' coefficients that lie in their intervals."""
    from scipy.stats import norm

    sd = np.sqrt(np.maximum(np.diagonal(moments.cov, axis1=1, axis2=2), 0.0))
    half = float(norm.isf((1 - LEVEL) / 2)) * sd
    return float((np.abs(theta - moments.mean) <= half).mean())


def of_a_new_task(fitted: FittedPrior, drawn: Drawn, target: float) -> tuple[float, float]:
    """Whether the interval that ``predict(NEW, uncertainty="bootstrap")`` gives holds the target,
    and how wide it is; of replications that are drawn already."""
    from scipy.stats import norm

    nothing = np.zeros((1, 2, 2)), np.zeros((1, 2))
    found = around(fitted.moments(*nothing, new=True).mean, drawn, *nothing)
    half = float(norm.isf((1 - LEVEL) / 2) * np.sqrt(NEW @ found.cov[0] @ NEW.T).item())
    return float(abs(target - float(NEW[0] @ found.mean[0])) <= half), 2 * half


def truth() -> Array:
    """Of all quantities."""
    sd = np.sqrt(np.diag(TRUTH.cov))
    return np.array([*TRUTH.mean, *sd, TRUTH.cov[0, 1] / sd.prod(), NOISE])


def summary(record: xr.Dataset) -> xr.Dataset:
    """Over runs: how many intervals there are and cover the truth, and their median width."""
    import xarray as xr

    true = xr.DataArray(truth(), dims="quantity", coords={"quantity": list(QUANTITIES)})
    covered, available = counted(record.low, record.high, true, "run")
    singular = record.singular == 1
    return xr.Dataset(
        {
            "covered": covered,
            "available": available,
            "width": (record.high - record.low).median("run"),
            "predicted": record.predicted.sum("run"),
            "predicted_width": record.predicted_width.median("run"),
            "predictions": record.predicted.notnull().sum("run"),
            "runs": record.singular.notnull().sum("run"),
            "singular": record.singular.sum("run"),
            "inside": record.inside.mean("run"),
            "inside_error": record.inside.std("run", ddof=1)
            / np.sqrt(record.inside.notnull().sum("run")),
            "inside_singular": record.inside.where(singular).mean("run"),
        }
    )


STUDIES = (
    Study(
        "intervals",
        grid(n=SIZES, run=range(RUNS)),
        replicate,
        random_seed=16,
        dims=("n", "run"),
        note="coverage and width of Wald, profile and bootstrap intervals, and of predictions",
        keep=summary,
        record="intervals/intervals.nc",
    ),
)
"""What is recorded in analyses/intervals."""
