"""The recorded mutation run: enough mutants, few survivors, and a reason for each of the others."""

from __future__ import annotations

import json

from tests.helpers import ROOT
from tests.trials.plan import TARGETS
from tests.trials.record import FATES, MOST, RECORD, SURVIVORS, explains, explanations, why

FOUND = json.loads((ROOT / RECORD).read_text())
KNOWN = explanations(ROOT / SURVIVORS)


def test_the_budget_of_survivors() -> None:
    """At least 300 mutants, of every target; at most 5% survive unexplained; counts add up."""
    assert FOUND["mutants"] >= 300
    assert FOUND["unexplained"] <= MOST * FOUND["mutants"]
    assert sum(FOUND[fate] for fate in FATES) == FOUND["mutants"]
    for grouping in ("by_target", "by_kind"):
        for fate in FATES:
            assert sum(one[fate] for one in FOUND[grouping].values()) == FOUND[fate]
    assert set(FOUND["by_target"]) == set(TARGETS)
    assert min(sum(one.values()) for one in FOUND["by_target"].values()) >= 50
    assert len(FOUND["timeouts"]) == FOUND["timeout"]


def test_survivors_are_explained_by_the_file() -> None:
    """Each has the reason that survivors.toml gives for it, or none where it gives none."""
    survivors = FOUND["survivors"]
    assert len(survivors) == FOUND["explained"] + FOUND["unexplained"]
    assert sum(one["why"] is None for one in survivors) == FOUND["unexplained"]
    assert [one["why"] for one in survivors] == [why(KNOWN, one) for one in survivors]


GONE = {
    'loss, start, jac=True, method="BFGS", options={"maxiter": limit, "gtol": 1e-9}',
    "for _ in range(0 if k else 3):",
}
"""Explained lines that have changed since the record was made; none when it is made again."""


def test_every_explanation_is_used_and_of_a_line_that_exists() -> None:
    """`python -m tests.trials.mutants --tidy` drops the others."""
    gone = set()
    for one in KNOWN:
        assert any(explains(one, row) for row in FOUND["survivors"]), one
        assert len(one["why"]) > 10
        lines = [line.strip() for line in (ROOT / one["file"]).read_text().splitlines()]
        gone |= {one["text"]} - set(lines)
    assert gone == GONE
