"""Pictures of the lab, and the verdict in words."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binomtest

import bayesmeta as bm
from bayesmeta.calibration.kinds import of_kind, relative
from bayesmeta.calibration.rows import numbers_of
from bayesmeta.calibration.shares import exact_interval
from bayesmeta.calibration.verdict import in_words, verdicts
from tests.calibration import planted
from tests.calibration.planted import FAMILY


@pytest.fixture(scope="module")
def lab() -> xr.Dataset:
    """A small one, with an estimator that is wrong."""
    estimators = ["moment", planted.known, planted.halved]
    return bm.calibrate(FAMILY, tasks=[10, 20], estimators=estimators, replications=60, jobs=1)


def test_coverage_is_drawn(lab: xr.Dataset) -> None:
    """A panel a kind, a line an estimator, the lines at the coverages less their levels."""
    figure = bm.plot_coverage(lab, tasks=20)
    panels = figure.axes
    assert [axes.get_title() for axes in panels] == ["mu", "sd", "corr", "next task"]
    lines = {line.get_label(): line for line in panels[0].get_lines()}
    found = bm.measures(lab).sel(tasks=20, estimator="halved", quantity=["mu[x1]", "mu[x2]"])
    expected = found.coverage.mean("quantity") - found.level
    np.testing.assert_allclose(lines["halved"].get_ydata(), expected)
    with pytest.raises(bm.InputError, match="no 7 tasks"):
        bm.plot_coverage(lab, tasks=7)


def test_the_verdict(lab: xr.Dataset) -> None:
    """Exact intervals are calibrated, halved ones are not; the sentence says so."""
    found = bm.measures(lab)
    first = verdicts(found, 20, 0.95)[0]
    assert first.kind == "mu" and "known" in first.calibrated and "halved" not in first.calibrated
    sentence = in_words(found, 20, 0.95)
    assert "95%" in sentence and "60 replications" in sentence
    assert "of mu by moment and known (sharpest: moment)" in sentence


def test_sharpness_does_not_depend_on_units(lab: xr.Dataset) -> None:
    """Of two estimators whose widths are 1, 4 and 3, 1, the second is sharper: their ratios have
    the geometric means 2 and sqrt(3). In other units of a feature the same."""
    found = bm.measures(lab).sel(estimator=["moment", "known"])
    narrow = {"moment": (1.0, 4.0), "known": (3.0, 1.0)}
    for unit in (1.0, 1000.0):
        made = found.copy(deep=True)
        for name, (one, two) in narrow.items():
            made.width.loc[{"estimator": name, "quantity": "mu[x1]"}] = one
            made.width.loc[{"estimator": name, "quantity": "mu[x2]"}] = two * unit
        at = of_kind(made, "mu").sel(tasks=20, level=0.95)
        np.testing.assert_allclose(relative(at.width), [2.0, np.sqrt(3.0)])
        assert verdicts(made, 20, 0.95)[0].calibrated == ["known", "moment"]


def test_names_with_numbers_of_features() -> None:
    """Labels may have commas; the number is that of the feature, also where others do not vary."""
    names = ["mu[a]", "mu[b, c]", "mu[d]", "sd[b, c]", "sd[d]", "corr[d, b, c]", "sigma"]
    found = numbers_of(xr.Dataset(coords={"quantity": names}))
    expected = ["mu[0]", "mu[1]", "mu[2]", "sd[1]", "sd[2]", "corr[2, 1]", "sigma", "next task"]
    assert list(found.values()) == expected


@pytest.mark.parametrize(("count", "of"), [(0, 10), (10, 10), (3, 10), (190, 200)])
def test_exact_intervals(count: int, of: int) -> None:
    """As SciPy has them."""
    low, high = exact_interval(np.array([count]), np.array([of]), 0.95)
    expected = binomtest(count, of).proportion_ci(0.95, "exact")
    np.testing.assert_allclose([low[0], high[0]], [expected.low, expected.high], atol=1e-9)


def test_a_lab_must_be_given() -> None:
    """Other Datasets are refused."""
    with pytest.raises(bm.InputError, match="give what calibrate returned"):
        bm.measures(xr.Dataset({"x": 1.0}))
