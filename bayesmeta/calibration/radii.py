"""The paper's own intervals: how far the moments are from the truth at most, events E_m and E_s.

Given E_v, that the gram of every task has eigenvalues of at least lambda_A d / 2, the proofs of the
lemmas "Mean estimation error" and "Covariance estimation error" (Appendices D.2 and D.3) bound
|mu-hat - mu_*| with probability 1 - eta, and the operator norm of Sigma-hat - Sigma_*, eq. (11),
with probability 1 - 6 eta where n > 5d + 2 ln(1/eta); E_m and E_s have eta = 1/(dnT). Here eta is
what a level leaves. A widened covariance is away by what it was widened by, too: E_s, with 2 s.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesmeta.calibration.answers import Answer, Asked
from bayesmeta.checks import Array
from bayesmeta.theory.constants import covariance_radius, mean_radius


class Radii(NamedTuple):
    """By level; NaN where the paper promises nothing."""

    mean: Array
    """of the ball around mu-hat that holds mu_*"""
    cov: Array
    """of the ball around the estimate of Sigma, in operator norm"""


def radii_of(answer: Answer, asked: Asked, levels: Array) -> Radii:
    """Those of an estimate by moments; none where E_v fails in a task."""
    estimate, bounds, stats = answer.estimate, asked.bounds, asked.data.stats
    none = np.full(len(levels), np.nan)
    assert estimate is not None and estimate.noise_sd is not None and bounds is not None
    d, n = stats.dim, len(stats) + 1
    explored = np.linalg.eigvalsh(stats.gram)[:, 0].min()
    if not (bounds.action_min > 0 and explored >= bounds.action_min * d / 2):
        return Radii(none, none)
    told = d, estimate.noise_sd, bounds.action_min, bounds.prior_max, n
    assert estimate.raw_cov is not None
    widened = float(np.diag(answer.prior.cov - estimate.raw_cov).max())
    mean = np.array([mean_radius(*told, 1 - level) for level in levels])
    cov = none.copy()
    for k, level in enumerate(levels):
        eta = (1 - level) / 6
        if n > 5 * d - 2 * math.log(eta):
            cov[k] = widened + covariance_radius(*told, eta)
    return Radii(mean, cov)


def radii_ends(answer: Answer, asked: Asked, levels: Array) -> Array:
    """Low and high ends of every quantity (2, levels, quantities), all held at once: a coordinate
    of mu is no further away than the norm, an entry of Sigma than the operator norm; a standard
    deviation is the root of a variance. Correlations and the noise have none."""
    found = radii_of(answer, asked, levels)
    out = np.full((2, len(levels), len(answer.values)), np.nan)
    cov = answer.prior.cov
    for q, (kind, at) in enumerate(asked.quantities.places):
        for end, sign in enumerate((-1.0, 1.0)):
            if kind == "mu":
                out[end, :, q] = answer.values[q] + sign * found.mean
            elif kind == "cov":
                out[end, :, q] = answer.values[q] + sign * found.cov
            elif kind == "sd":
                variance = cov[at[0], at[0]] + sign * found.cov
                out[end, :, q] = np.sqrt(np.maximum(variance, 0.0))
    return out
