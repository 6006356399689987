"""What the quick checks of all claims look at, as a few numbers a claim.

Most claims are inequalities with room to spare, so a slip in a check need not change its verdict;
it does change these numbers. After a change that means to move points:

    python -m tests.claims.points
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

from bayesmeta.claims import all_claims
from bayesmeta.claims.run import BUDGET, POINTS
from bayesmeta.claims.verdict import Level, Point

FILE = Path(__file__).parents[1] / "data" / "claim_points.json"
QUICK = Level(quick=True, seed=0, size=BUDGET / POINTS)
WHOLE = ("points", "undecided", "vacuous", "logs", "labels")
"""Which of the numbers are counts."""
ROUNDING, TINY = 1e-6, 1e-9
"""What is smaller counts as 0: gaps of identities and logarithms of ratios that are 1, which are
rounding and another number on another machine; and all else."""


def numbers(points: list[Point]) -> dict[str, float]:
    """How many points, and sums over them on a scale that no single one dominates."""
    return {
        "points": len(points),
        "undecided": sum(point.outcome == "undecided" for point in points),
        "vacuous": sum(point.vacuous for point in points),
        "logs": sum(point.logs for point in points),
        "labels": len({point.label for point in points}),
        "gaps": _total((point.left for point in points if point.rounding), ROUNDING),
        "left": math.fsum(
            _scaled(float(point.left), ROUNDING if point.logs else TINY)
            for point in points
            if not point.rounding
        ),
        "right": _total(point.right for point in points),
        "low": _total(point.low for point in points if point.low is not None),
        "high": _total(point.high for point in points if point.high is not None),
        "where": _total(
            value
            for point in points
            for value in point.where.values()
            if isinstance(value, int | float)
        ),
    }


def _total(values: Iterable[float], least: float = TINY) -> float:
    """A sum in which order of magnitude and sign of every value show."""
    return math.fsum(_scaled(float(value), least) for value in values)


def _scaled(value: float, least: float) -> float:
    if math.isnan(value):
        return 1e3
    if math.isinf(value):
        return math.copysign(1e4, value)
    return math.copysign(max(0.0, math.log(abs(value) / least)), value) if value else 0.0


if __name__ == "__main__":
    found = {name: numbers(one.check(QUICK)) for name, one in all_claims().items()}
    FILE.write_text(json.dumps(found, indent=1) + "\n")
