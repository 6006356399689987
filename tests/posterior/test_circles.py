"""Trajectories of a standard normal: the right draws where the posterior is known exactly."""

from __future__ import annotations

import arviz_stats as azs
import numpy as np
import pytest
from scipy.stats import norm

import bayesmeta as bm
from bayesmeta.posterior.nutpie_model import LONGEST
from bayesmeta.posterior.nuts import MANY
from tests.helpers import size

pytestmark = pytest.mark.slow
DIM = MANY + 2


def test_a_gaussian_posterior() -> None:
    """Null: means and variances of mu, Sigma known, are the exact ones, each compared in its
    Monte-Carlo error. Steps stop short of half a circle, where draws would be opposites."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, DIM + 8, DIM))
    gram = np.einsum("nti,ntj->nij", rows, rows)
    theta = rng.standard_normal((40, DIM))
    moment = np.einsum("nti,nt->ni", rows, np.einsum("nti,ni->nt", rows, theta))
    moment += np.einsum("nti,nt->ni", rows, rng.standard_normal(rows.shape[:2]))
    prior = bm.KnownCovariance(np.eye(DIM), mean_sd=3.0)
    tree = bm.sample_posterior(
        bm.TaskStatistics(gram, moment), 1.0, prior=prior, method="nuts", chains=2
    )
    weights = np.linalg.inv(np.eye(DIM) + np.linalg.inv(gram))
    precision = weights.sum(axis=0) + np.eye(DIM) / 9
    least_squares = np.linalg.solve(gram, moment[..., None])
    mean = np.linalg.solve(precision, (weights @ least_squares).sum(axis=0))[:, 0]
    variance = np.diag(np.linalg.inv(precision))
    mu = tree["posterior"].to_dataset()[["mu"]]
    limit = norm.isf(size("models/circles") / 2 / (2 * DIM))
    for found, exact in ((mu, mean), ((mu - mean) ** 2, variance)):
        error = azs.mcse(found)["mu"].values
        z = (found["mu"].mean(["chain", "draw"]).values - exact) / error
        assert np.abs(z).max() < limit
    steps = tree["sample_stats"]["step_size"].values
    assert 0.5 * LONGEST < steps.mean() <= LONGEST * 1.1
    sampler = tree["sample_stats"]
    assert int(sampler["depth"].max()) <= 2  # three steps at most: these are long enough
    assert not bool(sampler["maxdepth_reached"].any())
