"""What tasks say of the mean of their prior, against formulas and brute force."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.codes import Use
from bayesmeta.kernels.hyper import (
    HyperState,
    HyperTold,
    compressed,
    evidence,
    observe,
    posterior_of_mean,
    root_of_sum,
    task_prior,
)

VARIANCE = 0.36


def a_task(rng: np.random.Generator, d: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    rows = rng.standard_normal((steps, d))
    return rows, rows @ rng.standard_normal(d) + rng.standard_normal(steps)


def a_cov(rng: np.random.Generator, d: int, rank: int) -> np.ndarray:
    half = rng.standard_normal((d, rank))
    return half @ half.T


def upper(cov: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(GaussianPrior(np.zeros(len(cov)), cov).cholesky.T)


@pytest.mark.parametrize("steps", [0, 1, 2, 4, 30])
def test_compressed_rows_have_gram_and_moment(steps: int) -> None:
    """Also of a singular gram, and of features in very different units."""
    rng = np.random.default_rng(steps)
    rows, rewards = a_task(rng, 4, steps)
    rows = rows * [1.0, 1e6, 1e-6, 1.0]
    gram, moment = rows.T @ rows, rows.T @ rewards
    few, told = compressed(gram, moment)
    sizes = np.sqrt(np.diag(gram)) + 1e-100
    scaled = few / sizes
    np.testing.assert_allclose(scaled.T @ scaled, gram / np.outer(sizes, sizes), atol=1e-13)
    np.testing.assert_allclose(few.T @ told / sizes, moment / sizes, atol=1e-11)
    assert (np.abs(few).sum(axis=1) > 0).sum() == min(steps, 4)


@pytest.mark.parametrize("steps", [1, 3, 20])
@pytest.mark.parametrize("rank", [0, 2, 4])
def test_evidence_is_both_printed_forms(steps: int, rank: int) -> None:
    """P - P W P and P W B where S is invertible, G - G W G and B - G W B always."""
    rng = np.random.default_rng(10 * steps + rank)
    rows, rewards = a_task(rng, 4, steps)
    g, b = rows.T @ rows / VARIANCE, rows.T @ rewards / VARIANCE
    cov = a_cov(rng, 4, rank)
    precision, shift = evidence(rows.T @ rows, rows.T @ rewards, VARIANCE, upper(cov))
    w = cov @ np.linalg.inv(np.eye(4) + g @ cov)
    np.testing.assert_allclose(precision, g - g @ w @ g, atol=1e-10 * np.abs(g).max())
    np.testing.assert_allclose(shift, b - g @ w @ b, atol=1e-10 * np.abs(b).max())
    if rank == 4:
        p = np.linalg.inv(cov)
        np.testing.assert_allclose(precision, p - p @ w @ p, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(shift, p @ w @ b, rtol=1e-7, atol=1e-9)


def test_evidence_of_arms_is_the_form_of_arms() -> None:
    """N_a / (N_a s^2 + sigma^2), and the sum of rewards over the same; an arm never played: 0."""
    counts, sums, s = np.array([3.0, 0.0, 11.0]), np.array([1.5, 0.0, -2.0]), 0.3
    precision, shift = evidence(np.diag(counts), sums, VARIANCE, s * np.eye(3))
    np.testing.assert_allclose(precision, np.diag(counts / (counts * s**2 + VARIANCE)), rtol=1e-14)
    np.testing.assert_allclose(shift, sums / (counts * s**2 + VARIANCE), rtol=1e-14)


def test_evidence_keeps_its_digits_where_the_noise_is_small() -> None:
    """sigma^2 is 1e-20 of the prior: a task says S^-1; a difference of grams would be rounding."""
    rng = np.random.default_rng(0)
    rows, _ = a_task(rng, 3, 12)
    cov, theta = a_cov(rng, 3, 3), rng.standard_normal(3)
    precision, shift = evidence(rows.T @ rows, rows.T @ rows @ theta, 1e-20, upper(cov))
    np.testing.assert_allclose(precision, np.linalg.inv(cov), rtol=1e-9)
    np.testing.assert_allclose(shift, np.linalg.solve(cov, theta), rtol=1e-8)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_posterior_of_the_mean_is_the_joint_conditional(rank: int) -> None:
    """Brute force: 3 tasks of 4 steps, all rewards stacked, conditioned on at once; the prior of
    the task under way is its theta's, given the others, and so is its posterior: HierTS is AdaTS.
    """
    rng = np.random.default_rng(rank)
    d, cov, hyper = 3, a_cov(rng, 3, 3), a_cov(rng, 3, rank)
    centre = rng.standard_normal(d)
    tasks = [a_task(rng, d, 4) for _ in range(3)]
    told = HyperTold(VARIANCE, cov, upper(cov), centre, upper(hyper))
    state = HyperState(np.zeros((d, d)), np.zeros(d))
    for rows, rewards in tasks[:2]:
        observe(state, told, rows.T @ rows, rows.T @ rewards)
    mean, spread, root = task_prior(int(Use.MARGINAL), state, told, np.zeros(d))
    np.testing.assert_allclose(root.T @ root, spread, atol=1e-13)
    rows, rewards = tasks[2]
    prior = GaussianPrior.trusted(mean, spread, root.T)
    found = prior.trusted_posterior(rows.T @ rows, rows.T @ rewards, VARIANCE**0.5)

    stacked, seen = np.zeros((12, 4 * d)), np.concatenate([r for _, r in tasks])
    for j, (a, _) in enumerate(tasks):  # unknowns: theta_1, theta_2, theta_3, mu
        stacked[4 * j : 4 * j + 4, d * j : d * j + d] = a
    between = np.kron(np.ones((4, 4)), hyper)
    between[: 3 * d, : 3 * d] += np.kron(np.eye(3), cov)
    total = stacked @ between @ stacked.T + VARIANCE * np.eye(12)
    gain = between @ stacked.T @ np.linalg.inv(total)
    expected = np.tile(centre, 4) + gain @ (seen - stacked @ np.tile(centre, 4))
    left = between - gain @ stacked @ between
    task, mu = slice(2 * d, 3 * d), slice(3 * d, 4 * d)
    np.testing.assert_allclose(found[0], expected[task], atol=1e-12)
    np.testing.assert_allclose(found[1], left[task, task], atol=1e-12)

    observe(state, told, rows.T @ rows, rows.T @ rewards)  # HierTS: mu first, then theta
    m, half = posterior_of_mean(state.precision, state.shift, centre, told.hyper_root)
    np.testing.assert_allclose(m, expected[mu], atol=1e-12)
    np.testing.assert_allclose(half.T @ half, left[mu, mu], atol=1e-12)
    g, b, p = rows.T @ rows / VARIANCE, rows.T @ rewards / VARIANCE, np.linalg.inv(cov)
    w = np.linalg.inv(p + g)
    np.testing.assert_allclose(w @ (p @ m + b), found[0], atol=1e-11)
    np.testing.assert_allclose(w + w @ p @ half.T @ half @ p @ w, found[1], atol=1e-11)


def test_root_of_a_sum() -> None:
    """Upper triangular, also of singular parts; with nothing added the bits stay."""
    rng = np.random.default_rng(3)
    for one, other in ((3, 3), (1, 2), (0, 1), (2, 0)):
        first, second = a_cov(rng, 4, one), upper(a_cov(rng, 4, other))
        found = root_of_sum(upper(first), second)
        np.testing.assert_allclose(found.T @ found, first + second.T @ second, atol=1e-12)
        assert not np.tril(found, -1).any() and (np.diag(found) >= 0).all()
    np.testing.assert_array_equal(root_of_sum(upper(first), np.zeros((4, 4))), upper(first))
