"""Tables, JSON and picture of a posterior: those of an estimate, from draws."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.report import fitted as estimate_report
from bayesmeta.report.console import rendered
from bayesmeta.report.figures.tasks import figure_tasks
from bayesmeta.report.posterior import as_json, print_posterior

NAMES = ["temperature_of_the_room", "humidity_of_the_room", "speed_of_the_wind", "level_of_light"]
QUICK: dict[str, Any] = {"method": "posterior", "draws": 100, "tune": 100, "chains": 2}


def drawn(frame: pd.DataFrame, **table: Any) -> bm.FittedPosterior:
    """A posterior of few draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bm.FitWarning)
        found = bm.fit(frame, **table, **QUICK)
    assert isinstance(found, bm.FittedPosterior)
    return found


def estimated(fit: bm.FittedPosterior) -> bm.FittedPrior:
    """REML's fit of the same table."""
    found = bm.fit(fit.design)
    assert isinstance(found, bm.FittedPrior)
    return found


@pytest.fixture(scope="module")
def wide() -> bm.FittedPosterior:
    """Four features that differ between 70 tasks, of small scale, and one that does not."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": np.arange(70).repeat(8)})
    frame[[*NAMES, "z"]] = rng.normal(size=(560, 5))
    theta = -1.2345e-4 * (1 + rng.normal(size=(70, 4)))
    frame["y"] = (theta[frame.t] * frame[NAMES]).sum(axis=1) + 1e-5 * rng.normal(size=560)
    return drawn(frame, task="t", reward="y", features=NAMES, fixed=["z"])


def test_json_has_the_names_and_shapes_of_an_estimate(wide: bm.FittedPosterior) -> None:
    """What both have is of one kind: a reader of one reads the other."""
    ours, theirs = as_json(wide), estimate_report.as_json(estimated(wide))
    for name in ("features", "varying", "mean", "mean_sd", "cov", "cov_sd"):
        assert np.shape(ours[name]) == np.shape(theirs[name]), name
    assert np.shape(ours["cov"]) == (5, 5) and ours["cov"][4] == [0.0] * 5 == ours["cov_sd"][4]
    assert ours["conditional"] is False is theirs["conditional"]
    own = {"note", "ess", "rhat"}
    for one, other in zip(ours["intervals"], theirs["intervals"], strict=True):
        assert one["quantity"] == other["quantity"] and set(one) - own == set(other) - own
    assert ours["task_estimates"][0].keys() == theirs["task_estimates"][0].keys()
    assert set(ours) & {"level", "quantities"} == set()


def test_json_is_the_summary(wide: bm.FittedPosterior) -> None:
    """Every number of it, at the level of the fit."""
    fit = bm.FittedPosterior(wide.design, wide.tree, 0.5)
    found = pd.DataFrame(as_json(fit)["intervals"]).set_index("quantity")
    summary = fit.summary()
    pd.testing.assert_frame_equal(found[list(summary.columns)], summary)
    assert set(found["level"]) == {0.5} and set(found["method"]) == {"eti"}
    sigma = fit.tree["posterior"]["Sigma"].values.reshape(-1, 4, 4)
    np.testing.assert_allclose(
        np.array(as_json(fit)["cov_sd"])[:4, :4], sigma.std(axis=0, ddof=1), rtol=1e-10
    )


def test_tables_keep_to_eighty_columns(wide: bm.FittedPosterior) -> None:
    """All features of tasks are there, in blocks; no number is cut."""
    shown = rendered(lambda to: print_posterior(to, wide), plain_width=80)
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("± sd") == 5 and shown.count("task ") >= 2  # and the note on them
    values = wide.task_mixtures.mixed.mean[0, :4]
    assert all(f"{value:.5g} " in shown for value in values)
    assert "noise:" not in shown  # it is in the table
    assert "z" in shown.split("the same in all tasks")[1]


def test_the_noise_is_told_where_it_was_given() -> None:
    """Known for each row, or one number, as ``bayesmeta fit`` prints it."""
    fit = drawn(
        bm.load_data("eight_schools"), task="school", reward="effect", noise_se="se", intercept=True
    )
    for one, printed in ((fit, print_posterior), (estimated(fit), estimate_report.print_fit)):
        assert "noise: known for each row" in rendered(lambda to: printed(to, one))  # noqa: B023
    assert as_json(fit)["noise_sd"] is None
    sleep = bm.load_data("sleepstudy")
    given = drawn(sleep, formula="Reaction ~ 1 + (1 | Subject)", noise_sd=40.0)
    assert "noise: variance 1600, sd 40" in rendered(lambda to: print_posterior(to, given))
    assert as_json(given)["noise_sd"] == 40


@pytest.mark.parametrize("name", [None, NAMES[1]])
def test_pictures_show_what_tasks_has(wide: bm.FittedPosterior, name: str | None) -> None:
    """Dots and bars of the tasks that are shown, in the order of a feature, the last by default."""
    fit = bm.FittedPosterior(wide.design, wide.tree, 0.8)
    figure = figure_tasks(fit, name)
    panels, by = figure.axes, NAMES[-1] if name is None else name
    assert len(panels) == 4 and f"in the order of {by}" in figure.get_supxlabel().replace("\n", " ")
    shown = [int(label.get_text()) for label in panels[0].get_yticklabels()]
    table = fit.tasks()
    for axes, feature in zip(panels, NAMES, strict=True):
        rows = table.xs(feature, level="feature").loc[shown]
        np.testing.assert_allclose(axes.lines[1].get_xdata(), rows["estimate"], rtol=1e-9)
        ends = np.array([path.vertices[:, 0] for path in axes.collections[0].get_paths()])
        np.testing.assert_allclose(ends, rows[["low", "high"]], rtol=1e-9)
        if feature == by:
            assert rows["estimate"].is_monotonic_increasing
    with pytest.raises(bm.InputError, match="sort"):
        figure_tasks(fit, "z")  # the same in all tasks


def test_bands_are_where_one_more_task_lies(wide: bm.FittedPosterior) -> None:
    """As ``predict`` has it of a new task whose features are one and zeros."""
    figure = figure_tasks(wide)
    wanted = wide.predict(np.eye(5)[:4])
    for axes, low, high in zip(figure.axes, wanted["low"], wanted["high"], strict=True):
        box = axes.patches[0].get_extents().transformed(axes.transData.inverted())
        np.testing.assert_allclose([box.x0, box.x1], [low, high], rtol=1e-6)
