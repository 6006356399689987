"""The study of intervals: a cell of it, and its record held to account."""

from __future__ import annotations

import numpy as np

import bayesmeta as bm
from bayesmeta.report.page import faults
from bayesmeta.studies import intervals
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
        low, high = intervals.PREDICTION_BOUNDS[n]
        assert low <= float(here.predicted) / intervals.RUNS <= high


def test_the_page_is_generated() -> None:
    """From the record, and keeps the rules of pages."""
    texts = load(FOLDER / "report.py").texts(bm.read_record(FOLDER / "intervals.nc"))
    for path, text in texts.items():
        assert path.read_text() == text
    assert faults(texts[FOLDER / "README.md"]) == []
