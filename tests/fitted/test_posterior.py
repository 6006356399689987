"""A posterior as a fitted model: the same methods, from draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.fitted.posterior import FittedPosterior


@pytest.fixture(scope="module")
def fit() -> FittedPosterior:
    """Sixty tasks with one coefficient."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": np.arange(60).repeat(6), "y": rng.normal(3, 1, 360)})
    frame["y"] += rng.normal(0, 2, 60).repeat(6)
    found = bm.fit(frame, task="shop", reward="y", intercept=True, method="posterior")
    assert isinstance(found, FittedPosterior)
    return found


def test_summary_and_intervals_are_those_of_the_draws(fit: FittedPosterior) -> None:
    """Means, equal tails, the shortest interval, and how many draws they are worth."""
    shown, mu = fit.summary(), fit.tree["posterior"]["mu"].values.ravel()
    assert shown.loc["mu[intercept]", "estimate"] == pytest.approx(mu.mean())
    np.testing.assert_allclose(fit.confint().loc["mu[intercept]"], np.quantile(mu, [0.025, 0.975]))
    eti, hdi = fit.confint("eti"), fit.confint("hdi")
    assert ((hdi["high"] - hdi["low"]) <= (eti["high"] - eti["low"]) * 1.01).all()
    assert (shown["rhat"] < 1.01).all() and (shown["ess"] > 100).all()
    assert "pass every check" in repr(fit) and "sigma" in fit._repr_html_()


def test_tasks_and_predictions_agree_with_reml(fit: FittedPosterior) -> None:
    """Within a tenth of a deviation on average; a new task is as uncertain as tasks differ."""
    reml = bm.fit(fit.design)
    ours, theirs = fit.tasks(), reml.tasks()
    gap = (ours["estimate"] - theirs["estimate"]) / theirs["sd"]
    assert abs(gap).mean() < 0.1 and not ours["conditional"].any()
    row = pd.DataFrame({"shop": [3, 999]})
    with pytest.warns(bm.NewTaskWarning, match="999"):
        found, other = fit.predict(row), reml.predict(row)
        rewards = fit.predict(row, rewards=True)
    np.testing.assert_allclose(found["sd"], other["sd"], rtol=0.15)
    assert (rewards["sd"] > found["sd"]).all()


def test_tasks_are_those_of_the_command(fit: FittedPosterior) -> None:
    """One home: the same numbers to the bit; they are the averages over every draw of the
    conditional means and variances, by formulas."""
    from bayesmeta.report.posterior import as_json

    ours, told = fit.tasks(), as_json(fit)["task_estimates"]
    assert [one["mean"][0] for one in told] == ours["estimate"].to_list()
    assert [one["sd"][0] for one in told] == ours["sd"].to_list()
    posterior = fit.tree["posterior"].to_dataset()
    mu, var, noise = (posterior[name].values.reshape(-1, 1) for name in ("mu", "Sigma", "sigma"))
    weight = 6 * var / (6 * var + noise**2)
    means = mu + weight * (fit.stats.moment[:, 0] / 6 - mu)
    np.testing.assert_allclose(ours["estimate"], means.mean(axis=0), rtol=1e-9)
    within = (var * (1 - weight)).mean()
    np.testing.assert_allclose(ours["sd"], np.sqrt(means.var(axis=0) + within), rtol=1e-9)
    assert ((ours["low"] < ours["estimate"]) & (ours["estimate"] < ours["high"])).all()
