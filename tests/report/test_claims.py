"""The pictures of the referee's report: what they show of graphs, constants and tasks."""

from __future__ import annotations

import numpy as np
from matplotlib.text import Annotation

from bayesmeta.claims import all_claims, faults
from bayesmeta.claims.faults import Fault
from bayesmeta.report.figures.claims import figure_teeth
from bayesmeta.report.figures.faults import figure_graph, without_shortcuts
from bayesmeta.report.figures.needed import figure_needed

FAULTS = (Fault("lost", "", ("lemma",), "", ""), Fault("unseen", "", ("elsewhere",), "", ""))
USES = {"theorem": ("lemma", "other", "base"), "lemma": ("base",), "alone": (), "far": ("base",)}


def texts(figure: object) -> list[str]:
    axes = figure.axes[0]  # type: ignore[attr-defined]
    return [text.get_text() for text in axes.texts]


def test_the_graph_goes_from_lemmas_to_theorems() -> None:
    """A box for every claim, further right than all it cites; a violated one has its fault's
    number, and only faults that break something shown are listed."""
    verdicts = dict.fromkeys(("theorem", "other", "base", "alone", "far"), "holds") | {
        "lemma": "violated"
    }
    figure = figure_graph(USES, FAULTS, verdicts)
    shown = {text.get_text(): text.get_position() for text in figure.axes[0].texts}
    assert {"theorem", "lemma ①", "other", "base", "alone"} <= set(shown)
    assert shown["base"][0] < shown["lemma ①"][0] < shown["theorem"][0] == shown["alone"][0]
    assert shown["other"][0] < shown["theorem"][0]
    note = next(text for text in shown if text.startswith("faults:"))
    assert "① lost" in note and "unseen" not in note
    assert len(figure.axes[0].patches) == 6


def test_no_arrow_runs_behind_a_box() -> None:
    """What is cited through another claim has no arrow of its own, and an arrow that passes a
    column does so between its boxes."""
    assert without_shortcuts(USES)["theorem"] == ["lemma", "other"]
    for uses, verdicts in (
        (USES, dict.fromkeys(("theorem", "other", "base", "alone", "far", "lemma"), "holds")),
        (faults.USES, dict.fromkeys(all_claims(), "holds")),
    ):
        axes = figure_graph(uses, FAULTS, verdicts).axes[0]
        corners = [
            patch.get_path().get_extents(patch.get_patch_transform()).shrunk(0.98, 0.98).extents
            for patch in axes.patches
        ]
        left, low, right, high = np.transpose(corners)
        heads = [[note.xyann, note.xy] for note in axes.texts if isinstance(note, Annotation)]
        legs = [line.get_data() for line in axes.lines] + [np.transpose(leg) for leg in heads]
        assert len(legs) > len(heads) > 0
        for x, y in legs:
            along = np.linspace(0, len(x) - 1, 200)
            at = np.transpose([np.interp(along, range(len(x)), values) for values in (x, y)])
            across, up = at[:, :1], at[:, 1:]
            inside = (left < across) & (across < right) & (low < up) & (up < high)
            assert not inside.any()


def test_constants_are_drawn_against_what_is_accepted() -> None:
    """Printed inequalities with teeth only; the ratio, and in words the two constants."""

    def row(name: str, printed: float | None, accepts: float, **more: str) -> dict[str, object]:
        teeth = {"printed": printed, "accepts": accepts}
        plain = {"group": "printed", "kind": "D", "section": "events"}
        return {"id": name, "teeth": teeth, **plain, **more}

    rows = [
        row("loose", 50.0, 2.0),
        row("sharp", 1.0, 1.0),
        row("equality", None, 1e-8),
        row("ours", 2.0, 1.0, group="ours"),
        row("rate", 2.0, 1.0, kind="S"),
        {**row("violated", 1.0, 1.0), "teeth": None},
    ]
    figure = figure_teeth(rows)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["loose", "sharp"] and "2 for 50" in texts(figure)
    dots = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert dots == [25.0, 1.0]


def test_required_tasks_have_a_line_for_each_version() -> None:
    """Three lines, and a dot of each for the experiment."""
    needed = {name: [10.0**k, 10.0] for k, name in enumerate(("printed", "repaired", "sharpened"))}
    at = {"ratio": 0.1, "printed": 1e9, "repaired": 1e8, "sharpened": 1e4}
    figure = figure_needed([1.0, 100.0], needed, at, 10_000)
    dots = [
        line.get_ydata()[0]
        for line in figure.axes[0].lines
        if line.get_marker() not in ("None", "", None)
    ]
    assert sorted(dots) == [1e4, 1e8, 1e9]
    assert {"printed", "repaired", "sharpened", "N = 10,000"} <= set(texts(figure))
