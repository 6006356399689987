"""A posterior given rows of new tasks, without drawing anew: against a fit to all rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import bayesmeta as bm
from bayesmeta.posterior.mixture import mixture_quantile
from bayesmeta.posterior.reweighted import shares_given

FORMULA = "y ~ 1 + (1 | shop)"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Eight shops."""
    rng = np.random.default_rng(3)
    shop = np.arange(8).repeat(6)
    y = rng.normal(0, 1, 8)[shop] + rng.standard_normal(48)
    return pd.DataFrame({"shop": shop.astype(str), "y": y})


@pytest.fixture(scope="module")
def fitted(table: pd.DataFrame) -> bm.FittedPosterior:
    found = bm.fit(table, FORMULA, method="posterior", random_seed=1)
    assert isinstance(found, bm.FittedPosterior)
    return found


@pytest.mark.filterwarnings("ignore::bayesmeta.NewTaskWarning")
@pytest.mark.parametrize("rewards", [False, True])
def test_rows_of_new_tasks_move_the_prior(
    rewards: bool, table: pd.DataFrame, fitted: bm.FittedPosterior
) -> None:
    """Two high shops: the same predictions as from a fit with their rows, within a twentieth of a
    deviation (these draws are worth 1,200, so that their mean alone is known to a thirtieth). With
    equal parts of the draws they are off by nine. Of both shops, an old one and an unknown one."""
    own = pd.DataFrame({"shop": ["a", "a", "b", "b"], "y": [2.5, 4.5, 3.0, 3.0]})
    new = pd.DataFrame({"shop": ["a", "b", "3", "c"]})
    prior = bm.default_prior(fitted.stats)
    every = pd.concat([table, own])
    again = bm.fit(every, FORMULA, method="posterior", random_seed=2, prior=prior)
    wanted = again.predict(new, rewards=rewards).iloc[:, :4]
    found = fitted.predict(new, given=own, rewards=rewards).iloc[:, :4]
    assert ((found - wanted).abs().div(wanted["sd"], axis=0) < 0.05).all(axis=None)


def test_shares_are_by_likelihood(fitted: bm.FittedPosterior) -> None:
    """One row of a new task: x ~ N(mu, Sigma + sigma^2)."""
    one = bm.TaskStatistics(np.ones((1, 1, 1)), np.array([[2.0]]), np.ones(1), np.array([4.0]))
    draws = fitted.tree["posterior"].to_dataset()
    mu, var, noise = (draws[name].values.ravel() for name in ("mu", "Sigma", "sigma"))
    wanted = norm.pdf(2.0, mu, np.sqrt(var + noise**2))
    np.testing.assert_allclose(shares_given(fitted.tree, one), wanted / wanted.sum(), rtol=1e-9)


def test_rows_far_from_all_draws_are_told(fitted: bm.FittedPosterior) -> None:
    """Where the shares are worth few draws, say to fit all rows together."""
    far = pd.DataFrame({"y": [60.0, 61.0, 62.0]})
    with pytest.warns(bm.FewDrawsWarning, match="fit all rows together"):
        fitted.predict(np.ones((1, 1)), given=far)


def test_quantiles_of_unequal_parts() -> None:
    """Parts of 2 and 1 are those of a list that has the first twice; also of points, and beside
    parts that count for nothing."""
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(30, 3)), np.exp(rng.normal(size=(30, 3)))
    parts = np.append(np.where(np.arange(30) % 2, 2.0, 1.0), 0.0) / 45
    twice = np.arange(30).repeat(np.where(np.arange(30) % 2, 2, 1))
    more, wide = np.vstack([mean, np.full((1, 3), 1e6)]), np.vstack([sd, np.ones((1, 3))])
    for share in (0.025, 0.5, 0.9):
        found = mixture_quantile(more, wide, share, parts)
        np.testing.assert_allclose(found, mixture_quantile(mean[twice], sd[twice], share))
        points = mixture_quantile(more, np.zeros_like(wide), share, parts)
        wanted = np.quantile(mean[twice], share, axis=0, method="inverted_cdf")
        np.testing.assert_array_equal(points, wanted)
