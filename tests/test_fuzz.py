"""The fuzzer, in short: every property on a few drawn cases, the same every time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.properties import PROPERTIES, judge


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_right_answer_or_one_line(name: str) -> None:
    """For all drawn input: what the oracle says, or InputError with one line."""
    cases, check, _, examples = PROPERTIES[name]
    ends = []

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(cases)
    def every(case: object) -> None:
        ends.append(judge(check, case))

    every()
    assert ends.count("right") >= len(ends) / 5, f"{len(ends)} cases, {ends.count('right')} right"
