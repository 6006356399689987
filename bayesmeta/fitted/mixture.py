"""Quantiles of mixtures of normals: what many drawn priors say together of one number."""

from __future__ import annotations

import numpy as np

from bayesmeta.checks import Array

STEPS = 100
"""Of a search by Newton's steps, each followed by one that halves the bracket where it did not."""
NEAR = 1e-9
"""Error of the distribution function at a quantile."""


def mixture_quantile(mean: Array, sd: Array, share: float) -> Array:
    """Where the distribution function, the average of those of N(mean_s, sd_s^2) over s, is
    ``share``, for columns of (s, r) means and standard deviations; without draws."""
    from scipy.special import ndtr, ndtri

    spread = sd.max(axis=0) > 0
    out: Array = np.quantile(mean, share, axis=0)  # of points, where nothing spreads
    if not spread.any():
        return out
    mean, sd = mean[:, spread], sd[:, spread]
    wide = np.sqrt((sd**2).mean(axis=0) + mean.var(axis=0))
    narrow = np.maximum(sd, 1e-12 * wide)
    own = mean + narrow * ndtri(share)
    low, high = own.min(axis=0), own.max(axis=0)  # the mixture's lies between those of its parts
    at = np.clip(mean.mean(axis=0) + wide * ndtri(share), low, high)
    width = high - low
    for _ in range(STEPS):
        z = (at - mean) / narrow
        above = ndtr(z).mean(axis=0) - share
        low, high = np.where(above < 0, at, low), np.where(above < 0, high, at)
        if (np.abs(above) <= NEAR).all():
            break
        with np.errstate(all="ignore"):
            slope = (np.exp(-0.5 * z**2) / narrow).mean(axis=0) / np.sqrt(2 * np.pi)
            step = at - above / slope
        # by Newton while that halves the bracket, otherwise by halving it
        newton = (step > low) & (step < high) & (high - low <= width / 2)
        width = high - low
        at = np.where(np.abs(above) <= NEAR, at, np.where(newton, step, (low + high) / 2))
    out[spread] = at
    return out
