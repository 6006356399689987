"""Parametric bootstrap: statistics of tasks drawn from an estimate, and estimated again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array, InputError, whole
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.estimators.fit import fit_prior, largest_likelihood
from bayesmeta.estimators.maximum import Options
from bayesmeta.statistics import TaskStatistics

FEWEST = 20
"""Replications that must have an estimate."""


class Drawn(NamedTuple):
    """Estimates from data drawn from an estimate."""

    mean: Array
    """(replications, d)"""
    cov: Array
    """(replications, d, d)"""
    noise: Array
    """(replications,)"""
    failed: int
    """replications without an estimate"""


def redraw(
    stats: TaskStatistics, estimate: PriorEstimate, rng: np.random.Generator
) -> TaskStatistics:
    """Statistics of new tasks with the same designs, drawn from the estimate.

    They have exactly the distribution of those of rows: A'x = V theta + sigma V^(1/2) z with
    standard normals z, and beyond what the features explain x'x is sigma^2 times chi-squared with
    as many degrees of freedom as there are rows beyond the rank of V. Weighted rows, multiplied by
    the roots of their weights, all have the noise sigma.
    """
    if estimate.noise_sd is None:
        raise InputError("this estimate has no noise_sd, so no data can be drawn from it")
    theta = (
        estimate.prior.mean + rng.standard_normal(stats.moment.shape) @ estimate.prior.cholesky.T
    )
    return redraw_around(stats, theta, np.full(len(stats), estimate.noise_sd), rng)


def redraw_around(
    stats: TaskStatistics, theta: Array, noise_sd: Array, rng: np.random.Generator
) -> TaskStatistics:
    """The same where theta (n, d) of every task is given, and the noise (n,) of its rows."""
    n, d = stats.moment.shape
    lengths = np.sqrt(np.maximum(np.diagonal(stats.gram, axis1=1, axis2=2), 0.0))
    lengths = np.where(lengths > 0, lengths, 1.0)
    scaled = stats.gram / (lengths[:, :, None] * lengths[:, None, :])
    values, vectors = np.linalg.eigh(scaled)
    kept = values > 1e-12 * d
    half = vectors * np.sqrt(np.where(kept, values, 0.0))[:, None, :]  # V^(1/2) in own lengths
    # A = Q half' lengths: along Q, x is half' lengths theta + sigma z
    along = np.einsum("nik,ni->nk", half, lengths * theta)
    along += noise_sd[:, None] * rng.standard_normal((n, d))
    along = np.where(kept, along, 0.0)
    moment = np.einsum("nik,nk->ni", half, along) * lengths
    energy = None
    if stats.count is not None:
        free = np.maximum(stats.count - kept.sum(axis=1), 0.0)
        left = 2 * rng.standard_gamma(free / 2)
        energy = (along**2).sum(axis=1) + noise_sd**2 * left
    made = TaskStatistics.trusted(stats.gram, moment, stats.count, energy)
    made.__dict__.update(
        tasks=stats.tasks,
        features=stats.features,
        varying=stats.varying,
        log_weights=stats.log_weights,
    )
    return made


def bootstrap(
    stats: TaskStatistics,
    estimate: PriorEstimate,
    method: str,
    noise_sd: float | None,
    replications: int,
    random_seed: int,
) -> Drawn:
    """Draw data from the estimate and estimate again, so many times."""
    whole("replications", replications, least=FEWEST)
    if not estimate.usable:
        raise InputError(f"no data can be drawn from this estimate: {estimate.status.advice}")
    if method not in ("ml", "reml", "moment", "moment-clipped"):
        raise InputError(f"bootstrap is for ml, reml, moment and moment-clipped, not {method!r}")
    found = []
    for child in np.random.SeedSequence([whole("random_seed", random_seed), 5]).spawn(replications):
        try:
            drawn = redraw(stats, estimate, np.random.default_rng(child))
            one = _again(drawn, estimate, method, noise_sd)
        except InputError:
            continue
        finite = np.isfinite(one.prior.mean).all() and np.isfinite(one.prior.cov).all()
        if one.usable and finite:
            found.append((one.prior.mean, one.prior.cov, one.noise_sd))
    if len(found) < FEWEST:
        raise InputError(
            f"only {len(found)} of {replications} bootstrap replications have an estimate; use "
            "more replications, or another method"
        )
    mean, cov, noise = (np.array(part) for part in zip(*found, strict=True))
    return Drawn(mean, cov, noise, replications - len(found))


def _again(
    stats: TaskStatistics, estimate: PriorEstimate, method: str, noise_sd: float | None
) -> PriorEstimate:
    """An estimate of drawn statistics, quickly where it is by likelihood."""
    if method not in ("ml", "reml"):
        return fit_prior(stats, noise_sd, method)
    start = estimate.prior.mean, estimate.prior.cov
    options = Options(start=start, errors=False, thorough=False)
    variance = None if noise_sd is None else noise_sd**2
    return largest_likelihood(stats, variance, method == "reml", options)


def percentiles(draws: Array, level: float) -> tuple[Array, Array]:
    """Equal tails of the draws of every quantity; draws without a value do not count."""
    tail = (1 - level) / 2
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a quantity that no draw has is NaN
        low, high = np.nanquantile(draws, [tail, 1 - tail], axis=0)
    return low, high


def shares_without(draws: Array) -> Array:
    """The share of the draws in which a quantity has no value, as a correlation has none where a
    standard deviation is 0."""
    out: Array = np.isnan(draws).mean(axis=0)
    return out
