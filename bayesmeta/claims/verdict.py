"""The points a check looks at, and the verdict they add up to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from bayesmeta.streams import stream

Outcome = Literal["holds", "violated", "undecided", "proved, not testable here"]
PROVED: Outcome = "proved, not testable here"
UNTESTABLE = 1000.0
"""A check whose bounds are nowhere within this factor of what was found tests nothing."""
Where = dict[str, Any]
"""The parameters of a point, by name."""
DIMS = (1, 2, 5, 10)
"""The dimensions that a grid of points covers, unless the claim says otherwise."""


class Level(NamedTuple):
    """How much to check: with ``quick`` the points that decide, otherwise the whole grid.

    ``size`` is the probability of a false alarm that a single point may have.
    """

    quick: bool
    seed: int
    size: float

    def rng(self, name: str) -> np.random.Generator:
        """The random numbers of a check: they depend on the seed and the name alone."""
        return stream(self.seed, f"claims/{name}")

    def pick[T](self, few: T, many: T) -> T:
        """``few`` for a quick check, ``many`` for a full one."""
        return few if self.quick else many


class Point(NamedTuple):
    """One place where a claim was looked at: ``left`` <= ``right`` is claimed.

    ``low`` and ``high`` enclose ``left`` where it was measured; ``counts`` says from what. A right
    side that cannot be exceeded (a probability of 1 or more) makes the point vacuous. With
    ``logs`` both sides are logarithms of numbers that may be too small or too large. With
    ``rounding`` the right side is what rounding or chance allows, not a bound of the paper's.
    ``label`` tells ways to fail apart: of each the first counterexample is kept. ``simulated``
    points come from draws, all others from an exact law or from arithmetic.
    """

    where: Where
    left: float
    right: float
    low: float | None = None
    high: float | None = None
    counts: tuple[int, int] | None = None
    vacuous: bool = False
    logs: bool = False
    rounding: bool = False
    label: str = ""
    simulated: bool = False

    @property
    def outcome(self) -> Outcome:
        """Whether the claim holds here; NaN never does."""
        low = self.left if self.low is None else self.low
        high = self.left if self.high is None else self.high
        if math.isnan(self.left) or math.isnan(self.right) or low > self.right:
            return "violated"
        return "holds" if high <= self.right else "undecided"

    @property
    def slack(self) -> float:
        """1 - left / right: 0 where the claim is tight, negative where it fails."""
        if self.logs:
            return -math.expm1(min(self.left - self.right, 700.0))
        if self.right == 0:
            return 0.0 if self.left <= 0 else -math.inf
        if math.isinf(self.right):
            return 1.0
        return 1 - self.left / self.right if self.right > 0 else self.left / self.right - 1

    @property
    def loose(self) -> float | None:
        """How many times larger the right side is than the left (than its interval, where it was
        counted); None where that says nothing."""
        if self.rounding or self.vacuous or math.isnan(self.left) or math.isnan(self.right):
            return None
        if self.logs:
            return math.exp(min(self.right - self.left, 700.0))
        left = self.left if self.counts is None or self.high is None else self.high
        if left > 0:
            return self.right / left
        if self.right > 0 and self.high is not None:
            return math.inf
        return self.left / self.right if self.left < 0 and self.right < 0 else None


@dataclass(frozen=True)
class Verdict:
    """What a check found."""

    id: str
    verdict: Outcome
    why: str
    slack: float
    loose_by: float | None
    """the printed bound over what was found, where that is smallest; None for equalities"""
    worst: dict[str, Any]
    counterexample: dict[str, Any] | None
    others: list[dict[str, Any]]
    """counterexamples that fail in other ways"""
    points: int
    simulated: bool
    """whether any of the points comes from draws"""
    tolerance: float | None
    """what rounding or chance allows equalities, at most; None where there are none"""


def judge(claim_id: str, points: list[Point]) -> Verdict:
    """The verdict of all points: violated if one is, undecided if one is or if all are vacuous.

    The counterexample is the first of the violated points: checks go from the simple to the rest.
    """
    if not points:
        raise ValueError(f"the check of {claim_id} returned no points, so it decides nothing")
    bad = [point for point in points if point.outcome == "violated"]
    telling = [point for point in points if not point.vacuous]
    worst = min(telling or points, key=lambda point: point.slack)
    if bad:
        first = bad[0]
        outcome: Outcome = "violated"
        logs = " (logs)" if first.logs else ""
        why = f"{len(bad)} of {len(points)} points: {first.left:.4g} > {first.right:.4g}{logs}"
    elif not telling:
        outcome, why = "undecided", "the bound is vacuous at every point: it could not have failed"
    elif any(point.outcome == "undecided" for point in telling):
        open_points = [point for point in telling if point.outcome == "undecided"]
        outcome = "undecided"
        why = f"{len(open_points)} of {len(points)} points cannot be told from the bound"
    else:
        outcome, why = "holds", f"at {len(points):,} point{'s' * (len(points) > 1)}"
    ways = {point.label: point for point in reversed(bad)}  # the first of each
    first_ones = sorted(ways.values(), key=bad.index)
    shown = [_counterexample(point) for point in first_ones]
    loose = [point.loose for point in points if point.loose is not None]
    return Verdict(
        claim_id,
        outcome,
        why,
        worst.slack,
        min(loose, default=None),
        worst.where,
        shown[0] if shown else None,
        shown[1:],
        len(points),
        any(point.simulated for point in points),
        max((point.right for point in points if point.rounding), default=None),
    )


def toothless(points: list[Point]) -> bool:
    """Whether all points are bounds, and none is within ``UNTESTABLE`` of what was found."""
    loose = [point.loose for point in points if not (point.rounding or point.vacuous)]
    return bool(loose) and all(one is not None and one > UNTESTABLE for one in loose)


def _counterexample(point: Point) -> dict[str, Any]:
    found = {**point.where, "left": point.left, "right": point.right}
    if point.logs:
        found |= {"logarithms": True}
    if point.counts is not None:
        found |= {"counts": list(point.counts)}
    if point.low is not None:
        found |= {"interval": [point.low, point.high]}
    return found


def counted(where: Where, failures: int, trials: int, allowed: float, size: float) -> Point:
    """A probability of failure, from counts, with its exact binomial interval (Clopper-Pearson)
    of level 1 - ``size``; at most ``allowed`` is claimed."""
    from scipy.stats import beta

    low = 0.0 if failures == 0 else float(beta.ppf(size / 2, failures, trials - failures + 1))
    high = 1.0 if failures == trials else float(beta.isf(size / 2, failures + 1, trials - failures))
    return Point(
        where,
        failures / trials,
        allowed,
        low,
        high,
        (failures, trials),
        allowed >= 1,
        simulated=True,
    )


def exact(where: Where, failure: float, allowed: float) -> Point:
    """A probability of failure known from its law."""
    return Point(where, failure, allowed, vacuous=allowed >= 1)


def equal(where: Where, gap: float, tolerance: float, simulated: bool = False) -> Point:
    """An identity: the largest gap between its sides, relative to them, against rounding; or, where
    it was ``simulated``, against what chance allows."""
    return Point(where, gap, tolerance, rounding=True, simulated=simulated)


def ordered(where: Where, gap: float, scale: float, rounding: float = 1e-10) -> Point:
    """A number, or the smallest eigenvalue of a difference, that must not be negative."""
    return Point(where, -gap, rounding * scale, rounding=True)


def at_most(where: Where, left: float, right: float, rounding: float = 1e-12) -> Point:
    """An inequality between numbers computed to rounding."""
    return Point(where, left, right + rounding * max(abs(left), abs(right)))


def estimated(where: Where, values: np.ndarray, right: float, size: float) -> Point:
    """An expectation from independent values, with a t interval of level 1 - ``size``."""
    from scipy.stats import t

    mean = float(np.mean(values))
    half = float(t.isf(size / 2, len(values) - 1) * np.std(values, ddof=1))
    half /= math.sqrt(len(values))
    return Point(where, mean, right, mean - half, mean + half, simulated=True)


def bracketed(where: Where, low: float, high: float, right: float, *, logs: bool = False) -> Point:
    """A number that is known to lie between two others."""
    return Point(where, high, right, low, high, logs=logs)
