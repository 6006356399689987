"""Cells of simulation-based calibration by every method of drawing."""

from __future__ import annotations

import numpy as np
import pytest

from bayesmeta.studies.calibration import DRAWS, METHODS, RIGHT, replicate_method

pytestmark = pytest.mark.slow


def test_a_cell_of_every_method() -> None:
    """Ranks of all quantities the model has; weights with many tasks, never where NUTS was asked
    for; the same seed gives the same."""
    for case, (_, method) in METHODS.items():
        found = replicate_method({"case": case, "model": RIGHT[0]}, 3)
        ranks = found["rank"].values
        assert ((ranks[:-1] >= 0) & (ranks[:-1] <= DRAWS)).all() and np.isnan(ranks[-1])
        assert not (method == "nuts" and found["weighed"])
        again = replicate_method({"case": case, "model": RIGHT[0]}, 3)
        np.testing.assert_array_equal(again["rank"], found["rank"])
    weighed = [
        float(replicate_method({"case": "many tasks, auto", "model": RIGHT[0]}, seed)["weighed"])
        for seed in range(6)
    ]
    assert sum(weighed) >= 1
