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
        judges = judges_of(checked_estimators(names), tuple(kinds))
        names = list(judges)
    coords: dict[str, Any] = {d: list(dict.fromkeys(c[d] for c in cells)) for d in study.dims}
    coords |= {"estimator": names, "level": cells[0]["levels"], "kind": list(lab.KINDS)}
    there = xr.DataArray(False, coords={d: coords[d] for d in study.dims}, dims=study.dims).copy()
    for cell in cells:
        there.loc[{d: cell[d] for d in study.dims}] = True
    by = [*study.dims, "estimator", "level", "kind"]
    one = xr.DataArray(np.ones([len(coords[d]) for d in by]), {d: coords[d] for d in by}, by)
    found = xr.Dataset({"coverage": 0.945 * one, "width": one, "available": one})
    found = found.assign(bias=0 * one.isel(level=0), square=one.isel(level=0))
    found = found.assign(
        {f"{name}_error": 0.01 + 0 * part for name, part in found.data_vars.items()}
    )
    if study.name == "lab-intervals":  # as calibrate says it
        found = found.assign_coords(interval=("estimator", [kind for _, kind in judges.values()]))
    share = 0.5 * one.isel(level=0, kind=0, drop=True)  # of 101 replications
    found = found.assign(not_positive_definite=share, not_positive_definite_error=0.1 * share)
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
    assert "covers a strong correlation in 94.5 ± 2.0%, each of those of five" in page
    assert "intervals.png" in page and "lab-intervals" in table
    few = {name: one for name, one in records.items() if name != "lab-intervals"}
    assert "intervals.png" not in report.texts(few)[report.HERE / "README.md"]
    records["lab-posterior"].coverage.loc[{"kind": "corr", "tasks": 20}] = 0.86
    assert (
        "five features in 86.0 ± 2.0%: too seldom"
        in report.texts(records)[report.HERE / "README.md"]
    )


def test_kinds_of_intervals_are_told_apart(report: Any, records: dict[str, xr.Dataset]) -> None:
    """REML's, of the correlation, at the tasks and dimension of the table: nothing else is read."""
    there = records["lab-intervals"].copy(deep=True)
    there["coverage"] = 0 * there.coverage
    shares = {"wald": 0.9, "profile": 0.93, "bootstrap": 0.96}
    for kind, value in shares.items():
        at = {"estimator": f"reml, {kind}", "kind": "corr", "dim": report.DIM, "tasks": report.FEW}
        there.coverage.loc[at] = value
    found = report.kinds_of(there)
    assert {kind: one.mean for kind, one in found.items()} == pytest.approx(
        {kind: 100 * value for kind, value in shares.items()}
    )
    assert all(
        one.high - one.mean == pytest.approx(100 * report.CHANCE * 0.01) for one in found.values()
    )


def test_every_prior_over_correlations_has_its_row(
    report: Any, records: dict[str, xr.Dataset]
) -> None:
    """Dimensions one after the other, tasks within them, central intervals only; the page shows
    them in that order."""
    there = records["lab-priors"].copy(deep=True)
    settings = [(dim, tasks) for dim in (report.DIM, report.WIDE) for tasks in report.TRIED_AT]
    names = [str(name) for name in there.estimator.values]
    there["coverage"] = 0 * there.coverage
    wanted = {
        name: [0.01 * (10 * i + k) for k in range(len(settings))] for i, name in enumerate(names)
    }
    for name, shares in wanted.items():
        for (dim, tasks), value in zip(settings, shares, strict=True):
            there.coverage.loc[{"estimator": name, "dim": dim, "tasks": tasks, "kind": "corr"}] = (
                value
            )
    both = xr.concat(
        [
            there.assign_coords(estimator=[f"{one}, {kind}" for one in names])
            for kind in ("hdi", "central")
        ],
        "estimator",
    )
    both.coverage.loc[{"estimator": [f"{one}, hdi" for one in names]}] = 0.5
    for record in (there, both):
        found = dict(report.of_priors(record))
        assert list(found) == names
        for name, shares in wanted.items():
            assert [one.mean for one in found[name]] == pytest.approx([100 * one for one in shares])


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
