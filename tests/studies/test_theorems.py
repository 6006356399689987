"""The measured theorems and the referee's report: what is recorded, and that it is of today."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.claims.experiment import section_6
from bayesmeta.claims.run import recorded
from bayesmeta.claims.verdict import PROVED
from bayesmeta.report.page import faults
from bayesmeta.studies import all_studies
from bayesmeta.studies.theorems import (
    DIMS,
    GROWING,
    HORIZONS,
    RUNS,
    SIZES,
    deviate,
    deviations,
    grow,
)
from tests.helpers import ROOT, load

FOLDER = ROOT / "analyses" / "theorems"
CLAIMS = ROOT / "analyses" / "claims"
NAMES = ("ts", "ids", "horizon", "dim", "dim-radius")


@pytest.fixture(scope="module")
def records() -> dict[str, xr.Dataset]:
    return {name: bm.read_record(FOLDER / f"{name}.nc") for name in NAMES}


def test_deviations_have_the_size_they_say() -> None:
    """Norms of the errors; all covariances but the scaled ones dominate the true one."""
    truth = bm.paper_family().prior
    for name, (mean, cov, prior) in deviations(truth).items():
        assert np.linalg.norm(prior.mean - truth.mean) == pytest.approx(mean, abs=1e-12)
        assert np.linalg.norm(prior.cov - truth.cov, 2) == pytest.approx(cov, abs=1e-12)
        lowest = np.linalg.eigvalsh(prior.cov - truth.cov)[0]
        assert (lowest < -1e-9) == ("times" in name)
        if name[-1].isdigit() and "both" in name:
            assert mean == pytest.approx(cov) == pytest.approx(abs(float(name.split()[1])))


def test_a_right_prior_costs_nothing_and_exploration_is_shared() -> None:
    """The reference has relative regret 0; the same seed gives the same cell."""
    settings = {"policy": "TS", "tasks": 5, "sigma": 1.0}
    first, again = deviate(settings, 3), deviate(settings, 3)
    assert first.relative_regret.sel(deviation="none") == 0
    xr.testing.assert_identical(first, again)
    assert float(first.exploration_steps) >= 5 and float(first.known_regret) > 0


@pytest.mark.parametrize("name", ["ts", "ids"])
def test_recorded_deviations_are_current(name: str, records: dict[str, xr.Dataset]) -> None:
    """The priors are those of today; a cell of Thompson Sampling, which is cheap, played again
    gives what was recorded."""
    record = records[name]
    priors = deviations(bm.paper_family().prior)
    assert record.deviation.values.tolist() == list(priors)
    assert record.sizes["run"] == RUNS and record.sigma.values.tolist() == [1.0, 0.1]
    assert not record.relative_regret.isnull().any()
    if name == "ts":
        study = all_studies()["theorems-ts"]
        cell = next(key for key in study.cells if key == "sigma=1.0/run=7")
        from bayesmeta.streams import cell_seed

        now = deviate(dict(study.cells[cell]), cell_seed(study.random_seed, cell))
        then = record.sel(sigma=1.0, run=7)
        np.testing.assert_allclose(then.relative_regret, now.relative_regret, rtol=1e-6, atol=1e-9)


def test_growth_is_complete_and_current(records: dict[str, xr.Dataset]) -> None:
    """All sizes and runs; one cell played again."""
    from bayesmeta.streams import cell_seed

    for name, values in (("horizon", HORIZONS), ("dim", DIMS), ("dim-radius", DIMS)):
        record = records[name]
        assert record.value.values.tolist() == list(values) and record.sizes["run"] == RUNS
        assert set(GROWING) <= set(record.agent.values.tolist())
        assert not record.relative_regret.isnull().any()
    study = all_studies()["theorems-horizon"]
    cell = next(key for key, one in study.cells.items() if (one["value"], one["run"]) == (50, 3))
    now = grow(dict(study.cells[cell]), cell_seed(study.random_seed, cell))
    then = records["horizon"].sel(value=50, run=3)
    np.testing.assert_allclose(then.relative_regret, now.relative_regret, rtol=1e-6)


def test_what_the_report_says_of_theorem_1(records: dict[str, xr.Dataset]) -> None:
    """Nowhere more than k_1; a wrong mean is of second order, a wide covariance of first."""
    report = load(FOLDER / "report.py")
    for sigma in (1.0, 0.1):
        tau = float(records["ts"].sel(sigma=sigma).exploration_steps.mean())
        for name in records["ts"].deviation.values.tolist():
            if name == "none" or "times" in name:
                continue
            at = records["ts"].sel(deviation=name)
            most = report.k_1(sigma, tau, float(at.mean_size), float(at.covariance_size))
            assert report.share(records["ts"], sigma, name).low < most
            assert report.share(records["ids"], sigma, name).low < most
    mean, sizes = report.order(records["ts"], "mean {} across")
    assert len(sizes) >= 3 and mean.low > 1.5 and mean.high < 2.5
    cov, _ = report.order(records["ts"], "covariance +{} I")
    assert cov.low > 0.7 and cov.high < 1.2
    assert max(sizes) <= 1 < max(SIZES)


def test_theorems_report_is_generated() -> None:
    """Page, table and the project's README are what the records give today."""
    report = load(FOLDER / "report.py")
    records, panels = report.load()
    page = (FOLDER / "README.md").read_text()
    assert page == report.readme(records, panels) and faults(page) == []
    assert (FOLDER / "deviations.csv").read_text() == report.as_csv(records)
    assert report.main_block(records, panels) in (ROOT / "README.md").read_text()


def test_referees_report_is_generated() -> None:
    """From the recorded full run, whose verdicts are those kept in the package; every violated
    claim has a counterexample, the reason, and what survives; each that is printed so, and
    not only read so, a correction that holds."""
    report = load(CLAIMS / "report.py")
    rows = json.loads((CLAIMS / "claims.json").read_text())
    page = (CLAIMS / "README.md").read_text()
    assert page == report.readme(rows) and faults(page) == []
    assert (CLAIMS / "claims.csv").read_text() == report.as_csv(rows)
    assert report.main_block(rows) in (ROOT / "README.md").read_text()
    assert {row["id"]: row["verdict"] for row in rows} == recorded(quick=False)
    better = report.corrections(rows)
    for row in rows:
        if row["group"] == "printed" and row["verdict"] == "violated":
            assert better[row["id"]]["group"] == "ours"
            assert better[row["id"]]["verdict"] in ("holds", PROVED)
    for row in rows:
        bad = row["verdict"] == "violated"
        assert bad == (row["counterexample"] is not None) == bool(row["survives"])
        assert row["remark"] or not bad


def test_section_6_is_judged_on_the_record() -> None:
    """The package data is what the record of 60 runs gives."""
    report = load(ROOT / "analyses" / "figure1" / "report.py")
    made = json.loads(report.section_6(bm.read_record(report.HERE / "orderings.nc")))
    assert made == section_6()
