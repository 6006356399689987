"""What ``make fuzz`` recorded: enough cases of every property, both ends, no failure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.properties import PROPERTIES
from tests.trials.fuzz import ENDS, RECORD, Part, parts_of, run_part


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text())
    return found


def test_enough_cases_and_no_failure(record: dict[str, Any]) -> None:
    """Five thousand or more, of every property that there is; each ended somehow."""
    assert record["failures"] == []
    assert record["cases"] >= 5000
    assert record["cases"] == sum(record[end] for end in ENDS)
    assert list(record["properties"]) == list(PROPERTIES)
    for name, one in record["properties"].items():
        assert one["cases"] >= 50 and one["cases"] == sum(one[end] for end in ENDS), name


def test_both_ends_are_met(record: dict[str, Any]) -> None:
    """A fuzzer that is always refused tests nothing, one that never is not enough; few cases leave
    the oracle without a word."""
    for name, one in record["properties"].items():
        assert one["right"] >= one["cases"] / 5, name
        assert one["refused"] > 0, name
        assert one["unjudged"] <= 0.15 * one["cases"], name
    assert record["refused"] >= record["cases"] / 10


def test_cases_are_shared_out() -> None:
    """Every property has its share, with seeds of its own."""
    parts = parts_of(6000, 3, list(PROPERTIES))
    assert {part.name for part in parts} == set(PROPERTIES)
    assert 6000 <= sum(part.cases for part in parts) <= 6000 + len(PROPERTIES)
    assert len({part.seed for part in parts}) == len(parts)


def test_a_failure_is_recorded_with_its_smallest_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """A widening that forgets a factor is found, shrunk and told."""
    import bayesmeta as bm

    right = bm.GaussianPrior.widen
    monkeypatch.setattr(bm.GaussianPrior, "widen", lambda prior, radius: right(prior, radius / 2))
    done = run_part(Part("posterior_is_conditioning", 20, 1))
    assert done.failure is not None and done.failure["error"].startswith("AssertionError")
    assert "mean=array([0.])" in done.failure["case"], "not the smallest case"
