"""The pictures of notebooks 01 and 05, and looks of agents that are drawn together."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import bayesmeta as bm
from bayesmeta.report.figures import lessons
from bayesmeta.report.figures.calibration import label_peaks
from bayesmeta.report.figures.style import End, look, looks_of_agents, new_figure
from bayesmeta.simulation.summaries import interval


def words(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts if text.get_text()]


def test_rings_are_as_large_as_actions_are_frequent() -> None:
    """A panel an agent; the star is at the best action, whatever was chosen."""
    actions = np.array([[0.2, 0.0], [0.0, 0.1], [-0.1, -0.1]])
    counts = {"KTS": np.array([10, 0, 0]), "UKTS": np.array([2, 3, 5])}
    figure = lessons.figure_choices(actions, counts, best=1)
    for axes, (name, number) in zip(figure.axes, counts.items(), strict=True):
        assert axes.get_title() == name
        (rings,) = axes.collections
        np.testing.assert_allclose(rings.get_sizes(), lessons.RING * number / 10)
        (star,) = [line for line in axes.lines if line.get_gid() == "best"]
        np.testing.assert_allclose(star.get_xydata(), [[0.0, 0.1]])


@pytest.mark.parametrize("logs", ["", "xy"])
def test_curves_are_means_with_their_intervals(logs: str) -> None:
    """Rows are runs: a line is their mean, and its band the interval; a single row has none."""
    rng = np.random.default_rng(0)
    x, runs = [1.0, 2.0, 5.0], rng.uniform(1, 2, (4, 3))
    curves = {"KTS": runs, "UKTS": runs[0]}
    labels = {"UKTS": "UKTS, slope 1"}
    figure = lessons.figure_curves(x, curves, "x", "y", labels=labels, logs=logs, level=(1.5, "so"))
    (axes,) = figure.axes
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn["KTS"], runs.mean(axis=0))
    np.testing.assert_allclose(drawn["UKTS"], runs[0])
    (shade,) = axes.collections
    ends = shade.get_paths()[0].vertices[:, 1]
    if not logs:
        low = min(interval(column).low for column in runs.T)
        assert ends.min() == pytest.approx(low)
    assert ends.min() < runs.mean(axis=0).min() < runs.mean(axis=0).max() < ends.max()
    assert {"KTS", "UKTS, slope 1", "so"} == set(words(figure))
    assert axes.get_yscale() == ("log" if logs else "linear")
    assert "bands" in figure.get_supxlabel()
    alone = lessons.figure_curves(x, {"KTS": runs[0]}, "x", "y")
    assert not alone.get_supxlabel() and not alone.axes[0].collections


@pytest.mark.parametrize("height", [0.2, 30.0])
def test_a_level_beyond_all_lines_is_seen(height: float) -> None:
    """The axes reach up to it, and its words stand in the figure."""
    level = (height, "so high")
    figure = lessons.figure_curves([1.0, 2.0], {"KTS": [1.0, 3.0]}, "x", "y", level=level)
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert low <= min(height, 1.0) and max(height, 3.0) <= high
    figure.draw_without_rendering()
    (words,) = [text for text in axes.texts if text.get_text() == "so high"]
    box, whole = words.get_window_extent(), figure.bbox
    assert whole.y0 <= box.y0 and box.y1 <= whole.y1


def test_agents_drawn_together_look_different() -> None:
    """All rivals have a look of their own, and names of one sum do not share one."""
    rivals = ["KTS", "MetaTS", "AdaTS", "MetaMean", "MarginalTS"]
    clash = ["ab", "ba", "abab", "baba"]
    assert look("ab") == look("ba")._replace(label="ab")
    for names in (rivals, clash, [*bm.agents.FIGURE_1, *bm.agents.OURS, "ab", "ba"]):
        found = looks_of_agents(names)
        assert list(found) == names
        assert len({(str(one.line), one.marker) for one in found.values()}) == len(names)
    assert looks_of_agents(["KTS", "ab"])["ab"] == look("ab")


def test_names_of_peaks_stay_within_the_axes() -> None:
    """Also long ones at the edges."""
    figure = new_figure(4, 3)
    axes = figure.subplots()
    axes.set(xlim=(-0.02, 1.02), ylim=(-1, 1))
    peaks = [End(x, 0.5, look("KTS")._replace(label=f"a long name {x}")) for x in (0.1, 0.5, 0.9)]
    label_peaks(axes, peaks, 1.0, rows=2)
    figure.draw_without_rendering()
    frame = axes.get_window_extent()
    for text in axes.texts:
        box = text.get_window_extent()
        assert frame.x0 < box.x0 and box.x1 < frame.x1
