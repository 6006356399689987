"""The search with many features: L-BFGS in coordinates that make directions alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from bayesmeta.estimators import search
from bayesmeta.estimators.likelihood import WIDE, evaluate, in_threads, pack, triangle
from bayesmeta.estimators.maximum import Options, maximise
from bayesmeta.estimators.scaled import coordinates
from bayesmeta.estimators.search import LIMIT, Search
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


@pytest.mark.parametrize("rank", [WIDE, 4])
def test_never_below_another_optimiser(rank: int) -> None:
    """scipy's L-BFGS-B in plain coordinates, as long as it takes; a singular optimum, too."""
    stats = many_features(1, WIDE, 120, rank)
    found = maximise(stats, 1.0, True, Options(errors=False))
    assert found.converged and (found.rank < WIDE or rank == WIDE)
    centred, _ = stats.centred()
    packed, (rows, columns) = pack(centred, np.eye(WIDE)), triangle(WIDE)

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        root = np.zeros((WIDE, WIDE))
        root[rows, columns] = x
        point = evaluate(packed, np.zeros(WIDE), root, 1.0, True)
        return -point.value, -2 * (point.gradient @ root)[rows, columns]

    start = 0.3 * np.eye(WIDE)[rows, columns]
    options = {"maxiter": 400, "maxfun": 500, "ftol": 1e-15, "gtol": 1e-5, "maxcor": 50}
    other = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    assert found.value > -other.fun - 1e-6


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
