"""Quantiles of mixtures of normals: what many drawn priors say together of one number."""

from __future__ import annotations

import numpy as np

from bayesmeta.checks import Array

STEPS = 60
"""Of a search that halves an interval, and nearly always ends after ten by Newton's steps."""
NEAR = 1e-9
"""Error of a quantile, in standard deviations of the mixture."""


def mixture_quantile(mean: Array, sd: Array, share: float) -> Array:
    """Where the distribution function, the average of those of N(mean_s, sd_s^2) over s, is
    ``share``, for columns of (s, r) means and standard deviations; without draws."""
    from scipy.special import ndtr, ndtri

    middle = mean.mean(axis=0)
    wide = np.sqrt((sd**2).mean(axis=0) + mean.var(axis=0))
    narrow = np.maximum(sd, 1e-12 * np.where(wide > 0, wide, 1.0))
    own = mean + narrow * ndtri(share)
    low, high = own.min(axis=0), own.max(axis=0)  # the mixture's lies between those of its parts
    at = np.clip(middle + wide * ndtri(share), low, high)
    for _ in range(STEPS):
        z = (at - mean) / narrow
        above = ndtr(z).mean(axis=0) - share
        low, high = np.where(above < 0, at, low), np.where(above < 0, high, at)
        slope = (np.exp(-0.5 * z**2) / narrow).mean(axis=0) / np.sqrt(2 * np.pi)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = at - above / slope
        inside = (step > low) & (step < high)  # false where the slope vanishes
        after = np.where(inside, step, (low + high) / 2)
        moved, at = np.abs(after - at), after
        if (moved <= NEAR * wide).all():
            break
    return np.asarray(at)
