"""How far off tasks' coefficients are where the estimated covariance is singular.

Tables have a feature without any effect, in no task. REML then often says that tasks do not differ
in some direction, and intervals that take this for known are too short: one shop had 0.83 ± 0.04,
nineteen deviations from the truth. Here intervals that take Sigma for known, those by a bootstrap
and those of the posterior are compared on the same tables.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.calibration.shares import holds
from bayesmeta.checks import Array
from bayesmeta.fitted.posterior import FittedPosterior
from bayesmeta.fitted.prior import FittedPrior
from bayesmeta.runner.study import Study, grid
from bayesmeta.statistics import TaskStatistics
from bayesmeta.streams import stream

if TYPE_CHECKING:
    import xarray as xr
    from pandas import DataFrame

LEVEL = 0.95
FEATURES = ("intercept", "price", "nothing")
MEAN = np.array([5.0, -1.0, 0.0])
SD = np.array([1.0, 0.5, 0.0])
"""Of tasks' coefficients, which are independent: that of "nothing" is 0 in every task."""
NOISE = 1.0
TASKS, ROWS = 10, 6
RUNS = 60
REPLICATIONS = 200
KINDS = ("none", "mean", "bootstrap", "posterior")
"""What intervals include: as ``FittedPrior.tasks`` has it, all but the last conditional on the
estimate of Sigma or drawn from it."""
BOUNDS = {
    "none": (0, 0.88),
    "mean": (0, 0.90),
    "bootstrap": (0.75, 0.95),
    "posterior": (0.90, 0.99),
}
"""Coverage of 95% intervals of coefficients in singular fits, set before the recorded run, after
trials on other tables: intervals that take Sigma for known must be seen to be too short, which is
why they are marked, and the posterior's must hold."""


def table_of(rng: np.random.Generator) -> tuple[TaskStatistics, Array]:
    """Data of the tasks, with features drawn anew in each, and their coefficients (n, d)."""
    theta = MEAN + SD * rng.standard_normal((TASKS, len(MEAN)))
    rows = rng.standard_normal((TASKS, ROWS, len(MEAN)))
    rows[..., 0] = 1.0
    rewards = np.einsum("nti,ni->nt", rows, theta) + NOISE * rng.standard_normal((TASKS, ROWS))
    stats = TaskStatistics.from_arrays(
        np.arange(TASKS).repeat(ROWS), rewards.ravel(), rows.reshape(-1, len(MEAN)), FEATURES
    )
    return stats, theta


def replicate(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: intervals of every task's coefficients by each kind, and whether Sigma was
    singular."""
    import xarray as xr

    from bayesmeta.fitted.fit import fit
    from bayesmeta.posterior.sampling import FitWarning

    stats, theta = table_of(stream(seed, "truth"))
    fitted, own = fit(stats, level=LEVEL), seed % 2**31
    assert isinstance(fitted, FittedPrior)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # recorded as trusted
        drawn = fit(stats, method="posterior", level=LEVEL, random_seed=own)
    assert isinstance(drawn, FittedPosterior)
    tables = {
        "none": fitted.tasks(uncertainty="none"),
        "mean": fitted.tasks(),
        "bootstrap": fitted.tasks(
            uncertainty="bootstrap", random_seed=own, replications=REPLICATIONS
        ),
        "posterior": drawn.tasks(),
    }
    off = np.array([_deviations(tables[kind], theta) for kind in KINDS])
    inside = np.array([_inside(tables[kind], theta) for kind in KINDS])
    return xr.Dataset(
        {
            "inside": (("kind", "task", "feature"), inside),
            "off": (("kind", "task", "feature"), off),
            "singular": float(fitted.conditional),
            "trusted": float(drawn.tree.attrs["trusted"]),
        },
        coords={"kind": list(KINDS), "feature": list(FEATURES)},
    )


def _inside(table: DataFrame, theta: Array) -> Array:
    """Whether each interval holds the truth."""
    low, high = (table[end].to_numpy().reshape(theta.shape) for end in ("low", "high"))
    found: Array = holds(low, high, theta).astype(float)
    return found


def _deviations(table: DataFrame, theta: Array) -> Array:
    """How far off estimates are, in their own standard deviations."""
    mean, sd = (table[one].to_numpy().reshape(theta.shape) for one in ("estimate", "sd"))
    found: Array = np.abs(mean - theta) / np.maximum(sd, 1e-12)
    return found


def summary(record: xr.Dataset) -> xr.Dataset:
    """Over singular fits: the share that is covered, with its error over tables, and how far off
    the farthest coefficient of a table is, typically and at worst."""
    import xarray as xr

    some = record.sel(run=record.singular == 1)
    each = some.inside.mean(["task", "feature"])
    farthest = some.off.max(["task", "feature"])
    return xr.Dataset(
        {
            "covered": each.mean("run"),
            "error": each.std("run", ddof=1) / np.sqrt(some.sizes["run"]),
            "covered_by_feature": some.inside.mean(["run", "task"]),
            "farthest": farthest.median("run"),
            "worst": farthest.max("run"),
            "singular": record.singular.sum(),
            "runs": record.sizes["run"],
            "trusted": some.trusted.mean("run"),
        }
    )


STUDIES = (
    Study(
        "intervals-singular",
        grid(run=range(RUNS)),
        replicate,
        random_seed=17,
        dims=("run",),
        note="coverage of tasks' coefficients where the estimated covariance is singular",
        keep=summary,
        record="intervals/singular.nc",
    ),
)
"""What is recorded in analyses/intervals beside ``intervals``."""
