"""Standard errors of moments and of split halves, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.estimators import moments
from bayesmeta.estimators.noise import pooled_variance
from tests.helpers import Problem


def full_tasks(seed: int, tasks: int = 7, steps: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Rows (tasks, steps, 2) and rewards."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((tasks, steps, 2))
    theta = rng.standard_normal((tasks, 2))
    return rows, np.einsum("nti,ni->nt", rows, theta) + rng.standard_normal((tasks, steps))


def stats_of(rows: np.ndarray, rewards: np.ndarray) -> bm.TaskStatistics:
    n, steps, _ = rows.shape
    return bm.TaskStatistics.from_arrays(
        np.repeat(np.arange(n), steps), rewards.ravel(), rows.reshape(n * steps, 2)
    )


def test_an_estimated_noise_adds_its_own_doubt() -> None:
    """Var(s^2) = 2 sigma^4 / freedom, times the square of what s^2 multiplies in eq. (11)."""
    stats = stats_of(*full_tasks(0))
    variance, freedom = pooled_variance(stats)
    assert freedom == 7 * 5 - 7 * 2
    estimated = bm.fit_prior(stats, method="moment")
    told = bm.fit_prior(stats, np.sqrt(variance), "moment")
    assert estimated.cov_sd is not None and told.cov_sd is not None
    extra = 2 * variance**2 / freedom * np.linalg.inv(stats.gram).mean(axis=0) ** 2
    np.testing.assert_allclose(estimated.cov_sd**2 - told.cov_sd**2, extra, rtol=1e-6)


def test_the_mean_of_split_halves_has_the_covariance_of_a_mean() -> None:
    """That of the tasks' averages of both halves, unbiased, over n."""
    rows, rewards = full_tasks(1, tasks=4, steps=8)
    pair = tuple(stats_of(rows[:, half], rewards[:, half]) for half in (slice(4), slice(4, 8)))
    thetas = np.mean(
        [np.linalg.solve(half.gram, half.moment[:, :, None])[:, :, 0] for half in pair], axis=0
    )
    found = bm.fit_prior(pair, method="split")
    assert found.mean_cov is not None
    np.testing.assert_allclose(found.mean_cov, np.cov(thetas.T) / 4, rtol=1e-9)


def test_errors_of_a_clipped_covariance_are_not_given() -> None:
    """They would be those of the matrix before; where nothing was clipped they are given."""
    clipped = whole = 0
    for seed in range(6):
        stats = stats_of(*full_tasks(seed))
        for noise in (0.3, 3.0):
            found = bm.fit_prior(stats, noise, "moment-clipped")
            plain = bm.fit_prior(stats, noise, "moment")
            assert plain.cov_sd is not None
            if found.status is bm.Status.CLIPPED:
                clipped += 1
                assert found.cov_sd is None and found.negative > 0
            else:
                whole += 1
                np.testing.assert_array_equal(found.cov_sd, plain.cov_sd)
    assert clipped and whole


@pytest.mark.parametrize("scale", [1e-200, 1e-155])
def test_a_gram_whose_inverse_overflows_is_passed_over(scale: float) -> None:
    """Features so small that the inverse of their gram is no number: said, and counted."""
    made = Problem(0, 2, 1, most=2)
    state = moments.empty(2)
    gram = np.eye(2) * 2.0
    gram[1, 1] = scale**2
    inverse, theta = moments.observe(state, gram, made.stats.moment[0])
    assert np.isnan(inverse).all() and np.isnan(theta).all()
    assert list(state.tasks) == [0, 1]


def test_standard_errors_of_split_covariances() -> None:
    """Of the mean of the tasks' products, entry by entry; with two tasks there is none."""
    rng = np.random.default_rng(5)
    thetas = rng.standard_normal((2, 5, 2))

    def halves(tasks: int) -> tuple[bm.TaskStatistics, bm.TaskStatistics]:
        one, two = (
            bm.TaskStatistics(np.tile(np.eye(2), (tasks, 1, 1)), theta[:tasks]) for theta in thetas
        )
        return one, two

    found = bm.fit_prior(halves(5), method="split")
    gaps = thetas - thetas.mean(axis=1, keepdims=True)
    each = 5 / 4 * np.einsum("ni,nj->nij", *gaps)
    each = (each + each.transpose(0, 2, 1)) / 2
    expected = np.sqrt(((each - each.mean(axis=0)) ** 2).sum(axis=0) / 4 / 5)
    np.testing.assert_allclose(found.cov_sd, expected, rtol=1e-12)
    assert bm.fit_prior(halves(3), method="split").cov_sd is not None
    assert bm.fit_prior(halves(2), method="split").cov_sd is None


def test_the_longest_horizon() -> None:
    """Kernels count steps up to 10^12."""
    stats = stats_of(*full_tasks(0))
    found = bm.fit_prior(stats, 1.0, "moment-widened", widening=1.0, horizon=10**12)
    assert np.isfinite(found.prior.cov).all()
    with pytest.raises(bm.InputError, match="at most 1,000,000,000,000"):
        bm.fit_prior(stats, 1.0, "moment-widened", widening=1.0, horizon=10**12 + 1)
