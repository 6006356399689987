"""Figures: one look per agent and method, and labels that stand at the ends of their lines."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import bayesmeta as bm
from bayesmeta.report.figures.bands import log_ends
from bayesmeta.report.figures.compared import figure_compared, in_units
from bayesmeta.report.figures.estimators import figure_estimators
from bayesmeta.report.figures.figure1 import figure_1, figure_orderings
from bayesmeta.report.figures.style import (
    DPI,
    End,
    apart,
    clean,
    label_ends,
    look,
    method_look,
    new_figure,
)
from bayesmeta.report.numbers import ratio_of_means
from bayesmeta.simulation.summaries import interval, orderings
from bayesmeta.studies import bayes, estimators
from tests.helpers import ROOT

ANALYSES = ROOT / "analyses"


def parts(axes: Axes, kind: str) -> list[Any]:
    """The leaders or the labels of the ends of lines, in the order in which they were given."""
    return [text for text in axes.texts if text.get_gid() == kind]


def check_labels(figure: Figure) -> int:
    """No label touches another of its panel, and each has a leader from its line's end to its own
    height; the number of labels."""
    figure.dpi = DPI
    figure.draw_without_rendering()  # type: ignore[no-untyped-call]
    count = 0
    for axes in figure.axes:
        labels, leaders = parts(axes, "label"), parts(axes, "leader")
        assert len(labels) == len(leaders)
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.y0)
        for below, above in pairwise(boxes):
            assert below.y1 <= above.y0, "two labels overlap"
        for label, leader in zip(labels, leaders, strict=True):
            (start, stop) = leader.arrow_patch.get_path().vertices[[0, -1]]
            ends = leader.arrow_patch.get_transform().transform([start, stop])
            box = label.get_window_extent()
            middle = (box.y0 + box.y1) / 2
            assert min(abs(ends[:, 1] - middle)) < box.height / 2, "a leader misses its label"
            assert ends[:, 0].max() < box.x0
        count += len(labels)
    return count


def test_labels_of_lines_that_end_together() -> None:
    """Six lines with the same end, planted: their names fan out, and leaders lead to the end."""
    figure = new_figure(6, 3)
    axes = figure.subplots()
    names = ["KTS", "KMTS", "UKTS", "All-MTS", "REML-TS", "HB-TS"]
    for name in names:
        axes.plot([1, 2, 3], [0, 1, 0.0 if name == "KTS" else 0.5], **look(name).options())
    label_ends(axes, [End(3.0, 0.0 if name == "KTS" else 0.5, look(name)) for name in names])
    assert check_labels(figure) == 6
    heights = {t.get_text(): t.get_window_extent().y0 for t in parts(axes, "label")}
    assert heights.pop("KTS") < min(heights.values())
    order = sorted(heights, key=lambda name: -heights[name])
    assert order == [look(name).label for name in names[1:]]  # ties keep the order given
    for leader, name in zip(parts(axes, "leader"), names, strict=True):
        at = axes.transData.transform((3.0, 0.0 if name == "KTS" else 0.5))
        found = leader.arrow_patch.get_transform().transform(leader.arrow_patch.get_path().vertices)
        assert np.abs(found - at).sum(axis=1).min() < 1.0  # one end of it, in pixels


@pytest.mark.parametrize("gap", [0.01, 0.1, 0.3])
def test_places_move_as_little_as_they_must(gap: float) -> None:
    """Places far enough apart stay; others keep their order, are ``gap`` apart, and stay within
    the axes where there is room."""
    np.testing.assert_allclose(apart(np.array([0.9, 0.1, 0.5]), gap), [0.9, 0.1, 0.5])
    places = np.array([0.5, 0.0, 0.5, 0.02])
    found = apart(places, gap)
    order = np.argsort(-places, kind="stable")
    assert (np.diff(found[order]) <= -gap + 1e-12).all()
    assert found.min() >= -1e-12 and found.max() <= 1 + 1e-12
    crowded = apart(np.full(6, 0.5), 0.3)
    np.testing.assert_allclose(np.diff(crowded), -0.3)  # no room for all: still apart


def test_labels_of_the_recorded_figures() -> None:
    """All figures with labels at the ends of lines, as they are drawn from the records."""
    record = bm.read_record(ANALYSES / "figure1" / "figure1.nc")
    assert check_labels(figure_1(record, [*bm.agents.FIGURE_1, *bm.agents.OURS])) == 8 + 6 + 7
    study = bm.read_record(ANALYSES / "estimators" / "estimators.nc")
    assert check_labels(figure_estimators(study, 5)) == 6 + 3
    compared = bm.read_record(ANALYSES / "bayes-vs-moment" / "compared.nc")
    assert check_labels(figure_compared(compared)) == 2 * (5 + 7 + 6)


def test_means_over_runs_have_bands() -> None:
    """A band a line, on log axes, too: it is the interval of the mean, in logarithms, and regret in
    units of another's has that of the ratio."""
    rng = np.random.default_rng(0)
    values = rng.uniform(1, 2, (20, 3))
    low, high = log_ends(values)
    found = [interval(column) for column in values.T]
    np.testing.assert_allclose(low * high, [one.mean**2 for one in found])
    half = [(one.high - one.mean) / one.mean for one in found]
    np.testing.assert_allclose(np.log(high / low), 2 * np.array(half))
    np.testing.assert_allclose(log_ends(values, 0.5), np.sqrt([low, high]))
    unit = xr.DataArray(rng.uniform(2, 3, (20, 3)), dims=("run", "n"))
    ratio = in_units(unit.copy(data=values), unit)
    for k in range(3):
        expected = ratio_of_means(values[:, k], unit.values[:, k])
        np.testing.assert_allclose(interval(ratio.values[:, k]), expected)
    compared = figure_compared(bm.read_record(ANALYSES / "bayes-vs-moment" / "compared.nc"))
    study = figure_estimators(bm.read_record(ANALYSES / "estimators" / "estimators.nc"), 5)
    for axes in (*compared.axes, *study.axes):
        lines = [line for line in axes.lines if len(line.get_xdata()) > 3]
        assert len(lines) >= 2
        assert len([one for one in axes.collections if one.get_label() == "_band"]) == len(lines)


def test_orderings_name_their_exceptions() -> None:
    """An interval for each of the 21 statements; the three that do not hold are named."""
    found = orderings(bm.read_record(ANALYSES / "figure1" / "orderings.nc"))
    figure = figure_orderings(found)
    words = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert sorted(words) == ["fails", "fails", "undecided over all tasks"]
    bars = [line for axes in figure.axes for line in axes.lines if len(line.get_xdata()) == 2]
    assert len(bars) == len(found) + 2  # and a line at zero a panel
    assert "18 of 21" in figure.axes[0].get_title()


def test_every_method_has_one_look() -> None:
    """Studies name methods differently; the same method looks the same in all their figures."""
    names = [*bayes.PLAYED, *(name for name in estimators.METHODS if name != "gls-known")]
    looks = {name: method_look(name) for name in names}
    assert looks["REML"] == looks["reml"]
    assert looks["widened, c_w = 10"] == looks["moment-widened"]
    different = set(looks.values())
    for part in ("label", "color", "marker"):
        assert len({getattr(one, part) for one in different}) == len(different), part
    agents = [look(name) for name in [*bm.agents.FIGURE_1, *bm.agents.OURS, *bm.agents.BAYESIAN]]
    for part in ("label", "color", "marker"):
        assert len({getattr(one, part) for one in agents}) == len(agents), part


def test_spines_and_grids_come_from_the_style() -> None:
    """No other module of figures sets them by itself."""
    axes = new_figure(3, 3).subplots()
    clean(axes, "title", grid="x")
    assert not axes.spines["top"].get_visible() and axes.get_title() == "title"
    folder = Path(bm.__file__).parent / "report" / "figures"
    mine = ("figure1.py", "tasks.py", "estimators.py", "compared.py")
    for name in mine:
        text = (folder / name).read_text()
        assert "spines" not in text and ".grid(" not in text and '"#' not in text, name
