"""The page of the lab's recorded comparison, on made-up records of the studies' form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from bayesmeta.calibration.answers import checked_estimators
from bayesmeta.calibration.intervals import judges_of
from bayesmeta.report.page import faults
from bayesmeta.runner.study import Study
from bayesmeta.studies import lab
from tests.helpers import ROOT, load


def made(study: Study) -> xr.Dataset:
    """Coverages of 94.5%, all intervals there; NaN where the study has no cell."""
    cells = list(study.cells.values())
    names, kinds = cells[0]["estimators"], cells[0].get("intervals")
    if kinds:
        names = list(judges_of(checked_estimators(names), tuple(kinds)))
    coords: dict[str, Any] = {d: list(dict.fromkeys(c[d] for c in cells)) for d in study.dims}
    coords |= {"estimator": names, "level": cells[0]["levels"], "kind": list(lab.KINDS)}
    there = xr.DataArray(False, coords={d: coords[d] for d in study.dims}, dims=study.dims).copy()
    for cell in cells:
        there.loc[{d: cell[d] for d in study.dims}] = True
    by = [*study.dims, "estimator", "level", "kind"]
    one = xr.DataArray(np.ones([len(coords[d]) for d in by]), {d: coords[d] for d in by}, by)
    found = xr.Dataset({"coverage": 0.945 * one, "width": one, "available": one})
    found = found.assign(bias=0 * one.isel(level=0), square=one.isel(level=0))
    found = found.assign({f"{name}_error": 0.01 + 0 * part for name, part in found.data_vars.items()})
    flat = one.isel(level=0, kind=0, drop=True).expand_dims(bin=(np.arange(20) + 0.5) / 20)
    return found.assign(pit=0.05 * flat).where(there).assign_attrs(versions='{"source": "made"}')


@pytest.fixture(scope="module")
def report() -> Any:
    """The module that writes the page."""
    return load(ROOT / "analyses" / "calibration" / "report.py")


@pytest.fixture(scope="module")
def records() -> dict[str, xr.Dataset]:
    """One of every study."""
    return {study.name: made(study) for study in lab.STUDIES}


def test_the_page_keeps_the_rules(report: Any, records: dict[str, xr.Dataset]) -> None:
    """Numbers of the records, by the rules of pages; without the study of intervals no such
    picture, and all others."""
    page, table = report.texts(records).values()
    assert faults(page) == []
    assert "| reml | 94.5 ± 2.0 | 94.5 ± 2.0 | 94.5 ± 2.0 | 1.00 |" in page
    assert "covers the correlation of 0.8 in 94.5 ± 2.0%." in page
    assert "intervals.png" in page and "lab-intervals" in table
    few = {name: one for name, one in records.items() if name != "lab-intervals"}
    assert "intervals.png" not in report.texts(few)[report.HERE / "README.md"]
    records["lab-posterior"].coverage.loc[{"kind": "corr", "tasks": 20}] = 0.86
    assert "in 86.0 ± 2.0%, too seldom" in report.texts(records)[report.HERE / "README.md"]


def test_low_coverages_are_drawn_at_the_edge(report: Any, records: dict[str, xr.Dataset]) -> None:
    """And intervals of some replications only with an open marker."""
    from bayesmeta.report.figures.comparison import LOWEST, figure_rows
    from bayesmeta.report.figures.style import method_look

    wrong = records["lab-wrong"].sel(dim=2, tasks=100).copy(deep=True)
    wrong.coverage.loc[{"estimator": "reml", "kind": "sd"}] = 0.1
    wrong.available.loc[{"estimator": "reml", "kind": "mu"}] = 0.5
    looks = {name: method_look(name) for name in ("moment", "reml")}
    drawn = figure_rows(wrong, ["nothing"], "wrong", looks, ("mu", "sd"), 0.95, "")
    (mean, sd) = (
        {line.get_marker(): line for line in axes.get_lines() if len(line.get_xdata()) == 1}
        for axes in drawn.axes
    )
    assert sd["o"].get_xdata()[0] == LOWEST and mean["o"].get_xdata()[0] == pytest.approx(94.5)
    assert mean["o"].get_markerfacecolor() == "white" != mean["D"].get_markerfacecolor()
    assert {"coverage", "width", "next", "data", "wrong", "intervals"} == set(
        report.figures(records)
    )
