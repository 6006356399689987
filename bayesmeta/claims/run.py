"""Check claims, and compare with what was recorded."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

from bayesmeta.checks import one_of, whole
from bayesmeta.claims import all_claims
from bayesmeta.claims.claim import Claim, Group, Kind, Section
from bayesmeta.claims.verdict import (
    PROVED,
    UNTESTABLE,
    Level,
    Point,
    Verdict,
    judge,
    toothless,
)
from bayesmeta.runner.plain import without_nan

BUDGET = 1e-3
"""Probability that a check of everything raises a false alarm."""
POINTS = 100_000
"""No run looks at more points: each may have this share of the budget."""


class Teeth(NamedTuple):
    """How strong a check is: its constant as ``printed``, and the smallest that it would still
    accept. A constant that is printed as 1 is a factor ``of`` something; where none is named, of
    the bound. For equalities the largest difference that would be accepted, and no printed
    value."""

    printed: float | None
    accepts: float
    of: str = "the bound"


class Checked(NamedTuple):
    """A claim with its verdict, how long it took, and, where asked for, the teeth of its check."""

    claim: Claim
    verdict: Verdict
    seconds: float
    teeth: Teeth | None = None


def check_claims(
    only: Iterable[str] = (),
    *,
    quick: bool = True,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    bite: bool = False,
) -> list[Checked]:
    """Check the claims with these ids, or all of them, one after the other; with ``bite`` their
    teeth are measured, too."""
    claims = all_claims()
    names = [one_of("claim", name, claims) for name in dict.fromkeys(only)] or list(claims)
    level = Level(quick, whole("seed", seed), BUDGET / POINTS)
    found = []
    for done, name in enumerate(names):
        start = time.perf_counter()
        verdict = verdict_of(claims[name], claims[name].check(level))
        seconds = time.perf_counter() - start
        strength = teeth(claims[name], verdict, level) if bite else None
        found.append(Checked(claims[name], verdict, seconds, strength))
        if progress is not None:
            progress(done + 1)
    return found


def verdict_of(claim: Claim, points: list[Point]) -> Verdict:
    """The verdict on a claim from the points of its check.

    Where no point fails, yet every bound is more than ``UNTESTABLE`` times what was found, the
    check could not have failed: a claim that has a proof is *proved, not testable here*, one that
    has none undecided. This is asked of inequalities between numbers; where probabilities are
    bounded, it is the constant within them that is cut (``teeth``).
    """
    found = judge(claim.id, points)
    between = claim.kind in (Kind.INEQUALITY, Kind.EXPECTATION) and claim.constant is None
    if found.verdict != "holds" or not between or not toothless(points):
        return found
    why = f"no bound is within a factor of {UNTESTABLE:,.0f} of what was found"
    return replace(found, verdict=PROVED if claim.proof else "undecided", why=why)


def accepted(found: Teeth | None) -> str:
    """Teeth in words: ``1.2 for 50``, ``0.013 of the bound``, ``± 1e-08``; nothing for none."""
    if found is None:
        return ""
    if found.printed is None:
        return f"± {found.accepts:.1g}"
    if found.accepts < 1e-4 * found.printed:
        return "anything"
    if found.printed == 1:
        return f"{found.accepts:.2g} of {found.of}"
    return f"{found.accepts:.3g} for {found.printed:g}"


STEPS = 10
"""Of bisection, over four decades: to one per cent."""


def teeth(claim: Claim, verdict: Verdict, level: Level) -> Teeth | None:
    """The teeth of the check of a claim that holds; None for orderings, and where it does not. A
    check that draws is called again and again with the points of a quick one."""
    if verdict.verdict not in ("holds", PROVED) or claim.section is Section.EXPERIMENT:
        return None
    if claim.constant is not None:
        name, printed = claim.constant
        points = level._replace(quick=True) if verdict.simulated else level
        return Teeth(printed, _smallest(claim, points, name, printed), claim.factor_of)
    if verdict.loose_by is not None:
        return Teeth(1.0, 1 / verdict.loose_by)
    return None if verdict.tolerance is None else Teeth(None, verdict.tolerance)


def _smallest(claim: Claim, level: Level, name: str, printed: float) -> float:
    """The smallest value of an argument of the check with which it finds no violation; smaller
    values claim more."""

    def accepted(value: float) -> bool:
        points = partial(claim.check, **{name: value})(level)
        return judge(claim.id, points).verdict != "violated"

    low, high = printed * 1e-4, printed
    if accepted(low):
        return 0.0
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if accepted(middle) else (middle, high)
    return high


def grouped_ids(ids: Iterable[str]) -> dict[str, list[str]]:
    """The ids under the heading of their group: printed, in another reading, ours."""
    claims = all_claims()
    groups: dict[str, list[str]] = {group.value: [] for group in Group}
    for name in ids:
        groups[claims[name].group.value].append(name)
    return groups


def recorded(quick: bool) -> dict[str, str]:
    """The verdicts of the recorded run, by id."""
    text = files("bayesmeta.data").joinpath("verdicts.json").read_text()
    verdicts: dict[str, str] = json.loads(text)["quick" if quick else "full"]
    return verdicts


def changed(found: list[Checked], quick: bool) -> dict[str, tuple[str, str]]:
    """Claims whose verdict is not the recorded one: what it was, and what it is."""
    before = recorded(quick)
    return {
        one.claim.id: (before.get(one.claim.id, "not recorded"), one.verdict.verdict)
        for one in found
        if before.get(one.claim.id) != one.verdict.verdict
    }


def as_json(found: list[Checked]) -> list[dict[str, Any]]:
    """Plain data, an object for every claim; numbers that are not finite are null."""
    return [{name: without_nan(value) for name, value in _row(one).items()} for one in found]


def _row(one: Checked) -> dict[str, Any]:
    claim = one.claim
    plain = ("where", "quote", "statement", "lines", "remark", "survives", "sides", "proof")
    relations = ("corrects", "sharpens", "reading_of")
    return {
        "id": claim.id,
        "group": claim.group.value,
        "section": claim.section.value,
        "kind": claim.kind.value,
        **{name: getattr(claim, name) for name in (*plain, *relations)},
        **asdict(one.verdict),
        "teeth": None if one.teeth is None else one.teeth._asdict(),
    }
