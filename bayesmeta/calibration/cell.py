"""One replication: data, every estimator's answer, and how it compares with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.calibration.answers import THIN, Answer, Asked, Estimator, answer_of
from bayesmeta.calibration.intervals import ends
from bayesmeta.calibration.scores import judged
from bayesmeta.calibration.worlds import Simulated, World
from bayesmeta.checks import Array, unit_diagonal
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

    world: World
    estimators: dict[str, Estimator]
    judges: dict[str, tuple[str, str]]
    """label -> (name of an estimator, kind of its intervals)"""
    levels: tuple[float, ...]
    noise_sd: float | str
    """what estimators are told: "known", "estimate" or a number"""


def replicate(settings: dict[str, Any], seed: int, lab: Lab) -> xr.Dataset:
    """One cell of the study: settings are ``tasks`` and ``replication``."""
    import xarray as xr

    asked = _asked(lab, settings["tasks"], seed)
    names, labels = asked.quantities.names, list(lab.judges)
    truth = asked.data.prior
    rows: dict[str, list[Any]] = {}
    answers = {name: _tried(one, asked) for name, one in lab.estimators.items()}
    levels = np.array(lab.levels)
    about = {
        name: _nothing(asked, levels) | _judged(found, asked, levels)
        for name, found in answers.items()
    }
    for name, kind in lab.judges.values():
        found = answers[name]
        shape = 2, len(levels), len(names)
        low_high, problem = np.full(shape, np.nan), ""
        if isinstance(found, Answer):
            try:
                low_high = ends(kind, found, asked, lab.estimators[name], levels)
            except Exception as error:
                problem = f"no intervals: {one_line(error)}"
        else:
            problem = found
        own = about[name] | {"low": low_high[0], "high": low_high[1], "problem": problem}
        for key, value in own.items():
            rows.setdefault(key, []).append(value)
    dims = {
        "estimate": ("quantity",),
        "error": ("quantity",),
        "rank": ("quantity",),
        "low": ("level", "quantity"),
        "high": ("level", "quantity"),
        "inside": ("level",),
        "next_width": ("level",),
        "pit": ("varying",),
    }
    content: dict[str, Any] = {
        key: (("estimator", *dims.get(key, ())), np.array(values)) for key, values in rows.items()
    }
    if not asked.drawn_truth:
        del content["rank"]
    true = asked.quantities.values(truth.mean, truth.cov, asked.data.noise_sd)
    features = [asked.quantities.labels[i] for i in asked.quantities.vary]
    return xr.Dataset(
        content | {"truth": ("quantity", true)},
        coords={
            "estimator": labels,
            "quantity": names,
            "level": list(lab.levels),
            "varying": features,
        },
    )


def _asked(lab: Lab, tasks: int, seed: int) -> Asked:
    world = lab.world
    data = world.draw(tasks, seed)
    told: float | None = None
    if lab.noise_sd == "known":
        told = data.noise_sd
    elif not isinstance(lab.noise_sd, str):
        told = lab.noise_sd
    family = world.family if isinstance(world, Simulated) else None
    return Asked(
        data,
        told,
        Quantities.of(data.stats, told is None),
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
        "cov_error": float(np.abs(apart).max()),
        "dominates": float(apart[0] >= 0),
        "not_positive_definite": float(lowest < -SINGULAR),
        "singular": float(abs(lowest) <= SINGULAR),
        "failed": 0.0,
    }
    if answer.draws is not None:
        truth = asked.data.prior
        values = asked.quantities.values(truth.mean, truth.cov, asked.data.noise_sd)
        found["rank"] = (answer.draws[THIN - 1 :: THIN] < values).sum(axis=0).astype(float)
    if answer.forecast is not None:
        theta = asked.data.prior.sample(stream(asked.seed, "next task"), NEXT)[:, vary]
        normals = stream(asked.seed, "forecast").standard_normal((1000, len(vary)))
        score = judged(answer.forecast, theta, levels, normals)
        found |= score._asdict() | {"next_width": score.width}
        del found["width"]
    return found


def _nothing(asked: Asked, levels: Array) -> dict[str, Any]:
    """Where an estimator has no answer."""
    nan, quantities = np.nan, asked.quantities
    return {
        "estimate": np.full(len(quantities.names), nan),
        "error": np.full(len(quantities.names), nan),
        "rank": np.full(len(quantities.names), nan),
        "cov_error": nan,
        "dominates": nan,
        "not_positive_definite": nan,
        "singular": nan,
        "failed": 1.0,
        "inside": np.full(len(levels), nan),
        "next_width": np.full(len(levels), nan),
        "pit": np.full(len(quantities.vary), nan),
        "pit_distance": nan,
        "log_score": nan,
        "energy_score": nan,
    }
