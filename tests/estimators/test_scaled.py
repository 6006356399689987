"""The search with many features: L-BFGS in coordinates that make directions alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from bayesmeta.estimators import likelihood, search
from bayesmeta.estimators.likelihood import (
    CHUNK_WIDE,
    WIDE,
    evaluate,
    in_threads,
    pack,
    triangle,
)
from bayesmeta.estimators.maximum import Options, maximise
from bayesmeta.estimators.scaled import coordinates
from bayesmeta.estimators.search import LIMIT, Search
from bayesmeta.kernels.estep import second_pass
from bayesmeta.statistics import TaskStatistics


def many_features(seed: int, dim: int, tasks: int, rank: int) -> TaskStatistics:
    """Tasks of 2 d steps, whose parameters differ in ``rank`` directions."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((tasks, 2 * dim, dim))
    root = (np.tril(0.4 * rng.standard_normal((dim, dim)), -1) + np.eye(dim)) / np.sqrt(dim)
    root[:, rank:] = 0.0
    theta = 1 + rng.standard_normal((tasks, dim)) @ root.T
    rewards = (rows * theta[:, None]).sum(axis=2) + rng.standard_normal((tasks, 2 * dim))
    return TaskStatistics(
        np.einsum("nti,ntj->nij", rows, rows),
        np.einsum("nti,nt->ni", rows, rewards),
        np.full(tasks, 2.0 * dim),
        (rewards**2).sum(axis=1),
    )


@pytest.mark.parametrize("noise", [1.0, None])
@pytest.mark.parametrize(
    ("dim", "rank"), [(2, 2), (2, 1), (6, 6), (6, 2), (WIDE, WIDE), (WIDE, 4), (30, 30), (30, 5)]
)
def test_never_below_another_optimiser(dim: int, rank: int, noise: float | None) -> None:
    """scipy's L-BFGS-B in plain coordinates from three places; singular optima, too."""
    stats = many_features(1, dim, 120, rank)
    found = maximise(stats, noise, True, Options(errors=False))
    assert found.converged and (found.rank < dim or rank == dim)
    centred, _ = stats.centred()
    packed, (rows, columns) = pack(centred, np.eye(dim)), triangle(dim)

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        root = np.zeros((dim, dim))
        root[rows, columns] = x[: len(rows)]
        variance = float(np.exp(x[-1])) if noise is None else noise
        point = evaluate(packed, np.zeros(dim), root, variance, True)
        slope = 2 * (point.gradient @ root)[rows, columns]
        return -point.value, -np.append(slope, point.noise_gradient)[: len(x)]

    options = {"maxiter": 400, "maxfun": 500, "ftol": 1e-15, "gtol": 1e-5, "maxcor": 50}
    for size in (0.1, 0.3, 1.0):
        start = np.append(size * np.eye(dim)[rows, columns], 0.0)[: len(rows) + (noise is None)]
        other = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        assert found.value > -other.fun - 1e-6


def test_bits_do_not_depend_on_threads() -> None:
    """Many features and several chunks of tasks: the whole search, and standard errors."""
    stats = many_features(4, WIDE, 2 * CHUNK_WIDE + 3, 5)
    one, two = (maximise(stats, None, True, Options(threads=threads)) for threads in (1, 2))
    assert one.value == two.value and one.variance == two.variance
    np.testing.assert_array_equal(one.cov, two.cov)
    assert one.cov_sd is not None and two.cov_sd is not None
    np.testing.assert_array_equal(one.cov_sd, two.cov_sd)


def test_large_matrices_give_the_same_sums() -> None:
    """The second pass by BLAS and by the kernel."""
    packed = pack(many_features(5, 4, 70, 4).centred()[0], np.eye(4))
    tasks = evaluate(packed, np.zeros(4), 0.5 * np.eye(4), 1.0, True).tasks[0]
    shift, root = np.arange(4.0), np.triu(np.arange(16.0).reshape(4, 4))
    none = np.empty((0, 0))
    for one, two in zip(
        likelihood._second_pass(tasks, shift, root, none),
        second_pass(tasks, shift, root, none),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_both_searches_end_at_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scoring and L-BFGS, noise estimated: the same estimates, and standard errors."""
    stats = many_features(2, 3, 150, 3)
    one = maximise(stats, None, True, Options())
    monkeypatch.setattr(search, "WIDE", 1)
    two = maximise(stats, None, True, Options())
    assert one.converged and two.converged and one.rank == two.rank == 3
    assert two.value == pytest.approx(one.value, abs=1e-8)
    np.testing.assert_allclose(two.cov, one.cov, rtol=1e-4, atol=1e-6)
    assert one.cov_sd is not None and two.cov_sd is not None
    np.testing.assert_allclose(two.cov_sd, one.cov_sd, rtol=1e-4)


def test_coordinates_diagonalise() -> None:
    """Sigma is T B B'T' at the start, the information n times the identity, and slopes are those
    of finite differences."""
    stats, _ = many_features(3, 4, 50, 4).centred()
    packed, cov = pack(stats, np.eye(4)), np.diag([0.5, 0.3, 0.2, 0.1]) + 0.05
    with in_threads(1) as each:
        at = Search(packed, np.zeros(4), cov, 1.0, 1.0, True, True, each)
        scale = coordinates(at.point, at.cov, 50, packed.steps)
        x = np.zeros(11)
        half, change = scale.place(x)
        assert change == 0.0
        np.testing.assert_allclose(half @ half.T, cov, atol=1e-12)
        turned = scale.change.T @ at.point.information @ scale.change
        np.testing.assert_allclose(turned, 50 * np.eye(4), atol=1e-9)
        slope = scale.slope(at.point, half)
        for k in (0, 4, 10):
            x[:] = 0.0
            x[k] = 1e-4
            half, change = scale.place(x)
            up = evaluate(
                packed, np.zeros(4), np.linalg.cholesky(half @ half.T), np.exp(change), True
            )
            x[k] = -1e-4
            half, change = scale.place(x)
            down = evaluate(
                packed, np.zeros(4), np.linalg.cholesky(half @ half.T), np.exp(change), True
            )
            assert (up.value - down.value) / 2e-4 == pytest.approx(slope[k], rel=1e-4, abs=1e-5)
        assert at.climb(LIMIT)[1]
