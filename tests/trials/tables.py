"""Random small tables, and the largest likelihood a general optimiser finds for them.

Nothing here uses the package: densities are those of the rewards with their full covariance.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.optimize import minimize

FLOOR = 1e-9
"""The least noise variance that is tried, in units of the rewards' mean square: below it full
covariances have too few digits for a likelihood to 1e-6."""


class Table(NamedTuple):
    """Rows of tasks, and how to fit them."""

    rows: list[np.ndarray]
    rewards: list[np.ndarray]
    noise_sd: float | None
    restricted: bool


def table(seed: int) -> Table:
    """2-8 tasks of 1-5 rows and 1-3 features: all kinds of noise, rank, ties and repetition."""
    rng = np.random.default_rng([14, seed])
    while True:
        d, n = int(rng.integers(1, 4)), int(rng.integers(2, 9))
        most = int(rng.integers(1, 6))
        counts = rng.integers(1, most + 1, size=n)
        if rng.random() < 0.4:
            counts[:] = most  # balanced
        kind = rng.choice(["normal", "repeated", "few", "positive"], p=[0.5, 0.15, 0.2, 0.15])
        rows = [_rows(rng, int(count), d, str(kind)) for count in counts]
        if rng.random() < 0.5:
            for a in rows:
                a[:, 0] = 1.0
        if rng.random() < 0.3:
            unit = 10.0 ** rng.uniform(-2, 2, d)
            rows = [a * unit for a in rows]
        stacked = np.concatenate(rows)
        scaled = stacked / np.sqrt(np.mean(stacked**2, axis=0))
        if len(stacked) > d + 1 and np.linalg.svd(scaled)[1][-1] > 0.05:
            break
    size = np.sqrt(np.mean(stacked**2, axis=0))
    root = np.tril(rng.standard_normal((d, d))) * 10.0 ** rng.uniform(-1, 1)
    if rng.random() < 0.4:
        root[:, int(rng.integers(0, d)) :] = 0.0  # a singular covariance, or none
    mean = rng.standard_normal(d) * rng.choice([0.0, 1.0, 10.0])
    noise = 10.0 ** rng.uniform(-4, 1) * max(1e-2, float(np.abs(root).max()))
    rewards = []
    for a in rows:
        theta = (mean + root @ rng.standard_normal(d)) / size
        rewards.append(a @ theta + noise * rng.standard_normal(len(a)))
    if rng.random() < 0.2:
        spread = np.concatenate(rewards).std() + 1e-12
        rewards = [np.round(x * rng.choice([2.0, 5.0]) / spread) for x in rewards]  # ties
        noise *= 2.0 / spread
    told = None
    if seed % 4 >= 2:
        told = float(noise * rng.choice([0.1, 1.0, 3.0], p=[0.25, 0.5, 0.25]))
    return Table(rows, rewards, told, seed % 2 == 0)


def _rows(rng: np.random.Generator, count: int, d: int, kind: str) -> np.ndarray:
    if kind == "few":  # few distinct features
        return rng.integers(0, 3, size=(count, d)).astype(float)
    if kind == "positive":
        return rng.uniform(0.5, 1.5, size=(count, d))
    rows = rng.standard_normal((count, d))
    if kind == "repeated":
        rows = rows[rng.integers(0, max(1, count - 1), size=count)]
    return rows


@njit(cache=True)
def density(x, y, ends, cov, variance, restricted):  # type: ignore[no-untyped-def]
    """The (restricted) log-likelihood of rows ``x`` and rewards ``y`` of tasks ending at ``ends``,
    and its gradients in Sigma (symmetric) and in sigma^2, from the full covariance of each task."""
    d = x.shape[1]
    information, total = np.zeros((d, d)), np.zeros(d)
    inverses = []
    value = -0.5 * len(y) * math.log(2 * math.pi)
    first = 0
    for end in ends:
        a = x[first:end]
        lower = np.linalg.cholesky(a @ cov @ a.T + variance * np.eye(end - first))
        half = np.linalg.inv(lower)
        inverse = half.T @ half
        inverses.append(inverse)
        value -= np.log(np.diag(lower)).sum()
        information += a.T @ inverse @ a
        total += a.T @ (inverse @ y[first:end])
        first = end
    spread = np.linalg.inv(information)
    mean = spread @ total
    gradient, noise = np.zeros((d, d)), 0.0
    first = 0
    for j in range(len(ends)):
        a, inverse = x[first : ends[j]], inverses[j]
        gap = y[first : ends[j]] - a @ mean
        alpha = inverse @ gap
        value -= 0.5 * gap @ alpha
        score, va = a.T @ alpha, inverse @ a
        weight = a.T @ va
        gradient += 0.5 * (np.outer(score, score) - weight)
        noise += 0.5 * (alpha @ alpha - np.trace(inverse))
        if restricted:
            gradient += 0.5 * weight @ spread @ weight
            noise += 0.5 * np.trace(spread @ (va.T @ va))
        first = ends[j]
    if restricted:
        value += 0.5 * d * math.log(2 * math.pi)
        value -= np.log(np.diag(np.linalg.cholesky(information))).sum()
    return value, gradient, noise


@njit(cache=True)
def loss(x, logs, rows, rewards, ends, scale, known, restricted):  # type: ignore[no-untyped-def]
    """Minus the likelihood and its gradient, at the lower triangle of a root of Sigma in units of
    ``scale`` (with ``logs`` the logarithms of its diagonal) and log sigma^2, where not known."""
    d = len(scale)
    root = np.zeros((d, d))
    k = 0
    for i in range(d):
        for j in range(i + 1):
            root[i, j] = scale[i] * (math.exp(x[k]) if logs and i == j else x[k])
            k += 1
    variance = known if known > 0 else math.exp(x[k])
    value, gradient, noise = density(rows, rewards, ends, root @ root.T, variance, restricted)
    slope, out, k = 2 * gradient @ root, np.zeros(len(x)), 0
    for i in range(d):
        for j in range(i + 1):
            out[k] = -slope[i, j] * (root[i, i] if logs and i == j else scale[i])
            k += 1
    if known <= 0:
        out[k] = -noise * variance
    return -value, out


class Best(NamedTuple):
    """The best of many starts."""

    value: float
    variance: float
    at_floor: bool
    """whether the noise went to the least that was tried"""


def best_of(made: Table, starts: int = 50, seed: int = 0) -> Best:
    """L-BFGS-B from random places of every noise and rank, half of them in the root of Sigma,
    half with the logarithm of its diagonal; the best go on to the last digit, and the value where
    they end is exact."""
    rng = np.random.default_rng([seed, 50])
    rows, rewards = np.concatenate(made.rows), np.concatenate(made.rewards)
    ends, d = np.cumsum([len(x) for x in made.rewards]), rows.shape[1]
    square, known = float(np.mean(rewards**2)), (made.noise_sd or 0.0) ** 2
    level = max(square, known)
    scale = math.sqrt(level) / np.sqrt(np.mean(rows**2, axis=0))
    lowest, highest = math.log(FLOOR * square), math.log(100 * level)
    on_diagonal = np.equal(*np.tril_indices(d))
    data = (rows, rewards, ends, scale, known, made.restricted)

    def minus(x: np.ndarray, logs: bool) -> tuple[float, np.ndarray]:
        try:
            found: tuple[float, np.ndarray] = loss(x, logs, *data)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(x)
        return found

    def descend(start: np.ndarray, logs: bool, steps: int, ftol: float) -> tuple[float, np.ndarray]:
        bounds = [(-16.0, 4.6) if logs and where else (-100.0, 100.0) for where in on_diagonal]
        found = minimize(
            minus,
            start,
            (logs,),
            "L-BFGS-B",
            jac=True,
            bounds=bounds + [(lowest, highest)] * (not known),
            options={"maxiter": steps, "ftol": ftol, "gtol": 1e-8},
        )
        return float(found.fun), found.x

    ends_at = []
    for k in range(starts):
        logs = k % 2 == 1
        root = np.tril(rng.standard_normal((d, d))) * 10.0 ** rng.uniform(-3, 1, size=d)
        root[:, np.arange(d) >= rng.integers(0, d + 1)] *= 1e-4
        start = root[np.tril_indices(d)]
        if logs:
            start[on_diagonal] = np.log(np.abs(start[on_diagonal]) + 1e-6)
        if not known:
            start = np.append(start, rng.uniform(lowest, math.log(level)))
        ends_at.append((*descend(start, logs, 30, 1e-8), logs))
    ends_at.sort(key=lambda one: one[0])
    best: list[tuple[float, float]] = []
    for _, x, logs in ends_at:
        value, x = descend(x, logs, 1000, 1e-15)
        cov, variance = unpacked(x, logs, scale, known)
        true = exact(made, cov, variance)  # where digits are lost, the value may be far too high
        best.append((true, variance))
        if sum(true > max(best)[0] - 1e-6 for true, _ in best) == 3 or len(best) == 10:
            break
    value, variance = max(best)
    return Best(value, variance, not known and variance < 1.1 * FLOOR * square)


def unpacked(
    x: np.ndarray, logs: bool, scale: np.ndarray, known: float
) -> tuple[np.ndarray, float]:
    """Sigma and sigma^2."""
    d = len(scale)
    root = np.zeros((d, d))
    root[np.tril_indices(d)] = x[: d * (d + 1) // 2]
    if logs:
        np.fill_diagonal(root, np.exp(np.diag(root)))
    root *= scale[:, None]
    return root @ root.T, known or math.exp(x[-1])


Rational = list[list[Fraction]]


def exact(made: Table, cov: np.ndarray, variance: float) -> float:
    """The (restricted) log-likelihood, the mean at its best, in rational numbers: no digit is lost
    before its logarithms are taken."""
    sigma, d = _rational(cov), len(cov)
    information, total = _rational(np.zeros((d, d))), _rational(np.zeros((d, 1)))
    value, quad = 0.0, Fraction(0)
    for rows, rewards in zip(made.rows, made.rewards, strict=True):
        a, x = _rational(rows), _rational(rewards[:, None])
        omega = _times(_times(a, sigma), _turned(a))
        for i in range(len(x)):
            omega[i][i] += Fraction(variance)
        determinant, solved = _solve(
            omega, [left + right for left, right in zip(a, x, strict=True)]
        )
        value -= 0.5 * (_log(determinant) + len(x) * math.log(2 * math.pi))
        each = _times(_turned(a), solved)  # A'Omega^-1 A, and A'Omega^-1 x as a last column
        information = _plus(information, [row[:d] for row in each])
        total = _plus(total, [row[d:] for row in each])
        quad += _times(_turned(x), solved)[0][d]
    determinant, mean = _solve(information, total)
    quad -= _times(_turned(total), mean)[0][0]
    value -= 0.5 * float(quad)
    if made.restricted:
        value += 0.5 * (d * math.log(2 * math.pi) - _log(determinant))
    return value


def _rational(matrix: np.ndarray) -> Rational:
    return [[Fraction(float(entry)) for entry in row] for row in matrix]


def _turned(matrix: Rational) -> Rational:
    return [list(column) for column in zip(*matrix, strict=True)]


def _plus(one: Rational, two: Rational) -> Rational:
    return [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(one, two, strict=True)]


def _times(one: Rational, two: Rational) -> Rational:
    columns = _turned(two)
    return [
        [sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in columns]
        for row in one
    ]


def _log(positive: Fraction) -> float:
    return math.log(positive.numerator) - math.log(positive.denominator)


def _solve(matrix: Rational, right: Rational) -> tuple[Fraction, Rational]:
    """The determinant of a positive definite matrix, and its inverse times ``right``."""
    n, determinant = len(matrix), Fraction(1)
    rows = [one + two for one, two in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = rows[i][i]
        determinant *= pivot
        rows[i] = [entry / pivot for entry in rows[i]]
        for k in range(n):
            if k != i:
                factor = rows[k][i]
                rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i], strict=True)]
    return determinant, [row[n:] for row in rows]
