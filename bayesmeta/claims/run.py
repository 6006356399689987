"""Check claims, and compare with what was recorded."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.resources import files
from typing import Any, NamedTuple

from bayesmeta.checks import one_of, whole
from bayesmeta.claims import all_claims
from bayesmeta.claims.verdict import Claim, Level, Verdict, judge
from bayesmeta.runner.plain import without_nan

BUDGET = 1e-3
"""Probability that a check of everything raises a false alarm."""
POINTS = 100_000
"""No run looks at more points: each may have this share of the budget."""


class Checked(NamedTuple):
    """A claim with its verdict and how long it took."""

    claim: Claim
    verdict: Verdict
    seconds: float


def check_claims(
    only: Iterable[str] = (),
    *,
    quick: bool = True,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[Checked]:
    """Check the claims with these ids, or all of them, one after the other."""
    claims = all_claims()
    names = [one_of("claim", name, claims) for name in dict.fromkeys(only)] or list(claims)
    level = Level(quick, whole("seed", seed), BUDGET / POINTS)
    found = []
    for done, name in enumerate(names):
        start = time.perf_counter()
        verdict = judge(name, claims[name].check(level))
        found.append(Checked(claims[name], verdict, time.perf_counter() - start))
        if progress is not None:
            progress(done + 1)
    return found


def grouped_ids(ids: Iterable[str]) -> dict[str, list[str]]:
    """What the paper prints, printed statements taken literally where their use asks for less, and
    ours: corrections and sharpenings."""
    groups: dict[str, list[str]] = {"printed": [], "read literally": [], "ours": []}
    for name in ids:
        groups[_group(name)].append(name)
    return groups


def _group(name: str) -> str:
    kinds = {"corrected": "ours", "sharp": "ours", "literal": "read literally"}
    return kinds.get(name.rpartition("-")[2], "printed")


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
    out = []
    for one in found:
        verdict = asdict(one.verdict)
        verdict.pop("id")
        row = {
            "id": one.claim.id,
            "group": _group(one.claim.id),
            "section": one.claim.section,
            "kind": one.claim.kind,
            "statement": one.claim.statement,
            "lines": one.claim.lines,
            "remark": one.claim.remark,
            "survives": one.claim.survives,
            "sides": one.claim.sides,
            **verdict,
        }
        out.append({key: without_nan(value) for key, value in row.items()})
    return out
