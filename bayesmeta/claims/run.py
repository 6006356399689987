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
from bayesmeta.claims.claim import Claim, Group
from bayesmeta.claims.verdict import Level, Verdict, judge
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
    """The ids under the heading of their group: printed, read literally, ours."""
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
    return [
        {name: without_nan(value) for name, value in _row(one.claim, one.verdict).items()}
        for one in found
    ]


def _row(claim: Claim, verdict: Verdict) -> dict[str, Any]:
    plain = ("where", "quote", "statement", "lines", "remark", "survives", "sides")
    relations = ("corrects", "sharpens", "reads_literally")
    return {
        "id": claim.id,
        "group": claim.group.value,
        "section": claim.section.value,
        "kind": claim.kind.value,
        **{name: getattr(claim, name) for name in (*plain, *relations)},
        **asdict(verdict),
    }
