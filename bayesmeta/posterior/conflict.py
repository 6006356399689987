"""Where a prior over (mu, Sigma) and the data clearly contradict each other."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.checks import Advice, Array, InputError, warn
from bayesmeta.posterior.defaults import pooled_spread
from bayesmeta.posterior.priors import LKJ, InverseWishart, Prior, PriorWarning
from bayesmeta.statistics import TaskStatistics


def at_odds(stats: TaskStatistics, noise_sd: float | None, prior: Prior) -> tuple[Advice, ...]:
    """Where a settled prior and the data clearly contradict each other; empty where they do not.

    The pooled estimate lies more than 4 standard deviations (the prior's and its own) from the
    prior mean, tasks spread by more than 5 times ``scale`` beyond their noise, or the noise is more
    than 5 times ``noise_scale``.
    """
    try:
        pooled, spread, variance = pooled_spread(stats, noise_sd)
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
