"""One replication: data, every estimator's answer, and how it compares with the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.calibration.answers import THIN, Answer, Asked, Estimator, answer_of
from bayesmeta.calibration.intervals import RADII, ends
from bayesmeta.calibration.radii import Radii, radii_of
from bayesmeta.calibration.ranks import rank_of
from bayesmeta.calibration.regret import mean_regret
from bayesmeta.calibration.scenarios import Scenarios, Variables
from bayesmeta.calibration.scores import judged
from bayesmeta.calibration.worlds import Simulated, World
from bayesmeta.checks import Array, InputError, unit_diagonal
from bayesmeta.fitted.quantities import Quantities
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.runner.cell import one_line
from bayesmeta.streams import stream

if TYPE_CHECKING:
    import xarray as xr

NEXT = 20
"""Next tasks that a forecast is judged by, in every replication."""
SINGULAR = 1e-9
"""An eigenvalue of a correlation matrix that counts as 0."""


@dataclass(frozen=True, eq=False)
class Lab:
    """What all replications share."""

    scenarios: Scenarios
    estimators: dict[str, Estimator]
    judges: dict[str, tuple[str, str]]
    """label -> (name of an estimator, kind of its intervals)"""
    levels: tuple[float, ...]
    noise_sd: float | str
    """what estimators are told: "known", "estimate" or a number"""
    regret: int = 0
    """next tasks that are played"""


DIMS = {
    "estimate": ("quantity",),
    "error": ("quantity",),
    "rank": ("quantity",),
    "low": ("level", "quantity"),
    "high": ("level", "quantity"),
    "mean_radius": ("level",),
    "cov_radius": ("level",),
    "inside": ("level",),
    "next_width": ("level",),
    "pit": ("varying",),
}
"""Dimensions of variables beside the estimator."""


def replicate(settings: dict[str, Any], seed: int, lab: Lab) -> xr.Dataset:
    """One cell of the study: settings are ``tasks`` and ``replication``."""
    import xarray as xr

    every = [_asked(world, lab, settings["tasks"], seed) for world in lab.scenarios.worlds]
    quantities = every[0].quantities
    coords: dict[str, Any] = lab.scenarios.axes | {
        "estimator": list(lab.judges),
        "quantity": quantities.names,
        "level": list(lab.levels),
        "varying": [quantities.labels[i] for i in quantities.vary],
    }
    found = lab.scenarios.stacked([_compared(asked, lab) for asked in every])
    made = _coordinates(tuple((name, tuple(labels)) for name, labels in coords.items()))
    return xr.Dataset(found, coords=made)


@lru_cache(maxsize=4)
def _coordinates(named: tuple[tuple[str, tuple[Any, ...]], ...]) -> Any:
    """Made once: it takes longer than the rest of a Dataset."""
    import xarray as xr

    return xr.Dataset(coords={name: list(labels) for name, labels in named}).coords


def _compared(asked: Asked, lab: Lab) -> Variables:
    """All variables of one replication in one world."""
    quantities, data = asked.quantities, asked.data
    rows: dict[str, list[Any]] = {}
    answers = {name: _tried(one, asked) for name, one in lab.estimators.items()}
    levels = np.array(lab.levels)
    about = {
        name: _nothing(asked, levels) | _judged(found, asked, levels)
        for name, found in answers.items()
    }
    truth = quantities.values(data.prior.mean, data.prior.cov, data.noise_sd)
    last: Variables = {"truth": (("quantity",), truth)}
    if lab.regret:
        known = mean_regret(data, data.prior, lab.regret, asked.seed)
        last["known_regret"] = (), np.array(known)
        for name, found in answers.items():
            about[name] |= _regret(found, asked, lab.regret, known)
    with_radii = any(kind == RADII for _, kind in lab.judges.values())
    for name, kind in lab.judges.values():
        own = about[name] | _intervals(kind, answers[name], asked, lab.estimators[name], levels)
        own["problem"] = "; ".join(filter(None, (own["problem"], about[name]["problem"])))
        if with_radii:
            own |= _radii(kind, answers[name], asked, levels)
        for key, value in own.items():
            rows.setdefault(key, []).append(value)
    if not asked.drawn_truth:
        del rows["rank"]
    content: Variables = {
        key: (("estimator", *DIMS.get(key, ())), np.array(values)) for key, values in rows.items()
    }
    return content | last


def _asked(world: World, lab: Lab, tasks: int, seed: int) -> Asked:
    data = world.draw(tasks, seed)
    told: float | None = None
    if lab.noise_sd == "known":
        told = data.told
    elif not isinstance(lab.noise_sd, str):
        told = lab.noise_sd
    family = world.family if isinstance(world, Simulated) else None
    return Asked(
        data,
        told,
        Quantities.of(data.stats, told is None, entries=True),
        None if family is None else family.horizon,
        None if family is None else family.told(),
        not isinstance(world.truth.prior, GaussianPrior),
        seed,
    )


def _tried(estimator: Estimator, asked: Asked) -> Answer | str:
    """The answer, or why there is none; whatever a function raises is counted, not raised."""
    try:
        return answer_of(estimator, asked)
    except Exception as error:
        return one_line(error)


def _judged(answer: Answer | str, asked: Asked, levels: Array) -> dict[str, Any]:
    """Estimates, and all that does not depend on the kind of intervals; nothing of a failure."""
    if isinstance(answer, str):
        return {}
    vary = list(asked.quantities.vary)
    cov = answer.prior.cov[np.ix_(vary, vary)]
    true = asked.data.prior.cov[np.ix_(vary, vary)]
    apart = np.linalg.eigvalsh(cov - true)
    lowest = float(np.linalg.eigvalsh(unit_diagonal(cov))[0])
    found: dict[str, Any] = {
        "estimate": answer.values,
        "error": answer.errors,
        "mean_error": float(np.linalg.norm(answer.prior.mean - asked.data.prior.mean)),
        "cov_error": float(np.abs(apart).max()),
        "dominates": float(apart[0] >= 0),
        "not_positive_definite": float(lowest < -SINGULAR),
        "singular": float(abs(lowest) <= SINGULAR),
        "failed": 0.0,
        "divergent": answer.divergent,
    }
    if answer.draws is not None:
        truth = asked.data.prior
        values = asked.quantities.values(truth.mean, truth.cov, asked.data.noise_sd)
        found["rank"] = rank_of(answer.draws, values, THIN)
    if answer.forecast is not None:
        theta = asked.data.next_thetas(stream(asked.seed, "next task"), NEXT)[:, vary]
        normals = stream(asked.seed, "forecast").standard_normal((1000, len(vary)))
        score = judged(answer.forecast, theta, levels, normals)
        found |= score._asdict() | {"next_width": score.width}
        del found["width"]
    return found


def _intervals(
    kind: str, answer: Answer | str, asked: Asked, estimator: Estimator, levels: Array
) -> dict[str, Any]:
    """Ends of one kind of intervals; none of a failure, with what there is to say."""
    low_high = np.full((2, len(levels), len(asked.quantities.names)), np.nan)
    problem = ""
    if isinstance(answer, Answer):
        try:
            low_high = ends(kind, answer, asked, estimator, levels)
        except Exception as error:
            problem = f"no intervals: {one_line(error)}"
    else:
        problem = answer
    return {"low": low_high[0], "high": low_high[1], "problem": problem}


def _radii(kind: str, answer: Answer | str, asked: Asked, levels: Array) -> dict[str, Any]:
    """Of the balls of E_m and E_s, where these are the intervals."""
    found = Radii(*np.full((2, len(levels)), np.nan))
    if kind == RADII and isinstance(answer, Answer):
        found = radii_of(answer, asked, levels)
    return {"mean_radius": found.mean, "cov_radius": found.cov}


def _regret(answer: Answer | str, asked: Asked, tasks: int, known: float) -> dict[str, Any]:
    """Of the next tasks with the estimated prior less that with the true one; NaN where the
    estimate is no prior."""
    if isinstance(answer, str) or (answer.estimate is not None and not answer.estimate.usable):
        return {"relative_regret": math.nan}
    try:
        found = mean_regret(asked.data, answer.prior, tasks, asked.seed)
    except InputError as error:
        return {"relative_regret": math.nan, "problem": f"no regret: {one_line(error)}"}
    return {"relative_regret": found - known}


def _nothing(asked: Asked, levels: Array) -> dict[str, Any]:
    """Where an estimator has no answer."""
    nan, quantities = np.nan, asked.quantities
    return {
        "estimate": np.full(len(quantities.names), nan),
        "error": np.full(len(quantities.names), nan),
        "rank": np.full(len(quantities.names), nan),
        "mean_error": nan,
        "cov_error": nan,
        "dominates": nan,
        "not_positive_definite": nan,
        "singular": nan,
        "failed": 1.0,
        "divergent": nan,
        "problem": "",
        "inside": np.full(len(levels), nan),
        "next_width": np.full(len(levels), nan),
        "pit": np.full(len(quantities.vary), nan),
        "pit_distance": nan,
        "log_score": nan,
        "energy_score": nan,
    }
