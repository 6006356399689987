"""More that is known about the lab: thetas that are observed, ranks, wherever it runs, killed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from scipy.stats import binomtest, norm, t

import bayesmeta as bm
from bayesmeta.calibration.ranks import uniformity
from bayesmeta.calibration.verdict import verdicts
from tests.calibration import planted
from tests.calibration.planted import FAMILY
from tests.helpers import ROOT, size

pytestmark = pytest.mark.slow
MEANS = ["mu[x1]", "mu[x2]"]
FEW = 5


@pytest.fixture(scope="module")
def lab() -> xr.Dataset:
    """Five tasks with next to no noise, 400 times."""
    family = replace(FAMILY, noise_sd=1e-5)
    estimators = ["moment", planted.observed]
    return bm.calibrate(family, tasks=FEW, estimators=estimators, replications=400, jobs=1)


def test_observed_thetas_give_exact_intervals(lab: xr.Dataset) -> None:
    """Null: Student's t intervals cover with their level; those of moments, with the normal's
    quantile z in its place, with P(|t| <= z). Exact binomial tests; 16 comparisons in all."""
    for name in ("observed", "moment"):
        one = lab.sel(estimator=name, tasks=FEW, quantity=MEANS)
        covered = ((one.low <= one.truth) & (one.truth <= one.high)).sum("replication")
        for level in lab.level.values:
            z = norm.isf((1 - level) / 2)
            chance = level if name == "observed" else 1 - 2 * t.sf(z, FEW - 1)
            for count in covered.sel(level=level).values:
                assert binomtest(int(count), 400, chance).pvalue > size("lab/theta-observed") / 16


def test_the_verdict_tells_them_apart(lab: xr.Dataset) -> None:
    """At 95% the normal's quantile covers 88%: miscalibrated, and said so; t is calibrated."""
    mu = verdicts(bm.measures(lab), FEW, 0.95)[0]
    assert mu.kind == "mu" and mu.calibrated == ["observed"]


def test_ranks_tell_a_right_model_from_a_wrong_one() -> None:
    """Null: with truths drawn from the prior that the posterior has, ranks of mu and of the sd are
    uniform. A prior that takes mu for much closer to 0 than it is has most of them at the ends."""
    family = bm.TaskFamily(
        bm.GaussianPrior([0.0], [[1.0]]),
        bm.UniformBall(dim=1, radius=1.0, count=3),
        noise_sd=0.5,
        horizon=10,
    )
    lab = bm.calibrate(
        family, tasks=8, truth=bm.LKJ(mean_sd=1.0, scale=1.0), replications=40, jobs=1,
        estimators={"right": "posterior", "wrong": bm.LKJ(mean_sd=0.2, scale=1.0)},
    )  # fmt: skip
    assert (lab.failed == 0).all()
    ranks = lab["rank"].sel(tasks=8)
    for name in ("mu[x1]", "sd[x1]"):
        values = ranks.sel(estimator="right", quantity=name).values
        assert uniformity(values, 99).p_value > size("lab/ranks") / 2
    wrong = ranks.sel(estimator="wrong", quantity="mu[x1]").values
    assert uniformity(wrong, 99).p_value < 1e-3


def _small(**options: Any) -> xr.Dataset:
    """Two worlds, an agent's data, and regret."""
    return bm.calibrate(
        FAMILY, tasks=10, estimators=["moment", planted.mortal], replications=6,
        wrong=["nothing", "skewed theta"], explore=["UKTS"], regret=3, **options,
    )  # fmt: skip


def test_same_bits_on_dask_and_after_a_kill(tmp_path: Path) -> None:
    """One process; two Dask workers; a process that is killed in its third cell, and the rest."""
    alone = _small(jobs=1)
    xr.testing.assert_identical(_small(dask=2), alone)
    folder, mark = tmp_path / "lab", tmp_path / "mark"
    mark.touch()
    code = (
        "from pathlib import Path; from tests.calibration.test_calibrated import _small; "
        f"_small(jobs=1, folder=Path({str(folder)!r}))"
    )
    environment = {**os.environ, planted.MARK: str(mark), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=False)
    assert done.returncode == -9 and not mark.exists()
    assert any(folder.rglob("*"))
    xr.testing.assert_identical(_small(jobs=1, folder=folder), alone)
