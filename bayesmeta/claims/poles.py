"""A law of Assumption 1 under which E[V^-1] is infinite, so that statements on it need an event.

d = 1, a = 1, density 1/(|r| (2 - ln|r|)^2) on [-1, 1], which falls with |r|: P(|A| <= r) is
2/(2 - ln r). As V <= tau max A^2, E[V^-1] >= y P(V <= 1/y) >= y (2/(2 + ln(tau y)/2))^tau, which
grows without bound with y, for every tau.
"""

from __future__ import annotations

import math

from scipy.special import gammaln

from bayesmeta.claims.verdict import Level, Point

LEAST = 0.1746
"""lambda_A of the law with the pole: no more than E[A^2]."""
DENSITY = "1/(|r| (2 - ln|r|)^2) on [-1, 1]"
LARGEST = math.log(1.7976931348623157e308)
"""The logarithm of the largest number in double precision."""


def steps_of(action_min: float) -> int:
    """tau of eq. (8) for d = a = 1, N = 2 and T = 2000."""
    return math.ceil(8 / action_min * math.log(8000))


def log_inverse_at_least(steps: int, y: float) -> float:
    """A lower bound on ln E[V^-1] under the law with the pole; ``y`` is a logarithm."""
    return y + steps * math.log(2 / (2 + (math.log(steps) + y) / 2))


def log_below(steps: int, log: float) -> float:
    """ln P(V^-1 > e^log) under the law with the pole, at most: every |A| is small."""
    return steps * math.log(2 / (2 + log / 2))


def _uniform_at_most(steps: int) -> float:
    """An upper bound on ln E[V^-1] for actions uniform on [-1, 1], from P(V <= v), the volume of a
    ball in tau dimensions, at most; infinite for tau <= 2."""
    if steps <= 2:
        return math.inf
    tail = steps / 2 * math.log(math.pi / 4) - gammaln(steps / 2 + 1) - math.log(steps / 2 - 1)
    return math.log1p(math.exp(tail))


def finite_inverse(level: Level, pole: bool = True, steps: int | None = None) -> list[Point]:
    """E[V^-1] is a number: for uniform actions, and under the law with the pole, where it is beyond
    what double precision holds, and beyond e^y for every y."""
    tau = steps_of(1 / 3) if steps is None else steps
    where = {"d": 1, "f_A": "uniform on [-1, 1]", "tau": tau}
    points = [Point(where, _uniform_at_most(tau), LARGEST, logs=True)]
    if pole:
        tau = steps_of(LEAST)
        where = {"d": 1, "f_A": DENSITY, "tau": tau}
        points.append(Point(where, log_inverse_at_least(tau, 1e6), LARGEST, logs=True))
    return points
