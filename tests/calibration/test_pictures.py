"""Pictures of the lab, and the verdict in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from scipy.stats import binomtest

import bayesmeta as bm
from bayesmeta.calibration.kinds import of_kind, relative, side_by_side
from bayesmeta.calibration.ranks import band
from bayesmeta.calibration.rows import numbers_of, rows_of
from bayesmeta.calibration.shares import exact_interval
from bayesmeta.calibration.verdict import in_words, verdicts
from bayesmeta.report.figures.style import looks_of, method_look, new_figure
from tests.calibration import planted
from tests.calibration.planted import FAMILY
from tests.helpers import size


@pytest.fixture(scope="module")
def lab() -> xr.Dataset:
    """A small one, with an estimator that is wrong."""
    estimators = ["moment", planted.known, planted.halved]
    return bm.calibrate(FAMILY, tasks=[10, 20], estimators=estimators, replications=60, jobs=1)


def lines(axes: Axes) -> dict[str, np.ndarray]:
    """Heights of the lines that have a name."""
    found = {str(line.get_label()): np.asarray(line.get_ydata()) for line in axes.get_lines()}
    return {name: value for name, value in found.items() if name[:1] not in ("", "_")}


def names(axes: Axes) -> list[str]:
    """What is written at lines."""
    return [text.get_text() for text in axes.texts if text.get_gid() == "label"]


def test_coverage_is_drawn(lab: xr.Dataset) -> None:
    """A panel a kind, a line an estimator at its coverages less their levels, in points, with its
    name; behind them the band that holds at all levels together."""
    figure = bm.plot_coverage(lab, tasks=20)
    titles = ["mean μ", "standard deviations", "correlations", "next task"]
    assert [axes.get_title() for axes in figure.axes] == titles
    found = bm.measures(lab).sel(tasks=20, quantity=["mu[x1]", "mu[x2]"])
    expected = 100 * (found.coverage.mean("quantity") - found.level)
    drawn = lines(figure.axes[0])
    assert list(drawn) == ["moment", "known", "halved"] and sorted(names(figure.axes[0])) == [
        "halved", "known", "moment"
    ]  # fmt: skip
    for name, heights in drawn.items():
        np.testing.assert_allclose(heights, expected.sel(estimator=name))
    (grey,) = [one for one in figure.axes[0].collections if isinstance(one, PolyCollection)]
    heights = grey.get_paths()[0].vertices[:, 1]
    low, high = band(60, found.level.values)
    for end in (low, high):
        assert np.isclose(heights[:, None], 100 * (end - found.level.values)).any(axis=0).all()
    next_task = 100 * (bm.measures(lab).sel(tasks=20).next_coverage - found.level)
    assert lines(figure.axes[3])["known"] == pytest.approx(next_task.sel(estimator="known").values)


def test_what_is_lacking_is_said(lab: xr.Dataset) -> None:
    """Nothing is drawn of an estimator without intervals; those of some have a share."""
    some = lab.copy(deep=True)
    for end in ("low", "high"):
        some[end].loc[{"estimator": "moment", "replication": slice(30, None)}] = np.nan
    figure = bm.plot_coverage(some, kinds=["sd", "mu"])
    assert list(lines(figure.axes[0])) == ["moment"]
    assert names(figure.axes[0]) == ["moment (in 50%)"]
    assert {"known", "halved"} <= set(names(figure.axes[1]))


def test_pictures_go_on_given_axes(lab: xr.Dataset) -> None:
    """One panel or several, in a figure of one's own; a wrong number of them is refused."""
    figure = new_figure(8, 6)
    panels = figure.subplots(2, 2)
    assert bm.plot_coverage(lab, kinds="mu", axes=panels[0, 0]) is figure
    assert bm.plot_next_task(lab, axes=panels[0, 1]) is figure
    assert bm.plot_biases(lab, axes=panels[1, 0]) is figure
    assert lines(panels[0, 0]) and lines(panels[0, 1]) and panels[1, 0].containers
    bm.plot_coverage_by_tasks(lab, kinds=["mu", "next task"], axes=new_figure(8, 6).subplots(2, 2))
    with pytest.raises(bm.InputError, match="axes has 4 panels where 1"):
        bm.plot_coverage(lab, kinds="mu", axes=panels)


def test_a_notebook_shows_figures() -> None:
    """Without pyplot, whose backend would otherwise do it."""
    from IPython.core.formatters import PNGFormatter

    shown = PNGFormatter()(new_figure(1, 1))
    assert shown is not None and shown.startswith(b"\x89PNG")


@pytest.mark.parametrize("draw", [bm.plot_coverage, bm.plot_next_task, bm.plot_biases])
def test_other_tasks_are_refused(lab: xr.Dataset, draw: Callable[..., Figure]) -> None:
    """Numbers of tasks, kinds and levels that the lab does not have."""
    with pytest.raises(bm.InputError, match="no 7 tasks"):
        draw(lab, tasks=7)
    with pytest.raises(bm.InputError, match="unknown kinds"):
        bm.plot_coverage(lab, kinds="mean")
    with pytest.raises(bm.InputError, match=r"no level 0\.7"):
        bm.plot_coverage_by_tasks(lab, 0.7)
    with pytest.raises(bm.InputError, match="one number of tasks only"):
        bm.plot_coverage_by_tasks(lab.sel(tasks=[20]))


def test_coverage_and_width_by_tasks(lab: xr.Dataset) -> None:
    """Lines over the numbers of tasks: coverages above, geometric means of widths below."""
    figure = bm.plot_coverage_by_tasks(lab, 0.9)
    assert [axes.get_title() for axes in figure.axes] == [
        "mean μ", "standard deviations", "next task", "", "", ""
    ]  # fmt: skip
    at = bm.measures(lab).sel(estimator="known", level=0.9)
    mean = at.sel(quantity=["mu[x1]", "mu[x2]"])
    np.testing.assert_allclose(
        lines(figure.axes[0])["known"], 100 * mean.coverage.mean("quantity") - 90
    )
    width = lines(figure.axes[3])["known"]
    np.testing.assert_allclose(width, np.sqrt(mean.width.prod("quantity")))
    assert width[1] < width[0]
    np.testing.assert_allclose(lines(figure.axes[5])["known"], at.next_width)


def test_pit_of_the_next_task(lab: xr.Dataset) -> None:
    """Distribution functions less the uniform one, of the distance and of every feature."""
    figure = bm.plot_next_task(lab, tasks=20)
    assert [axes.get_title() for axes in figure.axes] == ["distance from the centre", "x1", "x2"]
    pit = np.sort(lab.pit.sel(tasks=20, estimator="known", varying="x2").values)
    (line,) = [one for one in figure.axes[2].get_lines() if one.get_label() == "known"]
    x = np.asarray(line.get_xdata())
    np.testing.assert_allclose(line.get_ydata(), np.searchsorted(pit, x) / 60 - x, atol=1e-12)


def test_few_forecasts_are_named(lab: xr.Dataset) -> None:
    """An estimator with too few of them to draw a distribution is named below the panels."""
    assert "not shown" not in str(bm.plot_next_task(lab, tasks=20).get_supxlabel())
    few = lab.copy(deep=True)
    few.pit_distance.loc[{"estimator": "moment", "replication": slice(9, None)}] = np.nan
    said = bm.plot_next_task(few, tasks=20).get_supxlabel().replace("\n", " ")
    assert "with fewer than 10 forecasts, not shown: moment" in said


def test_forest_of_biases(lab: xr.Dataset) -> None:
    """Dots at bias / rmse, in the rows of their quantities, with bars of 1.96 errors."""
    figure = bm.plot_biases(lab, tasks=20)
    (axes,) = figure.axes
    quantities = [tick.get_text() for tick in axes.get_yticklabels()]
    at = bm.measures(lab).sel(tasks=20, estimator="moment", quantity=quantities)
    (drawn,) = [one for one in axes.containers if one.get_label() == "moment"]
    dots, _, (bars,) = drawn
    np.testing.assert_allclose(dots.get_xdata(), at.bias / at.rmse)
    assert np.round(dots.get_ydata()).tolist() == list(range(len(quantities)))
    widths = np.array([np.ptp(one[:, 0]) for one in bars.get_segments()])
    np.testing.assert_allclose(widths, 2 * 1.96 * at.bias_error / at.rmse)
    assert sorted(names(axes)) == ["halved", "known", "moment"]


def test_looks_are_told_apart_without_colour() -> None:
    """A method has its colour whatever its intervals; no two share dashes and marker."""
    given = ["ml", "ml, profile", "ml, bootstrap", "moment", "moment-widened(10)", "mine", "yours"]
    looks = looks_of(given)
    assert looks["ml, profile"].color == looks["ml"].color == method_look("ml").color
    assert looks["moment-widened(10)"].color == method_look("moment-widened").color
    assert len({(str(look.line), look.marker) for look in looks.values()}) == len(given)
    assert looks["mine"].color != looks["yours"].color


def test_several_ways_of_data_side_by_side(lab: xr.Dataset) -> None:
    """They are shown as further estimators in pictures; rows have a key of their own."""
    two = xr.concat([lab, lab], xr.DataArray(["all steps", "KTS"], dims="data", name="data"))
    flat = side_by_side(bm.measures(two))
    assert [str(one) for one in flat.estimator.values[:3]] == [
        "moment, all steps", "moment, KTS", "known, all steps"
    ]  # fmt: skip
    xr.testing.assert_allclose(
        flat.coverage.sel(estimator="known, KTS", drop=True),
        bm.measures(lab).coverage.sel(estimator="known", drop=True),
    )
    assert "halved, KTS" in lines(bm.plot_coverage(two, tasks=20).axes[0])
    rows = rows_of(bm.measures(two))
    assert {(row["estimator"], row["data"]) for row in rows} == {
        tuple(str(name).split(", ")) for name in flat.estimator.values
    }


def test_the_band_holds_at_all_levels_together() -> None:
    """Null: shares of 100 nested regions that hold what they promise leave the band at no level,
    with probability 0.95 at least. One-sided exact binomial test over 2,000 samples."""
    levels = np.array([0.5, 0.8, 0.9, 0.95])
    low, high = band(100, levels)
    first = np.random.default_rng(5).random((2000, 100))
    shares = (first[:, :, None] <= levels).mean(axis=1)
    inside = int(((shares >= low) & (shares <= high)).all(axis=1).sum())
    assert binomtest(inside, 2000, 0.95, "less").pvalue > size("lab/band")
    assert inside < 2000  # and it is not as wide as can be


def test_the_verdict(lab: xr.Dataset) -> None:
    """Exact intervals are calibrated, halved ones are not; the sentence says so."""
    found = bm.measures(lab)
    first = verdicts(found, 20, 0.95)[0]
    assert first.kind == "mu" and "known" in first.calibrated and "halved" not in first.calibrated
    sentence = in_words(found, 20, 0.95)
    assert "95%" in sentence and "60 replications" in sentence
    assert "of mu by moment and known (sharpest: moment)" in sentence
    # 60 replications: 1.96 sqrt(0.95 * 0.05 / 60) = 0.055
    assert "A coverage that is off by less than 6 points may not show." in sentence


def test_the_verdict_says_who_was_not_counted(lab: xr.Dataset) -> None:
    """An estimator without a region in 30% of the replications is left out by name; with thousands
    of replications nothing is hidden."""
    found = bm.measures(lab).copy(deep=True)
    found.available.loc[{"estimator": "moment", "quantity": "sd[x1]"}] = 0.7
    found = found.assign(drawn=found.drawn * 1000)
    sentence = in_words(found, 20, 0.95)
    assert "moment (no region of sd in 30% of replications)" in sentence
    assert "may not show" not in sentence


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
