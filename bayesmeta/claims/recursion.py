"""The posterior update, eq. (4): step by step and at once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from bayesmeta.claims.claim import Kind, Section, claim
from bayesmeta.claims.verdict import Level, Point, equal

Rows = list[list[Fraction]]


def _inverse(matrix: Rows) -> Rows:
    """By Gauss and Jordan, in fractions; for positive definite matrices, which need no swaps."""
    d = len(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(d))] for i, row in enumerate(matrix)]
    for i in range(d):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(d):
            if k != i:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[d:] for row in rows]


def _times(matrix: Rows, vector: list[Fraction]) -> list[Fraction]:
    return [sum((x * y for x, y in zip(row, vector, strict=True)), Fraction()) for row in matrix]


def _exact_gap(rng: np.random.Generator, d: int, squared: bool, late: int) -> Fraction:
    """Between the ways to the posterior, in fractions: step by step, from A'X at once, and from
    V theta + A' Xi at once."""
    steps, sigma = d + 3, Fraction(int(rng.integers(1, 9)), 5)
    variance, batch = sigma**2, sigma**2 if squared else sigma

    def draw(n: int, over: int) -> list[Fraction]:
        return [Fraction(int(k), over) for k in rng.integers(-9, 10, n)]

    half = [draw(d, 4) for _ in range(d)]
    prior = [
        [
            sum((x * y for x, y in zip(a, b, strict=True)), Fraction(i == j))
            for j, b in enumerate(half)
        ]
        for i, a in enumerate(half)
    ]
    mean, theta, noise = draw(d, 5), draw(d, 3), draw(steps, 7)
    actions = [draw(d, 3) for _ in range(steps)]
    rewards = [x + e for x, e in zip(_times(actions, theta), noise, strict=True)]
    cov, centre = prior, mean
    for action, reward in zip(actions, rewards, strict=True):
        before = _inverse(cov)
        cov = _inverse(
            [[before[i][j] + action[i] * action[j] / variance for j in range(d)] for i in range(d)]
        )
        known = _times(before, centre)
        centre = _times(cov, [known[i] + action[i] * reward / variance for i in range(d)])
    used = range(steps - late)
    gram = [
        [sum((actions[t][i] * actions[t][j] for t in used), Fraction()) for j in range(d)]
        for i in range(d)
    ]
    first = _inverse(prior)
    whole = _inverse([[first[i][j] + gram[i][j] / batch for j in range(d)] for i in range(d)])
    known, signal = _times(first, mean), _times(gram, theta)
    columns = [[actions[t][i] for t in used] for i in range(d)]
    moment = _times(columns, [rewards[t] for t in used])
    split = [x + y for x, y in zip(signal, _times(columns, [noise[t] for t in used]), strict=True)]
    gap = max(abs(whole[i][j] - cov[i][j]) for i in range(d) for j in range(d))
    for total in (moment, split):
        found = _times(whole, [known[i] + total[i] / batch for i in range(d)])
        gap = max(gap, *(abs(x - y) for x, y in zip(found, centre, strict=True)))
    return gap


@claim(
    id="posterior-recursion",
    proof="the paper",
    kind=Kind.IDENTITY,
    section=Section.COVARIANCE_ALIGNMENT,
    where="eq. (4), Section 2.2; eqs. (15)-(16), Appendix B",
    quote=(
        "Σ_t = (Σ_{t-1}⁻¹ + A_{t-1}A_{t-1}ᵀ/σ²)⁻¹ = (Σ⁻¹ + V_{t-1}/σ²)⁻¹; μ_t = "
        "Σ_t(Σ_{t-1}⁻¹μ_{t-1} + A_{t-1}x_{t-1}/σ²) = Σ_t(Σ⁻¹μ + A_{1..t-1}ᵀX_{t-1}/σ²)"
    ),
    statement="updating step by step and at once give the same posterior",
    lines="147, 705-745",
    mutations={"sigma for sigma^2": {"squared": False}, "one step late": {"late": 1}},
)
def posterior_recursion(level: Level, squared: bool = True, late: int = 0) -> list[Point]:
    """Step by step and at once: in exact fractions, and in floating point by the update of rank one
    that agents use, relative to the posterior."""
    rng = level.rng("posterior-recursion")
    points = []
    for d in (1, 2, 3):
        for case in range(level.pick(3, 12)):
            gap = _exact_gap(rng, d, squared, late)
            points.append(equal({"d": d, "exact": case}, float(gap), 0.0))
    for d in (2, 5, 10):
        for sigma in (1e-2, 1.0, 3.0):
            for radius in (0.01, 1.0):
                half = rng.standard_normal((d, d))
                prior = half @ half.T + 0.1 * np.eye(d)
                actions = radius * rng.standard_normal((2 * d, d)) / math.sqrt(d)
                start = rng.standard_normal(d)
                theta = rng.multivariate_normal(start, prior)
                rewards = actions @ theta + sigma * rng.standard_normal(2 * d)
                mean, cov = start, prior.copy()
                for action, reward in zip(actions, rewards, strict=True):
                    gain = cov @ action / (sigma**2 + action @ cov @ action)
                    mean = mean + gain * (reward - action @ mean)
                    cov = cov - np.outer(gain, action @ cov)
                used = slice(0, 2 * d - late)
                noise_var = sigma**2 if squared else sigma
                inverse = np.linalg.inv(prior)
                batch = np.linalg.inv(inverse + actions[used].T @ actions[used] / noise_var)
                total = inverse @ start + actions[used].T @ rewards[used] / noise_var
                off = float(np.abs(batch - cov).max() / np.abs(batch).max())
                off = max(off, float(np.abs(mean - batch @ total).max() / np.abs(mean).max()))
                points.append(equal({"d": d, "sigma": sigma, "a": radius}, off, 1e-7))
    return points
