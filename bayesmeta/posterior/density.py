"""The posterior density of (mu, Sigma, sigma) themselves, with its gradients.

Of the lower triangle of Sigma, not of the variables that a PyMC model is written in; up to a
constant. The models' densities are the same but for Jacobians, which a test checks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.op import TaskData, likelihood, likelihood_value
from bayesmeta.posterior.priors import LKJ, InverseWishart, Prior


class Density(NamedTuple):
    """A log-density and its gradients; in Sigma the symmetric G of d log p = tr(G dSigma)."""

    value: float
    mean: Array
    cov: Array
    noise_sd: float


def log_prior(prior: Prior, mean: Array, cov: Array, noise_sd: float) -> Density:
    """Of a settled prior, the half-normal of the noise included."""
    gap = mean - np.asarray(prior.mean)
    value = -0.5 * (noise_sd / prior.noise_scale) ** 2
    slope = -noise_sd / prior.noise_scale**2
    d = len(gap)
    if isinstance(prior, InverseWishart):
        inverse = np.linalg.inv(cov)
        scale = np.asarray(prior.scale) + prior.weight * np.outer(gap, gap)
        power = prior.degrees + d + 2  # one of them is that of N(mean, Sigma / weight)
        value -= 0.5 * (power * np.linalg.slogdet(cov)[1] + float((scale * inverse).sum()))
        in_cov = 0.5 * (inverse @ scale @ inverse - power * inverse)
        return Density(value, -prior.weight * inverse @ gap, in_cov, slope)
    variance = np.asarray(prior.mean_sd) ** 2
    value -= 0.5 * float((gap**2 / variance).sum())
    in_cov = np.zeros((d, d))
    if isinstance(prior, LKJ):
        # standard deviations half-normal, |R|^(eta - 1), and prod sd_i^-d from (sd, R) to Sigma
        squares, scale = np.diag(cov), np.asarray(prior.scale) ** 2
        power, logs = prior.eta - 1 + d / 2, np.log(squares)
        value += (prior.eta - 1) * np.linalg.slogdet(cov)[1]
        value -= float((0.5 * squares / scale + power * logs).sum())
        in_cov = (prior.eta - 1) * np.linalg.inv(cov) - np.diag(0.5 / scale + power / squares)
    return Density(value, -gap / variance, in_cov, slope)


def log_posterior(
    problem: Problem, data: TaskData, mean: Array, cov: Array, noise_sd: float
) -> Density:
    """The prior and the likelihood of all tasks, at a positive definite Sigma."""
    root = np.linalg.cholesky(cov)
    found = likelihood(mean, root, noise_sd, data)
    before = log_prior(problem.prior, mean, cov, noise_sd)
    inner = np.tril(root.T @ found.root)  # Cholesky's pullback
    inverse = np.linalg.inv(root)
    in_cov = inverse.T @ (inner + np.tril(inner, -1).T) @ inverse / 2
    return Density(
        float(found.value) + before.value,
        found.mean + before.mean,
        in_cov + before.cov,
        float(found.noise_sd) + before.noise_sd,
    )


def log_posterior_value(
    problem: Problem, data: TaskData, mean: Array, cov: Array, noise_sd: float
) -> float:
    """The value of ``log_posterior``, for less."""
    root = np.linalg.cholesky(cov)
    before = log_prior(problem.prior, mean, cov, noise_sd)
    return likelihood_value(mean, root, noise_sd, data) + before.value
