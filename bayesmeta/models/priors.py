"""What is believed about (mu, Sigma) and the noise before any task: priors over priors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import Array, InputError, array, covariance, real
from bayesmeta.estimators.maximum import check_independent, first_variance
from bayesmeta.statistics import TaskStatistics


@dataclass(frozen=True, eq=False)
class LKJ:
    """mu_i ~ N(mean_i, mean_sd_i^2); Sigma = D R D, D_i ~ half-normal(scale_i), R ~ LKJ(eta).

    All in the units of the coefficients; a number stands for all of them. Where the noise is not
    known, its standard deviation is half-normal(noise_scale).
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


@dataclass(frozen=True, eq=False)
class InverseWishart:
    """Sigma ~ inverse-Wishart(degrees, scale), mu | Sigma ~ N(mean, Sigma / weight).

    The mean of Sigma is scale / (degrees - d - 1). Conjugate where theta is seen.
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


@dataclass(frozen=True, eq=False)
class KnownCovariance:
    """Sigma is known, mu_i ~ N(mean_i, mean_sd_i^2): the posterior is Gaussian, a reference."""

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


def default_prior(stats: TaskStatistics, noise_sd: float | None = None) -> LKJ:
    """Wide in the data's own units: centred at the pooled estimate, as wide as tasks spread.

    It looks at the data, for their units and where they lie, so simulation-based calibration has to
    use a prior of fixed numbers instead.
    """
    total = stats.gram.sum(axis=0)
    check_independent(total)
    mean = np.linalg.solve(total, stats.moment.sum(axis=0))
    inverse = np.linalg.inv(total)
    variance = first_variance(stats, total) if noise_sd is None else noise_sd**2
    noise = len(stats) * variance * np.diag(inverse)  # of a typical task's least squares
    step = np.linalg.solve(total / len(stats), (stats.moment - stats.gram @ mean).T).T
    spread = (step**2).mean(axis=0)  # of tasks about the pooled estimate, noise included
    scale = np.sqrt(np.maximum(noise, spread))
    return LKJ(mean, 5 * scale, 2 * scale, noise_scale=2 * math.sqrt(variance))


def describe_prior(prior: Prior) -> dict[str, Any]:
    """Plain data."""
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
    values = np.asarray(value, dtype=float)
    if values.ndim == 0:
        values = np.full(d, float(values))
    return array(name, values, (d,))


def _positive(name: str, value: ArrayLike, d: int) -> Array:
    values = _vector(name, value, d)
    if (values <= 0).any():
        raise InputError(f"{name} must be greater than 0, got {values.min():g}")
    return values
