"""Points and the verdict they add up to."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from bayesmeta.claims import all_claims
from bayesmeta.claims.run import verdict_of
from bayesmeta.claims.verdict import PROVED, Point, at_most, counted, equal, estimated, exact, judge


def test_points_are_judged() -> None:
    """Below, above, too close to tell; NaN fails; what cannot fail decides nothing."""
    assert at_most({}, 1.0, 2.0).outcome == "holds"
    assert at_most({}, 1.0, 2.0).slack == pytest.approx(0.5)
    assert at_most({}, 2.0, 1.0).outcome == "violated"
    assert Point({}, math.nan, 1.0).outcome == "violated"
    assert Point({}, 1.0, 1.5, 0.5, 2.0).outcome == "undecided"
    assert equal({}, 0.0, 0.0).outcome == "holds"
    assert judge("x", [exact({}, 0.5, 2.0)]).verdict == "undecided"
    assert judge("x", [exact({}, 0.5, 2.0), exact({"d": 1}, 0.1, 0.2)]).verdict == "holds"
    assert judge("x", [Point({}, 1.0, 1.5, 0.5, 2.0), at_most({}, 0, 1)]).verdict == "undecided"
    bad = judge("x", [at_most({}, 0, 1), at_most({"d": 3}, 2, 1), at_most({"d": 9}, 3, 1)])
    assert bad.verdict == "violated" and bad.counterexample is not None
    assert bad.counterexample["d"] == 3 and bad.counterexample["left"] == 2
    with pytest.raises(ValueError, match="returned no points"):
        judge("x", [])


def test_counts_have_exact_intervals() -> None:
    """Clopper-Pearson: the ends are where so few or so many are just unlikely enough."""
    point = counted({}, 7, 100, 0.01, 0.01)
    assert point.outcome == "violated" and point.low is not None and point.high is not None
    assert binom.sf(6, 100, point.low) == pytest.approx(0.005)
    assert binom.cdf(7, 100, point.high) == pytest.approx(0.005)
    assert counted({}, 0, 100, 0.5, 0.01).outcome == "holds"
    assert counted({}, 0, 100, 1e-3, 0.01).outcome == "undecided"
    assert counted({}, 100, 100, 1.0, 0.01).vacuous


def test_estimates_have_t_intervals() -> None:
    """Mean and half width by hand: t with 3 degrees of freedom."""
    point = estimated({}, np.array([1.0, 2.0, 3.0, 4.0]), 10.0, 0.05)
    assert point.left == 2.5 and point.outcome == "holds"
    assert point.high == pytest.approx(2.5 + 3.182446 * np.sqrt(5 / 3) / 2)


def test_a_counterexample_says_what_was_found() -> None:
    """Where, both sides, and only what there is of counts, interval, logarithms; the first of each
    way to fail."""
    plain = Point({"d": 2}, 3.0, 1.0)
    full = Point({"d": 3}, 0.0, -1.0, -0.5, 0.5, (7, 10), logs=True, label="other")
    found = judge("x", [plain, full, full._replace(where={"d": 4})])
    assert found.counterexample == {"d": 2, "left": 3.0, "right": 1.0}
    assert found.others == [
        {
            "d": 3,
            "left": 0.0,
            "right": -1.0,
            "logarithms": True,
            "counts": [7, 10],
            "interval": [-0.5, 0.5],
        }
    ]
    assert found.why == "3 of 3 points: 3 > 1"
    assert judge("x", [full]).why == "1 of 1 points: 0 > -1 (logs)"


@pytest.mark.parametrize(
    ("point", "slack", "loose"),
    [
        (Point({}, 1.0, 4.0), 0.75, 4.0),
        (Point({}, -4.0, -1.0), 3.0, 4.0),
        (Point({}, 0.0, 0.0), 0.0, None),
        (Point({}, 1.0, 0.0), -math.inf, 0.0),
        (Point({}, 1.0, math.inf), 1.0, math.inf),
        (Point({}, math.log(0.5), 0.0, logs=True), 0.5, 2.0),
        (Point({}, 0.0, 2000.0, logs=True), 1.0, math.exp(700.0)),
        (Point({}, 0.1, 0.4, 0.0, 0.2, (1, 10)), 0.75, 2.0),
        (Point({}, 0.1, 0.4, 0.0, 0.2), 0.75, 4.0),
        (Point({}, 0.1, 0.4, rounding=True), 0.75, None),
        (Point({}, 0.1, 1.0, vacuous=True), 0.9, None),
    ],
)
def test_slack_and_looseness(point: Point, slack: float, loose: float | None) -> None:
    """1 - left / right, and right / left where that is a statement about the paper's bound."""
    assert point.slack == pytest.approx(slack)
    assert point.loose == (loose if loose is None else pytest.approx(loose))


def test_a_check_that_cannot_fail_is_not_evidence() -> None:
    """Bounds nowhere near what was found: proved where there is a proof, else undecided; one point
    with teeth is enough, and violations stay violations."""
    one = all_claims()["theorem-2-corrected"]
    far = Point({}, 1e-9, 1.0, 0.0, 1e-9)
    assert verdict_of(one, [far, far]).verdict == PROVED
    assert verdict_of(replace(one, proof=""), [far]).verdict == "undecided"
    assert verdict_of(one, [far, Point({}, 0.5, 1.0)]).verdict == "holds"
    assert verdict_of(one, [far, Point({}, 2.0, 1.0)]).verdict == "violated"
    assert verdict_of(one, [Point({}, -1.0, 1.0, -2.0, 0.0)]).verdict == PROVED
