"""The recorded comparison of estimators: what a cell sums up, and what the studies cover."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from bayesmeta.studies import lab


def made() -> xr.Dataset:
    """What ``calibrate`` returns, with numbers one can count."""
    rng = np.random.default_rng(1)
    names = ["mu[x1]", "mu[x2]", "sd[x1]", "sd[x2]", "corr[x2, x1]", "cov[x1, x1]"]
    size = {"replication": 6, "estimator": 1, "level": 1, "quantity": len(names)}
    by = ("replication", "estimator")
    centre = rng.standard_normal((6, 1, len(names)))
    numbers = xr.Dataset(
        {
            "estimate": ((*by, "quantity"), centre),
            "truth": (("replication", "quantity"), np.zeros((6, len(names)))),
            "error": ((*by, "quantity"), np.full((6, 1, len(names)), 2.0)),
            "low": ((*by, "level", "quantity"), centre[:, :, None] - 1.0),
            "high": ((*by, "level", "quantity"), centre[:, :, None] + 1.0),
            "inside": ((*by, "level"), rng.uniform(size=(6, 1, 1))),
            "next_width": ((*by, "level"), np.ones((6, 1, 1))),
            "pit": ((*by, "varying"), rng.uniform(size=(6, 1, 2))),
            **{name: (by, rng.uniform(size=(6, 1))) for name in lab.OF_ALL},
        },
        coords={"quantity": names, "estimator": ["reml"], "level": [0.8]},
    )
    numbers.low[0, 0, 0, 0] = np.nan  # one interval is lacking
    assert all(numbers.sizes[name] == length for name, length in size.items())
    return numbers


def test_a_cell_sums_up_features_then_replications() -> None:
    """Means of what there is, whatever replication or feature it is of, and their errors, with the
    replication as the unit."""
    data = made()
    found = lab.summed_up(data)
    assert found.kind.values.tolist() == list(lab.KINDS)
    inside = np.abs(data.estimate.values[:, 0, :2]) <= 1
    there = np.ones((6, 2))
    there[0, 0] = 0.0
    share = (inside * there).sum() / there.sum()
    apart = (inside * there - share * there).mean(axis=1)
    mu = found.sel(kind="mu", estimator="reml", level=0.8)
    assert float(mu.coverage) == pytest.approx(share)
    error = apart.std(ddof=1) / np.sqrt(6) / there.mean()
    assert float(mu.coverage_error) == pytest.approx(error)
    assert float(mu.available) == pytest.approx(11 / 12)
    assert float(mu.bias) == pytest.approx(data.estimate.values[:, 0, :2].mean())
    assert float(mu.claimed) == pytest.approx(4.0)
    following = found.sel(kind="next", estimator="reml", level=0.8)
    assert float(following.coverage) == pytest.approx(float(data.inside.mean()))
    assert np.isnan(float(following.bias))
    assert float(found.cov_error.item()) == pytest.approx(float(data.cov_error.mean()))
    assert float(found.pit.sum()) == pytest.approx(1.0)


def test_the_studies_are_those_asked_for() -> None:
    """Two dimensions, ten to 5,000 tasks, three rules of exploration and a learner, all methods,
    every wrong model, the posterior from two tasks on; each cell in the form of the runner."""
    studies = {study.name: study for study in lab.STUDIES}
    axes = {
        name: {key: {cell[key] for cell in study.cells.values()} for key in study.dims}
        for name, study in studies.items()
    }
    assert axes["lab"]["dim"] == {2, 5} and len(axes["lab"]["data"]) == 4
    assert min(axes["lab"]["tasks"]) == 10 and max(axes["lab"]["tasks"]) == 5000
    assert min(axes["lab-posterior"]["tasks"]) == 2
    assert len(axes["lab-wrong"]["wrong"]) == 8
    assert set(lab.REPLICATIONS) == set(studies)


def test_a_cell_runs() -> None:
    """One of every study that is cheap, with few replications."""
    study = lab.STUDIES[0]
    cell = next(c for c in study.cells.values() if (c["dim"], c["tasks"]) == (2, 20))
    found = lab.keep(lab.measured({**cell, "replications": 3}, 5))
    assert found.estimator.values.tolist() == list(lab.CLOSED)
    assert found.coverage.dtype == np.float32
    assert bool((found.coverage.sel(kind="mu") >= 0).all())
