"""The alignment of two learners, the device of the proof of Theorem 1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import bayesmeta as bm
from bayesmeta.checks import Array
from bayesmeta.claims.jacobian import log_jacobian
from bayesmeta.theory import alignment


def learners(d: int, seed: int) -> tuple[bm.GaussianPrior, bm.GaussianPrior, np.random.Generator]:
    """A prior in use that is wider than the true one, as E_s asks."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((d, d))
    cov = half @ half.T + 0.5 * np.eye(d)
    wider = rng.standard_normal((d, d))
    used = bm.GaussianPrior(rng.standard_normal(d), cov + 0.02 * wider @ wider.T)
    return used, bm.GaussianPrior(rng.standard_normal(d), cov), rng


@pytest.mark.parametrize("d", [1, 2, 5])
def test_two_learners_are_brought_to_one_posterior(d: int) -> None:
    """Covariances by actions, means by noise; the maps have their inverses."""
    used, true, rng = learners(d, d)
    actions, theta = 2 * rng.standard_normal((d + 6, d)), rng.standard_normal(d)
    noise = 0.3 * rng.standard_normal(d + 6)
    gap = alignment.covariance_gap(used, true, 0.3)
    moved = alignment.aligned_actions(actions, gap)
    np.testing.assert_allclose(alignment.original_actions(moved, gap), actions, atol=1e-10)
    gram, other = actions.T @ actions, moved.T @ moved
    np.testing.assert_allclose(other, gram - gap, atol=1e-10)
    mean, cov = alignment.posterior_after(used, 0.3, gram, actions.T @ noise, theta)
    shifted = alignment.aligned_noise(used, true, 0.3, other, moved.T @ noise, theta)
    theirs, same = alignment.posterior_after(true, 0.3, other, shifted, theta)
    np.testing.assert_allclose(theirs, mean, atol=1e-10)
    np.testing.assert_allclose(same, cov, atol=1e-10)
    tilde = alignment.aligned_mean(used, true, 0.3, actions, noise, theta)
    again, _ = alignment.posterior_after(
        bm.GaussianPrior(tilde, true.cov), 0.3, other, moved.T @ noise, theta
    )
    np.testing.assert_allclose(again, mean, atol=1e-10)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 2), (7, 5)])
def test_the_jacobian_of_the_actions(shape: tuple[int, int]) -> None:
    """Automatic differentiation, differences and the paper's formula agree."""
    used, true, rng = learners(shape[1], 7)
    actions = 2 * rng.standard_normal(shape)
    gap = alignment.covariance_gap(used, true, 0.1)
    compare_jacobians(actions, gap)


@pytest.mark.parametrize("gap", [np.zeros((2, 2)), 0.3 * np.eye(2), np.diag([0.3, 0.6])])
def test_the_jacobian_where_eigenvalues_are_equal(gap: Array) -> None:
    """V = 2I: eigenvectors have no derivative there, roots do. With V - B = 2I, too."""
    square = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    compare_jacobians(square, gap)
    compare_jacobians(square @ alignment.symmetric_power(np.eye(2) + gap / 2, 0.5), gap)


def compare_jacobians(actions: Array, gap: Array) -> None:
    """All three ways."""
    found = alignment.jacobian(actions, gap)
    np.testing.assert_allclose(found, alignment.jacobian_by_differences(actions, gap), atol=1e-7)
    sign, log = np.linalg.slogdet(found)
    assert sign != 0 and log == pytest.approx(log_jacobian(actions, gap), abs=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_density_of_the_noise(d: int) -> None:
    """Against SciPy's; as printed it differs by what is lost: nothing at d = tau, sigma = 1."""
    used, true, rng = learners(d, d)
    actions = 2 * rng.standard_normal((d + 3, d))
    gram, noise = actions.T @ actions, actions.T @ (0.3 * rng.standard_normal(d + 3))
    found = alignment.noise_log_density(noise, gram, 0.3)
    assert found == pytest.approx(multivariate_normal.logpdf(noise, np.zeros(d), 0.09 * gram))
    plain = alignment.noise_log_density(noise, gram, 1.0)
    assert alignment.noise_log_density_printed(noise, gram, d) == pytest.approx(plain)
    lost = plain - alignment.noise_log_density_printed(noise, gram, d + 3)
    assert lost == pytest.approx(1.5 * math.log(2 * math.pi))
    moved = alignment.aligned_noise(used, true, 0.3, gram, noise, rng.standard_normal(d))
    ratio = alignment.noise_log_ratio(noise, moved, gram, 0.3)
    assert ratio == pytest.approx(found - alignment.noise_log_density(moved, gram, 0.3))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_density_of_the_actions(d: int) -> None:
    """The Gaussian's ratio is -Tr(Sigma^-1 B)/2 and SciPy's, the uniform law's 1; outside the ball
    there is none."""
    used, true, rng = learners(d, d)
    actions, gap = 2 * rng.standard_normal((d + 6, d)), alignment.covariance_gap(used, true, 0.3)
    moved, radius = alignment.aligned_actions(actions, gap), float(np.linalg.norm(actions))
    found = alignment.action_log_ratio(actions, moved, radius, true.cov)
    assert found == pytest.approx(-0.5 * np.trace(np.linalg.inv(true.cov) @ gap)) and found < 0
    law = multivariate_normal(np.zeros(d), true.cov)
    assert found == pytest.approx(float(np.sum(law.logpdf(actions) - law.logpdf(moved))))
    assert alignment.action_log_ratio(actions, moved, radius) == 0.0
    assert alignment.action_log_ratio(actions, 2 * radius * np.ones_like(moved), radius) == math.inf
    with pytest.raises(bm.InputError, match="beyond the radius 1,"):
        alignment.action_log_ratio(np.full((1, d), 2.0), moved, 1.0)


def test_priors_too_far_apart_do_not_align() -> None:
    """Where V - B is not positive definite there is nothing to map to; said so."""
    used, true, rng = learners(2, 3)
    gap = alignment.covariance_gap(used, true, 50.0)
    with pytest.raises(bm.InputError, match="V - B is not positive definite"):
        alignment.aligned_actions(0.01 * rng.standard_normal((5, 2)), gap)
    with pytest.raises(bm.InputError, match="V - B is not positive definite"):
        alignment.jacobian(0.01 * rng.standard_normal((5, 2)), gap)
    with pytest.raises(bm.InputError, match="V is not positive definite"):
        alignment.jacobian(np.array([[1.0, 0.0], [2.0, 0.0]]), -np.eye(2))
