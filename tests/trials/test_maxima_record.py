"""What ``make maxima`` recorded: no estimate below the best of 50 starts without a word."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trials import tables
from tests.trials.maxima import RECORD, SAYS_SO, SHORT, summary


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text())
    return found


def test_no_estimate_falls_short_in_silence(record: dict[str, Any]) -> None:
    """Two thousand tables or more; most of them are fitted without a doubt."""
    assert record["tables"] >= 2000
    assert record["short"] == 0 and record["fit"]["short_in_silence"] == {}
    assert record["fit"]["worst_shortfall"] <= SHORT
    statuses = record["fit"]["statuses"]
    assert sum(statuses.values()) == record["tables"]
    assert sum(statuses.get(name, 0) for name in SAYS_SO) <= record["tables"] / 2
    assert len(record["usual"]["short_in_silence"]) >= len(record["hard"]) >= 20


def test_the_record_is_of_these_tables(record: dict[str, Any]) -> None:
    """Tables or the optimiser were not changed since."""
    own = hashlib.sha256(Path(tables.__file__).read_bytes()).hexdigest()[:12]
    assert record["versions"]["tables"] == own


def test_a_silent_shortfall_is_counted() -> None:
    """Two tables that fall short: one says so, the other does not."""
    references = [
        {"seed": seed, "value": 1.0, "variance": 0.1, "at_floor": False} for seed in range(3)
    ]
    fit = {"value": 0.5, "error": 0.0, "seconds": 1.0}
    fits = [
        {"seed": seed, "fit": {**fit, "status": status}, "usual": {**fit, "status": status}}
        for seed, status in enumerate(("OK", "NO_NOISE", "REFUSED"))
    ]
    found = summary(references, fits)
    assert found["short"] == 1 and found["fit"]["short_in_silence"] == {"0": 0.5}
    assert found["fit"]["short_and_said"] == 1 and found["hard"] == {"0": 1.0}


def test_rational_densities_are_those_of_gaussians() -> None:
    """One task of one row: a normal density; restricted, of a table whose mean is known."""
    made = tables.Table([np.array([[1.0]]), np.array([[2.0]])], [np.zeros(1)] * 2, None, False)
    value = tables.exact(made, np.array([[3.0]]), 0.5)
    each = [math.log(2 * math.pi * (0.5 + 3.0 * x * x)) for x in (1.0, 2.0)]
    assert value == pytest.approx(-0.5 * sum(each), rel=1e-14)
    information = 1 / 3.5 + 4 / 12.5
    restricted = tables.exact(made._replace(restricted=True), np.array([[3.0]]), 0.5)
    assert restricted == pytest.approx(value + 0.5 * math.log(2 * math.pi / information), rel=1e-14)
