"""Sums of weighted chi-squared variables: how much of a Gaussian lies in a ball."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.checks import Array, InputError


def log_weighted_chi2_cdf(bound: float, weights: Array, freedom: Array) -> float:
    """ln P(sum_i w_i chi2(f_i) <= bound) by Ruben's series: a mixture of chi2 laws of scale min w.

    All terms are positive, so small probabilities keep their relative accuracy.
    """
    from scipy.special import logsumexp
    from scipy.stats import chi2

    total = float(freedom.sum())
    if chi2.sf(bound / weights.max(), total) < 1e-16:
        return 0.0  # nothing to speak of is cut off
    scale = float(weights.min())
    rest = 1 - scale / weights
    # beyond this many terms the chi2 probabilities vanish
    reach = int(bound / scale / 2 + 12 * math.sqrt(bound / scale / 2 + 1)) + 40
    limit = min(reach, 20_000)
    powers = 0.5 * (freedom * rest[None, :] ** np.arange(1, limit + 1)[:, None]).sum(1)
    mix = np.zeros(limit)
    mix[0] = math.exp(0.5 * float((freedom * np.log(scale / weights)).sum()))
    covered = mix[0]
    for k in range(1, limit):
        if covered > 1 - 1e-15:
            break
        mix[k] = float(powers[:k][::-1] @ mix[:k]) / k
        covered += mix[k]
    else:
        if reach > limit or covered == 0:
            raise InputError(
                "action covariance is too uneven for its ball: radius^2 / smallest eigenvalue "
                f"is {bound / scale:.3g}, largest / smallest {weights.max() / scale:.3g}; "
                "use a rounder covariance or a smaller ball"
            )
    logs = _log_chi2_cdf(bound / scale, total + 2.0 * np.arange(limit, dtype=np.float64))
    return float(logsumexp(logs, b=mix))


def _log_chi2_cdf(x: float, freedom: Array) -> Array:
    """ln P(chi2(f) <= x), also where the probability itself is below the smallest float."""
    from scipy.special import gammainc, gammaln, hyp1f1

    a, half = freedom / 2, x / 2
    out = np.empty_like(a)
    small = half < a + 1
    out[~small] = np.log(gammainc(a[~small], half))
    # gammainc(a, h) = h^a e^-h / Gamma(a + 1) 1F1(1; a + 1; h)
    log_power = a[small] * math.log(half) - half
    out[small] = log_power - gammaln(a[small] + 1) + np.log(hyp1f1(1.0, a[small] + 1, half))
    return out
