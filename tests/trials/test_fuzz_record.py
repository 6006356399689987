"""How ``make fuzz`` shares out its cases, and tells of a failure."""

from __future__ import annotations

import pytest

from tests.properties import PROPERTIES
from tests.trials.fuzz import Part, parts_of, run_part


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
