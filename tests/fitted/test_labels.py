"""Labels of tasks: floats that are whole numbers, new tasks, rows that new tasks have already."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.fitted.prior import FittedPrior

FORMULA = "Reaction ~ Days + (Days | Subject)"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """The sleep study."""
    return bm.load_data("sleepstudy")


@pytest.fixture(scope="module")
def fit(frame: pd.DataFrame) -> FittedPrior:
    """By REML."""
    found = bm.fit(frame, FORMULA)
    assert isinstance(found, FittedPrior)
    return found


def same(found: pd.DataFrame, expected: pd.DataFrame, rtol: float = 1e-7) -> None:
    """Equal predictions."""
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=rtol)


@pytest.mark.parametrize("kind", ["float", "text", "csv", "csv in batches", "parquet in batches"])
def test_whole_floats_are_labels_of_whole_numbers(
    kind: str, frame: pd.DataFrame, fit: FittedPrior, tmp_path: Path
) -> None:
    """308 is known, and so are 308.0 and both as text, whichever was fitted."""
    floats = frame.assign(Subject=frame["Subject"].astype(float))
    source: object = floats
    if kind == "text":
        source = floats.assign(Subject=floats["Subject"].map(str))
    elif kind.startswith("csv"):
        source = tmp_path / "a.csv"
        floats.to_csv(source, index=False)
    elif kind.startswith("parquet"):
        source = tmp_path / "a.parquet"
        floats.to_parquet(source)
    found = bm.fit(bm.tabulate(source, FORMULA, batches="batches" in kind or None))
    expected = fit.predict(pd.DataFrame({"Days": [9.0]}), task=308)
    for label in (308, 308.0, "308", "308.0"):
        new = pd.DataFrame({"Days": [9.0], "Subject": [label]})
        same(found.predict(new), expected, rtol=1e-6)
        same(found.predict(new[["Days"]], task=label), expected, rtol=1e-6)
    if kind in ("float", "parquet in batches"):
        assert found.tasks().loc[308].shape == (2, len(fit.tasks().columns))
    else:  # text stays as it is written
        assert found.stats.task_labels[0] == "308.0"


def test_other_spellings_in_a_file_are_other_tasks(frame: pd.DataFrame, tmp_path: Path) -> None:
    """01 is another task than 1."""
    path = tmp_path / "a.csv"
    frame.assign(Subject=np.where(np.arange(180) % 2, "01", "1")).to_csv(path, index=False)
    for batches in (False, True):
        assert bm.tabulate(path, FORMULA, batches=batches).stats.task_labels == ["1", "01"]


def test_new_tasks_are_named(fit: FittedPrior) -> None:
    """Three of them at most; nothing is said where no task is named, or all are known."""
    new = pd.DataFrame({"Days": [1.0] * 6, "Subject": [308, 1, 2, 2.0, 3, 4]})
    with pytest.warns(bm.NewTaskWarning) as told:
        fit.predict(new)
    assert len(told) == 1 and told[0].filename == __file__
    said = str(told[0].message)
    assert said.startswith("5 rows are") and said.endswith("does not know 1, 2, 3 and 1 more")
    fit.predict(new[["Days"]])
    fit.predict(new.head(1))
    fit.predict(np.ones((1, 2)))


def test_given_rows_go_to_their_task(fit: FittedPrior, frame: pd.DataFrame) -> None:
    """By label, also of several tasks; what is neither fitted nor given is a plain new task."""
    own = frame[frame["Subject"] == 308].head(4)
    two = pd.concat([own.assign(Subject=1.0), own.assign(Subject=2, Reaction=own["Reaction"] - 99)])
    new = pd.DataFrame({"Days": [9.0] * 4, "Subject": [1, 5, 308, 2]})
    with pytest.warns(bm.NewTaskWarning, match="know 5$"):
        found = fit.predict(new, given=two)
    days = new[["Days"]].head(1)
    expected = [
        fit.predict(days, given=two.head(4)),
        fit.predict(days),
        fit.predict(days, task=308),
        fit.predict(days, given=two.tail(4).drop(columns="Subject")),
    ]
    same(found, pd.concat(expected))
    one = new.iloc[[0, 2]]  # without a label, given can only be of the new one
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(fit.predict(one, given=own.drop(columns="Subject")), found.iloc[[0, 2]])


@pytest.mark.parametrize(
    ("labels", "asked", "words"),
    [
        ([308, 308], [1], "were fitted, 308"),
        (["308.0", "7"], [1], "were fitted, '308.0'"),
        ([1, 2], None, "given has rows of 2 tasks; add the column 'Subject' to new"),
        (None, [1, 2], "new has rows of 2 new tasks; add the column 'Subject' to given"),
        ([1, 1], [2, 308], "given has no rows of a task that new asks for: '1'"),
        (None, [308], "given has no rows of a task that new asks for: all of them were fitted"),
        ([1, None], [1], "given has rows without a task"),
    ],
)
def test_given_rows_that_are_no_ones(
    labels: list[object] | None,
    asked: list[object] | None,
    words: str,
    fit: FittedPrior,
    frame: pd.DataFrame,
) -> None:
    """Refused, with what to do."""
    own, new = frame.head(2).drop(columns="Subject"), pd.DataFrame({"Days": [1.0, 2.0]})
    if labels is not None:
        own = own.assign(Subject=labels)
    if asked is not None:
        new = new.head(len(asked)).assign(Subject=asked)
    with pytest.raises(bm.InputError, match=words):
        fit.predict(new, given=own)


def test_labels_of_a_file_are_never_merged(tmp_path: Path) -> None:
    """3 and 3.0 are two tasks of a CSV file, as of a table of the same text."""
    frame = pd.DataFrame({"g": ["3", "3.0", "1.0", "1.1", "2.0", "2.5"] * 4, "y": np.arange(24.0)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = [bm.fit(one, "y ~ 1 + (1 | g)") for one in (frame, tmp_path / "t.csv")]
    assert [len(one.stats) for one in found] == [6, 6]
    assert set(map(str, found[1].stats.task_labels)) == set(frame["g"])


def test_a_gap_among_nullable_labels_is_refused() -> None:
    """pandas' own missing value, too."""
    frame = pd.DataFrame({"g": [1, 1, 2, 2, 3, 3], "y": [1.0, 2.0, 4.0, 5.0, 9.0, 7.0]})
    fit = bm.fit(frame, "y ~ 1 + (1 | g)")
    with pytest.raises(bm.InputError, match="without a task"):
        fit.predict(pd.DataFrame({"g": pd.array([1, None], dtype="Int64")}))
