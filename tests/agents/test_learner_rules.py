"""What learners are told, refuse, and when they fit again: to the number."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayesmeta.agents import learners
from bayesmeta.agents.learners import (
    KNOWN,
    KNOWN_MEAN,
    UNKNOWN,
    Finished,
    Given,
    Likelihood,
    Moments,
)
from bayesmeta.checks import InputError
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.gaussian import GaussianPrior
from tests.agents.test_learners import SETTING, TRUTH, after, planted

TOLD_NOTHING = replace(SETTING, truth=None)


@pytest.mark.parametrize(
    ("learner", "mean", "cov"),
    [
        (KNOWN, TRUTH.mean, TRUTH.cov),
        (KNOWN_MEAN, TRUTH.mean, 2.0 * np.eye(2)),
        (UNKNOWN, np.zeros(2), 2.0 * np.eye(2)),
        (Given(mean="zero"), np.zeros(2), TRUTH.cov),
        (Given(scale=0.0), TRUTH.mean, np.zeros((2, 2))),
        (Given(scale=3.0, cov="bound"), TRUTH.mean, 6.0 * np.eye(2)),
    ],
)
def test_what_a_given_prior_is(learner: Given, mean: np.ndarray, cov: np.ndarray) -> None:
    """mu_* or 0, Sigma_* or lambda_max I, times the scale; never learned."""
    for tasks in ([], planted(3)):
        found = after(learner, tasks)
        np.testing.assert_array_equal(found.prior.mean, mean)
        np.testing.assert_array_equal(found.prior.cov, cov)
        assert found.status is Status.GIVEN
    assert not learner.all_steps


def test_a_truth_is_asked_for_only_where_it_is_used() -> None:
    """The setting of a real task has none."""
    found = after(UNKNOWN, [], TOLD_NOTHING)
    np.testing.assert_array_equal(found.prior.cov, 2.0 * np.eye(2))
    np.testing.assert_array_equal(found.prior.mean, np.zeros(2))
    for learner in (KNOWN, KNOWN_MEAN, Given(mean="zero")):
        with pytest.raises(InputError, match="this agent knows part of the true prior"):
            learner.start(TOLD_NOTHING)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Given, {"mean": "bound"}),
        (Given, {"cov": "zero"}),
        (Given, {"scale": -0.1}),
        (Given, {"scale": math.nan}),
        (Moments, {"widening": -0.1}),
        (Moments, {"widening": math.inf}),
        (Likelihood, {"growth": 1.0}),
        (learners.Posterior, {"growth": 1.0}),
        (learners.Posterior, {"draws": 9}),
        (learners.Posterior, {"tune": 49}),
    ],
)
def test_settings_out_of_range_are_refused(kind: type, wrong: dict[str, Any]) -> None:
    """By name; what lies at the edge is taken."""
    with pytest.raises(InputError, match=f"{next(iter(wrong))}"):
        kind(**wrong)
    assert Moments(widening=0.0).widening == 0.0
    assert (learners.Posterior(draws=10, tune=50).draws, Likelihood(growth=1.5).growth) == (10, 1.5)


def test_defaults_are_those_of_the_roster() -> None:
    """As documented."""
    assert repr(Given()) == "Given(mean='known', cov='known', scale=1.0)"
    assert repr(Moments()) == "Moments(all_steps=False, widening=None)"
    assert repr(Likelihood()) == "Likelihood(restricted=True, growth=1.1)"
    shown = "Posterior(average=False, growth=1.3, draws=200, tune=300)"
    assert repr(learners.Posterior()) == shown
    assert Likelihood().all_steps and learners.Posterior().all_steps


def test_moments_of_too_few_tasks() -> None:
    """Two that determine theta are enough; one that does not is counted and passed over."""
    tasks = planted(3)
    singular = tasks[0]._replace(gram=np.diag([1.0, 0.0]), moment=np.array([1.0, 0.0]))
    learner = Moments(widening=1.0)
    one = after(learner, [tasks[0], singular])
    assert (one.status, one.passed_over, one.raw_cov) == (Status.TOO_FEW_TASKS, 1, None)
    np.testing.assert_array_equal(one.prior.cov, 2.0 * np.eye(2))
    two = after(learner, [tasks[0], singular, tasks[1]])
    assert (two.status, two.passed_over) == (Status.OK, 1)
    raised = after(replace(learner, widening=0.0), [tasks[0], tasks[1]])
    assert raised.status is Status.RAISED
    assert np.linalg.eigvalsh(raised.prior.cov)[0] == pytest.approx(SETTING.bounds.prior_min)


def test_when_a_likelihood_is_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """From two tasks on, whenever the tasks have grown by the factor; started at the last fit, with
    the variance of the noise."""
    seen: list[tuple[int, float, bool, Any, bool]] = []
    answers = [GaussianPrior(np.full(2, float(i)), np.eye(2)) for i in range(40)]

    def fit(stats: Any, variance: float, restricted: bool, options: Any) -> PriorEstimate:
        seen.append((len(stats), variance, restricted, options.start, options.errors))
        return PriorEstimate(answers[len(seen)], Status.OK)

    monkeypatch.setattr(learners, "largest_likelihood", fit)
    learner = Likelihood(restricted=False, growth=1.5)
    memory, found = learner.start(SETTING), []
    for task in planted(20):
        found.append(learner.estimate(memory, SETTING, np.random.default_rng(0)))
        memory = learner.observe(memory, task)
    assert [n for n, *_ in seen] == [2, 3, 5, 8, 12, 18]
    assert {one[1:3] for one in seen} == {(0.25, False)} and not any(one[4] for one in seen)
    assert seen[0][3] is None
    for i, (_, _, _, start, _) in enumerate(seen[1:], start=1):
        assert start[0] is answers[i].mean and start[1] is answers[i].cov
    assert [one.status for one in found[:3]] == [Status.TOO_FEW_TASKS] * 2 + [Status.OK]
    assert found[4].prior is answers[2] and found[5].prior is answers[3]


def test_a_likelihood_waits_for_steps_that_span_and_hides_no_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tasks in one direction leave it without an estimate; what the fit refuses is said."""

    def fit(*_: object) -> PriorEstimate:
        raise InputError("refused")

    monkeypatch.setattr(learners, "largest_likelihood", fit)
    learner, rng = Likelihood(), np.random.default_rng(0)
    flat = Finished(np.diag([1.0, 0.0]), np.array([1.0, 0.0]), 1, 1.0)
    memory = learner.start(SETTING)
    for _ in range(3):
        memory = learner.observe(memory, flat)
        assert learner.estimate(memory, SETTING, rng).status is Status.TOO_FEW_TASKS
    for task in planted(2):
        memory = learner.observe(memory, task)
    with pytest.raises(InputError, match="refused"):
        learner.estimate(memory, SETTING, rng)


def test_when_a_posterior_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first task, then whenever the tasks have grown by the factor, by one at least;
    each fit looks from the mode of the last, with a seed of its own."""
    seen: list[tuple[int, dict[str, Any]]] = []

    def draw(stats: Any, setting: Any, **options: Any) -> tuple[Any, Any, Any, bool]:
        seen.append((len(stats), options))
        means = np.array([[0.0, 0.0], [2.0, 4.0], [1.0, 2.0]]) + len(seen)
        return means, np.tile(np.eye(2), (3, 1, 1)), f"point {len(seen)}", len(seen) != 2

    monkeypatch.setattr("bayesmeta.posterior.online.draw_priors", draw)
    learner, rng = learners.Posterior(growth=1.5, draws=10, tune=60), np.random.default_rng(5)
    memory, found = learner.start(SETTING), []
    for task in planted(13):
        found.append(learner.estimate(memory, SETTING, rng))
        memory = learner.observe(memory, task)
    assert [n for n, _ in seen] == [0, 1, 2, 3, 5, 8, 12]
    assert [one["start"] for _, one in seen] == [None] + [f"point {i}" for i in range(1, 7)]
    assert all((one["draws"], one["tune"]) == (10, 60) for _, one in seen)
    seeds = [one["seed"] for _, one in seen]
    assert len(set(seeds)) == len(seeds) and seeds[0] == np.random.default_rng(5).integers(2**31)
    expected = [Status.POSTERIOR, Status.DIVERGENT, Status.POSTERIOR]
    assert [one.status for one in found[:3]] == expected
    assert {one.prior.mean[0] for one in found[8:12]} <= {6.0, 7.0, 8.0}
    average = replace(learner, average=True).estimate(memory, SETTING, rng)
    np.testing.assert_allclose(average.prior.mean, [8.0, 9.0])
    np.testing.assert_allclose(average.prior.cov, [[2.0, 2.0], [2.0, 5.0]])
