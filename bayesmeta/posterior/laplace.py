"""Draws by a Gaussian at the mode, corrected by Pareto-smoothed importance resampling.

Proposals come from the Gaussian with the mode and the inverse Hessian in ``Coordinates``; their
importance weights are smoothed (Vehtari et al. 2024) and proposals drawn by them. It is quick, and
wrong where the Gaussian is: with few tasks, or standard deviations near zero, where proposals may
even fall where Sigma is not positive definite. ``Weights`` say whether to trust it.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bayesmeta.checks import Array, InputError
from bayesmeta.posterior.coordinates import Coordinates, apart
from bayesmeta.posterior.diagnostics import EFFICIENCY, KHAT, OUTSIDE
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.priors import LKJ
from bayesmeta.posterior.whitening import Frame, find_frame

_BLOCK = 64
"""Proposals that a thread takes at a time."""
_PILOT = 4 * _BLOCK
"""Proposals that are looked at before all others, to give up early."""
_FEWEST = 25
"""Proposals inside that a tail can be told from: the largest fifth are 5, ArviZ's least."""

_APART = 2.0
"""Standard errors by which tasks must differ in every direction for proposals to be tried, under an
LKJ prior: otherwise Sigma may well be singular, and proposals fall outside."""


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


def too_close(problem: Problem) -> float | None:
    """How far ``apart`` tasks are where that is not enough: Sigma may be singular by all that they
    tell, and there is no mode at a boundary. None where it is worth trying."""
    if not isinstance(problem.prior, LKJ):
        return None
    try:
        found = apart(problem)
    except (InputError, np.linalg.LinAlgError):  # the tasks do not span all features
        return None
    return None if found >= _APART else found


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
    """Draws among as many proposals, unless another number is given; None where no mode is found.

    ``start`` is a (mu, Sigma) to look for the mode from, too. With ``pilot``, no search where tasks
    are ``too_close``, and no draws, but what the first proposals say, where these are hopeless.
    """
    if pilot and too_close(problem) is not None:
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
    rows, columns = np.tril_indices(at.cov.shape[-1], -1)
    corr = at.cov[:, rows, columns] / (sd[:, rows] * sd[:, columns])
    found = {"mu": at.mean, "Sigma": np.array(at.cov), "sd": sd, "corr": corr}
    return found | ({"sigma": at.noise_sd} if target.noise_free else {})
