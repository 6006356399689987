"""Quantiles of mixtures of normals, against their distribution functions; predictions by them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import bayesmeta as bm
from bayesmeta.posterior import mixture
from bayesmeta.posterior.mixture import mixture_quantile
from bayesmeta.report.console import rendered
from bayesmeta.report.posterior import as_json, print_posterior

SHARES = (0.001, 0.025, 0.5, 0.9, 0.999)


@pytest.mark.parametrize("share", SHARES)
def test_quantiles_solve_their_equation(share: float) -> None:
    """Of mixtures with two far peaks, of very unequal widths, and of one normal alone."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(50, 4)) * [1, 100, 1e-6, 0] + [0, 0, 1e3, 5]
    sd = np.exp(rng.normal(size=(50, 4)) * [1, 1, 3, 0])
    found = mixture_quantile(mean, sd, share)
    np.testing.assert_allclose(norm.cdf(found, mean, sd).mean(axis=0), share, atol=1e-8)
    np.testing.assert_allclose(found[3], norm.ppf(share, 5, 1), rtol=1e-8)


def test_quantiles_of_points() -> None:
    """Standard deviations of 0: a quantile of the points themselves."""
    mean = np.arange(11.0)[:, None]
    found = mixture_quantile(mean, np.zeros_like(mean), 0.5)
    assert abs(found[0] - 5) < 1e-6


@pytest.fixture(scope="module")
def fitted() -> bm.FittedPosterior:
    found = bm.fit(
        bm.load_data("sleepstudy"), "Reaction ~ Days + (Days | Subject)", method="posterior"
    )
    assert isinstance(found, bm.FittedPosterior)
    return found


def test_predictions_do_not_depend_on_other_rows(fitted: bm.FittedPosterior) -> None:
    """A new task's mean is that of the draws of mu, whatever else is asked."""
    rows = pd.DataFrame({"Days": [9.0, 9.0, 0.0], "Subject": ["new", 308, 308]})
    alone = fitted.predict(rows[["Days"]].head(1))
    with pytest.warns(bm.NewTaskWarning, match="new"):
        beside = fitted.predict(rows)
    np.testing.assert_allclose(*(one.iloc[0].astype(float) for one in (alone, beside)), rtol=1e-9)
    mu = fitted.tree["posterior"]["mu"].mean(["chain", "draw"]).values
    np.testing.assert_allclose(alone["mean"].iloc[0], mu @ [1, 9], rtol=1e-9)


def test_predictions_agree_with_tasks(fitted: bm.FittedPosterior) -> None:
    """On day 0 a reward is the task's intercept: mean, sd and ends alike."""
    label = next(one for one in fitted.stats.task_labels if str(one) == "308")
    own = fitted.tasks().xs(label, level=0)
    row = fitted.predict(pd.DataFrame({"Days": [0.0], "Subject": [308]})).iloc[0]
    wanted = own.iloc[0][["estimate", "sd", "low", "high"]].to_numpy(dtype=float)
    np.testing.assert_allclose(row.to_numpy(dtype=float)[:4], wanted, rtol=1e-9)
    assert (
        fitted.predict(pd.DataFrame({"Days": [0.0], "Subject": [308]}), rewards=True)["sd"].iloc[0]
        > 1.3 * row["sd"]
    )


def test_blocks_of_rows_do_not_matter(
    fitted: bm.FittedPosterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of tasks in any order, in blocks of three and of all: the same numbers."""
    frame = bm.load_data("sleepstudy").sample(frac=1.0, random_state=1).head(40)
    whole, tasks = fitted.predict(frame), fitted.tasks()
    monkeypatch.setattr(mixture, "MIXED", 3 * 4000)
    np.testing.assert_allclose(fitted.predict(frame).astype(float), whole.astype(float), rtol=1e-10)
    np.testing.assert_allclose(fitted.tasks().astype(float), tasks.astype(float), rtol=1e-10)


def test_many_tasks_are_of_some_draws_and_say_so(
    fitted: bm.FittedPosterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same draws in Python, in JSON and in print, each of which tells their number."""
    every = fitted.tasks()
    assert every.attrs["draws"] == 4000 and not as_json(fitted)["notes"]
    monkeypatch.setattr(mixture, "SOLVED", 18 * 100)
    anew = bm.FittedPosterior(fitted.design, fitted.tree)
    some, told = anew.tasks(), as_json(anew)
    assert some.attrs["draws"] == 100
    assert any("by 100 of the 4000 draws" in note for note in told["notes"])
    listed = [one["mean"] for one in told["task_estimates"]]
    assert np.ravel(listed).tolist() == some["estimate"].tolist()
    shown = rendered(lambda to: print_posterior(to, anew), plain_width=200)
    assert "by 100 of the 4000 draws" in shown
    gap = (some["estimate"] - every["estimate"]).abs() / every["sd"]
    assert 0 < gap.max() < 0.3
