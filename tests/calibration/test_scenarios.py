"""Several ways in which data come about, side by side."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.calibration.rows import rows_of
from bayesmeta.calibration.verdict import in_words, verdicts
from tests.calibration import planted
from tests.calibration.planted import FAMILY

FEW = {"tasks": [10, 15], "estimators": ["moment", planted.known], "replications": 5, "jobs": 1}


@pytest.fixture(scope="module")
def lab() -> xr.Dataset:
    """Exploration beside all steps of an agent."""
    return bm.calibrate(FAMILY, explore=[bm.agents.first_steps(6), "UKTS"], **FEW)


def test_each_way_is_what_it_is_alone(lab: xr.Dataset) -> None:
    """Same bits, along a dimension of its own, named."""
    assert list(lab.data.values) == ["first_steps(tau=6)", "UKTS"]
    for name, way in zip(lab.data.values, (bm.agents.first_steps(6), "UKTS"), strict=True):
        alone = bm.calibrate(FAMILY, explore=way, **FEW)
        one = lab.sel(data=name, drop=True)
        assert "data" not in alone.dims
        xr.testing.assert_identical(one.transpose(*alone.dims), alone.transpose(*alone.dims))


def test_names_of_ones_own_and_worlds_across() -> None:
    """A dict names the ways; ways and what is wrong make all pairs."""
    ways = {"short": bm.agents.first_steps(4), "all": None}
    wrong = ["nothing", "skewed theta", "heavy-tailed noise"]
    lab = bm.calibrate(FAMILY, explore=ways, wrong=wrong, **FEW)
    assert dict(lab.sizes)["data"] == 2 and list(lab.wrong.values) == wrong
    alone = bm.calibrate(FAMILY, explore=ways["short"], wrong=wrong[2], **FEW)
    one = lab.sel(data="short", wrong=wrong[2], drop=True)
    np.testing.assert_array_equal(one.estimate.transpose(*alone.estimate.dims), alone.estimate)


def test_measures_rows_words_and_pictures(lab: xr.Dataset) -> None:
    """Measures keep the dimension; rows, sentences and lines of pictures name the world; verdicts
    are of one."""
    found = bm.measures(lab)
    rows = rows_of(found)
    assert list(rows[0])[:3] == ["data", "estimator", "tasks"]
    assert len(rows) == 2 * len(rows_of(found.sel(data="UKTS")))
    at = {"data": "UKTS", "estimator": "known", "tasks": 15, "quantity": "mu[1]", "level": 0.9}
    (row,) = [row for row in rows if all(row[key] == value for key, value in at.items())]
    width = found.width.sel(at | {"quantity": "mu[x2]"})
    assert row["width"] == pytest.approx(float(width))
    first, second = in_words(found, 15, 0.95).splitlines()
    assert first.startswith("(data: first_steps(tau=6)) With 15 tasks")
    assert second.startswith("(data: UKTS) With 15 tasks")
    with pytest.raises(bm.InputError, match=r"several worlds by 'data'.*sel"):
        verdicts(found, 15, 0.95)
    lines = bm.plot_coverage(lab).axes[0].get_lines()
    assert {"known, UKTS", "moment, first_steps(tau=6)"} <= {line.get_label() for line in lines}


@pytest.mark.parametrize(
    ("explore", "words"),
    [
        ([], "explore is empty"),
        (["KTS", "KTS"], "one way twice"),
        (["KTS", 3], "explore must be Exploration"),
    ],
)
def test_bad_ways(explore: object, words: str) -> None:
    """One clear line."""
    with pytest.raises(bm.InputError, match=words):
        bm.calibrate(FAMILY, explore=explore, replications=1, jobs=1)  # type: ignore[arg-type]
