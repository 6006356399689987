"""Predictions: of new tasks with rows of their own, and with the uncertainty of Sigma."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.fitted.prior import FittedPrior
from tests.helpers import ROOT

FORMULA = "Reaction ~ Days + (Days | Subject)"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """The sleep study of lme4."""
    return bm.load_data("sleepstudy")


@pytest.fixture(scope="module")
def sleep(frame: pd.DataFrame) -> FittedPrior:
    found = bm.fit(frame, FORMULA)
    assert isinstance(found, FittedPrior)
    return found


def test_a_new_task_with_rows_is_as_one_that_was_fitted(frame: pd.DataFrame) -> None:
    """With Sigma and the noise known and mu flat, by the whole table's equations: mu and the theta
    of the new task together, from the rows of the others and its own."""
    few, own = frame[frame["Subject"].isin([309, 310, 330, 331])], frame[frame["Subject"] == 308]
    fit = bm.fit(few, FORMULA)
    assert isinstance(fit, FittedPrior)
    own, noise, cov = own.head(4), float(fit.estimate.noise_sd or 0.0), fit.prior.cov
    both = pd.concat([few, own])
    days, subject = both["Days"].to_numpy(), both["Subject"].to_numpy()
    x = np.column_stack([np.ones(len(both)), days])
    within = (x @ cov @ x.T) * (subject[:, None] == subject) + noise**2 * np.eye(len(both))
    inverse = np.linalg.inv(within)
    spread = np.linalg.inv(x.T @ inverse @ x)
    mu = spread @ x.T @ inverse @ both["Reaction"].to_numpy()
    gain = cov @ (x * (subject == 308)[:, None]).T @ inverse
    theta = mu + gain @ (both["Reaction"].to_numpy() - x @ mu)
    rest = np.eye(2) - gain @ x
    wanted = cov - gain @ (x * (subject == 308)[:, None]) @ cov + rest @ spread @ rest.T
    found = fit.predict(pd.DataFrame({"Days": [9.0]}), given=own.assign(Subject="new")).iloc[0]
    row = np.array([1.0, 9.0])
    np.testing.assert_allclose(found["mean"], row @ theta, rtol=1e-8)
    np.testing.assert_allclose(found["sd"], np.sqrt(row @ wanted @ row), rtol=1e-8)


def test_uncertainty_makes_predictions_longer(sleep: FittedPrior) -> None:
    """As of tasks, whose rows are predicted alike; of a new task by that of its Sigma, too."""
    new = pd.DataFrame({"Days": [0.0]})
    for task in (308, None):
        none, mean, boot = (
            sleep.predict(new, task, uncertainty=how, replications=60)["sd"].iloc[0]
            for how in ("none", "mean", "bootstrap")
        )
        assert none < mean and abs(boot / mean - 1) < 0.2 and boot != mean
    own = sleep.tasks(uncertainty="bootstrap", replications=60).loc[(308, "intercept")]
    again = sleep.predict(new, 308, uncertainty="bootstrap", replications=60).iloc[0]
    np.testing.assert_allclose(
        again[["mean", "sd"]].astype(float), own[["estimate", "sd"]].astype(float)
    )
    drawn = sleep.redrawn(60)
    spread = drawn.cov[:, 0, 0].mean() + drawn.mean[:, 0].var()
    assert boot == pytest.approx(np.sqrt(spread))


def test_the_page_says_what_was_recorded() -> None:
    """The coverage of predictions of a new task, with ten tasks."""
    told = pd.read_csv(ROOT / "analyses/intervals/intervals.csv").set_index(["interval", "tasks"])
    mean, boot = (told.loc[(f"prediction ({one})", 10)] for one in ("mean", "bootstrap"))
    page = (ROOT / "docs/own-data.md").read_text()
    assert f"({mean['covered'] / mean['available']:.0%} cover with 10 of them)" in page
    assert f"covariance's ({boot['covered'] / boot['available']:.0%})" in page
