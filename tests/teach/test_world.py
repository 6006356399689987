"""The plain functions behind the page: settings in, numbers and pictures out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.checks import InputError, is_covariance
from bayesmeta.teach import figures
from bayesmeta.teach.posterior import Draws
from bayesmeta.teach.questions import QUESTIONS
from bayesmeta.teach.setup import CONTROLS, Setup, shown
from bayesmeta.teach.world import (
    PRIORS,
    Cloud,
    cloud,
    compare,
    next_regret,
    one_task,
    playable,
    prior_of,
    rows,
)

DRAWS = Draws(
    np.random.default_rng(0).normal(2, 0.1, (60, 2)), np.tile(np.diag([1.0, 2.0]), (60, 1, 1)), True
)
"""Draws made up for pictures."""


def test_settings_are_checked() -> None:
    """Each setting may stand where its slider may, is read from an address, and is named when it is
    wrong."""
    for control in CONTROLS:
        assert getattr(Setup(), control.name) in control.stops
        for stop in (control.stops[0], control.stops[-1]):
            setup = Setup.of({control.name: str(stop), "other": "x"})
            assert getattr(setup, control.name) == stop and shown(control.name, stop)
            assert setup.changed() in ({}, {control.name: stop})
        with pytest.raises(InputError, match=f"^{control.name} must be"):
            Setup(**{control.name: 10 * control.stops[-1] + 1})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="noise_sd must be a number, got 'x'"):
        Setup.of({"noise_sd": "x"})
    with pytest.raises(InputError, match="seed"):
        Setup(seed=-1)


def test_tasks_stay_as_they_are() -> None:
    """More tasks leave the first ones; how long they last or explore does not move their thetas."""
    few, many = cloud(Setup(tasks=10)), cloud(Setup(tasks=50))
    np.testing.assert_array_equal(few.estimates, many.estimates[:10])
    for other in (Setup(horizon=50), Setup(explore=0), Setup(noise_sd=2.0)):
        np.testing.assert_array_equal(cloud(other).thetas, many.thetas)
    assert not np.array_equal(cloud(Setup(seed=1)).thetas, many.thetas)


def test_the_cloud_is_the_packages() -> None:
    """Least squares find theta where there is hardly any noise; estimates are ``fit_prior``'s; the
    rule of Section 6 stops at its threshold."""
    quiet = cloud(Setup(noise_sd=0.1, explore=200, horizon=200))
    assert np.abs(quiet.estimates - quiet.thetas).max() < 0.25  # its standard deviation is 0.06
    setup = Setup(explore=0, noise_sd=1.0, widening=3.0)
    found = cloud(setup)
    lowest = np.linalg.eigvalsh(found.stats.gram)[:, 0]
    assert (lowest >= 0.03).all() and (found.steps < 30).all()
    wide = bm.fit_prior(found.stats, 1.0, "moment-widened", widening=3.0, horizon=100)
    np.testing.assert_array_equal(found.fit("moment-widened").prior.cov, wide.prior.cov)
    row = rows(setup)["moment-widened"]
    assert row.mean_error == pytest.approx(np.linalg.norm(wide.prior.mean - 2.0))
    assert row.lowest == pytest.approx(np.linalg.eigvalsh(wide.prior.cov)[0])
    assert math.isnan(rows(setup)["moment"].correlation)


@pytest.mark.parametrize("name", PRIORS)
def test_one_task_is_thompson_sampling(name: str) -> None:
    """Each choice is best for what was sampled; regret is that of the choices; the last posterior
    is eq. (4) from all data, and theta and actions are the same whatever the prior."""
    steps = one_task(Setup(), name)
    t = np.arange(100)
    np.testing.assert_array_equal(
        steps.chosen, np.einsum("tkd,td->tk", steps.actions, steps.sampled).argmax(axis=1)
    )
    values = steps.actions @ steps.theta
    lost = values[t, steps.best] - values[t, steps.chosen]
    assert (lost >= 0).all() and (values.max(axis=1) == values[t, steps.best]).all()
    np.testing.assert_allclose(np.diff(steps.regret), lost, atol=1e-12)
    np.testing.assert_allclose(steps.means[0], prior_of(Setup(), name).mean)
    taken = steps.actions[t, steps.chosen]
    precision = np.linalg.inv(steps.prior.cov) + taken.T @ taken / 0.5**2
    np.testing.assert_allclose(steps.covs[-1], np.linalg.inv(precision), rtol=1e-8)
    np.testing.assert_array_equal(steps.theta, one_task(Setup(), "truth").theta)


def test_regret_of_the_next_task() -> None:
    """The truth has none more than itself; what is no covariance is played all the same; one who
    knows nothing has most; a posterior stands before it."""
    found = next_regret(Setup(explore=0, tasks=5), DRAWS.predicted())
    assert [*found] == [*PRIORS[:-1], "posterior", "nothing"]
    assert found["truth"].more == (0.0, 0.0, 0.0)
    many = next_regret(Setup(tasks=500))
    assert many["nothing"].more.low > 0
    assert many["reml"].more.high < many["nothing"].more.low
    with pytest.raises(InputError, match="prior"):
        prior_of(Setup(), "other")


def named(found: Cloud, width: float) -> set[str]:
    """The ellipses that have a name."""
    texts = figures.figure_cloud(found, DRAWS, width).axes[0].texts
    return {text.get_text() for text in texts} - {""}


def test_pictures() -> None:
    """Every estimate that is a covariance has its ellipse and its name, on a screen and a phone."""
    for width in (3.0, 8.0):
        assert named(cloud(Setup()), width) == {
            "truth",
            "eq. (11)",
            "eq. (12)",
            "REML",
            "posterior",
        }
        assert named(cloud(QUESTIONS[1].setup), width) == {"truth", "REML", "posterior"}
        for step in (0, 50, 100):
            assert len(figures.figure_step(one_task(Setup()), step, width).axes) == 3
        regret = figures.figure_regret(next_regret(Setup()), width)
        svg = figures.to_svg(regret)
        assert svg.startswith("<svg") and "no prior known" in svg


def test_the_truth_is_drawn_as_the_ellipse_that_holds_90_per_cent() -> None:
    """The heaviest line: all its points have the Mahalanobis distance of that probability."""
    axes = figures.figure_cloud(cloud(Setup())).axes[0]
    line = max(axes.lines, key=lambda one: one.get_linewidth()).get_xydata()
    prior = Setup().family().prior
    gap = line - prior.mean
    square = np.einsum("ti,ij,tj->t", gap, np.linalg.inv(prior.cov), gap)
    np.testing.assert_allclose(1 - np.exp(-square / 2), 0.9)  # chi-squared with 2 degrees


def test_an_ellipse_around_the_whole_picture_has_a_name_at_its_edge() -> None:
    """Draws may be far wider than all that decides the limits."""
    wide = Draws(DRAWS.mus, np.tile(1e4 * np.eye(2), (60, 1, 1)), True)
    axes = figures.figure_cloud(cloud(Setup()), wide).axes[0]
    assert "posterior" in {text.get_text() for text in axes.texts}
    assert axes.get_xlim()[1] < 50


def test_a_spread_of_zero_has_an_ellipse_and_no_correlation() -> None:
    """A line; only what has a negative eigenvalue has none, and is not played as it is."""
    flat = np.diag([1.0, 0.0])
    truth = Setup().family().prior
    assert is_covariance(flat) and math.isnan(compare(truth.mean, flat, truth).correlation)
    assert playable(bm.GaussianPrior(truth.mean, flat), Setup().family()).cov[1, 1] == 0.0
    bad = bm.GaussianPrior.unusable(truth.mean, np.diag([1.0, -0.1]))
    assert not is_covariance(bad.cov)
    assert np.linalg.eigvalsh(playable(bad, Setup().family()).cov)[0] > 0


@cache
def facts_of(k: int) -> dict[str, float]:
    """The numbers of an answer."""
    return QUESTIONS[k].facts(QUESTIONS[k].setup)


HOLD: tuple[Callable[[dict[str, float]], bool], ...] = (
    lambda f: f["least"] > 1.2 * f["theta"] and abs(f["moment"] / f["truth"] - 1) < 0.15,
    lambda f: f["few_noise"] > 2 and f["few_moment"] > 50 > 5 > f["many_moment"]
    and f["few_moment-widened"] > 50 and f["few_reml"] > 50,
    lambda f: f["wide_covers"] > 95 and f["plain_covers"] < 50
    and f["wide_more"] > 2 * f["plain_more"] > 0,
    lambda f: abs(f["tasks"] / f["base"] - 0.5) < 0.15
    and f["tasks"] < 0.8 * f["steps"] and f["steps"] < f["base"],
    lambda f: f["share"] > 50 and f["all"] > 0,
    lambda f: f["other"] > 1.5 * f["same"],
    lambda f: f["few_singular"] > 50 > 5 > f["many_singular"]
    and f["few_high"] - f["few_low"] > 1 > 0.4 > f["many_high"] - f["many_low"],
)  # fmt: skip
"""What the words of each answer say of its numbers."""


@pytest.mark.slow
@pytest.mark.parametrize("k", range(7))
def test_answers_are_true(k: int) -> None:
    """The words of an answer, held to the numbers that stand in it, for the data of the page and
    for others."""
    question, facts = QUESTIONS[k], facts_of(k)
    assert HOLD[k](facts), facts
    if k in (0, 4, 5):  # the others are over forty data sets
        assert HOLD[k](question.facts(replace(question.setup, seed=7)))
    assert "{" not in question.answer.format(**facts)


def test_the_second_question_shows_what_it_asks_about() -> None:
    """There eq. (11) has no ellipse, in the data that the page shows first."""
    assert cloud(QUESTIONS[1].setup).fit("moment").negative
    assert all(set(one.setup.changed()) for one in QUESTIONS)


@pytest.mark.slow
def test_more_tasks_or_steps_is_the_formula() -> None:
    """tr(Sigma + sigma^2 E V^-1) / N, by the draws of V: the errors of question 4 are its root."""
    question = QUESTIONS[3]
    facts = facts_of(3)
    for name, tasks, explore in (("base", 25, 20), ("tasks", 100, 20), ("steps", 25, 80)):
        found = cloud(replace(question.setup, tasks=tasks, explore=explore))
        noise = 0.5**2 * np.linalg.inv(found.stats.gram).trace(axis1=1, axis2=2).mean()
        expected = math.sqrt((2.0 + noise) / tasks)
        assert abs(facts[name] / expected - 1) < 0.3  # 40 data sets: a standard error of 0.08
