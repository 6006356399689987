"""Are ranks uniform? Simultaneous bands for their distribution function, and a test with them.

After Säilynoja, Bürkner and Vehtari (2022): at every point of a grid the number of ranks below is
binomial; the band is as narrow as lets 95% of uniform samples stay inside it everywhere.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from bayesmeta.checks import Array, InputError, whole

_NULLS, _FINE = 4000, 9999


class Uniformity(NamedTuple):
    """The distribution function of ranks less that of the uniform law, with its band."""

    points: Array
    difference: Array
    low: Array
    high: Array
    p_value: float
    """how often uniform ranks stray as far, simultaneously over all points"""


def rank_of(draws: Array, truth: Array | float, thin: int) -> Array:
    """How many of every ``thin``-th draw, along the first axis, are below the truth."""
    below: Array = (draws[thin - 1 :: thin] < truth).sum(axis=0).astype(float)
    return below


def uniformity(ranks: Array, draws: int) -> Uniformity:
    """Judge ranks 0 … ``draws`` of truths among so many draws of their posterior."""
    whole("draws", draws, least=1)
    values = np.asarray(ranks)
    if values.ndim != 1 or len(values) < 10 or not np.isfinite(values).all():
        raise InputError("ranks must be ten or more finite numbers")
    n = len(values)
    points, law = _grid(draws)
    below = np.array([(values <= point).sum() for point in points])
    worst = _surprise(below, n, law)
    nulls = _null(n, draws, tuple(points))
    low, high = _inside(n, law, nulls)
    p = float((1 + (nulls <= worst).sum()) / (1 + len(nulls)))
    return Uniformity(law, below / n - law, low - law, high - law, p)


def band(n: int, levels: Array) -> tuple[Array, Array]:
    """Where shares of ``n`` replications stay at all levels together, with probability 95%, if
    regions of all levels, each within the next, hold the truth as often as they say.

    Which of the nested regions is the first to hold the truth is then as uniform as a rank, so this
    is the band of ranks; levels are taken to four digits.
    """
    law = np.asarray(levels, dtype=float)
    points = np.round(law * (_FINE + 1)) - 1
    return _inside(n, law, _null(n, _FINE, tuple(points)))


def _inside(n: int, law: Array, nulls: Array) -> tuple[Array, Array]:
    """Shares that are no more surprising at any point than 95% of uniform samples at their most."""
    level = float(np.quantile(nulls, 0.05))
    return binom.ppf(level / 2, n, law) / n, binom.ppf(1 - level / 2, n, law) / n


def coverage(ranks: Array, draws: int, levels: Array) -> Array:
    """How often central intervals of the posterior hold the truth, at each level.

    A rank r places the truth somewhere in the share [r, r + 1] / (draws + 1); where an end of the
    interval falls inside that, the part of it that is covered counts.
    """
    width = 1 / (draws + 1)
    left = np.asarray(ranks)[:, None] * width
    half = np.asarray(levels)[None, :] / 2
    inside = np.minimum(left + width, 0.5 + half) - np.maximum(left, 0.5 - half)
    covered: Array = (np.clip(inside, 0.0, width) / width).mean(axis=0)
    return covered


def _grid(draws: int) -> tuple[Array, Array]:
    """Ranks at which to look, and the chance of a uniform rank to be no larger."""
    points = np.unique(np.linspace(0, draws - 1, min(draws, 50)).round())
    return points, (points + 1) / (draws + 1)


def _surprise(below: Array, n: int, law: Array) -> float:
    """The smallest two-sided binomial probability over all points."""
    tails = np.minimum(binom.cdf(below, n, law), binom.sf(below - 1, n, law))
    return float((2 * tails).min())


@cache
def _null(n: int, draws: int, points: tuple[float, ...]) -> Array:
    """The same for uniform ranks."""
    rng = np.random.default_rng(0)
    law = (np.array(points) + 1) / (draws + 1)
    out = np.empty(_NULLS)
    for k in range(_NULLS):
        ranks = np.sort(rng.integers(0, draws + 1, size=n))
        below = np.searchsorted(ranks, points, side="right").astype(float)
        out[k] = _surprise(below, n, law)
    return out
