"""Labels and numbers of tables in memory."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesmeta.checks import InputError
from bayesmeta.columns import row_labels, tasks_of
from bayesmeta.statistics import TaskStatistics

NUMBERS = [1.0, 2.0, 4.0, 3.0]


def from_labels(labels: Any) -> TaskStatistics:
    """Four rows with these labels."""
    return TaskStatistics.from_arrays(labels, NUMBERS, np.ones((4, 1)))


@pytest.mark.parametrize(
    "labels",
    [
        [1, True, 2, 3],
        np.array([0, False, 1, 2], dtype=object),
        ["1", 1, 2, 3],
        [None, "a", "a", "b"],
        [pd.NA, "a", "a", "b"],
        [pd.NaT, "a", "a", "b"],
        [float("nan"), 1.0, 1.0, 2.0],
        [[1], [1], [2], [2]],
        np.ones((4, 1)),
        "aabb",
        5,
        np.ma.MaskedArray([1, 1, 2, 2], mask=[0, 0, 0, 1]),
    ],
)
def test_labels_that_are_one_or_two_are_refused(labels: Any) -> None:
    """Equal to Python and different to a reader, or the other way round; and what is no label."""
    with pytest.raises(InputError) as caught:
        from_labels(labels)
    assert "task" in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        (["a", "a\0", "b", "b"], ["a", "a\0", "b"]),  # NumPy drops NULs at the end
        ([2**53, 2**53 + 1, 0.5, 0.5], [str(2**53), str(2**53 + 1), "0.5"]),
        ([("a", 1), ("a", 1), ("a", 2), ("a", 2)], ["('a', 1)", "('a', 2)"]),
        (np.array([3, 3, 1, 1], dtype=np.int8), [3, 1]),
        ([1, 1.0, 2.0, np.float32(3)], [1, 2, 3]),
        (np.array([308.0, 308.0, 309.0, 309.0]), [308, 309]),
        ([0.5, 0.5, 1.0, 1], ["0.5", "1"]),
        ([np.int64(3), 3, np.int64(1), 1], [3, 1]),
        (np.array(["2020-01-01"] * 2 + ["2021-01-01"] * 2, "M8[D]"), ["2020-01-01", "2021-01-01"]),
    ],
)
def test_labels_stay_as_they_are(labels: Any, texts: list[object]) -> None:
    """In the order in which they come."""
    assert from_labels(labels).task_labels == texts


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pd.to_timedelta([1, 2, 3, 4], unit="s"), "durations"),
        (pd.Categorical(pd.to_timedelta([1, 2, 3, 4], unit="s")), "durations"),
        (pd.date_range("2020", periods=4), "dates"),
        (pd.period_range("2020", periods=4, freq="M"), "dates"),
        (np.array(NUMBERS) + 1j, "not real numbers"),
        (pd.array([1, 2, None, 4], dtype="Int64"), "no value in row 3"),
        (pd.array([True, None, True, True], dtype="boolean"), "no value in row 2"),
        ([1, 2, 3, "four"], "'four'"),
        ([1, 2, [3], 4], "row 3"),
        ([1, 2, 3, 1 + 2j], "not real numbers"),
        ([datetime.timedelta(1)] * 4, "durations"),
        ([1, 2, datetime.date(2020, 1, 1), 4], "row 3"),
        (pd.interval_range(0, 4), "row 1"),
    ],
)
def test_columns_that_are_no_numbers_are_refused(values: Any, words: str) -> None:
    """By name, and by row where it is one."""
    frame = pd.DataFrame({"t": list("aabb"), "y": NUMBERS, "x": pd.Series(values)})
    with pytest.raises(InputError, match=words) as caught:
        TaskStatistics.from_frame(frame, "t", "y", ["x"])
    assert "'x'" in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        [Decimal(1), Decimal(2), Decimal(4), Decimal(3)],
        pd.array([1, 2, 4, 3], dtype="Int64"),
        pd.Categorical([1, 2, 4, 3]),
        ["1", " 2", "4.0", "3e0"],
        np.array([1, 2, 4, 3], dtype=np.float16),
    ],
)
def test_columns_that_are_numbers(values: Any) -> None:
    """Decimals, nullable integers, categories of numbers, text of numbers: their values."""
    frame = pd.DataFrame({"t": list("aabb"), "y": NUMBERS, "x": pd.Series(values)})
    assert TaskStatistics.from_frame(frame, "t", "y", ["x"]).moment.ravel().tolist() == [5, 25]


def test_columns_of_the_same_name_are_refused() -> None:
    """Where they are asked for; a name that is no text is made one."""
    frame = pd.DataFrame([["a", 1.0, 1.0, 2.0], ["b", 2.0, 1.0, 2.0]], columns=["t", "y", 3, 3])
    with pytest.raises(InputError, match="2 columns 3"):
        TaskStatistics.from_frame(frame, "t", "y", [3])  # type: ignore[list-item]
    frame.columns = pd.Index(["t", "y", 3, 4])
    found = TaskStatistics.from_frame(frame, "t", "y", [3])  # type: ignore[list-item]
    assert found.features == ("3",)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 2, 3, 4], "m8[s]"),
        np.array([1, 2, 3, 4], "M8[s]"),
        [np.timedelta64(1, "s")] * 4,
        np.ma.MaskedArray(NUMBERS, mask=[0, 0, 1, 0]),
    ],
)
def test_arrays_that_are_no_numbers_are_refused(values: Any) -> None:
    """Durations and dates are no rewards, nor is what a mask hides."""
    with pytest.raises(InputError, match="reward"):
        TaskStatistics.from_arrays([1, 1, 2, 2], values, np.ones((4, 1)))


def test_sums_are_those_of_rows_in_their_order() -> None:
    """To the bit what adding the outer product of one row after another gives."""
    rng = np.random.default_rng(0)
    task, rows = rng.integers(0, 7, 500), rng.standard_normal((500, 3))
    reward = rng.standard_normal(500)
    found = TaskStatistics.from_arrays(task, reward, rows)
    assert found.tasks is not None
    place = [found.tasks.index(one) for one in task]
    gram, moment = np.zeros((7, 3, 3)), np.zeros((7, 3))
    for j, row, x in zip(place, rows, reward, strict=True):
        gram[j] += np.outer(row, row)
        moment[j] += row * x
    np.testing.assert_array_equal(found.gram, gram)
    np.testing.assert_array_equal(found.moment, moment)


def test_integer_labels_are_the_same_as_any_others() -> None:
    """An array of whole numbers takes a quicker way to the same tasks and rows."""
    labels = np.random.default_rng(0).integers(-5, 30, 400)
    found, index = tasks_of(row_labels(labels))
    expected, places = tasks_of(labels.tolist())
    assert found == expected and all(type(one) is int for one in found)
    np.testing.assert_array_equal(index, places)
