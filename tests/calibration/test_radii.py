"""The paper's radii as intervals: events E_m and E_s of moments."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binomtest, chi2

import bayesmeta as bm
from bayesmeta.calibration.rows import rows_of
from bayesmeta.report.lab import lab_files
from bayesmeta.theory import constants
from tests.calibration.planted import FAMILY
from tests.helpers import size

NAMES = ["moment", "moment-widened", "moment-widened(1)"]
N = 60


@pytest.fixture(scope="module")
def lab() -> xr.Dataset:
    """Moments, widened or not, with radii and with Wald's intervals."""
    return bm.calibrate(
        FAMILY, tasks=N, estimators=NAMES, intervals=["wald", "radii"], levels=[0.5, 0.95],
        replications=40, jobs=1,
    ).sel(tasks=N)  # fmt: skip


def test_radii_are_those_of_the_theory(lab: xr.Dataset) -> None:
    """At the eta of eq. (77), 1/(dnT), they are sqrt(f_m delta), half of sqrt(f_s delta), and, of
    the widened covariance, all of it; here by their closed forms at two levels."""
    told, n = FAMILY.told(), N + 1
    each = 2 * 0.25 / (told.action_min * 2) + told.prior_max
    levels = lab.level.values
    mean = np.sqrt(3 * each * (2 + np.log(1 / (1 - levels))) / N)
    cov = 50 * each * np.sqrt((10 + 2 * np.log(6 / (1 - levels))) / N)
    by = {name: lab.sel(estimator=f"{name}, radii") for name in NAMES}
    for name, one in by.items():
        np.testing.assert_allclose(one.mean_radius, np.broadcast_to(mean, one.mean_radius.shape))
        rule = {"moment": 0.0, "moment-widened": 50 * each, "moment-widened(1)": 1.0}[name]
        widened = rule * math.sqrt((10 + 2 * math.log(2 * n * FAMILY.horizon)) / N)
        np.testing.assert_allclose(one.cov_radius - widened, np.tile(cov, (40, 1)))
    assert lab.mean_radius.sel(estimator="moment, wald").isnull().all()
    regime = FAMILY.setting(n)
    eta = 1 / (2 * n * FAMILY.horizon)
    numbers = 2, 0.5, told.action_min, told.prior_max, n, eta
    delta = 1 / N
    assert constants.mean_radius(*numbers) == pytest.approx(
        math.sqrt(constants.f_m(regime, n) * delta)
    )
    assert 2 * constants.covariance_radius(*numbers) == pytest.approx(
        math.sqrt(constants.f_s(regime, n) * delta)
    )


def test_intervals_are_the_balls_projections(lab: xr.Dataset) -> None:
    """mu +- radius, entries of Sigma +- radius, sd the root of it; none of correlations."""
    one = lab.sel(estimator="moment, radii")
    for name, radius in (("mu[x1]", one.mean_radius), ("cov[x2, x1]", one.cov_radius)):
        at = one.sel(quantity=name)
        np.testing.assert_allclose((at.high - at.low).transpose(*radius.dims), 2 * radius)
        np.testing.assert_allclose(at.high + at.low, (2 * at.estimate).broadcast_like(at.low))
    variance, sd = one.sel(quantity="cov[x2, x2]"), one.sel(quantity="sd[x2]")
    np.testing.assert_allclose(sd.high**2, variance.high)
    assert (sd.low == 0).all() and (variance.low < 0).all()
    assert one.low.sel(quantity="corr[x2, x1]").isnull().all()


def test_events_are_counted(lab: xr.Dataset) -> None:
    """Shares of replications within the radii, which here are far too wide to be missed; and the
    widened covariance dominates where its eigenvalues say so."""
    found = bm.measures(lab).sel(estimator=[f"{name}, radii" for name in NAMES])
    assert (found.mean_within == 1).all() and (found.cov_within == 1).all()
    by_hand = (lab.mean_error <= lab.mean_radius).sel(estimator="moment, radii").mean("replication")
    np.testing.assert_array_equal(found.mean_within.sel(estimator="moment, radii"), by_hand)
    rows = [row for row in rows_of(bm.measures(lab.expand_dims("tasks"))) if
            "ball" in row["quantity"]]  # fmt: skip
    assert {row["quantity"] for row in rows} == {"mu (ball)", "Sigma (ball)"}
    assert {row["coverage"] for row in rows if "radii" in row["estimator"]} == {1.0}
    assert {row["coverage"] for row in rows if "radii" not in row["estimator"]} == {None}


def test_dominance_is_of_the_widened_covariance(lab: xr.Dataset) -> None:
    """By hand from the entries: Sigma_w - Sigma_* has no negative eigenvalue. Without widening it
    often has, with the theory's c_w never, and a larger c_w never dominates less."""
    names = ["cov[x1, x1]", "cov[x2, x1]", "cov[x2, x1]", "cov[x2, x2]"]
    gap = (lab.estimate - lab.truth).sel(quantity=names).transpose("replication", "estimator", ...)
    lowest = np.linalg.eigvalsh(gap.values.reshape(40, -1, 2, 2))[..., 0]
    np.testing.assert_array_equal(lab.dominates.transpose("replication", ...), lowest >= 0)
    share = bm.measures(lab).dominates
    moment, theory, one = (float(share.sel(estimator=f"{name}, wald")) for name in NAMES)
    assert moment < 0.5 and theory == 1 and one >= moment


def test_the_mean_event_has_its_probability_where_it_is_tight() -> None:
    """Null: with next to no noise and Sigma_* = I, N |mu-hat - mu_*|^2 is chi-squared, so that the
    event E_m holds with a probability that is known. Exact binomial tests at three levels."""
    family = replace(
        FAMILY, prior=bm.GaussianPrior([0.0, 0.0], np.eye(2)), noise_sd=1e-4, bounds=None
    )
    levels = [0.01, 0.1, 0.3]
    lab = bm.calibrate(
        family, tasks=5, estimators="moment", intervals="radii", levels=levels, replications=200,
        jobs=1,
    ).sel(tasks=5, estimator="moment")  # fmt: skip
    count = (lab.mean_error <= lab.mean_radius).sum("replication")
    for level, one in zip(levels, count.values, strict=True):
        chance = chi2.cdf(3 * (2 - math.log(1 - level)), 2)
        assert chance > level  # what the paper promises
        assert binomtest(int(one), 200, chance).pvalue > size("lab/radii") / 3
    assert lab.cov_radius.isnull().all()  # n = 6 is not more than 5d + 2 ln(1/eta)


def test_no_radii_without_enough_exploration_or_bounds() -> None:
    """Where E_v fails in a task nothing is promised; a table has no bounds."""
    lab = bm.calibrate(
        FAMILY, tasks=60, estimators="moment", intervals="radii", replications=6,
        explore=bm.agents.first_steps(2), jobs=1,
    )  # fmt: skip
    assert lab.mean_radius.isnull().all() and lab.low.isnull().all()
    stats = bm.TaskStatistics(np.full((9, 1, 1), 4.0), np.arange(9.0)[:, None])
    truth = bm.PriorEstimate(bm.GaussianPrior([1.0], [[2.0]]), bm.Status.GIVEN, noise_sd=1.0)
    with pytest.raises(bm.InputError, match="needs the bounds of a TaskFamily"):
        bm.calibrate(stats, truth=truth, estimators="moment", intervals="radii", jobs=1)


def test_rows_of_the_events_are_written(
    lab: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the lab have them, under their names; no figure is drawn here."""
    monkeypatch.setattr("bayesmeta.report.lab._figures", lambda lab: {})
    whole = lab.expand_dims("tasks")
    files = lab_files(whole, bm.measures(whole), tmp_path)
    files[tmp_path / "measures.csv"](tmp_path / "measures.csv")
    lines = (tmp_path / "measures.csv").read_text().splitlines()
    assert sum(line.endswith("Sigma (ball)") for line in lines) == 2 * 6
