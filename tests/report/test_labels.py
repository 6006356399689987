"""Labels are shown, never obeyed: by terminals, figures and pages."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

import bayesmeta as bm
from bayesmeta.display import visible
from bayesmeta.fitted.prior import FittedPrior
from bayesmeta.report.figures.style import shortened
from bayesmeta.report.figures.tasks import figure_fit
from bayesmeta.report.fitted import print_fit
from bayesmeta.statistics import TaskStatistics

LABELS = [
    "\x1b[31mred",
    "[bold]b[/]",
    ":smile:",
    "a\u202eb",
    "$x^2$",
    "<script>",
    "a\nb",
    "\\",
    "[/",
]
SHOWN = [
    r"\x1b[31mred",
    "[bold]b[/]",
    ":smile:",
    r"a\u202eb",
    "$x^2$",
    "<script>",
    r"a\nb",
    "\\",
    "[/",
]
FEATURE, FEATURE_SHOWN = "\x9b2J<b>[red]$x\x07", r"\x9b2J<b>[red]$x\x07"


@pytest.fixture
def stats() -> TaskStatistics:
    """A task for every label."""
    rng = np.random.default_rng(0)
    n = len(LABELS)
    rows, reward = rng.standard_normal((4 * n, 1)), rng.standard_normal(4 * n)
    return TaskStatistics.from_arrays(np.repeat(LABELS, 4).tolist(), reward, rows, [FEATURE])


def fitted(stats: TaskStatistics) -> FittedPrior:
    """By moments, the noise known."""
    found = bm.fit(stats, method="moment-clipped", noise_sd=1.0)
    assert isinstance(found, FittedPrior)
    return found


def test_only_what_does_not_show_is_spelt_out() -> None:
    """Letters of all scripts stay as they are."""
    assert [visible(label) for label in LABELS] == SHOWN
    assert visible("Größe 東京 α²") == "Größe 東京 α²" and visible(3) == "3"


def test_a_terminal_shows_labels(stats: TaskStatistics) -> None:
    """No escape sequence but the console's own; nothing read as markup or emoji."""
    out = io.StringIO()
    console = Console(file=out, width=120, color_system=None)
    print_fit(console, fitted(stats))
    text = out.getvalue()
    assert all(label in text for label in (*SHOWN, FEATURE_SHOWN[:15]))
    assert all(c == "\n" or c.isprintable() for c in text)


def test_a_figure_shows_labels(stats: TaskStatistics) -> None:
    """An SVG that can be parsed, with the labels as they are, and no formula."""
    figure = figure_fit(fitted(stats))
    out = io.BytesIO()
    with np.errstate(all="raise"):
        figure.savefig(out, format="svg")
    ElementTree.fromstring(out.getvalue())
    ticks = {tick.get_text() for tick in figure.axes[0].get_yticklabels()}
    assert {shortened(label, 40) for label in LABELS} <= ticks
    assert all(c == "\n" or c.isprintable() for c in out.getvalue().decode())
    assert b"<script>" not in out.getvalue()


def test_reprs_show_labels(stats: TaskStatistics) -> None:
    """As text and as HTML."""
    estimate = bm.fit_prior(stats, 1.0, "moment-clipped")
    assert FEATURE_SHOWN in repr(estimate) and FEATURE_SHOWN in repr(stats)
    html = estimate._repr_html_()
    assert r"\x9b2J&lt;b&gt;[red]$x\x07" in html and "\x9b" not in html


def test_names_are_cut_and_numbers_are_not() -> None:
    """Eight features of all scales with long names in 80 columns: no number loses a digit, every
    name keeps both its ends, and tasks that differ in their middle stay apart."""
    rng = np.random.default_rng(0)
    n, d = 30, 8
    names = [f"a_long_name_of_feature_{i}_which_goes_on" for i in range(d)]
    scales = 10.0 ** np.arange(-4, 4)
    rows = rng.standard_normal((n * 20, d)) * scales
    theta = rng.normal(1, 0.5, (n, d)) / scales
    reward = (rows * theta.repeat(20, axis=0)).sum(axis=1) + rng.standard_normal(n * 20)
    tasks = [f"sensor-{i:03d}-building-B" for i in range(n)]
    stats = TaskStatistics.from_arrays(np.repeat(tasks, 20).tolist(), reward, rows, names)
    found = bm.fit(stats)
    assert isinstance(found, FittedPrior)
    out = io.StringIO()
    print_fit(Console(file=out, width=80, color_system=None), found)
    lines = out.getvalue().split("\n")
    begin, shown = lines.index("The prior by reml (30 tasks, 600 rows)") + 4, found.summary()
    assert max(map(len, lines)) <= 80
    for name, line in zip(shown.index, lines[begin : begin + len(shown)], strict=True):
        numbers = [float(one) for one in line.split()[-4:]]
        np.testing.assert_allclose(numbers, shown.loc[name], rtol=1e-5)
        assert line.strip().startswith(name.split("[")[0] + "[a_") or name == "sigma"
    printed = [line.split()[0] for line in lines if line.strip().startswith("sensor-")]
    assert len(set(printed)) == 20
    assert max(map(len, repr(found).split("\n"))) <= 80
