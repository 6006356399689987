"""What is believed before any task: the default in the data's units, and priors at odds with it."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import bayesmeta as bm
from bayesmeta.posterior.conflict import warn_if_at_odds
from bayesmeta.posterior.priors import PriorWarning


def tasks(n: int, seed: int = 0, unit: float = 1.0) -> bm.TaskStatistics:
    """Levels 120 with sd 20, slopes 3 with sd 1, hardly any noise: the spread can be seen."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-5, 5, (n, 8))
    theta = [120.0, 3.0] + rng.standard_normal((n, 2)) * [20.0, 1.0]
    reward = unit * (theta[:, :1] + theta[:, 1:] * x + 0.1 * rng.standard_normal((n, 8)))
    rows = np.stack([np.ones_like(x), x], axis=-1).reshape(-1, 2)
    return bm.TaskStatistics.from_arrays(np.repeat(np.arange(n), 8), reward.ravel(), rows)


@pytest.mark.parametrize(
    ("n", "least", "most"), [(2, 15.9, 16.1), (3, 4.3, 4.5), (200, 1.99, 2.01)]
)
def test_few_tasks_get_a_wider_prior(n: int, least: float, most: float) -> None:
    """The scale is the 95% upper confidence value of the spread, or twice the spread if that is
    more; one group of rows for all tasks, so that the pooled estimate is the mean of tasks."""
    rng = np.random.default_rng(n)
    gram = np.tile(np.array([[8.0, 1.0], [1.0, 60.0]]), (n, 1, 1))
    theta = [120.0, 3.0] + rng.standard_normal((n, 2)) * [20.0, 1.0]
    prior = bm.default_prior(bm.TaskStatistics(gram, np.einsum("nij,nj->ni", gram, theta)), 0.01)
    ratio = np.asarray(prior.scale) / theta.std(axis=0, ddof=1)
    assert (ratio > least).all() and (ratio < most).all()
    assert (ratio >= 0.999 * math.sqrt((n - 1) / chi2.ppf(0.05, n - 1))).all()
    np.testing.assert_allclose(prior.mean_sd, 2.5 * np.asarray(prior.scale))
    np.testing.assert_allclose(prior.mean, theta.mean(axis=0))


def test_the_noise_of_few_residuals() -> None:
    """The noise of few residuals is widened, too; that of many is twice its estimate."""
    two = bm.TaskStatistics.from_arrays([0, 0, 1], [1.0, 2.0, 4.0], np.ones((3, 1)))
    assert bm.default_prior(two).noise_scale == pytest.approx(15.95 * math.sqrt(0.5), rel=1e-3)
    many = tasks(50)
    left, freedom = many.residuals()
    assert bm.default_prior(many).noise_scale == pytest.approx(2 * math.sqrt(left / freedom))


def test_other_units_the_same_prior() -> None:
    """Rewards in thousandths have a prior a thousand times as wide."""
    one, other = bm.default_prior(tasks(4)), bm.default_prior(tasks(4, unit=1e3))
    for part in ("mean", "mean_sd", "scale", "noise_scale"):
        np.testing.assert_allclose(getattr(other, part), 1e3 * np.asarray(getattr(one, part)))


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (bm.LKJ(eta=1.0), "mean of x1 near 1.*prior at 0 ± 5"),
        (bm.KnownCovariance(np.diag([400.0, 1.0])), "mean of x1"),
        (bm.InverseWishart(0.0, 1.0, 5.0, np.eye(2)), "mean of x1"),
        (bm.LKJ(mean_sd=500.0, noise_scale=0.01), "noise is near 0.08981, its noise_scale 0.01"),
    ],
)
def test_a_prior_at_odds_with_the_data_is_noticed(prior: bm.LKJ, words: str) -> None:
    """Fixed numbers, data in other units."""
    with pytest.warns(PriorWarning, match=words):
        warn_if_at_odds(tasks(10), None, prior.settled(2))


def test_a_prior_in_the_units_of_the_data_is_not() -> None:
    """The default, with a part of it replaced, for two tasks and for many; a mean that is doubtful;
    and features that say nothing of the mean."""
    same = bm.TaskStatistics(np.ones((3, 2, 2)), np.ones((3, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for stats in (tasks(2), tasks(100)):
            own = replace(bm.default_prior(stats), eta=1.0)
            warn_if_at_odds(stats, None, own.settled(2))
            near = replace(own, mean=np.asarray(own.mean) * 1.01, mean_sd=1.0)
            warn_if_at_odds(stats, None, near.settled(2))
        warn_if_at_odds(same, 1.0, bm.LKJ(100.0, 0.1).settled(2))


@pytest.mark.parametrize("wrong", ["a", [1.0, "b"], None, [[1.0], [1.0, 2.0]], [1.0, 2.0, 3.0]])
def test_numbers_that_are_none(wrong: Any) -> None:
    """Named, as any other bad argument."""
    with pytest.raises(bm.InputError, match="scale must"):
        bm.LKJ(scale=wrong).settled(2)


def test_a_prior_at_odds_with_the_data_is_said_when_a_model_is_built() -> None:
    """Numbers in other units than the data's: a warning that shows the way out."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20, 6, 1))
    rewards = 500 * rows[..., 0] + rng.standard_normal((20, 6))
    stats = bm.TaskStatistics.from_arrays(
        np.repeat(np.arange(20), 6), rewards.ravel(), rows.reshape(-1, 1)
    )
    with pytest.warns(bm.PriorWarning, match="default_prior"):
        bm.build_model(stats, 1.0, prior=bm.LKJ(eta=1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bm.build_model(stats, 1.0)


def test_a_scale_far_too_small_is_said() -> None:
    """Tasks that spread by much more than the prior's scale: named, with the feature; not where the
    spread is that of noise."""
    stats = tasks(30)
    wide = bm.default_prior(stats)
    with pytest.warns(PriorWarning, match="tasks spread by about"):
        warn_if_at_odds(stats, None, replace(wide, scale=0.01).settled(stats.dim))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_at_odds(stats, None, wide.settled(stats.dim))
        rng = np.random.default_rng(5)
        rows = rng.standard_normal((40, 5, 1))
        alike = bm.TaskStatistics.from_arrays(
            np.repeat(np.arange(40), 5),
            rows[..., 0].ravel() + 10 * rng.standard_normal(200),
            rows.reshape(-1, 1),
        )
        small = replace(bm.default_prior(alike), scale=0.5)
        warn_if_at_odds(alike, None, small.settled(1))


def test_reprs_are_short() -> None:
    """Four digits, no array(...)."""
    assert repr(bm.LKJ(np.array([1 / 3, 2.0]))).startswith("LKJ(mean=[0.3333, 2], mean_sd=5,")
    assert repr(bm.KnownCovariance(np.eye(2))).startswith("KnownCovariance(cov=[[1, 0], [0, 1]],")
