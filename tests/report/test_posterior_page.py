"""The page of a posterior."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bayesmeta as bm
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
    left, right = page.axes[0], page.axes[2]
    assert left.get_title(loc="left").startswith(r"$\mu$, mean of tasks:" + "\nW")
    end = left._left_title.get_window_extent().x1  # type: ignore[attr-defined]
    assert end < right._left_title.get_window_extent().x0  # type: ignore[attr-defined]
    assert shortened("abcdefghij", 5) == "ab…ij" and shortened("ab", 5) == "ab"


def test_priors_speak_of_correlations_where_there_are_any() -> None:
    """With one feature that differs between tasks there are none."""
    prior = {"type": "LKJ", "mean": [0, 0], "mean_sd": [1, 1], "scale": [2.0, None], "eta": 2.0}
    assert "LKJ" not in prior_in_words(prior, False)
    assert "correlations ~ LKJ(2)" in prior_in_words(prior | {"scale": [2.0, 1.0]}, False)
