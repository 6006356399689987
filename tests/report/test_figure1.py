"""Rows of Figure 1 that come from a recorded study: only where it played the same tasks."""

from __future__ import annotations

import json
from importlib.resources import as_file
from importlib.resources import files as resources
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.report.figure1 import RECORDED, recorded_rows, with_recorded, write
from bayesmeta.report.figures.figure1 import figure_1
from bayesmeta.simulation.records import thin, write_record
from bayesmeta.simulation.summaries import summarise
from tests.helpers import ROOT


def pretend(record: xr.Dataset) -> xr.Dataset:
    """KTS, and its numbers under the names of the rows that are recorded; nothing is fitted."""
    rows = [record.sel(agent=["KTS"])]
    rows += [record.sel(agent=["UKTS"]).assign_coords(agent=[name]) for name in bm.agents.BAYESIAN]
    return thin(xr.concat(rows, "agent")).assign_attrs(record.attrs)


@pytest.fixture(scope="module")
def played() -> xr.Dataset:
    return bm.simulate(bm.paper_family(horizon=10), ["KTS", "UKTS"], tasks=60, runs=3)


@pytest.fixture
def kept(played: xr.Dataset, tmp_path: Path) -> Path:
    path = tmp_path / "bayes.nc"
    write_record(pretend(played), path)
    return path


def test_rows_are_added_and_said(played: xr.Dataset, kept: Path, tmp_path: Path) -> None:
    """Also to fewer runs, which are the first ones; the summary tells which rows they are."""
    two = played.isel(run=slice(2))
    shown, word = with_recorded(two, kept)
    assert shown.agent.values.tolist() == ["KTS", "UKTS", *bm.agents.BAYESIAN]
    assert "from the recorded study" in word and "--agents HB-TS,HB-mean-TS" in word
    rows = summarise(shown)
    assert [row["recorded"] for row in rows.values()] == [False, False, True, True]
    assert rows["HB-TS"]["normalised_regret"] == pytest.approx(rows["UKTS"]["normalised_regret"])
    assert rows["UKTS"] == summarise(two)["UKTS"]
    texts = [text.get_text() for text in figure_1(shown, shown.agent.values.tolist()).texts]
    assert any("HB-TS, HB-mean-TS from the recorded study" in text for text in texts)
    write(two, tmp_path, ["KTS", *bm.agents.BAYESIAN], shown)
    assert bm.read_record(tmp_path / "figure1.nc").sizes["task"] == 60  # as played
    assert "HB-TS" in json.loads((tmp_path / "summary.json").read_text())


@pytest.mark.parametrize("what", ["tasks", "runs", "seed"])
def test_rows_of_other_tasks_are_not_drawn(what: str, played: xr.Dataset, kept: Path) -> None:
    """The record is left as it is, and a word says why."""
    record, words = played, "recorded for 3 runs of 60 tasks"
    if what == "tasks":
        record = played.isel(task=slice(50))
    elif what == "runs":
        record = xr.concat([played, played], "run")
    else:
        record = played.copy(deep=True)
        record["regret"] = record.regret + 1.0
        words = "other tasks"
    shown, word = with_recorded(record, kept)
    assert shown is record and words in word and "--agents" in word


def test_rows_that_were_played_are_not_replaced(played: xr.Dataset, kept: Path) -> None:
    """Asked for by name, they are in the record already."""
    whole = xr.concat([played, pretend_full(played)], "agent")
    shown, word = with_recorded(whole, kept)
    assert shown is whole and word == ""


def pretend_full(record: xr.Dataset) -> xr.Dataset:
    rows = [record.sel(agent=["UKTS"]).assign_coords(agent=[name]) for name in bm.agents.BAYESIAN]
    assert np.isfinite(record.regret).all()
    return xr.concat(rows, "agent")


def test_package_data_is_what_was_recorded() -> None:
    """The rows in the package are those of the record in analyses/, to the last bit."""
    recorded = bm.read_record(ROOT / "analyses" / "figure1" / "bayes.nc")
    with as_file(resources("bayesmeta.data") / RECORDED) as file:
        shipped = bm.read_record(file)
    xr.testing.assert_identical(shipped, recorded_rows(recorded))
    assert all(shipped[name].dtype == np.float64 for name in shipped.data_vars)


def test_package_data_is_joined_to_the_figure() -> None:
    """The summary of Figure 1 with rows from the package is the one in analyses/."""
    folder = ROOT / "analyses" / "figure1"
    shown, word = with_recorded(bm.read_record(folder / "figure1.nc"))
    assert "figure1-bayes" in word
    assert summarise(shown) == json.loads((folder / "summary.json").read_text())
