"""Coordinates in which the posterior of many tasks is nearly Gaussian.

They are the inverse B of the Cholesky factor of Sigma + S, where S is the covariance of a typical
task's least squares; B (mu - m), where m is the pooled estimate; and log sigma. Were every task's
least squares equally good, B would be Bartlett's factor of a Wishart matrix, normal but for
chi-distributed diagonal entries, and B (mu - m) independent of it.

Where some coefficients are the same in all tasks, Sigma, S and B are of the others. Theirs have
coordinates F (mu_f - m_f), where F is an inverse root of their covariance by generalised least
squares, and B (mu_v - m_v - K (mu_f - m_f)) takes the place of B (mu - m): K is by how much
generalised least squares moves mu_v with mu_f, so that the two are nearly independent, wherever the
features have their origins.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array
from bayesmeta.posterior.defaults import pooled
from bayesmeta.posterior.density import log_posterior, prior_values
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.priors import KnownCovariance
from bayesmeta.posterior.taskdata import likelihood_value, task_data
from bayesmeta.posterior.varying import embedded
from bayesmeta.statistics import TaskStatistics

SINGULAR = 1e-12
"""Of the largest eigenvalue of Sigma, what the least must exceed for Sigma to have a density."""


class Split(NamedTuple):
    """mu, the inverse of B, Sigma, sigma, and whether B has a positive diagonal."""

    mean: Array
    factor: Array
    cov: Array
    noise_sd: Array
    positive: NDArray[np.bool_]


class Middle(NamedTuple):
    """Where the coordinates begin: m, the scatter of tasks, S and sigma^2; and of the coefficients
    that do not differ a root of their covariance (p, p), the inverse of F, and K (r, p)."""

    mean: Array
    scatter: Array
    offset: Array
    variance: float
    root: Array
    moves: Array


def middle_of(stats: TaskStatistics, noise_sd: float | None) -> Middle:
    """By the pooled estimate of all tasks."""
    mean, scatter, offset, variance = pooled(stats, noise_sd)
    vary, rest = np.flatnonzero(stats.differs), np.flatnonzero(~stats.differs)
    if not len(rest):
        return Middle(mean, scatter, offset, variance, np.empty((0, 0)), np.empty((len(mean), 0)))
    own, n = np.ix_(vary, vary), len(stats)
    total = stats.gram.sum(axis=0)[own] / n  # S and the scatter, with the others at the mean
    step = np.linalg.solve(total, (stats.moment - stats.gram @ mean)[:, vary].T).T
    scatter, offset = step.T @ step / max(n - 1, 1), variance * np.linalg.inv(total)
    # information W_j = A'(A Sigma A' + sigma^2 I)^-1 A of every task about mu
    wide = np.linalg.cholesky(scatter + offset)
    half = stats.gram[:, :, vary] @ wide
    inner = np.eye(len(vary)) * variance + wide.T @ half[:, vary]
    back = np.linalg.solve(inner, half.swapaxes(1, 2))
    info = (stats.gram - half @ back).sum(axis=0) / variance
    moves = -np.linalg.solve(info[own], info[np.ix_(vary, rest)])
    left = info[np.ix_(rest, rest)] + info[np.ix_(rest, vary)] @ moves
    root = np.linalg.inv(np.linalg.cholesky(left)).T
    return Middle(mean, scatter, offset, variance, root, moves)


def apart(problem: Problem) -> float:
    """By how many standard errors tasks scatter more widely than their noise alone would let them,
    in the direction in which they do so least."""
    middle = middle_of(problem.stats, problem.noise_sd)
    root = np.linalg.inv(np.linalg.cholesky(middle.offset))
    least = float(np.linalg.eigvalsh(root @ middle.scatter @ root.T)[0])
    return (1 - 1 / least) * math.sqrt(len(problem.stats) / 2)


class Coordinates:
    """A target for ``find_frame``: the log-density of mu, B and log sigma in these coordinates."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.data = problem, task_data(problem.stats)
        self.vary = np.flatnonzero(problem.stats.differs)
        self.rest = np.flatnonzero(~problem.stats.differs)
        self.dim, r = problem.stats.dim, len(self.vary)
        self.known = isinstance(problem.prior, KnownCovariance)
        self.noise_free = problem.noise_sd is None
        self.rows, self.columns = np.tril_indices(0 if self.known else r)
        self.size = self.dim + len(self.rows) + self.noise_free
        self.middle = middle_of(problem.stats, problem.noise_sd)
        self.offset = self.middle.offset
        self.inverse = np.linalg.inv(np.linalg.cholesky(self.middle.scatter + 2 * self.offset))
        """B to begin with, and where Sigma is known"""
        # from B to Sigma prod_i B_ii^(i - 2r - 1), counting from 0, and 1 / B_ii to mu
        self.powers = np.arange(r) - 2.0 * r - 2

    def starts(self) -> list[Array]:
        """Where to look for the mode from."""
        return [self._joined(np.zeros(self.dim), self.inverse)]

    def points_at(self, given: tuple[Array, Array] | None) -> list[Array]:
        """The point of a (mu, Sigma); none where there is no such point."""
        if given is None or self.known:
            return []
        mean, cov = given
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(cov + self.offset))
        except np.linalg.LinAlgError:
            return []
        gap = mean - self.middle.mean
        same = np.linalg.solve(self.middle.root, gap[self.rest])
        own = inverse @ (gap[self.vary] - self.middle.moves @ gap[self.rest])
        return [self._joined(np.concatenate([own, same]), inverse)]

    def _joined(self, along: Array, inverse: Array) -> Array:
        noise = [math.log(self.middle.variance) / 2] if self.noise_free else []
        return np.concatenate([along, inverse[self.rows, self.columns], noise])

    def scales(self) -> Array:
        """Rough widths of all coordinates."""
        rows = np.diag(self.inverse)[self.rows]
        return np.concatenate([np.ones(self.dim), rows, np.ones(int(self.noise_free))])

    def split(self, y: Array) -> Split:
        """The variables at points (…, size)."""
        d, r, shape = self.dim, len(self.vary), y.shape[:-1]
        noise_sd = np.exp(y[..., -1]) if self.noise_free else np.full(shape, self.problem.noise_sd)
        if isinstance(self.problem.prior, KnownCovariance):
            factor = np.linalg.inv(np.broadcast_to(self.inverse, (*shape, r, r)))
            own = np.asarray(self.problem.prior.cov)[np.ix_(self.vary, self.vary)]
            cov = np.broadcast_to(own, (*shape, r, r))
        else:
            lower = np.zeros((*shape, r, r))
            lower[..., self.rows, self.columns] = y[..., d : d + len(self.rows)]
            factor = np.linalg.inv(lower)
            cov = factor @ factor.swapaxes(-1, -2) - self.offset
        mean = np.empty((*shape, d))
        same = (self.middle.root @ y[..., r:d, None])[..., 0]
        moved = (self.middle.moves @ same[..., None])[..., 0]
        along = (factor @ y[..., :r, None])[..., 0]
        mean[..., self.vary] = self.middle.mean[self.vary] + along + moved
        mean[..., self.rest] = self.middle.mean[self.rest] + same
        positive = (np.diagonal(factor, axis1=-2, axis2=-1) > 0).all(axis=-1)
        return Split(mean, factor, cov, noise_sd, positive)

    def log_density(self, y: Array) -> tuple[float, Array]:
        """And its gradient; -inf where Sigma is not positive definite."""
        r = len(self.vary)
        try:
            mean, factor, cov, sigma, positive = self.split(y)
            if not positive:
                return -math.inf, np.full(self.size, np.nan)
            noise_sd = float(sigma)
            at = log_posterior(self.problem, self.data, mean, cov, noise_sd)
        except np.linalg.LinAlgError:
            return -math.inf, np.full(self.size, np.nan)
        value, own = at.value, at.mean[self.vary]
        along = factor.T @ own
        same = self.middle.root.T @ (at.mean[self.rest] + self.middle.moves.T @ own)
        parts = [along, same]
        if not self.known:
            diagonal = 1 / np.diag(factor)
            value += float(self.powers @ np.log(diagonal))
            slope = -2 * factor.T @ at.cov @ (cov + self.offset)
            slope -= np.outer(along, factor @ y[:r])
            slope[np.arange(r), np.arange(r)] += self.powers / diagonal
            parts.append(slope[self.rows, self.columns])
        if self.noise_free:
            value += float(y[-1])
            parts.append(np.array([at.noise_sd * noise_sd + 1.0]))
        return value, np.concatenate(parts)

    def values(self, ys: Array) -> Array:
        """The values of ``log_density`` at (s, size) points, for less."""
        mean, factor, cov, noise_sd, positive = self.split(ys)
        ends = np.linalg.eigvalsh(cov)[:, [0, -1]]
        inside = np.flatnonzero(positive & (ends[:, 0] > SINGULAR * ends[:, 1]))
        out = np.full(len(ys), -math.inf)
        if not len(inside):
            return out
        differs = self.problem.stats.differs
        roots = embedded(np.linalg.cholesky(cov[inside]), differs)
        for i, root in zip(inside, roots, strict=True):
            out[i] = likelihood_value(mean[i], root, float(noise_sd[i]), self.data)
        out[inside] += prior_values(
            self.problem.prior, mean[inside], cov[inside], noise_sd[inside], differs
        )
        if not self.known:
            diagonal = np.diagonal(factor[inside], axis1=1, axis2=2)
            out[inside] -= (self.powers * np.log(diagonal)).sum(axis=1)
        return out + (ys[:, -1] if self.noise_free else 0.0)
