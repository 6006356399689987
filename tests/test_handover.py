"""A prior handed over as made-up rows: ridge regression by hand, and two packages that have one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.checks import InputError

PRIOR = bm.GaussianPrior([1.0, -0.5, 2.0], [[1.0, 0.6, 0.0], [0.6, 0.8, -0.2], [0.0, -0.2, 0.3]])
SIGMA, RIDGE = 0.7, 0.05


def more_data(count: int = 15) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((count, 3))
    return rows, rows @ PRIOR.sample(rng) + SIGMA * rng.standard_normal(count)


def ours(rows: np.ndarray, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return PRIOR.posterior(rows.T @ rows, rows.T @ rewards, SIGMA)


def with_prior(rows: np.ndarray, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The made-up rows before the data."""
    made, told = PRIOR.rows(SIGMA, RIDGE)
    return np.concatenate([made, rows]), np.concatenate([told, rewards])


@pytest.mark.parametrize("ridge", [0.0, 1e-6, RIDGE, 0.28])
def test_ridge_regression_starts_at_the_prior(ridge: float) -> None:
    """gram + ridge I = sigma^2 Sigma^-1, and the moment is that times mu."""
    made, told = PRIOR.rows(SIGMA, ridge)
    gram = made.T @ made + ridge * np.eye(3)
    np.testing.assert_allclose(np.linalg.inv(gram) * SIGMA**2, PRIOR.cov, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(np.linalg.solve(gram, made.T @ told), PRIOR.mean, rtol=1e-11)


def test_mabwiser_has_our_posterior_and_new_arms_start_at_the_prior() -> None:
    """LinTS(alpha=sigma, l2_lambda=ridge): mean and alpha^2 A^-1, after 15 rows of one arm."""
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(["old", "new"], LearningPolicy.LinTS(alpha=SIGMA, l2_lambda=RIDGE), seed=1)
    made, told = PRIOR.rows(SIGMA, RIDGE)
    rows, rewards = more_data()
    decisions = ["old"] * 3 + ["new"] * 3 + ["old"] * len(rows)
    mab.fit(decisions, np.concatenate([told, told, rewards]), np.concatenate([made, made, rows]))
    for arm, (mean, cov) in {"old": ours(rows, rewards), "new": (PRIOR.mean, PRIOR.cov)}.items():
        model = mab._imp.arm_to_model[arm]
        np.testing.assert_allclose(model.beta, mean, rtol=1e-10)
        np.testing.assert_allclose(SIGMA**2 * model.A_inv, cov, rtol=1e-9, atol=1e-13)


def test_bayesianbandits_has_our_posterior() -> None:
    """NormalRegressor(alpha=ridge / sigma^2, beta=1 / sigma^2): its precision's upper triangle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from bayesianbandits import NormalRegressor

    rows, rewards = more_data()
    model = NormalRegressor(alpha=RIDGE / SIGMA**2, beta=1 / SIGMA**2)
    model.fit(*with_prior(rows, rewards))
    mean, cov = ours(rows, rewards)
    upper = np.triu(model.cov_inv_)
    precision = upper + upper.T - np.diag(np.diag(upper))
    np.testing.assert_allclose(model.coef_, mean, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.inv(precision), cov, rtol=1e-9, atol=1e-13)


def test_what_cannot_be_rows_is_refused() -> None:
    """A ridge narrower than the prior, a singular covariance, numbers that are none."""
    with pytest.raises(InputError, match=r"^ridge is 1, .* = 0.3\d+: set it so in the package"):
        PRIOR.rows(SIGMA, 1.0)
    with pytest.raises(InputError, match="singular covariance"):
        bm.GaussianPrior([0.0, 1.0], np.diag([1.0, 0.0])).rows(1.0, 0.1)
    for wrong in ({"noise_sd": 0.0}, {"ridge": -1.0}, {"ridge": np.nan}):
        with pytest.raises(InputError, match=f"^{next(iter(wrong))}"):
            PRIOR.rows(**({"noise_sd": 1.0, "ridge": 0.1} | wrong))
