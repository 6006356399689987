"""The edge of the events of Theorem 1 with matrices that are not alike in all directions.

Sigma_*, Sigma-hat - Sigma_* and V have eigenvectors of their own and do not commute. Norms and
smallest eigenvalues are those of an ``Edge``, so all events hold, with nothing to spare. One
direction, that of a corner of E_theta, is the worst for all three where they are turned little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.linalg import expm

from bayesmeta.checks import Array
from bayesmeta.claims.aligning import gap_of
from bayesmeta.claims.edges import Edge, all_edges
from bayesmeta.claims.verdict import Level, Where
from bayesmeta.theory.alignment import symmetric_power

TURNS = (1e-3, 0.1, 2.0)
"""How far the three eigenbases are turned from each other: hardly, a little, at random."""


@dataclass(frozen=True)
class Turned:
    """Matrices at an edge: Sigma_*, D = Sigma-hat - Sigma_*, V, and the corner of E_theta."""

    edge: Edge
    turn: float
    true: Array
    more: Array
    gram: Array
    corner: Array

    @property
    def where(self) -> Where:
        return {**self.edge.where, "turned by": self.turn}

    @cached_property
    def gap(self) -> Array:
        """B."""
        return gap_of(self.true, self.more, self.edge.sigma)

    @cached_property
    def aligned(self) -> Array:
        """V^K = V - B."""
        return self.gram - self.gap

    @cached_property
    def least(self) -> float:
        """lambda_min(V^K)."""
        return float(np.linalg.eigvalsh(self.aligned)[0])

    @cached_property
    def explored(self) -> float:
        """|V^-1/2 B V^-1/2|: below 1 where V > B."""
        turn = symmetric_power(self.gram, -0.5)
        return float(np.linalg.eigvalsh(turn @ self.gap @ turn)[-1])

    @cached_property
    def shift(self) -> Array:
        """(V^K)^-1/2 G / sigma, theta in the corner, the mean off in the direction that makes it
        largest: G = sigma^2 Sigma-hat^-1 (mu-hat - mu_* + D Sigma_*^-1/2 Z)."""
        sigma = self.edge.sigma
        inner = symmetric_power(self.aligned, -0.5) @ np.linalg.inv(self.true + self.more) * sigma
        far = math.sqrt(2 * self.edge.corner) * self.corner
        fixed = inner @ self.more @ symmetric_power(self.true, -0.5) @ far
        way = inner.T @ fixed if fixed.any() else np.linalg.svd(inner)[2][0]
        best = np.zeros(len(fixed))
        for _ in range(50):  # a convex function on a sphere: each step goes up
            best = fixed + inner @ way * (self.edge.mean / float(np.linalg.norm(way)))
            way = inner.T @ best
        return best

    @cached_property
    def log_ratio(self) -> float:
        """The largest log p(S) - log p(S^K) within E_xi that was found: |g + H y|^2/2 - |y|^2/2
        over |y| = c sqrt(d), H'H >= I, again by steps that go up."""
        turn = symmetric_power(self.aligned, -0.5) @ symmetric_power(self.gram, 0.5)
        g, radius = self.shift, math.sqrt(5 * self.edge.dim * self.edge.log)
        y = turn.T @ g
        y *= radius / float(np.linalg.norm(y))
        for _ in range(50):
            way = turn.T @ (g + turn @ y) - y
            y = way * (radius / float(np.linalg.norm(way)))
        return float((g + turn @ y) @ (g + turn @ y) - y @ y) / 2

    @cached_property
    def log_determinants(self) -> float:
        """ln(det V / det V^K), without cancellation."""
        turn = symmetric_power(self.gram, -0.5)
        return -float(np.log1p(-np.linalg.eigvalsh(turn @ self.gap @ turn)).sum())


@cache
def turned_edges(level: Level, corrected: bool = True) -> tuple[Turned, ...]:
    """For edges in two or more dimensions with a covariance that is off, two sets of matrices each:
    192 in a quick check."""
    rng = level.rng("turned")
    edges = [edge for edge in all_edges(level, corrected) if edge.dim > 1 and edge.cov > 0]
    return tuple(
        _turned(rng, edge, turn)
        for k, edge in enumerate(edges[:: level.pick(1, 4)])
        for turn in (TURNS[k % 3], TURNS[(k + 1) % 3])
    )


def _turned(rng: np.random.Generator, edge: Edge, turn: float) -> Turned:
    d = edge.dim
    corner = np.where(rng.random(d) < 0.5, -1.0, 1.0)
    base = np.linalg.qr(np.column_stack([corner, rng.standard_normal((d, d - 1))]))[0]
    spread = float(rng.choice([1e-3, 1.0, 30.0]))

    def matrix(least: float, others: Array) -> Array:
        skew = rng.standard_normal((d, d))
        basis = base @ expm(turn * (skew - skew.T) / math.sqrt(d))
        made: Array = (basis * np.concatenate([[least], others])) @ basis.T
        return (made + made.T) / 2

    def above(least: float) -> Array:
        return matrix(least, least * (1 + spread * rng.random(d - 1)))

    rest = edge.cov * rng.random(d - 1) * float(rng.random() < 0.5)  # of full rank, or of rank one
    true, more = above(edge.low), matrix(edge.cov, rest)
    return Turned(edge, turn, true, more, above(edge.action_min * d / 2), corner)
