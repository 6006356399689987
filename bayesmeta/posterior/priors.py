"""What is believed about (mu, Sigma) and the noise before any task: priors over priors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import Advice, Array, InputError, array, covariance, real, warn
from bayesmeta.estimators.noise import pooled_variance
from bayesmeta.posterior.centring import centring_of
from bayesmeta.statistics import TaskStatistics


class PriorWarning(UserWarning):
    """The prior and the data contradict each other; its numbers are probably in other units."""


class _Shown:
    """A short repr: the fields with four digits."""

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{field.name}={_short(getattr(self, field.name))}"
            for field in fields(self)  # type: ignore[arg-type]
        )
        return f"{type(self).__name__}({parts})"


def _short(value: Any) -> str:
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value):
        return f"[{', '.join(_short(one) for one in value)}]"
    return f"{value:.4g}" if isinstance(value, (int, float, np.number)) else repr(value)


@dataclass(frozen=True, eq=False, repr=False)
class LKJ(_Shown):
    """Normal mean, half-normal standard deviations, LKJ correlations.

    mu_i ~ N(mean_i, mean_sd_i^2); Sigma = D R D with D_i ~ half-normal(scale_i), R ~ LKJ(eta).
    What is left out has the fixed numbers below, whatever the units of the data. To change one part
    of a prior in their units: ``dataclasses.replace(bm.default_prior(stats), eta=1.0)``.

    Parameters
    ----------
    mean, mean_sd
        Of mu, a number a feature or one for all, in the units of the coefficients.
    scale
        Of the half-normal standard deviations of tasks, likewise; numbers of features whose
        coefficient is the same in all tasks are not used.
    eta
        1: all correlation matrices are equally likely; more: small correlations are likelier.
    noise_scale
        Where the noise is not known: its standard deviation is half-normal(noise_scale).

    Examples
    --------
    >>> bm.LKJ(mean=[120.0, 3.0], mean_sd=50.0, scale=[20.0, 1.0])
    LKJ(mean=[120, 3], mean_sd=50, scale=[20, 1], eta=2, noise_scale=1)
    """

    mean: ArrayLike = 0.0
    mean_sd: ArrayLike = 5.0
    scale: ArrayLike = 2.0
    eta: float = 2.0
    noise_scale: float = 1.0

    def settled(self, d: int) -> LKJ:
        """With every number checked, and a vector where there are d of them."""
        return LKJ(
            _vector("mean", self.mean, d),
            _positive("mean_sd", self.mean_sd, d),
            _positive("scale", self.scale, d),
            real("eta", self.eta, above=0.0),
            real("noise_scale", self.noise_scale, above=0.0),
        )

    def draw(self, rng: np.random.Generator, draws: int) -> tuple[Array, Array, Array]:
        """Means (draws, d), lower roots of covariances (draws, d, d), noise (draws,)."""
        mean, mean_sd, scale = (np.asarray(v) for v in (self.mean, self.mean_sd, self.scale))
        d = len(mean)
        means = mean + mean_sd * rng.standard_normal((draws, d))
        sds = scale * np.abs(rng.standard_normal((draws, d)))
        roots = sds[:, :, None] * lkj_roots(rng, draws, d, self.eta)
        return means, roots, self.noise_scale * np.abs(rng.standard_normal(draws))


@dataclass(frozen=True, eq=False, repr=False)
class InverseWishart(_Shown):
    """Sigma ~ inverse-Wishart(degrees, scale), mu | Sigma ~ N(mean, Sigma / weight).

    The mean of Sigma is scale / (degrees - d - 1). Conjugate where every theta is known exactly.

    Parameters
    ----------
    mean
        Of mu, a number a feature or one for all.
    weight
        How many tasks the prior's mean is worth.
    degrees
        Greater than d - 1; the larger, the nearer Sigma is to its mean.
    scale
        (d, d), positive definite.
    noise_scale
        Where the noise is not known: its standard deviation is half-normal(noise_scale).

    Examples
    --------
    >>> bm.InverseWishart(mean=0.0, weight=1.0, degrees=5.0, scale=[[2.0, 0.5], [0.5, 1.0]])
    InverseWishart(mean=0, weight=1, degrees=5, scale=[[2, 0.5], [0.5, 1]], noise_scale=1)
    """

    mean: ArrayLike
    weight: float
    degrees: float
    scale: ArrayLike
    noise_scale: float = 1.0

    def settled(self, d: int) -> InverseWishart:
        """With every number checked."""
        cov = covariance("scale", self.scale, d)
        if np.linalg.eigvalsh(cov)[0] <= 0:
            raise InputError("scale must be positive definite")
        return InverseWishart(
            _vector("mean", self.mean, d),
            real("weight", self.weight, above=0.0),
            real("degrees", self.degrees, above=d - 1),
            cov,
            real("noise_scale", self.noise_scale, above=0.0),
        )

    def draw(self, rng: np.random.Generator, draws: int) -> tuple[Array, Array, Array]:
        """Means, lower roots of covariances, noise."""
        d = len(np.asarray(self.mean))
        upper = bartlett_root(np.asarray(self.scale))
        a = np.tril(rng.standard_normal((draws, d, d)), -1)
        for i in range(d):
            a[:, i, i] = np.sqrt(rng.chisquare(self.degrees - i, size=draws))
        flipped = a[:, ::-1, ::-1]  # upper triangular
        roots = np.linalg.inv(upper @ flipped).transpose(0, 2, 1)
        means = np.asarray(self.mean) + np.einsum(
            "nij,nj->ni", roots, rng.standard_normal((draws, d))
        ) / math.sqrt(self.weight)
        return means, roots, self.noise_scale * np.abs(rng.standard_normal(draws))


@dataclass(frozen=True, eq=False, repr=False)
class KnownCovariance(_Shown):
    """Sigma is known, mu_i ~ N(mean_i, mean_sd_i^2); with known noise the posterior is Gaussian.

    Parameters
    ----------
    cov
        Sigma, (d, d), positive definite.
    mean, mean_sd
        Of mu, a number a feature or one for all.
    noise_scale
        Where the noise is not known: its standard deviation is half-normal(noise_scale).

    Examples
    --------
    >>> bm.KnownCovariance([[1.0, 0.4], [0.4, 2.0]], mean_sd=1.5)
    KnownCovariance(cov=[[1, 0.4], [0.4, 2]], mean=0, mean_sd=1.5, noise_scale=1)
    """

    cov: ArrayLike
    mean: ArrayLike = 0.0
    mean_sd: ArrayLike = 5.0
    noise_scale: float = 1.0

    def settled(self, d: int) -> KnownCovariance:
        """With every number checked."""
        cov = covariance("cov", self.cov, d)
        if np.linalg.eigvalsh(cov)[0] <= 0:
            raise InputError("cov must be positive definite")
        return KnownCovariance(
            cov,
            _vector("mean", self.mean, d),
            _positive("mean_sd", self.mean_sd, d),
            real("noise_scale", self.noise_scale, above=0.0),
        )

    def draw(self, rng: np.random.Generator, draws: int) -> tuple[Array, Array, Array]:
        """Means, lower roots of covariances, noise."""
        mean, mean_sd = np.asarray(self.mean), np.asarray(self.mean_sd)
        d = len(mean)
        means = mean + mean_sd * rng.standard_normal((draws, d))
        roots = np.broadcast_to(np.linalg.cholesky(np.asarray(self.cov)), (draws, d, d)).copy()
        return means, roots, self.noise_scale * np.abs(rng.standard_normal(draws))


type Prior = LKJ | InverseWishart | KnownCovariance


def default_prior(
    stats: TaskStatistics, noise_sd: float | None = None, centre: bool | str | None = None
) -> LKJ:
    """A wide prior in the data's own units: centred at the pooled estimate, twice as wide as tasks.

    The spread of few tasks may be far too small by chance: the scale is also no less than its 95%
    upper confidence value (16 times the spread of 2 tasks, 4.4 times that of 3, 2.4 times that of
    5; from 7 on twice is more), and likewise that of the noise; the mean's standard deviation is
    2.5 scales. With 2 or 3 tasks the intervals of the standard deviations still often begin too
    high, and no half-normal with a scale from such data does much better: give a prior of your own.

    With an intercept it is the prior of coefficients of the centred features, as
    ``sample_posterior`` takes it: that of the intercept is of the level at the features' means.

    The prior uses the data, for their units and where they lie, so simulation-based calibration has
    to use a prior of fixed numbers instead.

    Parameters
    ----------
    stats
        The tasks.
    noise_sd
        Their noise (sigma); None where it is to be estimated.
    centre
        As in ``sample_posterior``.

    Returns
    -------
    LKJ
        With a number a feature.

    Examples
    --------
    >>> stats = bm.TaskStatistics([[[4.0]], [[4.0]], [[4.0]]], [[6.0], [18.0], [30.0]])
    >>> bm.default_prior(stats, noise_sd=1.0)
    LKJ(mean=[4.5], mean_sd=[33.12], scale=[13.25], eta=2, noise_scale=2)
    """
    centring = centring_of(stats, centre)
    if centring is not None:
        stats = centring.inside(stats)
    mean, spread, variance = _pooled(stats, noise_sd)
    scale = _wide(len(stats) - 1) * spread
    freedom = stats.residuals()[1] if noise_sd is None else 0.0
    return LKJ(mean, 2.5 * scale, scale, noise_scale=_wide(freedom) * math.sqrt(variance))


def _pooled(stats: TaskStatistics, noise_sd: float | None) -> tuple[Array, Array, float]:
    """One theta for all tasks, how far tasks lie from it (no less than the noise of a typical
    task's least squares), and the variance of the noise."""
    mean, scatter, noise, variance = pooled(stats, noise_sd)
    return mean, np.sqrt(np.maximum(np.diag(noise), np.diag(scatter))), variance


def pooled(stats: TaskStatistics, noise_sd: float | None) -> tuple[Array, Array, Array, float]:
    """One theta for all tasks, the scatter of tasks about it (noise included), the covariance of a
    typical task's least squares, and the variance of the noise."""
    total = stats.gram.sum(axis=0)
    stats.require_independent_features()
    n = len(stats)
    mean = np.linalg.solve(total, stats.moment.sum(axis=0))
    variance = pooled_variance(stats, common=True)[0] if noise_sd is None else noise_sd**2
    noise = n * variance * np.linalg.inv(total)
    step = np.linalg.solve(total / n, (stats.moment - stats.gram @ mean).T).T
    return mean, step.T @ step / max(n - 1, 1), noise, variance


def _wide(freedom: float) -> float:
    """Twice, or for few degrees of freedom what makes an estimated standard deviation its 95% upper
    confidence value."""
    from scipy.special import chdtri  # scipy.stats, with its chi2, takes half a second to import

    return max(2.0, math.sqrt(freedom / chdtri(freedom, 0.95))) if freedom >= 1 else 2.0


def at_odds(stats: TaskStatistics, noise_sd: float | None, prior: Prior) -> tuple[Advice, ...]:
    """Where a settled prior and the data clearly contradict each other; empty where they do not.

    The pooled estimate lies more than 4 standard deviations (the prior's and its own) from the
    prior mean, tasks spread by more than 5 times ``scale`` beyond their noise, or the noise is more
    than 5 times ``noise_scale``.
    """
    try:
        pooled, spread, variance = _pooled(stats, noise_sd)
    except InputError:  # nothing to compare it with
        return ()
    found = [_mean_at_odds(stats, prior, pooled, spread)]
    if isinstance(prior, LKJ):
        found.append(_spread_at_odds(stats, prior, spread, variance))
    estimated = noise_sd is None and stats.residuals()[1] >= 1
    noise = math.sqrt(variance)
    if estimated and noise > 5 * prior.noise_scale:
        found.append(
            Advice(
                "the noise is near {noise}, its {noise_scale} {given}",
                noise=f"{noise:.4g}",
                given=f"{prior.noise_scale:.4g}",
            )
        )
    return tuple(one for one in found if one is not None)


def _mean_at_odds(
    stats: TaskStatistics, prior: Prior, pooled: Array, spread: Array
) -> Advice | None:
    if isinstance(prior, InverseWishart):
        mean_sd = np.sqrt(np.diag(np.asarray(prior.scale)) / prior.degrees / prior.weight)
    else:
        mean_sd = np.asarray(prior.mean_sd)
    mean, error = np.asarray(prior.mean), spread / math.sqrt(len(stats))
    gap = np.abs(pooled - mean) / np.hypot(mean_sd, error)
    if gap.max() <= 4:
        return None
    i = int(gap.argmax())
    return Advice(
        "the data put the mean of {feature} near {pooled}, the prior at {at} ± {within}",
        feature=str(stats.feature_labels[i]),
        pooled=f"{pooled[i]:.4g}",
        at=f"{mean[i]:.4g}",
        within=f"{mean_sd[i]:.4g}",
    )


def _spread_at_odds(
    stats: TaskStatistics, prior: LKJ, spread: Array, variance: float
) -> Advice | None:
    within = len(stats) * variance * np.diag(np.linalg.inv(stats.gram.sum(axis=0)))
    within *= 1 + 4 * math.sqrt(2 / (len(stats) - 1))  # what chance may make of it
    beyond = np.sqrt(np.maximum(spread**2 - within, 0.0)) / np.asarray(prior.scale)
    i = int(beyond.argmax())
    if beyond[i] <= 5:
        return None
    scale = float(np.broadcast_to(prior.scale, beyond.shape)[i])
    return Advice(
        "tasks spread by about {spread} in {feature}, its {scale} is {given}",
        spread=f"{beyond[i] * scale:.4g}",
        feature=str(stats.feature_labels[i]),
        given=f"{scale:.4g}",
    )


def warn_if_at_odds(stats: TaskStatistics, noise_sd: float | None, prior: Prior) -> None:
    """A ``PriorWarning`` where ``at_odds`` finds something."""
    found = at_odds(stats, noise_sd, prior)
    if found:
        warn(
            f"the prior does not suit the data: {'; '.join(found)}; are its numbers in their "
            "units? dataclasses.replace(bm.default_prior(stats), ...) changes parts of one that is",
            PriorWarning,
        )


def describe_prior(prior: Prior) -> dict[str, Any]:
    """A prior as plain data."""
    return {"type": type(prior).__name__} | {
        field.name: np.asarray(getattr(prior, field.name)).tolist() for field in fields(prior)
    }


def lkj_roots(rng: np.random.Generator, draws: int, d: int, eta: float) -> Array:
    """Lower roots of LKJ(eta) correlation matrices, by the onion method."""
    roots = np.zeros((draws, d, d))
    roots[:, 0, 0] = 1.0
    beta = eta + (d - 2) / 2
    for k in range(1, d):
        square = rng.beta(k / 2, beta, size=draws)  # squared length of the row below the diagonal
        way = rng.standard_normal((draws, k))
        way /= np.linalg.norm(way, axis=1, keepdims=True)
        roots[:, k, :k] = np.sqrt(square)[:, None] * way
        roots[:, k, k] = np.sqrt(1 - square)
        beta -= 0.5
    return roots


def bartlett_root(scale: Array) -> Array:
    """Upper U with U U' = scale^-1: inv(U A)' is a lower root of an inverse-Wishart draw."""
    flipped = np.linalg.inv(scale)[::-1, ::-1]
    upper: Array = np.linalg.cholesky(flipped)[::-1, ::-1]
    return upper


def _vector(name: str, value: ArrayLike, d: int) -> Array:
    if np.isscalar(value) or getattr(value, "ndim", None) == 0:
        value = np.full(d, real(name, value))
    return array(name, value, (d,))


def _positive(name: str, value: ArrayLike, d: int) -> Array:
    values = _vector(name, value, d)
    if (values <= 0).any():
        raise InputError(f"{name} must be greater than 0, got {values.min():g}")
    return values
