"""Correlations of +-1 that are due to where a feature is measured from.

The intercept of a task is where its line meets the origin of a feature. Far from the data, as the
year 0 is, that is the slope times the distance and little else, so that intercepts and slopes are
correlated by nearly +-1 whatever the tasks do. The rank of Sigma, and with it ``Status.BOUNDARY``,
does not depend on the origin.
"""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.display import visible
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.statistics import TaskStatistics

NEAR = 0.999
"""A correlation beyond this is near +-1."""
INSIDE = 0.99
"""One below this is not: between the two, an origin explains little."""
LOST = 1e-12
"""Part of the intercept's variance below which, at another origin, it is rounding."""
NAMES = ("intercept", "(intercept)")
"""What an intercept is called, in any case of letters."""


def origin_note(stats: TaskStatistics, estimate: PriorEstimate) -> str:
    """Say which correlations with the intercept are near +-1 because of a feature's origin.

    Parameters
    ----------
    stats : TaskStatistics
    estimate : PriorEstimate
        Of the same features.

    Returns
    -------
    str
        What to do about it; empty where there is nothing to say, also where a correlation is near
        +-1 at any origin.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shop, year = np.arange(30).repeat(8), np.tile(np.arange(2001.0, 2009.0), 30)
    >>> level, trend = rng.normal(10.0, 2.0, 30)[shop], rng.normal(1.0, 0.5, 30)[shop]
    >>> sales = level + trend * (year - 2005) + rng.normal(size=240)
    >>> rows = np.column_stack([np.ones(240), year])
    >>> stats = TaskStatistics.from_arrays(shop, sales, rows, ["intercept", "year"])
    >>> print(origin_note(stats, bm.fit_prior(stats)))
    the correlation of intercept and year is -1.000 because the origin of year is far from the
    data; at its mean, 2004.5, it is -0.39: centre year
    """
    first = intercept_of(stats)
    if first is None or not stats.differs[first]:
        return ""
    cov, labels = estimate.prior.cov, [visible(one) for one in stats.feature_labels]
    means = stats.gram[:, first].sum(axis=0) / stats.gram[:, first, first].sum()
    near = [
        j
        for j in np.flatnonzero(stats.differs).tolist()
        if j != first and abs(_correlation(cov, first, j)) > NEAR
    ]
    notes = []
    for j in near:
        # by itself, or together with others that are far away, too
        for moved in ([j], near):
            there = _correlation(_centred(cov, first, moved, means), first, j)
            if abs(there) < INSIDE:
                notes.append(
                    f"the correlation of {labels[first]} and {labels[j]} is "
                    f"{_correlation(cov, first, j):.3f} because the origin of {labels[j]} is far "
                    f"from the data; at its mean, {means[j]:.6g}, it is {there:.2f}: centre "
                    f"{' and '.join(labels[k] for k in moved)}"
                )
                break
    return "; ".join(notes)


def intercept_of(stats: TaskStatistics) -> int | None:
    """The feature that is always 1: one that is called so, else the only one that may be.

    Parameters
    ----------
    stats : TaskStatistics

    Returns
    -------
    int or None
        None where there is none, also where several may be (actions with entries of +-1).
    """
    for k, label in enumerate(stats.feature_labels):
        if str(label).lower() in NAMES and may_be_one(stats, k):
            return k
    if stats.count is None or stats.log_weights is not None:
        return None
    found = [k for k in range(stats.dim) if may_be_one(stats, k)]
    return found[0] if len(found) == 1 else None


def may_be_one(stats: TaskStatistics, k: int) -> bool:
    """Whether a feature's sum of squares is the number of rows in every task; with weights, or
    where the rows were not counted, its label has to do."""
    if stats.count is None or stats.log_weights is not None:
        return True
    return bool((stats.gram[:, k, k] == stats.count).all())


def _correlation(cov: Array, i: int, j: int) -> float:
    """NaN where one of the two has no variance."""
    scale = cov[i, i] * cov[j, j]
    return float(cov[i, j] / math.sqrt(scale)) if min(cov[i, i], cov[j, j]) > 0 else math.nan


def _centred(cov: Array, first: int, moved: list[int], means: Array) -> Array:
    """Sigma with some features measured from their means; the variance of the intercept, ``first``,
    is 0 there where it is rounding."""
    change = np.eye(len(cov))
    change[first, moved] = means[moved]
    out: Array = change @ cov @ change.T
    if out[first, first] < LOST * cov[first, first]:
        out[first, first] = 0.0
    return out
