"""The page of a posterior."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.posterior.diagnostics import Check, Trust
from bayesmeta.report.figures.page import posterior_page
from bayesmeta.report.figures.style import shortened
from bayesmeta.report.posterior import prior_in_words


def test_long_names_do_not_overlap(tmp_path: Path) -> None:
    """Titles of neighbouring panels of the page, with names as long as they come."""
    rng = np.random.default_rng(0)
    names = [f"W${'m' * 50}$ {i}" for i in range(2)]
    stats = bm.TaskStatistics.from_arrays(
        np.repeat(range(10), 6), rng.standard_normal(60), rng.standard_normal((60, 2)), names
    )
    with pytest.warns(bm.FitWarning):
        tree = bm.sample_posterior(stats, draws=20, tune=50, chains=2)
    page = posterior_page(tree)
    page.savefig(tmp_path / "a.png")
    left, right = page.axes[0], page.axes[1]
    assert left.get_title(loc="left").startswith(r"$\mu$, mean of tasks:" + "\nW")
    end = left._left_title.get_window_extent().x1  # type: ignore[attr-defined]
    assert end < right._left_title.get_window_extent().x0  # type: ignore[attr-defined]
    assert shortened("abcdefghij", 5) == "ab…ij" and shortened("ab", 5) == "ab"


def test_priors_speak_of_correlations_where_there_are_any() -> None:
    """With one feature that differs between tasks there are none."""
    prior = {"type": "LKJ", "mean": [0, 0], "mean_sd": [1, 1], "scale": [2.0, None], "eta": 2.0}
    assert "LKJ" not in prior_in_words(prior, False)
    assert "correlations ~ LKJ(2)" in prior_in_words(prior | {"scale": [2.0, 1.0]}, False)


def draws(varying: list[str], fixed: list[str], noisy: bool, chains: int = 4) -> xr.DataTree:
    """A tree as ``sample_posterior`` makes it, of planted draws; correlations are all but -1."""
    rng = np.random.default_rng(0)
    names, r = varying + fixed, len(varying)
    d, pairs = len(names), [f"{b}, {a}" for i, b in enumerate(varying) for a in varying[:i]]

    def group() -> xr.Dataset:
        lead, shape = ["chain", "draw"], (chains, 50)
        made = {
            "mu": ([*lead, "feature"], rng.standard_normal((*shape, d))),
            "sd": ([*lead, "varying"], rng.uniform(1, 2, (*shape, r))),
        }
        if pairs:
            near = rng.uniform(-1, -1 + 1e-5, (*shape, len(pairs)))
            made["corr"] = ([*lead, "pair"], near)
        if noisy:
            made["sigma"] = (lead, rng.uniform(1, 2, shape))
        return xr.Dataset(made, {"feature": names, "varying": varying, "pair": pairs})

    sums = {"moment": (["task", "feature"], np.zeros((5, d)))}
    tasks = xr.Dataset(sums | {"gram": (["task", "feature", "feature_bis"], np.zeros((5, d, d)))})
    return xr.DataTree.from_dict(
        {"posterior": group(), "prior": group(), "constant_data": tasks, "observed_data": tasks}
    )


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted draws have no diagnostics of a sampler."""
    found = Trust([Check("R-hat", 1.0, "<= 1.01", True)] * 8)
    monkeypatch.setattr("bayesmeta.report.figures.page.trustworthy", lambda _: found)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("fixed", [[], ["z"], ["z", "w"]])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("varying", [["intercept"], ["intercept", "x"]])
def test_panels_fill_the_page(varying: list[str], fixed: list[str], noisy: bool) -> None:
    """No place is left empty: every row reaches as far to the right as the first."""
    page = posterior_page(draws(varying, fixed, noisy))
    left = 2 * len(varying) + len(fixed) + noisy
    assert len(page.axes) == left + (len(varying) > 1) + 2
    page.draw_without_rendering()  # type: ignore[no-untyped-call]
    ends = [axes.get_position() for axes in page.axes[:left]]
    last = {round(box.y0, 3): box.x1 for box in ends}  # the rightmost of each row comes last
    assert max(last.values()) - min(last.values()) < 0.02
    assert min(box.y0 for box in ends) < 0.25
    titles = [axes.get_title(loc="left") for axes in page.axes]
    assert sum("same in all tasks" in title for title in titles) == len(fixed)
    assert sum("noise" in title for title in titles) == noisy


@pytest.mark.usefixtures("trusted")
def test_correlations_near_one_show() -> None:
    """Inside the panel, with ticks at the ends of bars and their numbers."""
    page = posterior_page(draws(["intercept", "x"], [], True))
    (axes,) = [one for one in page.axes if one.get_xlabel() == "correlation"]
    low, high = axes.get_xlim()
    assert low < -1.02 and high > 1.02
    assert [line.get_marker() for line in axes.lines].count("|") == 2
    assert [text.get_text() for text in axes.texts] == ["-1.000  [-1.000, -1.000]"]


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("chains", [1, 2, 4, 8, 9])
def test_chains_are_named(chains: int) -> None:
    """All of them, above the lines; more than eight look alike, and one has no panel."""
    page = posterior_page(draws(["intercept"], [], False, chains))
    found = [axes for axes in page.axes if "chains agree" in axes.get_title(loc="left")]
    assert len(found) == (chains > 1)
    for axes in found:
        legend = axes.get_legend()
        assert (legend is None) == (chains > 8)
        if legend is None:
            assert "a line each" in axes.get_title(loc="left")
            continue
        page.draw_without_rendering()  # type: ignore[no-untyped-call]
        assert [t.get_text() for t in legend.get_texts()] == [
            f"chain {k + 1}" for k in range(chains)
        ]
        box = legend.get_window_extent()
        assert box.x0 >= axes.bbox.x0 - 1 and box.x1 <= axes.bbox.x1 + 1
        tops = [patch.get_data().values.max() for patch in axes.patches]  # type: ignore[attr-defined]
        assert axes.transData.transform((0.0, max(tops)))[1] <= box.y0 + 2
