"""The study of intervals: a cell of it, and its record held to account."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.fitted.prior import FittedPrior
from bayesmeta.report.page import faults
from bayesmeta.studies import intervals, singular
from tests.helpers import ROOT, load

FOLDER = ROOT / "analyses" / "intervals"


def test_a_cell_has_all_ends() -> None:
    """Of Wald and profile, in order and about the truth; no bootstrap in the later runs."""
    cell = intervals.replicate({"n": 30, "run": intervals.BOOTSTRAPPED}, seed=3)
    assert cell.low.sel(interval="bootstrap").isnull().all()
    low, high = (cell[end].sel(interval="profile") for end in ("low", "high"))
    assert (low < high).all() and np.isfinite(low).all() and np.isfinite(high).all()
    wald = cell.sel(interval="wald")
    assert (wald.low < high).all() and (wald.high > low).all()


def test_predictions_of_a_cell_are_those_of_predict() -> None:
    """By a bootstrap, too, whose replications the cell draws once."""
    stats, _ = intervals.tasks_of(10, np.random.default_rng(0))
    fitted = bm.fit(stats)
    assert isinstance(fitted, FittedPrior)
    kind = {"uncertainty": "bootstrap", "random_seed": 3, "replications": 20}
    found = fitted.predict(intervals.NEW, **kind)
    low, high = float(found["low"].iloc[0]), float(found["high"].iloc[0])
    drawn = fitted.redrawn(20, 3)
    inside, width = intervals.of_a_new_task(fitted, drawn, high - 1e-9)
    assert inside == 1 and width == pytest.approx(high - low, rel=1e-12)
    assert intervals.of_a_new_task(fitted, drawn, high + 1e-9)[0] == 0


def test_coverage_is_within_the_bounds_set_before_the_run() -> None:
    """Of profile intervals of each quantity, and of predictions for a new task."""
    record = bm.read_record(FOLDER / "intervals.nc")
    assert record.n.values.tolist() == list(intervals.SIZES)
    assert (record.runs == intervals.RUNS).all()
    for n in intervals.SIZES:
        here = record.sel(n=n)
        share = (here.covered / here.available).sel(interval="profile").values
        low, high = intervals.PROFILE_BOUNDS[n]
        assert ((low <= share) & (share <= high)).all(), (n, share)
        share = here.predicted / here.predictions
        low, high = intervals.PREDICTION_BOUNDS[n]
        assert low <= float(share.sel(uncertainty="mean")) <= high
        low, high = intervals.BOOTSTRAP_BOUNDS[n]
        assert low <= float(share.sel(uncertainty="bootstrap")) <= high
        assert int(here.predictions.sel(uncertainty="bootstrap")) == intervals.BOOTSTRAPPED


def test_intervals_of_singular_fits_are_within_the_bounds_set_before_the_run() -> None:
    """The posterior's hold; those that take Sigma for known are too short, which is why they are
    marked; each that includes more covers more."""
    record = bm.read_record(FOLDER / "singular.nc")
    assert int(record.runs) == singular.RUNS and int(record.singular) >= singular.RUNS // 3
    for kind, (low, high) in singular.BOUNDS.items():
        assert low <= float(record.covered.sel(kind=kind)) <= high, kind
    covered = record.covered.sel(kind=list(singular.KINDS)).values
    assert (np.diff(covered) > 0).all()
    assert float(record.worst.sel(kind="posterior")) < float(record.worst.sel(kind="none"))


@pytest.mark.slow
def test_a_cell_of_singular_fits() -> None:
    """A task's coefficients by every kind; wider intervals hold more."""
    cell = singular.replicate({"run": 0}, seed=101)
    assert cell.inside.shape == (4, singular.TASKS, 3) and float(cell.singular) == 1
    assert float(cell.off.sel(kind="posterior").max()) < float(cell.off.sel(kind="none").max())


def test_the_page_is_generated() -> None:
    """From the record, and keeps the rules of pages."""
    records = (bm.read_record(FOLDER / name) for name in ("intervals.nc", "singular.nc"))
    texts = load(FOLDER / "report.py").texts(*records)
    for path, text in texts.items():
        assert path.read_text() == text
    assert faults(texts[FOLDER / "README.md"]) == []
