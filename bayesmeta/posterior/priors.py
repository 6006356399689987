"""What is believed about (mu, Sigma) and the noise before any task: priors over priors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import Array, InputError, array, covariance, real


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
