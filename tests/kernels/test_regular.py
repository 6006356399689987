"""Tasks with inverted grams: what it gains, which tasks qualify, how many digits are kept."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bayesmeta.estimators.likelihood import lay_out
from bayesmeta.kernels.estep import INFLATED, estep, estep_value
from bayesmeta.kernels.layout import LANES, Chunk, EachTask, Parameters
from bayesmeta.statistics import TaskStatistics
from tests.helpers import Problem
from tests.trials.tables import Rational, _log, _plus, _rational, _solve, _times, _turned

NONE = EachTask(np.empty((0, 0)), np.empty((0, 0)))


def tasks(seed: int, dim: int, count: int, apart: float = 1.0) -> TaskStatistics:
    """Tasks of 2 d + 2 steps, whose last feature is its first plus ``apart`` times its own."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, 2 * dim + 2, dim))
    if apart < 1 and dim > 1:
        rows[:, :, -1] = rows[:, :, 0] + apart * rows[:, :, -1]
    rewards = (rows * rng.standard_normal((count, 1, dim))).sum(axis=2)
    rewards += rng.standard_normal(rewards.shape)
    return TaskStatistics(
        np.einsum("nti,ntj->nij", rows, rows),
        np.einsum("nti,nt->ni", rows, rewards),
        np.full(count, 2.0 * dim + 2),
        (rewards**2).sum(axis=1),
    )


def all_general(chunk: Chunk) -> Chunk:
    """The same tasks without their inverses."""
    none = [part[..., :0] for part in chunk[3:7]]
    return Chunk(*chunk[:3], *none, 0)


def exact_sums(
    stats: TaskStatistics, mean: np.ndarray, root: np.ndarray, tau: float
) -> tuple[Fraction, np.ndarray, np.ndarray, np.ndarray]:
    """Sums over tasks at Sigma = root root' and noise 1 / tau, in rational numbers: of log|Omega|
    (but for count log tau) plus the quadratic form, of s = A'Omega^-1 (x - A mu), of s s', and of
    W = A'Omega^-1 A."""
    assert stats.energy is not None
    d, lower = len(mean), _rational(root)
    sigma, mu, noise = _times(lower, _turned(lower)), _rational(mean[:, None]), Fraction(tau)
    value = Fraction(0)
    scores, squares, weights = (_rational(np.zeros((d, k))) for k in (1, d, d))
    for gram, moment, energy in zip(stats.gram, stats.moment, stats.energy, strict=True):
        v, x = _rational(gram), _rational(moment[:, None])
        fitted = _times(v, mu)
        inner = _plus(_rational(np.eye(d)), _scaled(noise, _times(v, sigma)))
        w = _scaled(noise, _plus(x, _scaled(Fraction(-1), fitted)))
        right = [one + two for one, two in zip(_scaled(noise, v), w, strict=True)]
        determinant, solved = _solve(inner, right)
        s = [row[d:] for row in solved]
        level = _times(_turned(mu), _plus(_scaled(Fraction(-2), x), fitted))[0][0]
        value += Fraction(_log(determinant)) + noise * (Fraction(float(energy)) + level)
        value -= _times(_turned(w), _times(sigma, s))[0][0]
        scores, weights = _plus(scores, s), _plus(weights, [row[:d] for row in solved])
        squares = _plus(squares, _times(s, _turned(s)))
    one, two, three = (np.array(part, dtype=float) for part in (scores, squares, weights))
    return value, one.ravel(), two, three


def _scaled(factor: Fraction, matrix: Rational) -> Rational:
    return [[factor * entry for entry in row] for row in matrix]


def errors(stats: TaskStatistics, chunk: Chunk, at: Parameters) -> list[float]:
    """Of the value and of the sums of s, s s' and W, in units in which each W is near 1."""
    found = estep(chunk, at, NONE)
    value, scores, squares, weights = exact_sums(stats, at.mean, at.root, at.tau)
    lower = np.tril_indices(len(at.mean))
    unit = np.sqrt(np.diag(weights))
    both = np.outer(unit, unit)[lower]
    return [
        abs(float(Fraction(float(found.logs + found.quad)) - value)) / len(stats),
        float(np.abs((found.scores - scores) / unit).max()),
        float(np.abs((found.squares - squares[lower]) / both).max()),
        float(np.abs((found.weights - weights[lower]) / both).max()),
    ]


@pytest.mark.parametrize("ratio", [1e-8, 1e-4, 1.0, 1e2])
@pytest.mark.parametrize("dim", [1, 3])
def test_digits(dim: int, ratio: float) -> None:
    """Against rational numbers, Sigma being far below the noise of least squares or far above."""
    stats = tasks(dim, dim, 5)
    chunk = lay_out(stats, np.eye(dim), slice(None))
    assert chunk.regular == 5
    root = np.sqrt(ratio) * (np.tril(np.ones((dim, dim))) + np.eye(dim))
    at = Parameters(np.full(dim, 0.1), root, 0.9)
    assert max(errors(stats, chunk, at)) < 1e-12 * max(1.0, ratio)
    root[:, -1] = 0.0  # a singular Sigma
    assert max(errors(stats, chunk, at)) < 1e-12 * max(1.0, ratio)


def test_digits_at_the_gate() -> None:
    """Grams that just qualify, and Sigma so small that W is the gram: 1e-12 of it."""
    made = tasks(0, 2, 300, apart=0.07)
    inflation = np.diagonal(made.gram * np.linalg.inv(made.gram), axis1=1, axis2=2).max(axis=1)
    nearly = np.flatnonzero((inflation > INFLATED / 2) & (inflation < INFLATED))[:8]
    stats = TaskStatistics(made.gram[nearly], made.moment[nearly], None, np.full(8, 100.0))
    chunk = lay_out(stats, np.eye(2), slice(None))
    assert chunk.regular == 8
    at = Parameters(np.zeros(2), 1e-3 * np.eye(2), 1.0)
    assert 1e-14 < max(errors(stats, chunk, at)) < 1e-12


def test_which_tasks_qualify() -> None:
    """Singular and nearly singular grams do not, in any unit of features; order is kept."""
    good, bad, empty = tasks(1, 2, 70), tasks(2, 2, 60, apart=1e-3), np.zeros((2, 2, 2))
    gram = np.concatenate([bad.gram, good.gram, empty])
    moment = np.concatenate([bad.moment, good.moment, np.zeros((2, 2))])
    for unit in (1.0, 1e-6):
        change = np.diag([1.0, unit])
        chunk = lay_out(TaskStatistics(gram, moment), change, slice(None))
        assert chunk.regular == 70 and chunk.inverses.shape == (3, 2 * LANES)
        np.testing.assert_array_equal(chunk.moments[:, :70], (good.moment @ change).T)
        np.testing.assert_array_equal(
            chunk.moments[:, 2 * LANES :][:, :60], (bad.moment @ change).T
        )
        inverse = np.linalg.inv(change @ good.gram @ change)[:, *np.tril_indices(2)].T
        np.testing.assert_allclose(chunk.inverses[:, :70], inverse, rtol=1e-9)
    # one slow group of lanes either way: the inverses would only add a fast one
    few = lay_out(TaskStatistics(gram[50:80], moment[50:80]), np.eye(2), slice(None))
    assert few.regular == 0 and few.inverses.shape == (3, 0)


def test_uneven_covariances_go_the_general_way() -> None:
    """Where S loses digits, bit for bit what tasks without inverses give."""
    stats = tasks(3, 2, 10)
    chunk = lay_out(stats, np.eye(2), slice(None))
    uneven = np.array([[1e4, 0.0], [1e4, 0.0]])
    level = Parameters(np.zeros(2), 1e-2 * uneven, 1.0)
    steep = Parameters(np.zeros(2), uneven, 1.0)
    for at, same in ((level, False), (steep, True)):
        pairs = zip(estep(chunk, at, NONE), estep(all_general(chunk), at, NONE), strict=True)
        assert all(np.array_equal(one, other) for one, other in pairs) == same


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_value_alone(dim: int) -> None:
    """The same bits as with gradients, for tasks of both kinds."""
    made = Problem(dim, dim, 2 * LANES)
    chunk = lay_out(made.stats, np.eye(dim), slice(None))
    at = Parameters(made.mean, made.root, 0.7)
    found = estep(chunk, at, NONE)
    assert estep_value(chunk, at, np.empty(0)) == (found.logs, found.quad)
