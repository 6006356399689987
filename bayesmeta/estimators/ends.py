"""Where searches for the largest likelihood end, and which of the ends is the highest."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.estimators.likelihood import WIDE
from bayesmeta.estimators.search import Search
from bayesmeta.estimators.starts import LOST, SAME_END, Climbs, End

MARGIN = 1e-7
"""Log-likelihood by which another place must be better than where the usual starts lead."""
EM = 3
"""Steps of EM from a place that is not near."""
OFTEN = 10
"""Climbs, of ``MANY``, that must end as high as the estimate, in tables of few facts, to be sure of
it: a higher end that one climb in 50 finds is then missed by all of them in one table of 57."""
TRIED = 3
"""Other places that are searched to the end, if they promise to be higher."""
Ended = tuple[Search, int, bool]
"""A search, its steps, and whether it arrived."""
Begun = Callable[[Array, float], Search]
"""A search that begins at a covariance and a noise variance."""


def value(ended: Ended) -> float:
    """The log-likelihood where a search is."""
    return ended[0].point.value


def end_of(ended: Ended | None) -> End | None:
    """Where a search is."""
    if ended is None:
        return None
    own = ended[0].own
    return End(value(ended), ended[0].root[:own, :own], ended[0].variance)


def from_usual(
    begun: Begun, climbs: Climbs, starts: list[Array], noise: float, near: bool, limit: int
) -> tuple[Ended | None, list[Ended]]:
    """The highest end of the searches from the usual starts, and those that rounding led astray.

    The first is searched to its end. From the others, and from the first where it is ``near``, the
    likelihood is climbed by compiled code, where features are few, and searched on only where that
    ends at another height, or nowhere.
    """
    best: Ended | None = None
    strays: list[Ended] = []
    for k, cov in enumerate(starts):
        quick = climbs.packed.dim < WIDE
        end = climbs.climb(cov, noise) if (k or near) and quick else None
        if end is not None and not _elsewhere(end, best):
            continue
        one = None
        try:
            if end is not None:
                ended = _to_the_end(end, begun, climbs.least, limit)
            else:
                one = begun(cov, noise)
                for _ in range(0 if k else EM):
                    one.em()
                if k and quick:
                    one.in_scale(limit)
                ended = (one, *one.climb(limit))
            if best is None or value(ended) > value(best):
                best = ended
        except np.linalg.LinAlgError:
            if one is not None:
                strays.append((one, limit, False))
    return best, strays


def _elsewhere(end: End, best: Ended | None) -> bool:
    """Whether a climb ended elsewhere than where the best search arrived. A lower end counts, too:
    on the boundary a climb stops where a search goes on."""
    return best is None or not best[2] or abs(end.value - value(best)) > SAME_END


def from_moments(
    begun: Begun, start: tuple[Array, float] | None, best: Ended | None, limit: int
) -> list[Ended]:
    """The end of a search from the moments, if there is one; where ``best`` is given, only if they
    are likelier than it."""
    with suppress(np.linalg.LinAlgError):
        if start is not None:
            one = begun(*start)
            if best is None or one.point.value > value(best) + MARGIN:
                return [(one, *one.climb(limit))]
    return []


def higher(best: Ended | None, others: list[Ended]) -> Ended | None:
    """Another search takes the place of the best if it ends higher by ``MARGIN``."""
    for other in others:
        if best is None or value(other) > value(best) + MARGIN:
            best = other
    return best


def highest_of(
    best: Ended | None,
    strays: list[Ended],
    ends: list[End],
    begun: Begun,
    least: float,
    endless: bool,
    limit: int,
) -> Ended | None:
    """The highest of all: another place takes that of ``best`` if it is higher by ``MARGIN``.

    Likelihoods of less noise than ``least`` have too few digits to be compared; there the same
    covariance counts with that much noise.
    """
    highest = -math.inf if best is None else best[0].with_noise(max(best[0].variance, least))
    others = [] if best is None else strays
    for end in ends[:TRIED]:
        if end.value > highest + MARGIN:
            with suppress(np.linalg.LinAlgError):
                others.append(_to_the_end(end, begun, least, limit))

    def sure(ended: Ended) -> float:
        one = ended[0]
        return one.with_noise(max(one.variance, least)) - LOST * min(1.0, least / one.variance)

    other = max(others, key=sure, default=None)
    if best is None or other is None:
        return best or other
    if best[0].free and best[0].variance <= least and (endless or other[0].variance <= least):
        return best  # the likelihood rises to no noise, here as there
    return other if sure(other) > highest + MARGIN else best


def endless_at(ends: list[End], begun: Begun, least: float) -> bool:
    """Whether the likelihood rises without bound as the noise goes to 0.

    If covariances of lower rank fit rewards exactly, it rises by at least half the logarithm of
    the noise variance for ever, so that it has no maximum, however high others are.
    """
    lowest = [end for end in ends if end.variance <= least]
    for end in lowest[:TRIED]:
        with suppress(np.linalg.LinAlgError):
            here = begun(end.root @ end.root.T, end.variance).point
            if here.noise_gradient < -0.25:
                return True
    return False


def often(best: Ended | None, ends: list[End]) -> bool:
    """Whether several climbs came as high, so that none that was missed is likely to be higher."""
    return best is not None and sum(end.value > value(best) - 1e-3 for end in ends) >= OFTEN


def _to_the_end(end: End, begun: Begun, least: float, limit: int) -> Ended:
    """Search on from the end of a climb, but not into noise so small that digits are lost."""
    one = begun(end.root @ end.root.T, end.variance)
    try:
        arrived = one.climb(limit)
    except np.linalg.LinAlgError:
        return begun(end.root @ end.root.T, end.variance), limit, False
    if one.variance < least:
        return begun(end.root @ end.root.T, end.variance), arrived[0], False
    return one, *arrived
