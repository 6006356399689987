"""MTTS: the posterior of gamma in theta_n = Phi_n gamma + delta_n, in limits and by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents import Hyper, Metadata
from bayesmeta.checks import InputError
from bayesmeta.simulation.metadata import play_with_metadata
from tests.agents.test_learners import HYPER, SETTING, TRUTH, after, planted


def test_without_metadata_it_is_adats() -> None:
    """Phi = I: the hyper-posterior of mu_*."""
    tasks = planted(7)
    setting = replace(SETTING, tasks=8)
    found = after(Metadata(np.tile(np.eye(2), (8, 1, 1)), HYPER), tasks, setting).prior
    expected = after(Hyper(), tasks, setting).prior
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-11)
    np.testing.assert_allclose(found.cov, expected.cov, rtol=1e-11)
    mean = after(Metadata(np.tile(np.eye(2), (8, 1, 1)), HYPER, "mean"), tasks, setting).prior
    np.testing.assert_array_equal(mean.cov, TRUTH.cov)


def test_it_is_the_mixed_model() -> None:
    """Brute force: all rewards stacked, A_n Phi_n gamma + A_n delta_n + noise; a column of zeros
    leaves its gamma at the prior."""
    rng, d, p, sigma = np.random.default_rng(2), 2, 3, SETTING.noise_sd
    designs = rng.standard_normal((5, d, p))
    designs[:, :, 2] = 0.0
    gamma = bm.GaussianPrior([0.5, -1.0, 0.3], [[1.0, 0.2, 0.1], [0.2, 2.0, 0.0], [0.1, 0.0, 1.5]])
    learner = Metadata(designs, gamma)
    memory = learner.start(replace(SETTING, tasks=5))
    blocks, rewards, total = [], [], np.zeros((0, 0))
    for design in designs[:4]:
        rows, x = rng.standard_normal((3, d)), rng.standard_normal(3)
        memory = learner.observe(memory, bm.agents.Finished(rows.T @ rows, rows.T @ x, 3, 0.0))
        blocks.append(rows @ design)
        rewards.append(x)
        own = rows @ TRUTH.cov @ rows.T + sigma**2 * np.eye(3)
        total = np.block([[total, np.zeros((len(total), 3))], [np.zeros((3, len(total))), own]])
    stacked, seen = np.concatenate(blocks), np.concatenate(rewards)
    precision = np.linalg.inv(gamma.cov) + stacked.T @ np.linalg.solve(total, stacked)
    shift = np.linalg.solve(gamma.cov, gamma.mean) + stacked.T @ np.linalg.solve(total, seen)
    mean, cov = learner.posterior(memory)
    np.testing.assert_allclose(cov, np.linalg.inv(precision), atol=1e-11)
    np.testing.assert_allclose(mean, np.linalg.solve(precision, shift), atol=1e-11)
    prior = learner.estimate(memory, SETTING, rng).prior
    np.testing.assert_allclose(prior.cov, TRUTH.cov + designs[4] @ cov @ designs[4].T)
    alone = bm.GaussianPrior([0.5, -1.0, 0.3], np.diag([1.0, 2.0, 1.5]))
    mean, cov = Metadata(designs, alone).posterior(memory)
    assert mean[2] == pytest.approx(0.3) and cov[2, 2] == pytest.approx(1.5)


def test_metadata_pay() -> None:
    """Where gamma says most of theta: MTTS below one prior for all, the oracle below MTTS."""
    rng = np.random.default_rng(0)
    family = bm.arms_family(arms=3, prior_sd=0.1, noise_sd=0.5, horizon=25, mean=np.zeros(3))
    gamma = bm.GaussianPrior(np.zeros(4), np.eye(4))
    total: dict[str, list[float]] = {}
    for seed in range(10):
        designs = rng.standard_normal((15, 3, 4))
        for name, regret in play_with_metadata(family, designs, gamma, random_seed=seed).items():
            total.setdefault(name, []).append(float(regret.sum()))
    means = {name: np.mean(values) for name, values in total.items()}
    assert means["oracle"] < means["MTTS"] < 0.7 * means["OSFA"]


def test_bad_metadata_are_refused() -> None:
    gamma = bm.GaussianPrior([0.0], [[1.0]])
    with pytest.raises(InputError, match="designs have 2 columns but gamma has dimension 1"):
        Metadata(np.ones((3, 2, 2)), gamma)
    with pytest.raises(InputError, match=r"^designs must have"):
        Metadata(np.ones((3, 2)), gamma)
    with pytest.raises(InputError, match=r"give a .d, p. matrix for every task"):
        Metadata(np.ones((3, 2, 1)), gamma).start(SETTING)
    with pytest.raises(InputError, match="use"):
        Metadata(np.ones((3, 2, 1)), gamma, "draw")
    with pytest.raises(InputError, match=r"^gamma must be"):
        Metadata(np.ones((3, 2, 1)), 3)
