"""Shares of replications whose intervals hold the truth, with exact intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayesmeta.checks import Array

if TYPE_CHECKING:
    import xarray as xr


def holds(low: Any, high: Any, truth: Any) -> Any:
    """Whether intervals hold the truth, ends included; not where an end is NaN. Of arrays of NumPy
    or xarray."""
    return (low <= truth) & (truth <= high)


def held(low: xr.DataArray, high: xr.DataArray, truth: xr.DataArray) -> xr.DataArray:
    """1 where an interval holds the truth, 0 where it does not, NaN where an end is NaN."""
    there = low.notnull() & high.notnull()
    return cast("xr.DataArray", holds(low, high, truth).astype(float).where(there))


def counted(
    low: xr.DataArray, high: xr.DataArray, truth: xr.DataArray, over: str
) -> tuple[xr.DataArray, xr.DataArray]:
    """How many intervals hold the truth, and how many there are, over a dimension."""
    inside = held(low, high, truth)
    return inside.sum(over), inside.notnull().sum(over)


def exact_interval(count: Array, of: Array, sure: float) -> tuple[Array, Array]:
    """Clopper and Pearson (1934): where a share is, with probability ``sure`` at least.

    Examples
    --------
    >>> low, high = exact_interval(np.array([95]), np.array([100]), 0.95)
    >>> low.round(3), high.round(3)
    (array([0.887]), array([0.984]))
    """
    from scipy.special import betaincinv

    count, of = np.asarray(count, dtype=float), np.asarray(of, dtype=float)
    tail = (1 - sure) / 2
    with np.errstate(invalid="ignore"):
        low = betaincinv(count, of - count + 1, tail)
        high = betaincinv(count + 1, of - count, 1 - tail)
    return np.where(count > 0, low, 0.0), np.where(count < of, high, 1.0)
