"""Coordinates for the sampler: exact where the posterior is Gaussian, and what they save."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.posterior import methods
from bayesmeta.posterior.model import Problem, check_problem
from bayesmeta.posterior.target import Target
from bayesmeta.posterior.whitening import find_frame
from tests.helpers import Problem as Data

pytestmark = pytest.mark.slow


def tasks(n: int, origin: float = 0.0) -> bm.TaskStatistics:
    """Ten steps each: an intercept, and a time since ``origin``; lines that differ."""
    rng = np.random.default_rng(5)
    time = np.tile(np.arange(10.0), n)
    task = np.repeat(np.arange(n), 10)
    lines = rng.multivariate_normal([250.0, 10.0], [[600.0, 10.0], [10.0, 35.0]], size=n)
    rewards = lines[task, 0] + lines[task, 1] * time + 25 * rng.standard_normal(10 * n)
    rows = np.stack([np.ones(10 * n), time + origin], axis=1)
    return bm.TaskStatistics.from_arrays(task, rewards, rows, ["level", "slope"])


def test_a_gaussian_posterior_is_found_exactly() -> None:
    """A known covariance and noise: mean and covariance in closed form."""
    data = Data(7, 3, 30)
    cov = np.array([[1.0, 0.4, 0.0], [0.4, 2.0, 0.1], [0.0, 0.1, 0.5]])
    prior = bm.KnownCovariance(cov, 0.1, 1.5).settled(3)
    frame = find_frame(Target(Problem(data.stats, 0.8, prior, "fused")))
    assert frame is not None
    precision, total = np.eye(3) / 1.5**2, np.full(3, 0.1) / 1.5**2
    for gram, moment in zip(data.stats.gram, data.stats.moment, strict=True):
        weight = np.linalg.inv(np.eye(3) + gram @ cov / 0.64) / 0.64
        precision, total = precision + weight @ gram, total + weight @ moment
    np.testing.assert_allclose(frame.centre, np.linalg.solve(precision, total), rtol=1e-5)
    np.testing.assert_allclose(frame.root @ frame.root.T, np.linalg.inv(precision), rtol=1e-6)


@pytest.mark.parametrize("origin", [0.0, 2000.0])
def test_a_mode_has_no_slope_and_unit_curvature(origin: float) -> None:
    """In the frame's coordinates, by other differences than its own; a far origin as well."""
    target = Target(check_problem(tasks(60, origin), None, None, "fused"))
    frame = find_frame(target)
    assert frame is not None
    at_mode = frame.density(target, np.zeros(target.size))
    assert np.abs(at_mode[1]).max() < 0.05
    for i in range(target.size):
        way = np.zeros(target.size)
        way[i] = 0.02
        sides = [frame.density(target, sign * way)[0] for sign in (1, -1)]
        assert (2 * at_mode[0] - sum(sides)) / 0.02**2 == pytest.approx(1.0, abs=0.02)


def test_a_far_origin_costs_nothing() -> None:
    """Years draw as fast as days: trusted, trees as short, the same slope within its error."""
    near, far = (
        bm.sample_posterior(tasks(18, origin), draws=500, method="nuts") for origin in (0.0, 2000.0)
    )
    assert bm.trustworthy(near) and bm.trustworthy(far)
    steps = [float(tree["sample_stats"]["n_steps"].mean()) for tree in (near, far)]
    assert steps[1] < 1.5 * steps[0] < 15
    slopes = [tree["posterior"]["mu"].sel(feature="slope") for tree in (near, far)]
    assert abs(float(slopes[0].mean() - slopes[1].mean())) < 0.15 * float(slopes[0].std())


def test_without_a_mode_the_sampler_starts_as_the_prior_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And tunes longer, unless told how long; draws are those of the same posterior."""
    whitened = bm.sample_posterior(tasks(30), draws=500, method="nuts")
    monkeypatch.setattr(methods, "find_frame", lambda target: None)
    plain = bm.sample_posterior(tasks(30), draws=500, method="nuts")
    assert [settings_of(tree)["tune"] for tree in (whitened, plain)] == [100, 500]
    means = [tree["posterior"]["mu"].mean(["chain", "draw"]) for tree in (whitened, plain)]
    sd = plain["posterior"]["mu"].std(["chain", "draw"])
    assert (np.abs(means[0] - means[1]) < 0.2 * sd).all()
    few = bm.sample_posterior(tasks(30), draws=500, method="nuts", tune=300)
    assert settings_of(few)["tune"] == 300


def settings_of(tree: xr.DataTree) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tree.attrs["settings"])
    return found


def test_no_mode_is_no_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """A density that is nowhere finite."""
    target = Target(check_problem(tasks(5), None, None, "fused"))
    nowhere = np.full(target.size, np.nan)
    monkeypatch.setattr(target, "log_density", lambda point: (np.nan, nowhere))
    assert find_frame(target) is None
