"""The posterior density of (mu, Sigma, sigma) themselves, with its gradients.

Of the lower triangle of Sigma, not of the variables that a PyMC model is written in; up to a
constant. The models' densities are the same but for Jacobians, which a test checks. Where some
coefficients are the same in all tasks (``differs`` is false), Sigma (r, r) is of the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.priors import LKJ, InverseWishart, Prior
from bayesmeta.posterior.taskdata import TaskData, likelihood
from bayesmeta.posterior.varying import embedded


class Density(NamedTuple):
    """A log-density and its gradients; in Sigma the symmetric G of d log p = tr(G dSigma)."""

    value: float
    mean: Array
    cov: Array
    noise_sd: float


def log_prior(
    prior: Prior, mean: Array, cov: Array, noise_sd: float, differs: NDArray[np.bool_]
) -> Density:
    """Of a settled prior, the half-normal of the noise included."""
    gap = mean - np.asarray(prior.mean)
    value = float(prior_values(prior, mean, cov, noise_sd, differs))
    slope = -noise_sd / prior.noise_scale**2
    if isinstance(prior, InverseWishart):
        inverse, (scale, power) = np.linalg.inv(cov), _scale_and_power(prior, gap)
        in_cov = 0.5 * (inverse @ scale @ inverse - power * inverse)
        return Density(value, -prior.weight * inverse @ gap, in_cov, slope)
    in_cov = np.zeros_like(cov)
    if isinstance(prior, LKJ):
        squares, scale = np.diag(cov), np.asarray(prior.scale)[differs] ** 2
        power = prior.eta - 1 + len(cov) / 2
        in_cov = (prior.eta - 1) * np.linalg.inv(cov) - np.diag(0.5 / scale + power / squares)
    return Density(value, -gap / np.asarray(prior.mean_sd) ** 2, in_cov, slope)


def prior_values(
    prior: Prior,
    mean: Array,
    cov: Array,
    noise_sd: Array | float,
    differs: NDArray[np.bool_],
) -> Array:
    """The values of ``log_prior`` at many points: (…, d), (…, r, r) and (…)."""
    gap = mean - np.asarray(prior.mean)
    r = cov.shape[-1]
    value: Array = -0.5 * np.square(noise_sd / prior.noise_scale)
    if isinstance(prior, InverseWishart):
        scale, power = _scale_and_power(prior, gap)
        within = (scale * np.linalg.inv(cov)).sum(axis=(-2, -1))
        value = value - 0.5 * (power * np.linalg.slogdet(cov)[1] + within)
    else:
        value = value - 0.5 * np.square(gap / np.asarray(prior.mean_sd)).sum(axis=-1)
    if isinstance(prior, LKJ):
        # standard deviations half-normal, |R|^(eta - 1), and prod sd_i^-r from (sd, R) to Sigma
        squares = np.diagonal(cov, axis1=-2, axis2=-1)
        each = 0.5 * squares / np.asarray(prior.scale)[differs] ** 2
        each = each + (prior.eta - 1 + r / 2) * np.log(squares)
        value = value + (prior.eta - 1) * np.linalg.slogdet(cov)[1] - each.sum(axis=-1)
    return value


def _scale_and_power(prior: InverseWishart, gap: Array) -> tuple[Array, float]:
    """Of the inverse-Wishart law with N(mean, Sigma / weight) of mu taken into it."""
    outer = gap[..., :, None] * gap[..., None, :]
    return np.asarray(prior.scale) + prior.weight * outer, prior.degrees + gap.shape[-1] + 2


def log_posterior(
    problem: Problem, data: TaskData, mean: Array, cov: Array, noise_sd: float
) -> Density:
    """The prior and the likelihood of all tasks, at a positive definite Sigma."""
    root, differs = np.linalg.cholesky(cov), problem.stats.differs
    found = likelihood(mean, embedded(root, differs), noise_sd, data)
    before = log_prior(problem.prior, mean, cov, noise_sd, differs)
    slope = found.root[np.ix_(differs, differs)]
    inner = np.tril(root.T @ slope)  # Cholesky's pullback
    inverse = np.linalg.inv(root)
    in_cov = inverse.T @ (inner + np.tril(inner, -1).T) @ inverse / 2
    return Density(
        float(found.value) + before.value,
        found.mean + before.mean,
        in_cov + before.cov,
        float(found.noise_sd) + before.noise_sd,
    )
