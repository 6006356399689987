"""How relative regret grows: the exponent of a power, with an interval over runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesmeta.checks import Array, InputError, array
from bayesmeta.simulation.summaries import Interval, interval

RESAMPLES = 2000


def growth_exponent(
    x: Sequence[float] | Array, values: Sequence[Array], *, paired: bool, random_seed: int = 0
) -> Interval | None:
    """The slope of the logarithm of a mean over runs on the logarithm of x, by least squares.

    Parameters
    ----------
    x : array_like
        What grows: at least two values, all positive.
    values : sequence of arrays
        Relative regret of every run, for every x.
    paired : bool
        Whether the runs are the same ones for every x (more tasks of a run) or other ones.
    random_seed : int
        Of the resampling.

    Returns
    -------
    Interval or None
        The slope with its 95% percentile bootstrap interval over runs; None where relative regret
        is not positive: where its own 95% interval reaches 0 for some x.

    Examples
    --------
    >>> runs = np.linspace(0.9, 1.1, 10)
    >>> found = bm.simulation.growth_exponent([1, 4], [runs, 2 * runs], paired=True)
    >>> round(found.mean, 9)
    0.5
    """
    given = array("x", x, (None,))
    if len(given) != len(values) or len(given) < 2:
        raise InputError(f"x has {len(given)} values and values {len(values)}; give two at least")
    if not (given > 0).all() or len(np.unique(given)) < 2:
        raise InputError(f"x must be positive and not all the same, got {given}")
    if paired and len({len(one) for one in values}) > 1:
        raise InputError("values have other numbers of runs; paired ones are of the same runs")
    at = np.log(given)
    if not all(interval(one).low > 0 for one in values):
        return None
    rng = np.random.default_rng(random_seed)
    counts = [len(one) for one in values]
    if paired:
        drawn = [rng.integers(counts[0], size=(RESAMPLES, counts[0]))] * len(values)
    else:
        drawn = [rng.integers(count, size=(RESAMPLES, count)) for count in counts]
    means = np.array(
        [np.asarray(one)[rows].mean(axis=1) for one, rows in zip(values, drawn, strict=True)]
    )
    weights = (at - at.mean()) / ((at - at.mean()) ** 2).sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = weights @ np.log(means)
    low, high = np.quantile(slopes[np.isfinite(slopes)], [0.025, 0.975])
    whole = weights @ np.log([np.mean(one) for one in values])
    return Interval(float(whole), float(low), float(high))
