"""The kernels of the collapsed likelihood against matrices written out in full."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmeta.estimators.likelihood import CHUNK, evaluate, in_threads, pack
from bayesmeta.kernels.estep import estep
from bayesmeta.kernels.layout import LANES, EachTask, Parameters
from bayesmeta.statistics import TaskStatistics
from tests.helpers import Problem


@pytest.mark.parametrize("dim", range(1, 11))
def test_sums_over_tasks(dim: int) -> None:
    """Scores, their squares, weights, and the likelihood; grams may be singular, tasks empty."""
    made = Problem(dim, dim, LANES + 5)
    (chunk,) = pack(made.stats, np.eye(dim)).chunks
    assert chunk.grams.shape[1] == 2 * LANES
    scores, weights = np.empty_like(chunk.moments), np.empty_like(chunk.grams)
    variance = 1.3
    at = Parameters(made.mean, made.root, 1 / variance)
    sums = estep(chunk, at, EachTask(scores, weights))
    cov, lower = made.root @ made.root.T, np.tril_indices(dim)
    inverse = [np.linalg.inv(variance * np.eye(len(a)) + a @ cov @ a.T) for a in made.rows]
    data = list(zip(made.rows, made.rewards, inverse, strict=True))
    each_s = np.array([a.T @ o @ (x - a @ made.mean) for a, x, o in data])
    each_w = np.array([a.T @ o @ a for a, _, o in data])
    n = len(made.rows)
    where = np.array(
        [np.argmin(np.abs(chunk.moments.T - m).sum(axis=1)) for m in made.stats.moment]
    )
    assert len(set(where)) == n and (0 < chunk.regular < n or dim == 1)  # tasks of both kinds
    np.testing.assert_allclose(scores[:, where].T, each_s, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(weights[:, where].T, each_w[:, *lower], rtol=1e-8, atol=1e-9)
    empty = np.delete(np.arange(2 * LANES), where)
    assert not scores[:, empty].any() and not weights[:, empty].any()  # empty tasks add nothing
    np.testing.assert_allclose(sums.scores, each_s.sum(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sums.squares, (each_s.T @ each_s)[lower], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sums.weights, each_w.sum(axis=0)[lower], rtol=1e-9, atol=1e-9)
    steps = sum(len(x) for x in made.rewards)
    value = -0.5 * (steps * np.log(2 * np.pi * variance) + sums.logs + sums.quad)
    np.testing.assert_allclose(value, made.log_likelihood(made.mean, cov, variance), rtol=1e-11)
    none = np.empty((0, 0))
    for kept, alone in zip(sums, estep(chunk, at, EachTask(none, none)), strict=True):
        np.testing.assert_array_equal(kept, alone)  # the same bits, nothing of each task kept


@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_values_and_gradients(dim: int, restricted: bool) -> None:
    """The profile and the restricted likelihood, and finite differences of both."""
    made = Problem(10 + dim, dim, 20)
    packed, variance, eps = pack(made.stats, np.eye(dim)), 0.8, 1e-5
    cov = made.root @ made.root.T

    def value(cov: np.ndarray, variance: float) -> float:
        if restricted:
            return made.restricted(cov, variance)
        return made.log_likelihood(made.best_mean(cov, variance), cov, variance)

    point = evaluate(packed, made.mean, made.root, variance, restricted)
    np.testing.assert_allclose(point.value, value(cov, variance), rtol=1e-11)
    np.testing.assert_allclose(point.mean, made.best_mean(cov, variance), rtol=1e-8)
    np.testing.assert_allclose(point.information, made.information(cov, variance), rtol=1e-9)
    for i in range(dim):
        for j in range(i + 1):
            step = np.zeros((dim, dim))
            step[i, j] = step[j, i] = eps
            slope = (value(cov + step, variance) - value(cov - step, variance)) / (2 * eps)
            wanted = point.gradient[i, j] * (1 if i == j else 2)
            np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-6)
    up, down = (value(cov, variance * np.exp(sign * eps)) for sign in (1, -1))
    np.testing.assert_allclose((up - down) / (2 * eps), point.noise_gradient, rtol=1e-5, atol=1e-6)


def test_bits_do_not_depend_on_threads() -> None:
    """Sums are taken in fixed chunks and added up in order."""
    made = Problem(3, 3, 50)
    many = TaskStatistics.concatenate([made.stats] * (2 * CHUNK // 50 + 3))
    packed = pack(many, np.eye(3))
    assert len(packed.chunks) >= 3
    with in_threads(2) as each:
        two = evaluate(packed, made.mean, made.root, 1.0, True, each)
    one = evaluate(packed, made.mean, made.root, 1.0, True)
    for first, second in zip(one[:-1], two[:-1], strict=True):
        np.testing.assert_array_equal(first, second)
    for mine, yours in zip(one.tasks, two.tasks, strict=True):
        np.testing.assert_array_equal(mine.weights, yours.weights)


def test_a_zero_covariance_is_allowed() -> None:
    """Tasks that do not differ: W = V / sigma^2, no division by Sigma anywhere."""
    made = Problem(4, 3, 10)
    point = evaluate(pack(made.stats, np.eye(3)), made.mean, np.zeros((3, 3)), 2.0, False)
    np.testing.assert_allclose(point.information, made.stats.gram.sum(axis=0) / 2.0, rtol=1e-12)
    assert np.isfinite(point.value) and np.isfinite(point.gradient).all()
