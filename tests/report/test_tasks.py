"""Figures of tasks: their captions fit, and speak of what is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import bayesmeta as bm
from bayesmeta.report.figures.style import APART, new_figure, note_below
from bayesmeta.report.figures.tasks import Forest, forest

N = 6


def shown(own: float, spread: float) -> Forest:
    """One feature of six tasks; ``own`` NaN: no circles."""
    mean = np.linspace(0.0, 1.0, N)[:, None]
    band = np.array([[0.5 - spread], [0.5 + spread]])
    return Forest(mean, mean - 1, mean + 1, np.full((N, 1), own), np.array([0.5]), band)


def drawn(own: float = 0.3, spread: float = 1.0, conditional: bool = False) -> Figure:
    """The figure of it, with captions as long as those of the commands."""
    parts = shown(own, spread)
    band = parts.says("mean of tasks", "where one more lies with probability 95%")
    dots = "dot and bar: posterior mean, 95% interval"
    return forest(["Days"], range(N), parts, N, dots, band, conditional=conditional)


@pytest.mark.parametrize("own", [0.3, np.nan])
def test_captions_say_what_is_drawn(own: float) -> None:
    """Circles where there are some, a band where it has a width, and always the order."""
    caption = drawn(own).get_supxlabel()
    assert ("open circle" in caption) == np.isfinite(own)
    assert "tasks in the order of Days" in caption and "line and band:" in caption
    flat = drawn(own, spread=1e-12).get_supxlabel().replace("\n", " ")
    assert "band" not in flat and "line: mean of tasks" in flat
    some = shown(0.3, 1.0)
    some.own[0] = np.nan
    assert some.circles().endswith("where it has one")


def test_captions_of_singular_fits_have_no_star() -> None:
    """The plot has none; bars are dashed."""
    table = bm.load_data("sleepstudy")
    table["Reaction"] = np.tile(np.sin(np.arange(10)), 18)  # no task differs from another
    fitted = bm.fit(table, "Reaction ~ 1 + (1 | Subject)")
    assert isinstance(fitted, bm.FittedPrior) and fitted.conditional
    from bayesmeta.report.figures.tasks import figure_fit

    caption = figure_fit(fitted).get_supxlabel()
    assert "dashed bars: conditional" in caption and "*" not in caption


@pytest.mark.parametrize("width", [2.5, 5.2, 12.0])
@pytest.mark.parametrize(
    "text",
    [
        "line and band: mean of tasks, and where one more lies with probability 95%\n(a doubt)",
        APART.join(f"part {i}: of some words each" for i in range(9)),
        r"$\mu$ and $\sqrt{\Sigma_{ii}}$ of a rather long name of a feature, with \$ in it" * 2,
        "",
    ],
)
def test_captions_keep_within_the_figure(width: float, text: str) -> None:
    """No line is wider, and no word is lost."""
    figure = new_figure(width, 3)
    figure.subplots()
    note_below(figure, text)
    figure.draw_without_rendering()  # type: ignore[no-untyped-call]
    note = figure._supxlabel  # type: ignore[attr-defined]
    box = note.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width
    assert note.get_text().split() == text.split()


def test_plots_of_one_panel_show_their_whole_caption() -> None:
    """Those of a single feature are the narrowest."""
    figure = drawn(conditional=True)
    figure.draw_without_rendering()  # type: ignore[no-untyped-call]
    box = figure._supxlabel.get_window_extent()  # type: ignore[attr-defined]
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width
