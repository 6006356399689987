"""Every learner keeps the same promises: (learners × invariants), on planted tasks."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import first_steps
from bayesmeta.agents.hyper import Hyper
from bayesmeta.agents.learners import (
    KNOWN,
    KNOWN_MEAN,
    UNKNOWN,
    Finished,
    Given,
    Learner,
    Likelihood,
    Moments,
    missing_parts,
)
from bayesmeta.agents.policies import thompson
from bayesmeta.checks import InputError
from bayesmeta.environment import Bounds, Setting
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.gaussian import GaussianPrior
from tests.helpers import recipes

TRUTH = GaussianPrior([1.0, -0.5], [[1.0, 0.3], [0.3, 0.5]])
STEPS = 15
HYPER = GaussianPrior([0.5, 0.0], [[2.0, 0.5], [0.5, 1.0]])
SETTING = Setting(2, STEPS, 200, 0.5, Bounds(3.0, 0.5, 0.1, 2.0, 3.0), TRUTH, hyper=HYPER)

TOLD: dict[str, Learner] = {
    "known": KNOWN,
    "known mean": KNOWN_MEAN,
    "unknown": UNKNOWN,
    "scaled": Given(scale=0.2),
    "marginal": Given("hyper", "marginal"),
}
LEARNING: dict[str, Learner] = {
    "moments": Moments(widening=1.0),
    "moments, all steps": Moments(all_steps=True, widening=0.5),
    "moments, theoretical widening": Moments(),
    "reml": Likelihood(growth=1.0001),
    "ml": Likelihood(restricted=False, growth=1.0001),
    "hyper, marginal": Hyper(),
    "hyper, drawn": Hyper("draw"),
    "hyper, mean": Hyper("mean"),
    "of the recipe in CONTRIBUTING.md": recipes().Plain(),
}
LEARNERS = TOLD | LEARNING
each = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
each_that_learns = pytest.mark.parametrize("learner", LEARNING.values(), ids=LEARNING)


def planted(tasks: int, seed: int = 0, scale: float = 1.0) -> list[Finished]:
    """Tasks whose thetas come from the truth times ``scale``, noise likewise."""
    rng = np.random.default_rng(seed)
    found = []
    for theta in TRUTH.sample(rng, tasks):
        rows = rng.standard_normal((STEPS, 2))
        rewards = scale * (rows @ theta + SETTING.noise_sd * rng.standard_normal(STEPS))
        found.append(Finished(rows.T @ rows, rows.T @ rewards, STEPS, float(rewards @ rewards)))
    return found


def after(
    learner: Learner, tasks: list[Finished], setting: Setting = SETTING, seed: int = 0
) -> PriorEstimate:
    """What a learner says after these tasks."""
    memory = learner.start(setting)
    for task in tasks:
        memory = learner.observe(memory, task)
    return learner.estimate(memory, setting, np.random.default_rng(seed))


@each
def test_before_any_task_there_is_a_prior(learner: Learner) -> None:
    """Of the right dimension, with a covariance one can draw from."""
    prior = after(learner, []).prior
    assert prior.dim == 2 and np.linalg.eigvalsh(prior.cov)[0] >= 0
    assert np.isfinite(prior.sample(np.random.default_rng(0), 3)).all()


@each
def test_asking_twice_gives_the_same_answer(learner: Learner) -> None:
    """An estimate leaves the memory as it was, as far as the next estimate can tell."""
    memory = learner.start(SETTING)
    for task in planted(12):
        memory = learner.observe(memory, task)
    one, two = (learner.estimate(memory, SETTING, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(one.prior.mean, two.prior.mean)
    np.testing.assert_array_equal(one.prior.cov, two.prior.cov)
    assert one.status is two.status


@each
def test_arrays_of_a_task_are_not_kept(learner: Learner) -> None:
    """The simulator reuses them: overwritten after ``observe`` they change nothing."""
    memory = learner.start(SETTING)
    for task in planted(12):
        own = Finished(task.gram.copy(), task.moment.copy(), task.steps, task.energy)
        memory = learner.observe(memory, own)
        own.gram[:], own.moment[:] = np.nan, np.nan
    found = learner.estimate(memory, SETTING, np.random.default_rng(0))
    np.testing.assert_array_equal(found.prior.cov, after(learner, planted(12)).prior.cov)


@each
def test_memory_can_be_pickled(learner: Learner) -> None:
    """A player goes on elsewhere."""
    memory, tasks = learner.start(SETTING), planted(12)
    for task in tasks[:6]:
        memory = learner.observe(memory, task)
    memory = pickle.loads(pickle.dumps(memory))
    for task in tasks[6:]:
        memory = learner.observe(memory, task)
    found = learner.estimate(memory, SETTING, np.random.default_rng(0))
    np.testing.assert_array_equal(found.prior.mean, after(learner, tasks).prior.mean)


@each_that_learns
def test_the_order_of_tasks_does_not_matter(learner: Learner) -> None:
    """To rounding, and where a search ends."""
    tasks = planted(40)
    one, two = after(learner, tasks), after(learner, tasks[::-1])
    np.testing.assert_allclose(one.prior.mean, two.prior.mean, rtol=1e-6)
    np.testing.assert_allclose(one.prior.cov, two.prior.cov, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@each
def test_units_of_rewards_do_not_matter(learner: Learner, scale: float) -> None:
    """Rewards, noise and bounds times c: the mean is times c, the covariance times c^2."""
    bounds = SETTING.bounds
    other = replace(
        SETTING,
        noise_sd=scale * SETTING.noise_sd,
        bounds=replace(
            bounds,
            prior_min=scale**2 * bounds.prior_min,
            prior_max=scale**2 * bounds.prior_max,
            mean_norm=scale * bounds.mean_norm,
        ),
        truth=GaussianPrior(scale * TRUTH.mean, scale**2 * TRUTH.cov),
        hyper=GaussianPrior(scale * HYPER.mean, scale**2 * HYPER.cov),
    )
    expected = after(learner, planted(40))
    if isinstance(learner, Moments) and learner.widening is not None:  # c_w is a variance
        learner = replace(learner, widening=learner.widening * scale**2)
    found = after(learner, planted(40, scale=scale), other)
    np.testing.assert_allclose(found.prior.mean / scale, expected.prior.mean, rtol=1e-5)
    np.testing.assert_allclose(found.prior.cov / scale**2, expected.prior.cov, rtol=1e-4)
    assert found.status is expected.status


@each_that_learns
def test_the_planted_prior_is_found(learner: Learner) -> None:
    """From 200 tasks, within 0.3 in every entry of the mean and, before widening, covariance."""
    found = after(learner, planted(200))
    cov = found.prior.cov if found.raw_cov is None else found.raw_cov
    assert np.abs(found.prior.mean - TRUTH.mean).max() < 0.3
    assert np.abs(cov - TRUTH.cov).max() < 0.3


class Half:
    """A learner without its last two parts."""

    all_steps = True

    def start(self, setting: Setting) -> None:
        return None


@dataclass(frozen=True)
class Odd(Half):
    """One whose ``observe`` is no method."""

    observe: int = 3

    def estimate(self, memory: None, setting: Setting, rng: np.random.Generator) -> PriorEstimate:
        return KNOWN.start(setting)


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (Half(), "learner of agent mine lacks observe, estimate"),
        (Odd(), "learner of agent mine lacks observe;"),
        (object(), "lacks all_steps, start, observe, estimate"),
        (Moments, "got the class Moments; call it, as in Moments()"),
    ],
)
def test_a_learner_that_lacks_a_part_is_told_which(learner: object, words: str) -> None:
    """By name, when the row is made, also as the prior of the warm-up."""
    with pytest.raises(InputError, match=words.replace("(", r"\(").replace(")", r"\)")):
        Agent("mine", thompson(), first_steps(5), learner, "KTS")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="warmup_prior of agent mine"):
        Agent("mine", thompson(), first_steps(5), KNOWN, "KTS", warmup_prior=learner)  # type: ignore[arg-type]
    assert missing_parts(KNOWN) == []
