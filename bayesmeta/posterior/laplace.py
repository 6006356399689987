"""Draws by a Gaussian at the mode, corrected by Pareto-smoothed importance resampling.

The coordinates are the inverse B of the Cholesky factor of Sigma + S, where S is the covariance of
a typical task's least squares; B (mu - m), where m is the pooled estimate; and log sigma. Were
every task's least squares equally good, B would be Bartlett's factor of a Wishart matrix, normal
but for chi-distributed diagonal entries, and B (mu - m) independent of it: with many tasks the
posterior is nearly Gaussian in these. Proposals come from the Gaussian with the mode and the
inverse Hessian; their importance weights are smoothed (Vehtari et al. 2024) and proposals drawn by
them. It is quick, and wrong where the Gaussian is: with few tasks, or standard deviations near
zero, where proposals may even fall where Sigma is not positive definite. ``Weights`` say whether to
trust it.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bayesmeta.checks import Array, InputError
from bayesmeta.posterior.density import log_posterior, prior_values
from bayesmeta.posterior.diagnostics import EFFICIENCY, KHAT, OUTSIDE
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.priors import KnownCovariance, pooled
from bayesmeta.posterior.taskdata import likelihood_value, task_data
from bayesmeta.posterior.whitening import Frame, find_frame

_BLOCK = 64
"""Proposals that a thread takes at a time."""
_PILOT = 4 * _BLOCK
"""Proposals that are looked at before all others, to give up early."""
SINGULAR = 1e-12
"""Of the largest eigenvalue of Sigma, what the least must exceed for Sigma to have a density."""
_FEWEST = 25
"""Proposals inside that a tail can be told from: the largest fifth are 5, ArviZ's least."""


class Weights(NamedTuple):
    """How good the proposals were: k-hat of the weights' tail, their effective sample size a
    proposal, and the share of proposals outside."""

    khat: float
    efficiency: float
    outside: float

    @property
    def good(self) -> bool:
        """Whether all limits are kept; NaN keeps none."""
        return self.khat < KHAT and self.efficiency >= EFFICIENCY and self.outside <= OUTSIDE


class Resampled(NamedTuple):
    """Draws by name, each (draws, …), the weights they came by, and the mode (mu, Sigma)."""

    draws: dict[str, Array]
    weights: Weights
    mode: tuple[Array, Array]


class Split(NamedTuple):
    """mu, the inverse of B, Sigma, sigma, and whether B has a positive diagonal."""

    mean: Array
    factor: Array
    cov: Array
    noise_sd: Array
    positive: NDArray[np.bool_]


class Coordinates:
    """A target for ``find_frame``: the log-density of (B (mu - m), B, log sigma)."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.data = problem, task_data(problem.stats)
        self.dim = d = problem.stats.dim
        self.known = isinstance(problem.prior, KnownCovariance)
        self.noise_free = problem.noise_sd is None
        self.rows, self.columns = np.tril_indices(0 if self.known else d)
        self.size = d + len(self.rows) + self.noise_free
        self.middle, scatter, self.offset, variance = pooled(problem.stats, problem.noise_sd)
        self.inverse = np.linalg.inv(np.linalg.cholesky(scatter + 2 * self.offset))
        """B to begin with, and where Sigma is known"""
        self.log_noise = math.log(variance) / 2
        # from B to Sigma prod_i B_ii^(i - 2d - 1), counting from 0, and 1 / B_ii to mu
        self.powers = np.arange(d) - 2.0 * d - 2

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
        return [self._joined(inverse @ (mean - self.middle), inverse)]

    def _joined(self, along: Array, inverse: Array) -> Array:
        noise = [self.log_noise] if self.noise_free else []
        return np.concatenate([along, inverse[self.rows, self.columns], noise])

    def scales(self) -> Array:
        """Rough widths of all coordinates."""
        rows = np.diag(self.inverse)[self.rows]
        return np.concatenate([np.ones(self.dim), rows, np.ones(int(self.noise_free))])

    def split(self, y: Array) -> Split:
        """The variables at points (…, size)."""
        d, shape = self.dim, y.shape[:-1]
        noise_sd = np.exp(y[..., -1]) if self.noise_free else np.full(shape, self.problem.noise_sd)
        if isinstance(self.problem.prior, KnownCovariance):
            factor = np.linalg.inv(np.broadcast_to(self.inverse, (*shape, d, d)))
            cov = np.broadcast_to(np.asarray(self.problem.prior.cov), (*shape, d, d))
        else:
            lower = np.zeros((*shape, d, d))
            lower[..., self.rows, self.columns] = y[..., d : d + len(self.rows)]
            factor = np.linalg.inv(lower)
            cov = factor @ factor.swapaxes(-1, -2) - self.offset
        mean = self.middle + (factor @ y[..., :d, None])[..., 0]
        positive = (np.diagonal(factor, axis1=-2, axis2=-1) > 0).all(axis=-1)
        return Split(mean, factor, cov, noise_sd, positive)

    def log_density(self, y: Array) -> tuple[float, Array]:
        """And its gradient; -inf where Sigma is not positive definite."""
        d = self.dim
        try:
            mean, factor, cov, sigma, positive = self.split(y)
            if not positive:
                return -math.inf, np.full(self.size, np.nan)
            noise_sd = float(sigma)
            at = log_posterior(self.problem, self.data, mean, cov, noise_sd)
        except np.linalg.LinAlgError:
            return -math.inf, np.full(self.size, np.nan)
        value, along = at.value, factor.T @ at.mean
        parts = [along]
        if not self.known:
            diagonal = 1 / np.diag(factor)
            value += float(self.powers @ np.log(diagonal))
            slope = -2 * factor.T @ at.cov @ (cov + self.offset)
            slope -= np.outer(along, mean - self.middle)
            slope[np.arange(d), np.arange(d)] += self.powers / diagonal
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
        roots = np.linalg.cholesky(cov[inside])
        for i, root in zip(inside, roots, strict=True):
            out[i] = likelihood_value(mean[i], root, float(noise_sd[i]), self.data)
        out[inside] += prior_values(self.problem.prior, mean[inside], cov[inside], noise_sd[inside])
        if not self.known:
            diagonal = np.diagonal(factor[inside], axis1=1, axis2=2)
            out[inside] -= (self.powers * np.log(diagonal)).sum(axis=1)
        return out + (ys[:, -1] if self.noise_free else 0.0)


def draw_laplace(
    problem: Problem,
    draws: int,
    seed: int,
    cores: int = 1,
    *,
    start: tuple[Array, Array] | None = None,
    proposals: int | None = None,
    pilot: bool = False,
) -> Resampled | None:
    """Draws among as many proposals, unless another number is given; None where no mode is found,
    or some coefficients are the same in all tasks.

    ``start`` is a (mu, Sigma) to look for the mode from, too. With ``pilot``, no draws, and what
    the first proposals say, where these are hopeless.
    """
    if problem.stats.varying is not None:  # B would be of another size than mu
        return None
    try:
        target = Coordinates(problem)
    except (InputError, np.linalg.LinAlgError):  # the tasks do not span all features
        return None
    frame = find_frame(target, target.points_at(start))
    if frame is None or frame.curvature.min() <= 0:
        return None
    centre = target.split(frame.centre)
    mode = centre.mean, centre.cov
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((proposals or draws, target.size))
    with threadpool_limits(1):
        first = _values(target, frame, z[:_PILOT], cores)
        if pilot:
            _, quality = _weighed(first, z[:_PILOT])
            if quality.outside > 5 * OUTSIDE or not quality.efficiency > EFFICIENCY / 2:
                return Resampled({}, quality, mode)
        found = np.concatenate([first, _values(target, frame, z[_PILOT:], cores)])
        weights, quality = _weighed(found, z)
        if not weights.any():
            return None
        kept = _systematic(weights, draws, rng)
        return Resampled(_variables(target, frame, z[kept]), quality, mode)


def _weighed(values: Array, z: Array) -> tuple[Array, Weights]:
    """Smoothed weights of proposals, none of those outside, and how good they are."""
    inside = np.isfinite(values)
    weights, outside = np.zeros(len(z)), float((~inside).mean())
    if inside.sum() < _FEWEST:
        return weights, Weights(math.nan, 0.0, outside)
    logs = values[inside] + 0.5 * (z[inside] ** 2).sum(axis=1)
    weights[inside], khat = _smoothed(logs)
    return weights, Weights(khat, float(1 / (weights**2).sum()) / len(z), outside)


def _values(target: Coordinates, frame: Frame, z: Array, cores: int) -> Array:
    """Log-densities of all proposals, blocks of them side by side."""
    out = np.empty(len(z))

    def block(first: int) -> None:
        with np.errstate(all="ignore"):
            here = slice(first, first + _BLOCK)
            out[here] = target.values(frame.points(z[here]))

    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(block, range(0, len(z), _BLOCK)))
    return out


def _smoothed(logs: Array) -> tuple[Array, float]:
    """Weights that add up to one, their largest smoothed, and k-hat (0 where all are equal)."""
    from arviz_stats.base import array_stats

    if np.ptp(logs) < 1e-6:
        return np.full(len(logs), 1 / len(logs)), 0.0
    smoothed, khat = array_stats.psislw(-logs)  # it takes the log-likelihoods that loo divides by
    weights = np.exp(smoothed - smoothed.max())
    return weights / weights.sum(), float(khat)


def _systematic(weights: Array, draws: int, rng: np.random.Generator) -> Array:
    """Indices drawn by their weights, each as often as expected but for less than one.

    In the order of the proposals, which are independent: a proposal drawn k times stands k times in
    a row, so that effective sample sizes by autocorrelation count it once, as the weights do.
    """
    ticks = (np.arange(draws) + rng.random()) / draws
    index = np.searchsorted(np.cumsum(weights), ticks)
    kept: Array = np.minimum(index, np.flatnonzero(weights)[-1])
    return kept


def _variables(target: Coordinates, frame: Frame, z: Array) -> dict[str, Array]:
    """mu, Sigma, sd, corr, and sigma where it is estimated."""
    at = target.split(frame.points(z))
    sd = np.sqrt(np.diagonal(at.cov, axis1=1, axis2=2))
    rows, columns = np.tril_indices(target.dim, -1)
    corr = at.cov[:, rows, columns] / (sd[:, rows] * sd[:, columns])
    found = {"mu": at.mean, "Sigma": np.array(at.cov), "sd": sd, "corr": corr}
    return found | ({"sigma": at.noise_sd} if target.noise_free else {})
