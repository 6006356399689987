"""How good every estimator is, by the calibration lab: sizes, ways data came about, wrong models.

A cell is one lab, summed up over replications and over the features of a kind: in the paper's
family these are exchangeable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.exploration import Exploration, first_steps, until_eigenvalue
from bayesmeta.calibration.wrong import NOTHING, WRONG
from bayesmeta.environment import paper_family
from bayesmeta.runner.study import Study, grid

if TYPE_CHECKING:
    import xarray as xr

KINDS = ("mu", "sd", "corr", "next")
"""Quantities, and the next task's theta."""
MEASURES = ("coverage", "width", "interval_score", "bias", "square", "available")
OF_ALL = (
    "cov_error",
    "dominates",
    "not_positive_definite",
    "singular",
    "failed",
    "log_score",
    "energy_score",
)
LEVELS = (0.5, 0.8, 0.9, 0.95)
BINS = 20
"""Of the histogram of where the next theta lies in its forecast."""
DIMS = (2, 5)
TASKS = (10, 20, 50, 200, 1000, 5000)
FEW = tuple(n for n in TASKS if n <= 200)
FROM_TWO = (2, 5, *FEW)
RANDOM = "50 random steps"
LEARNER = "all steps of a learner"
DATA: dict[str, Exploration | str] = {
    RANDOM: first_steps(50),
    "15 random steps": first_steps(15),
    "until every direction is known": until_eigenvalue(0.5),
    LEARNER: "UKTS",
}
"""How data came about: three rules of exploration, and Thompson Sampling, which chooses actions by
what it saw."""
CLOSED = ("moment", "moment-clipped", "moment-widened", "split", "ml", "reml")
REPLICATIONS = {"lab": 1000, "lab-intervals": 1000, "lab-posterior": 500, "lab-wrong": 500}
"""Of every cell of a study."""


def measured(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: the lab with these settings, summed up."""
    from bayesmeta.calibration.lab import calibrate

    lab = calibrate(
        paper_family(dim=settings["dim"]),
        tasks=settings["tasks"],
        estimators=settings["estimators"],
        intervals=settings.get("intervals"),
        levels=LEVELS,
        replications=settings["replications"],
        explore=DATA[settings.get("data", RANDOM)],
        wrong=settings.get("wrong", NOTHING),
        random_seed=seed % 2**31,
        jobs=1,
    )
    return summed_up(lab.isel(tasks=0, drop=True))


def summed_up(lab: xr.Dataset) -> xr.Dataset:
    """Means over replications and features of a kind, each with its Monte-Carlo error; the
    replication is the unit."""
    import xarray as xr

    from bayesmeta.calibration.scores import interval_score

    there = lab.low.notnull() & lab.high.notnull()
    inside = (lab.low <= lab.truth) & (lab.truth <= lab.high)
    gap = lab.estimate - lab.truth
    each = xr.Dataset(
        {
            "coverage": inside.where(there).astype(float),
            "width": lab.high - lab.low,
            "interval_score": xr.apply_ufunc(
                interval_score, lab.low, lab.high, lab.truth, lab.level
            ),
            "bias": gap,
            "square": gap**2,
            "available": there.astype(float),
        }
    )
    following = xr.Dataset(
        {
            "coverage": lab.inside,
            "width": lab.next_width,
            "available": lab.inside.notnull().astype(float),
        }
    )
    names = [str(name) for name in lab.quantity.values]
    parts = []
    for kind in KINDS[:-1]:
        own = [name for name in names if name.startswith(f"{kind}[")]
        parts.append(_over_replications(each.sel(quantity=own).mean("quantity")))
    parts.append(_over_replications(following))
    found = xr.concat(parts, xr.DataArray(list(KINDS), dims="kind", name="kind"), join="outer")
    found = found.assign(_over_replications(lab[list(OF_ALL)]).data_vars)
    return found.assign(pit=_histogram(lab.pit))


def _over_replications(each: xr.Dataset) -> xr.Dataset:
    """Means over those that have a value, and their standard errors."""
    with np.errstate(invalid="ignore"):  # infinite scores have no error
        error = each.std("replication", ddof=1) / np.sqrt(each.notnull().sum("replication"))
    return each.mean("replication").assign(
        {f"{name}_error": one for name, one in error.data_vars.items()}
    )


def _histogram(pit: xr.DataArray) -> xr.DataArray:
    """Shares of places of the next theta in the forecast, of all features."""
    import xarray as xr

    rows = []
    for name in pit.estimator.values:
        values = pit.sel(estimator=name).values.ravel()
        values = values[np.isfinite(values)]
        counts, _ = np.histogram(values, bins=BINS, range=(0.0, 1.0))
        rows.append(counts / max(len(values), 1))
    middles = (np.arange(BINS) + 0.5) / BINS
    return xr.DataArray(
        np.array(rows),
        dims=("estimator", "bin"),
        coords={"estimator": pit.estimator.values, "bin": middles},
    )


def keep(collected: xr.Dataset) -> xr.Dataset:
    """In single precision, which is far more than the replications determine."""
    return collected.map(lambda one: one.astype("float32") if one.dtype.kind == "f" else one)


def _study(name: str, note: str, estimators: tuple[str, ...], **settings: Any) -> Study:
    common = {"estimators": list(estimators), "replications": REPLICATIONS[name]}
    if "intervals" in settings:
        common["intervals"] = list(settings.pop("intervals"))
    return Study(
        name,
        grid(common, **settings),
        measured,
        random_seed=17,
        dims=tuple(settings),
        note=note,
        keep=keep,
        record=f"calibration/{name}.nc",
    )


STUDIES = (
    _study(
        "lab",
        "closed forms and likelihood, by number of tasks and how data came about",
        CLOSED,
        dim=DIMS,
        data=tuple(DATA),
        tasks=TASKS,
    ),
    _study(
        "lab-intervals",
        "every kind of interval of the likelihood",
        ("reml",),
        dim=DIMS,
        tasks=FEW,
        intervals=("wald", "wald-natural", "profile", "bootstrap"),
    ),
    _study(
        "lab-posterior",
        "the posterior under the default prior, from two tasks on",
        ("posterior",),
        dim=DIMS,
        data=(RANDOM, LEARNER),
        tasks=FROM_TWO,
        intervals=("central", "hdi"),
    ),
    _study(
        "lab-wrong",
        "where the model is wrong",
        (*CLOSED, "posterior"),
        dim=(2,),
        wrong=tuple(WRONG),
        tasks=(100,),
    ),
)
