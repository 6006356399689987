"""Priors where some features' coefficients are the same in all tasks: they have a mean alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError
from bayesmeta.posterior.priors import LKJ, InverseWishart, KnownCovariance, Prior


def refuse_conjugate(prior: Prior, differs: NDArray[np.bool_]) -> None:
    """An inverse-Wishart prior ties the mean of each feature to a variance, which some lack."""
    if isinstance(prior, InverseWishart) and not differs.all():
        raise InputError(
            "prior InverseWishart gives every feature a variance, and some have the same "
            "coefficient in all tasks; use LKJ"
        )
    if (
        isinstance(prior, KnownCovariance)
        and np.asarray(prior.cov)[np.ix_(~differs, differs)].any()
    ):
        raise InputError(
            "prior KnownCovariance has covariances with features whose coefficient is the same in "
            "all tasks; make them 0"
        )


def of_varying(prior: Prior, differs: NDArray[np.bool_]) -> Prior:
    """A settled prior of the features that differ alone; numbers of the others are left out."""
    if differs.all() or isinstance(prior, InverseWishart):
        return prior
    mean, mean_sd = np.asarray(prior.mean)[differs], np.asarray(prior.mean_sd)[differs]
    if isinstance(prior, LKJ):
        return replace(prior, mean=mean, mean_sd=mean_sd, scale=np.asarray(prior.scale)[differs])
    cov = np.asarray(prior.cov)[np.ix_(differs, differs)]
    return KnownCovariance(cov, mean, mean_sd, prior.noise_scale)


def embedded(own: Array, differs: NDArray[np.bool_]) -> Array:
    """Matrices (…, r, r) of the features that differ, zero in rows and columns of the others: a
    lower root stays lower."""
    if differs.all():
        return own
    out = np.zeros((*own.shape[:-2], len(differs), len(differs)))
    out[..., *np.ix_(differs, differs)] = own
    return out


def draw_prior(
    prior: Prior, differs: NDArray[np.bool_], rng: np.random.Generator, draws: int
) -> tuple[Array, Array, Array]:
    """Means (draws, d), lower roots (draws, r, r) of what differs, noise (draws,)."""
    own, roots, noise = of_varying(prior, differs).draw(rng, draws)
    if differs.all():
        return own, roots, noise
    assert not isinstance(prior, InverseWishart)
    normals = rng.standard_normal((draws, len(differs)))
    means = np.asarray(prior.mean) + np.asarray(prior.mean_sd) * normals
    means[:, differs] = own
    return means, roots, noise
