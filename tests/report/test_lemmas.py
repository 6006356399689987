"""The pictures of notebook 04: what they draw is what they are given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from bayesmeta.gaussian import GaussianPrior
from bayesmeta.report.figures import lemmas


def points(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata())


def words(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def test_events_have_a_row_each_with_its_median_and_its_largest_ratio() -> None:
    """The first on top; looks by the rule of exploration."""
    rng = np.random.default_rng(0)
    ratios = {"theta": rng.uniform(0.1, 0.5, 99), "mean, eq. (8)": rng.uniform(0.001, 0.01, 99)}
    (axes,) = lemmas.figure_events(ratios).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert dict(zip(names, axes.get_yticks(), strict=True)) == {"theta": 1, "mean, eq. (8)": 0}
    dots = {points(line)[0, 1]: line for line in axes.lines if len(points(line)) == 1}
    for place, values in zip((1, 0), ratios.values(), strict=True):
        assert points(dots[place])[0, 0] == pytest.approx(np.median(np.log10(values)))
        largest = f"largest of 99: 1/{1 / values.max():,.3g} of the bound"
        assert largest in words(axes)
    assert dots[0].get_marker() != dots[1].get_marker()


def test_lines_have_names_at_their_ends_and_differ_without_colour() -> None:
    """Also where x falls; a height that decides has its words; a fifth line has no look left."""
    x = [3.0, 1.0, 0.1]
    lines = {f"line {k}": [10.0**k, 1.0, 2.0] for k in range(4)}
    (axes,) = lemmas.figure_lines(x, lines, "x", "y", level=(5.0, "violated above")).axes
    drawn = [line for line in axes.lines if len(points(line)) == 3]
    for line, values in zip(drawn, lines.values(), strict=True):
        np.testing.assert_array_equal(points(line)[:, 1], values)
    assert len({line.get_marker() for line in drawn}) == 4
    assert {*lines, "violated above"} == set(words(axes))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert lemmas.figure_lines(x, lines, "", "", straight=True).axes[0].get_xscale() == "linear"
    with pytest.raises(ValueError):
        lemmas.figure_lines(x, lines | {"fifth": x}, "x", "y")


def test_stages_go_from_what_happens_to_what_is_claimed() -> None:
    """A dot each, and its value in words."""
    (axes,) = lemmas.figure_stages({"is": 2.0, "claimed": 300.0}, "norm").axes
    dots = [(points(line)[:, 0].tolist(), line.get_marker()) for line in axes.lines][1::2]
    assert dots == [([2.0], "o"), ([300.0], "s")]
    assert words(axes) == ["2", "300"]


def test_learners_are_shown_before_and_after_exploration() -> None:
    """An arrow for every action; theta beside the posteriors; both learners named in each panel."""
    wide, narrow = (GaussianPrior(np.zeros(2), size * np.eye(2)) for size in (1.0, 0.5))
    actions = {"K": 0.5 * np.eye(2), "M": np.eye(2)}
    priors, after = {"K": narrow, "M": wide}, {"K": narrow, "M": narrow}
    figure = lemmas.figure_alignment(priors, actions, after, np.array([1.0, 2.0]))
    left, middle, right = figure.axes
    heads = {tuple(note.xy) for note in middle.texts if isinstance(note, Annotation)}
    assert heads >= {(1.0, 0.0), (0.0, 1.0), (0.5, 0.0), (0.0, 0.5)}
    for axes in (left, middle, right):
        assert {"K", "M"} <= set(words(axes))
    assert right.get_title() == r"after 2 steps (circle: $\theta$)"
    shown = [[points(line).tolist() for line in axes.lines] for axes in (left, right)]
    assert [[1.0, 2.0]] in shown[1] and [[1.0, 2.0]] not in shown[0]
