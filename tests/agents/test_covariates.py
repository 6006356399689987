"""The learner of theta_n ~ N(Phi_n gamma, Sigma) that is told neither gamma nor Sigma."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents import Covariates, Finished, Likelihood, Metadata
from bayesmeta.agents.learners import UNKNOWN
from bayesmeta.checks import InputError
from bayesmeta.simulation import play_with_metadata
from tests.agents.test_learners import SETTING, after, planted

GAMMA = np.array([1.0, -0.5, 2.0, 0.7])
"""Of an intercept for each of two features, and of two covariates."""


class Planted:
    """Tasks of theta_n = Phi_n gamma + delta_n, with their rows."""

    def __init__(self, tasks: int, seed: int = 0, steps: int = 6) -> None:
        rng, eye = np.random.default_rng(seed), np.eye(2)
        self.covariates = rng.standard_normal((tasks + 1, 2, 2))
        self.designs = np.concatenate([np.tile(eye, (tasks + 1, 1, 1)), self.covariates], axis=2)
        self.rows = rng.standard_normal((tasks, steps, 2))
        delta = rng.standard_normal((tasks, 2)) @ np.array([[0.6, 0.2], [0.0, 0.4]])
        theta = self.designs[:tasks] @ GAMMA + delta
        self.rewards = np.einsum("nsd,nd->ns", self.rows, theta)
        self.rewards += SETTING.noise_sd * rng.standard_normal(self.rewards.shape)
        self.finished = [
            Finished(a.T @ a, a.T @ x, steps, float(x @ x))
            for a, x in zip(self.rows, self.rewards, strict=True)
        ]
        self.setting = replace(SETTING, tasks=tasks)


def test_without_metadata_it_is_reml() -> None:
    """Phi = I: bit by bit the estimate of REML-TS; so is any constant Phi."""
    tasks = planted(12)
    setting, rng = replace(SETTING, tasks=12), np.random.default_rng(0)
    expected = after(Likelihood(), tasks, setting).prior
    for design in (np.eye(2), rng.standard_normal((2, 3))):
        found = after(Covariates(np.tile(design, (13, 1, 1)), "mean"), tasks, setting).prior
        np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_array_equal(found.cov, expected.cov)


def test_it_is_the_fit_of_a_table() -> None:
    """Covariates times features, as columns with coefficients that are the same in all tasks: the
    same Sigma, and the same gamma; Sigma agrees with what was planted as an interval has it."""
    import pandas as pd

    made = Planted(40)
    columns = np.einsum("nsd,ndp->nsp", made.rows, made.covariates[:40]).reshape(-1, 2)
    frame = pd.DataFrame(made.rows.reshape(-1, 2), columns=["a", "b"])
    frame["y"], frame["task"] = made.rewards.ravel(), np.arange(40).repeat(6)
    frame["u"], frame["v"] = columns.T
    stats = bm.TaskStatistics.from_frame(frame, "task", "y", ["a", "b"], fixed=["u", "v"])
    expected = bm.fit_prior(stats, SETTING.noise_sd)
    learner = Covariates(made.designs, "mean")
    found = after(learner, made.finished, made.setting)
    np.testing.assert_allclose(found.prior.cov, expected.prior.cov[:2, :2], rtol=1e-5)
    gamma = learner.gamma(learner_estimate(learner, made))
    np.testing.assert_allclose(gamma, expected.prior.mean, rtol=1e-6)
    assert expected.mean_cov is not None and expected.cov_sd is not None
    off = (gamma - GAMMA) / np.sqrt(np.diag(expected.mean_cov))
    assert np.abs(off).max() < 4
    truth = np.array([[0.36, 0.12], [0.12, 0.20]])
    assert np.abs((found.prior.cov - truth) / expected.cov_sd[:2, :2]).max() < 4
    np.testing.assert_allclose(found.prior.mean, made.designs[40] @ gamma, rtol=1e-9)


def learner_estimate(learner: Covariates, made: Planted) -> bm.PriorEstimate:
    """That of the mixed model inside."""
    memory = learner.start(made.setting)
    for task in made.finished:
        memory = learner.observe(memory, task)
    learner.estimate(memory, made.setting, np.random.default_rng(0))
    assert memory.estimate is not None
    return memory.estimate


def test_mtts_with_a_vague_prior_of_gamma_agrees() -> None:
    """MTTS told the estimated Sigma, gamma's prior next to flat: its prior for the next task, the
    error of the mean included."""
    made = Planted(25, seed=1)
    learner = Covariates(made.designs)
    found = after(learner, made.finished, made.setting).prior
    sigma = learner_estimate(learner, made).prior.cov[:2, :2]
    vague = bm.GaussianPrior(np.zeros(4), 1e6 * np.eye(4))
    told = replace(made.setting, truth=bm.GaussianPrior(np.zeros(2), sigma))
    expected = after(Metadata(made.designs, vague), made.finished, told).prior
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-4)
    np.testing.assert_allclose(found.cov, expected.cov, rtol=1e-4)
    bare = after(Covariates(made.designs, "mean"), made.finished, made.setting).prior
    np.testing.assert_allclose(bare.cov, sigma, rtol=1e-12)
    assert np.linalg.eigvalsh(found.cov - sigma)[0] > 0


def test_until_tasks_determine_gamma_it_knows_nothing() -> None:
    made = Planted(10, steps=1)
    few = after(Covariates(made.designs), made.finished[:3], made.setting)
    assert few.status is bm.Status.TOO_FEW_TASKS
    np.testing.assert_array_equal(few.prior.cov, UNKNOWN.start(SETTING).prior.cov)
    assert after(Covariates(made.designs), made.finished, made.setting).usable


def test_a_city_that_no_task_had_yet() -> None:
    """The next task is the first in its city: the player goes on as if it knew nothing; once a
    task in it is over it learns. Columns too close to tell apart are refused before it plays."""
    made = Planted(16, seed=3)
    city = np.zeros((17, 2, 1))
    city[12:, 0] = 1.0
    learner = Covariates(np.concatenate([made.designs, city], axis=2))
    first = after(learner, made.finished[:12], made.setting)
    assert first.status is bm.Status.TOO_FEW_TASKS
    np.testing.assert_array_equal(first.prior.cov, UNKNOWN.start(SETTING).prior.cov)
    assert after(learner, made.finished[:14], made.setting).usable
    again = made.designs[:, :, 2:3] + 1e-7 * np.random.default_rng(0).standard_normal((17, 2, 1))
    close = Covariates(np.concatenate([made.designs, again], axis=2))
    with pytest.raises(InputError, match="the columns gamma3 and gamma5 of designs"):
        close.start(made.setting)
    with pytest.raises(InputError, match="the largest entry of designs"):
        Covariates(1e160 * made.designs)


def test_columns_that_say_nothing_do_no_harm() -> None:
    """Zeros, a column twice, and other units of a covariate: the same prior."""
    made = Planted(15, seed=2)
    usual = after(Covariates(made.designs), made.finished, made.setting).prior
    zeros, again = np.zeros((16, 2, 1)), 1e3 * made.designs[:, :, 2:3]
    for more in (zeros, again):
        wider = np.concatenate([made.designs, more], axis=2)
        found = after(Covariates(wider), made.finished, made.setting).prior
        np.testing.assert_allclose(found.mean, usual.mean, rtol=1e-5)
        np.testing.assert_allclose(found.cov, usual.cov, rtol=1e-4, atol=1e-7)


def test_learning_gamma_and_sigma_pays() -> None:
    """Where gamma says most of theta: REML-MTTS below REML without metadata once it has learned,
    and next to MTTS, which is told Sigma, within a quarter of their difference."""
    rng = np.random.default_rng(0)
    family = bm.arms_family(arms=3, prior_sd=0.2, noise_sd=0.5, horizon=25, mean=np.zeros(3))
    gamma = bm.GaussianPrior(np.zeros(5), np.eye(5))
    late: dict[str, float] = {}
    for seed in range(4):
        eye = np.tile(np.eye(3), (80, 1, 1))
        designs = np.concatenate([eye, rng.standard_normal((80, 3, 2))], axis=2)
        for name, regret in play_with_metadata(family, designs, gamma, random_seed=seed).items():
            late[name] = late.get(name, 0.0) + float(regret[40:].sum())
    assert late["REML-MTTS"] - late["MTTS"] < 0.25 * (late["REML-TS"] - late["MTTS"])


def test_bad_designs_are_refused() -> None:
    with pytest.raises(InputError, match=r"^designs must have"):
        Covariates(np.ones((3, 2)))
    with pytest.raises(InputError, match=r"with at least one column"):
        Covariates(np.ones((3, 2, 0)))
    with pytest.raises(InputError, match=r"give a .d, p. matrix for every task"):
        Covariates(np.ones((3, 2, 1))).start(SETTING)
    with pytest.raises(InputError, match=r"give a .d, p. matrix for every task"):
        Covariates(np.ones((SETTING.tasks, 3, 1))).start(SETTING)
    wide = np.random.default_rng(0).standard_normal((SETTING.tasks, 2, 80))
    with pytest.raises(InputError, match="give designs with fewer columns"):
        Covariates(wide).start(SETTING)
    with pytest.raises(InputError, match="use"):
        Covariates(np.ones((3, 2, 1)), "draw")
