"""What checks of claims simulate for themselves, against the package's own estimators.

The bounds of these claims are loose, so a verdict would not change if the estimate were another.
"""

from __future__ import annotations

import numpy as np
import pytest

from bayesmeta.claims.estimation import estimates
from bayesmeta.claims.meta import _estimates
from bayesmeta.claims.regimes import isotropic
from bayesmeta.estimators import moments
from bayesmeta.theory.constants import widening_constant_of

NOISE = 1.7


def planted(dim: int, tasks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates of theta, grams and their inverses."""
    rng = np.random.default_rng(dim)
    rows = rng.standard_normal((tasks, dim + 1, dim))
    grams = np.einsum("nti,ntj->nij", rows, rows)
    return 3 + rng.standard_normal((tasks, dim)), grams, np.linalg.inv(grams)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_counted_event_is_that_of_eq_11(dim: int) -> None:
    """The covariance of event-covariance, noise taken off, is the one that agents use."""
    theta, grams, inverse = planted(dim, 8)
    state = moments.empty(dim)
    for gram, one in zip(grams, theta, strict=True):
        moments.observe(state, gram, gram @ one)
    found = estimates(theta[None], inverse[None], NOISE)
    np.testing.assert_allclose(found[0], moments.covariance(state, NOISE**2), rtol=1e-9)


def test_theorem_2_is_played_with_the_prior_of_eq_12() -> None:
    """Before every task from the third on: the mean, eq. (10), and the widened covariance."""
    theta, grams, inverse = planted(1, 9)
    regime = isotropic(dim=1, horizon=50, tasks=9, noise_sd=NOISE, mean_norm=3.0)
    mean, cov = _estimates(theta.T, inverse[None, :, 0, 0], regime)
    state = moments.empty(1)
    for n, (gram, one) in enumerate(zip(grams, theta, strict=True)):
        if n >= 2:
            constant = widening_constant_of(regime)
            wide, _ = moments.widened(state, NOISE**2, regime.horizon, constant)
            np.testing.assert_allclose(mean[0, n], state.mean[0], rtol=1e-12)
            np.testing.assert_allclose(cov[0, n], wide[0, 0], rtol=1e-12)
            raw = moments.covariance(state, NOISE**2)[0, 0]
            radius = moments.widening_radius(n + 1, 1, regime.horizon, constant)
            np.testing.assert_allclose(cov[0, n] - radius, raw, atol=1e-9 * radius)
        moments.observe(state, gram, gram @ one)
