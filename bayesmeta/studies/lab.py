"""How good every estimator is, by the calibration lab: sizes, ways data came about, wrong models.

A cell is one lab, summed up over replications and over the features of a kind: in the paper's
family these are exchangeable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.exploration import Exploration, first_steps, until_eigenvalue
from bayesmeta.calibration.wrong import NOTHING, WRONG
from bayesmeta.environment import paper_family
from bayesmeta.posterior.priors import LKJ
from bayesmeta.runner.study import Study, grid

if TYPE_CHECKING:
    import xarray as xr

KINDS = ("mu", "sd", "corr", "cov", "next")
"""Quantities, and the next task's theta."""
OF_ALL = (
    "mean_error",
    "cov_error",
    "dominates",
    "not_positive_definite",
    "singular",
    "failed",
    "divergent",
    "log_score",
    "energy_score",
)
LEVELS = (0.5, 0.8, 0.9, 0.95)
BINS = 20
"""Of the histogram of where the next theta lies in its forecast."""
DIMS = (2, 5)
TASKS = (10, 20, 50, 200, 1000, 5000)
FEW = (10, 50, 200)
"""For intervals that take hundreds of fits."""
TRIED_AT = (20, 50, 200)
"""For priors over correlations."""
FROM_TWO = (2, 5, 10, 20, 50, 200)
"""For the posterior."""
RANDOM = "50 random steps"
PLAYED = "until every direction is known"
LEARNER = "all steps of Thompson Sampling"
DATA: dict[str, Exploration | str] = {
    RANDOM: first_steps(50),
    "15 random steps": first_steps(15),
    PLAYED: until_eigenvalue(0.5),
    LEARNER: "UKTS",
}
"""How data came about: three rules of exploration, and Thompson Sampling, which chooses actions by
what it saw."""
CLOSED = ("moment", "moment-clipped", "moment-widened", "split", "ml", "reml")
ETAS = (0.5, 1.0, 2.0)
"""Of LKJ priors: below 1 strong correlations are likely, above 1 weak ones."""
TRIED = {f"LKJ({eta:g})": LKJ(eta=eta) for eta in ETAS}
"""Priors over priors, which are estimators by these names."""
REPLICATIONS = {
    "lab": 1000,
    "lab-intervals": 1000,
    "lab-posterior": 500,
    "lab-priors": 200,
    "lab-wrong": 500,
}
"""Of every cell of a study; ``FEWER`` in five dimensions, where a replication of hundreds of fits
takes seconds."""
FEWER = 200
OF_LONG = 200
"""Replications of 5,000 tasks that are played step by step, each of which takes a second."""


def measured(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: the lab with these settings, summed up."""
    from bayesmeta.calibration.lab import calibrate

    lab = calibrate(
        paper_family(dim=settings["dim"]),
        tasks=settings["tasks"],
        estimators={name: TRIED.get(name, name) for name in settings["estimators"]},
        intervals=settings.get("intervals"),
        levels=settings["levels"],
        replications=settings["replications"],
        explore=DATA[settings.get("data", RANDOM)],
        wrong=settings.get("wrong", NOTHING),
        random_seed=seed % 2**31,
        jobs=1,
    )
    return summed_up(lab.isel(tasks=0, drop=True))


def summed_up(lab: xr.Dataset) -> xr.Dataset:
    """Means over replications and features of a kind, of those that have a value, each with its
    Monte-Carlo error; the replication is the unit. ``claimed`` are squared standard errors."""
    import xarray as xr

    from bayesmeta.calibration.scores import interval_score
    from bayesmeta.calibration.shares import held

    inside = held(lab.low, lab.high, lab.truth)
    gap = lab.estimate - lab.truth
    each = xr.Dataset(
        {
            "coverage": inside,
            "width": lab.high - lab.low,
            "interval_score": xr.apply_ufunc(
                interval_score, lab.low, lab.high, lab.truth, lab.level
            ),
            "bias": gap,
            "square": gap**2,
            "claimed": lab.error**2,
            "available": inside.notnull().astype(float),
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
        parts.append(_means(each.sel(quantity=own)))
    parts.append(_means(following))
    found = xr.concat(parts, xr.DataArray(list(KINDS), dims="kind", name="kind"), join="outer")
    found = found.assign(_means(lab[list(OF_ALL)]).data_vars)
    return found.assign(pit=_histogram(lab.pit))


def _means(each: xr.Dataset) -> xr.Dataset:
    """Means of all values there are of all replications, and their standard errors: those of a
    ratio of two means over replications, of the sum of values and of how many there are."""
    found = {}
    for name, values in each.data_vars.items():
        there = values.notnull().astype(float)
        values = values.fillna(0.0)
        if "quantity" in values.dims:
            there, values = there.mean("quantity"), values.mean("quantity")
        share = there.mean("replication")
        share = share.where(share > 0)
        mean = values.mean("replication") / share
        with np.errstate(invalid="ignore"):  # infinite scores have no error
            spread = (values - mean * there).std("replication", ddof=1)
        found[name] = mean
        found[f"{name}_error"] = spread / np.sqrt(each.sizes["replication"]) / share
    return type(each)(found)


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


def _study(
    name: str,
    note: str,
    estimators: tuple[str, ...],
    there: Callable[[dict[str, Any]], bool] = lambda cell: True,
    levels: tuple[float, ...] = LEVELS,
    **settings: Any,
) -> Study:
    """A study of the cells that are ``there``."""
    common: dict[str, Any] = {"estimators": list(estimators), "levels": list(levels)}
    if "intervals" in settings:
        common["intervals"] = list(settings.pop("intervals"))
    common["replications"] = REPLICATIONS[name]
    cells = {key: cell for key, cell in grid(common, **settings).items() if there(cell)}
    for cell in cells.values():
        if name == "lab-intervals" and cell["dim"] > 2:
            cell["replications"] = FEWER
        if name == "lab" and cell["data"] in (PLAYED, LEARNER) and cell["tasks"] >= 5000:
            cell["replications"] = OF_LONG
    return Study(
        name,
        cells,
        measured,
        random_seed=17,
        dims=tuple(settings),
        note=note,
        keep=keep,
        record=f"calibration/{name}.nc",
    )


def _closed(cell: dict[str, Any]) -> bool:
    """20 tasks of one way of data only."""
    return bool(cell["tasks"] != 20 or cell["data"] == RANDOM)


STUDIES = (
    _study(
        "lab",
        "closed forms and likelihood, by number of tasks and how data came about",
        CLOSED,
        _closed,
        dim=DIMS,
        data=tuple(DATA),
        tasks=TASKS,
    ),
    _study(
        "lab-intervals",
        "every kind of interval of the likelihood and of moments",
        ("moment", "reml"),
        lambda cell: cell["dim"] == 2 or cell["tasks"] == 50,
        levels=(0.95,),
        dim=DIMS,
        tasks=FEW,
        intervals=("wald", "wald-natural", "profile", "bootstrap", "radii"),
    ),
    _study(
        "lab-posterior",
        "the posterior under the default prior, from two tasks on",
        ("posterior",),
        lambda cell: cell["data"] == RANDOM or cell["tasks"] in (20, 200),
        dim=DIMS,
        data=(RANDOM, LEARNER),
        tasks=FROM_TWO,
        intervals=("central", "hdi"),
    ),
    _study(
        "lab-priors",
        "how much the prior over correlations matters",
        tuple(TRIED),
        levels=(0.95,),
        dim=DIMS,
        tasks=TRIED_AT,
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
