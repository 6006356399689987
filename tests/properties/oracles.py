"""Estimates and likelihoods the plain way: rational numbers, or dense matrices, task by task."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tests.strategies import Table

Matrix = list[list[Fraction]]


def inverse(matrix: Matrix) -> Matrix | None:
    """By Gauss and Jordan, exactly; None where it is singular."""
    d = len(matrix)
    work = [[*row, *(Fraction(int(i == j)) for j in range(d))] for i, row in enumerate(matrix)]
    for k in range(d):
        pivot = next((i for i in range(k, d) if work[i][k]), None)
        if pivot is None:
            return None
        work[k], work[pivot] = work[pivot], work[k]
        work[k] = [x / work[k][k] for x in work[k]]
        for i in range(d):
            if i != k and work[i][k]:
                work[i] = [x - work[i][k] * y for x, y in zip(work[i], work[k], strict=True)]
    return [row[d:] for row in work]


class Moments(NamedTuple):
    """Eqs. (9)-(11) of the tasks that determine their theta."""

    thetas: list[list[Fraction]]
    inverses: list[Matrix]
    used: list[int]
    mean: list[Fraction]
    scatter: Matrix
    """sum of (theta - mean)(theta - mean)'"""

    def cov(self, noise_sd: float) -> Matrix:
        """Eq. (11) as printed: scatter / (k - 1) less sigma^2 / k times the sum of V^-1."""
        k, d, variance = len(self.thetas), len(self.mean), Fraction(noise_sd) ** 2
        return [
            [
                self.scatter[a][b] / (k - 1) - variance / k * sum(v[a][b] for v in self.inverses)
                for b in range(d)
            ]
            for a in range(d)
        ]


def exact_moments(table: Table) -> Moments:
    """In rational numbers, from the rows themselves."""
    thetas, inverses, used = [], [], []
    d = table.dim
    for j in range(table.tasks):
        rows, rewards = table.rows(j)
        a = [[Fraction(x) for x in row] for row in rows.tolist()]
        x = [Fraction(value) for value in rewards.tolist()]
        gram = [[sum((r[p] * r[q] for r in a), Fraction(0)) for q in range(d)] for p in range(d)]
        back = inverse(gram)
        if back is None:
            continue
        moment = [sum((r[p] * y for r, y in zip(a, x, strict=True)), Fraction(0)) for p in range(d)]
        thetas.append(
            [sum((v * m for v, m in zip(row, moment, strict=True)), Fraction(0)) for row in back]
        )
        inverses.append(back)
        used.append(j)
    k = max(len(thetas), 1)
    mean = [sum((theta[p] for theta in thetas), Fraction(0)) / k for p in range(d)]
    gaps = [[t - m for t, m in zip(theta, mean, strict=True)] for theta in thetas]
    scatter = [
        [sum((gap[p] * gap[q] for gap in gaps), Fraction(0)) for q in range(d)] for p in range(d)
    ]
    return Moments(thetas, inverses, used, mean, scatter)


def scaled_condition(gram: np.ndarray) -> float:
    """The condition number of V_ij / sqrt(V_ii V_jj): free of the units of features."""
    lengths = np.sqrt(np.diag(gram))
    if not (lengths > 0).all():
        return math.inf
    values = np.linalg.eigvalsh(gram / lengths[:, None] / lengths)
    return float(values[-1] / values[0]) if values[0] > 0 else math.inf


def log_likelihood(table: Table, mean: np.ndarray, cov: np.ndarray, variance: float) -> float:
    """Gaussian densities of the rewards with their full covariance, task by task."""
    total = 0.0
    for j in range(table.tasks):
        a, x = table.rows(j)
        omega = variance * np.eye(len(x)) + a @ cov @ a.T
        lower = np.linalg.cholesky(omega)
        gap = np.linalg.solve(lower, x - a @ mean)
        total -= 0.5 * (len(x) * math.log(2 * math.pi) + gap @ gap)
        total -= float(np.log(np.diag(lower)).sum())
    return total


def information(table: Table, cov: np.ndarray, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """The sums of A'Omega^-1 A and of A'Omega^-1 x over tasks."""
    d = table.dim
    info, total = np.zeros((d, d)), np.zeros(d)
    for j in range(table.tasks):
        a, x = table.rows(j)
        omega = variance * np.eye(len(x)) + a @ cov @ a.T
        info += a.T @ np.linalg.solve(omega, a)
        total += a.T @ np.linalg.solve(omega, x)
    return info, total


def best_mean(table: Table, cov: np.ndarray, variance: float) -> np.ndarray:
    """Generalised least squares."""
    info, total = information(table, cov, variance)
    return np.linalg.solve(info, total)


def profile(table: Table, cov: np.ndarray, variance: float, restricted: bool) -> float:
    """The (restricted) log-likelihood with the mean at its best (or integrated out)."""
    value = log_likelihood(table, best_mean(table, cov, variance), cov, variance)
    if not restricted:
        return value
    info = information(table, cov, variance)[0]
    return value + 0.5 * (len(cov) * math.log(2 * math.pi) - float(np.linalg.slogdet(info)[1]))


def conditioned(
    mean: np.ndarray, cov: np.ndarray, rows: np.ndarray, rewards: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """theta given rewards, from their joint Gaussian: no formula of the package's."""
    cross = cov @ rows.T
    omega = rows @ cross + variance * np.eye(len(rows))
    gain = np.linalg.solve(omega, cross.T).T
    return mean + gain @ (rewards - rows @ mean), cov - gain @ cross.T
