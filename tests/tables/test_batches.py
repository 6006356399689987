"""Tables in batches: the sums are those of the whole table, wherever a task's rows are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.tables import batches, csvbatches
from bayesmeta.tables.design import Design
from tests.helpers import run

PLAIN = {"task": "g", "reward": "y", "features": ["x", "z"], "intercept": True}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 rows."""
    monkeypatch.setattr(batches, "ROWS", 64)


def table(rows: int = 1000) -> pd.DataFrame:
    """Forty tasks whose rows are anywhere, some of which come late; labels like numbers."""
    rng = np.random.default_rng(5)
    task = rng.integers(0, 20 + 20 * (np.arange(rows) > rows // 2))
    return pd.DataFrame(
        {
            "g": [f"{one:02d}" for one in task],
            "y": rng.normal(100, 1, rows),
            "x": rng.normal(size=rows),
            "z": rng.integers(0, 9, rows),
            "f": rng.choice(["low", "mid", "high"], rows),
            "w": rng.uniform(0.5, 2, rows),
        }
    )


def written(frame: pd.DataFrame, folder: Path, kind: str) -> Path:
    """A file of one kind."""
    path = folder / f"table.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, index=False, row_group_size=300)
    else:
        frame.to_csv(path, index=False)
    return path


def check_same(found: Design, whole: Design) -> None:
    """The same tasks in the same order, the same sums but for rounding; no rows are kept."""
    assert found.rows is None and whole.rows is not None
    one, two = found.stats, whole.stats
    assert one.tasks == two.tasks and one.features == two.features and one.varying == two.varying
    for name in ("gram", "moment", "count", "energy", "log_weights"):
        mine, theirs = getattr(one, name), getattr(two, name)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-11)
    assert (found.noise_sd, found.dropped, found.formula) == (
        whole.noise_sd,
        whole.dropped,
        whole.formula,
    )
    assert found.notes == whole.notes


ASKED = {
    "plain": PLAIN,
    "fixed": PLAIN | {"features": "x", "fixed": "z"},
    "text": PLAIN | {"features": ["x", "f"]},
    "formula": {"formula": "y ~ x * z + (x | g)"},
    "categories": {"formula": "y ~ f:x + np.exp(z) + (1 | g)"},
    "weights": PLAIN | {"weights": "w"},
    "variances": {"formula": "y ~ x + (1 | g)", "noise_var": "w"},
    "errors": PLAIN | {"noise_se": "w"},
}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("asked", ASKED)
def test_files_in_batches(kind: str, asked: str, tmp_path: Path) -> None:
    """Parquet and CSV, with all that a whole table can be asked."""
    path = written(table(), tmp_path, kind)
    found = bm.tabulate(path, batches=True, **ASKED[asked])  # type: ignore[arg-type]
    check_same(found, bm.tabulate(path, batches=False, **ASKED[asked]))  # type: ignore[arg-type]
    frame = table(7)
    np.testing.assert_array_equal(
        found.matrix(frame),
        bm.tabulate(path, **ASKED[asked]).matrix(frame),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("asked", ASKED)
def test_dask(asked: str) -> None:
    """Partition by partition."""
    dask = pytest.importorskip("dask.dataframe")
    parts = dask.from_pandas(table(), npartitions=7, sort=False)
    found = bm.tabulate(parts, **ASKED[asked])  # type: ignore[arg-type]
    check_same(found, bm.tabulate(table(), **ASKED[asked]))  # type: ignore[arg-type]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("tasks", [5, 40, 600])
def test_whole_numbers_as_labels(tasks: int, gaps: bool, tmp_path: Path) -> None:
    """Looked up row by row; fewer than the rows of a batch, and many more."""
    rng = np.random.default_rng(tasks)
    frame = table().assign(g=rng.integers(-tasks // 2, tasks // 2, 1000).astype(np.int32))
    asked = PLAIN | {"weights": "w", "drop_missing": gaps}
    if gaps:
        frame = frame.astype({"g": "Int32"})
        frame.loc[[130, 700], "g"] = None
    path = written(frame, tmp_path, "parquet")
    found = bm.tabulate(path, batches=True, **asked)  # type: ignore[arg-type]
    check_same(found, bm.tabulate(path, batches=False, **asked))  # type: ignore[arg-type]
    assert found.dropped == 2 * gaps


@pytest.mark.parametrize("kind", ["parquet", "csv", "dask"])
def test_missing_values(kind: str, tmp_path: Path) -> None:
    """The same message, and the same rows left out; NA is a category of no feature."""
    frame = table()
    frame.loc[[3, 70, 700], "x"] = np.nan
    frame.loc[[3, 500], "y"] = np.nan
    frame.loc[[900, 901], "f"] = None
    frame.loc[999, "g"] = None
    asked = PLAIN | {"features": ["x", "f"]}
    source: object = frame
    if kind == "dask":
        source = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=5, sort=False)
    else:
        source = written(frame, tmp_path, kind)
    with pytest.raises(bm.InputError) as caught:
        bm.tabulate(source, batches=True, **asked)  # type: ignore[arg-type]
    assert str(caught.value).startswith("7 rows are without a value in ")
    assert "rows 4, 71, 501, 701, 901, 902 and 1000 (not" in str(caught.value)
    found = bm.tabulate(source, batches=True, drop_missing=True, **asked)  # type: ignore[arg-type]
    whole = bm.tabulate(frame, drop_missing=True, **asked)  # type: ignore[arg-type]
    assert found.dropped == 7 and found.stats.tasks == whole.stats.tasks
    np.testing.assert_allclose(found.stats.moment, whole.stats.moment, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_errors_name_rows_of_the_whole_file(kind: str, tmp_path: Path) -> None:
    """Also beyond the first batch."""
    frame = table()
    frame.loc[800, "w"] = -1
    path = written(frame, tmp_path, kind)
    with pytest.raises(bm.InputError, match="column 'w' has -1 in row 801"):
        bm.tabulate(path, "y ~ x + (1 | g)", noise_var="w", batches=True)
    frame.loc[801, "x"] = np.inf
    path = written(frame, tmp_path, kind)
    with pytest.raises(bm.InputError, match=r"column 'x' has inf.* in row 802"):
        bm.tabulate(path, "y ~ x + (1 | g)", batches=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("g,x,y\n1,2,3\n1,2\n", "line 3 of .* has 2 fields, but the header has 3; leave a"),
        ("g,x,y\n1,2,3\n1,2,3,\n", "line 3 of .* has 4 fields.*; it ends in a comma"),
        ("g,x,y\n1,2,3\n1,2,3,4\n", "line 3 of .* has 4 fields.*; quote a field"),
        ("g;x;y\n1;2;3\n", "a single column, 'g;x;y'; separate columns by commas"),
        ("g,x,x,y\n1,2,3,4\n", "there are .* columns 'x'; give each a name of its own"),
        ("", "is empty; it must begin with a header"),
        ("g,x,y\n1,2,3\n2,1e150,3\n", r"column 'x' has 1e\+150, which is too large, in row 2"),
        ("g,x,y\n1,2,3\n2,1,-1e101\n", r"column 'y' has -1e\+101, which is too large, in row 2"),
    ],
)
@pytest.mark.parametrize("in_batches", [False, True])
def test_faults_of_a_file_have_the_same_words(
    text: str, words: str, in_batches: bool, tmp_path: Path
) -> None:
    """In batches and at once: what is wrong, in which line or row, and what to do."""
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(bm.InputError, match=words) as found:
        bm.tabulate(path, task="g", reward="y", features=["x"], batches=in_batches)
    assert "Arrow" not in str(found.value) and "csv' file" not in str(found.value)


def test_a_short_row_in_a_late_block_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow finds it after the first batches."""
    monkeypatch.setattr(csvbatches, "BLOCK", 1 << 12)
    path = tmp_path / "a.csv"
    path.write_text("g,x,y\n" + "1,2,3\n" * 5000 + "1,2\n")
    with pytest.raises(bm.InputError, match=r"line 5002 of .* has 2 fields, but the header has 3"):
        bm.tabulate(path, task="g", reward="y", features=["x"], batches=True)


@pytest.mark.parametrize("in_batches", [False, True])
def test_features_of_formulas_that_are_too_large_are_named(
    in_batches: bool, tmp_path: Path
) -> None:
    """By term and row."""
    path = tmp_path / "a.csv"
    path.write_text("g,x,y\n1,2,3\n1,3,4\n2,400,3\n2,4,5\n")
    with pytest.raises(bm.InputError, match=r"'exp\(x\)' is 5.22147e\+173, .* too large, in row 3"):
        bm.tabulate(path, "y ~ exp(x) + (1 | g)", batches=in_batches)


def test_what_needs_all_rows_is_refused(tmp_path: Path) -> None:
    """A mean over all rows, and a file that is none."""
    path = written(table(), tmp_path, "csv")
    with pytest.raises(bm.InputError, match=r"'center\(x\)' needs all rows at once"):
        bm.tabulate(path, "y ~ center(x) + (1 | g)", batches=True)
    with pytest.raises(bm.InputError, match="there is no file"):
        bm.tabulate(tmp_path / "none.csv", "y ~ x + (1 | g)", batches=True)
    for text in ("", "g,y,x\n", "g,y,x\na,1\n", "g,y,x\na,1,2\nb,2,1,3\n"):
        (tmp_path / "odd.csv").write_text(text)
        with pytest.raises(bm.InputError) as caught:
            bm.tabulate(tmp_path / "odd.csv", "y ~ x + (1 | g)", batches=True)
        assert "\n" not in str(caught.value)


def test_large_files_are_read_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By themselves; the command has the same answer, and a way to say otherwise."""
    path = written(table(), tmp_path, "csv")
    columns = ["--task", "g", "--reward", "y", "--features", "x,z", "--intercept", "--json"]
    assert run("fit", str(path), *columns) == 0
    whole = capsys.readouterr().out
    monkeypatch.setattr(batches, "LARGE", 1000)
    assert bm.tabulate(path, **PLAIN).rows is None  # type: ignore[arg-type]
    assert bm.tabulate(path, batches=False, **PLAIN).rows is not None  # type: ignore[arg-type]
    assert run("fit", str(path), *columns) == 0
    found, wanted = json.loads(capsys.readouterr().out), json.loads(whole)
    assert found.keys() == wanted.keys() and found["features"] == wanted["features"]
    for name in ("mean", "cov", "noise_sd", "log_likelihood"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6, atol=1e-6)
    means, others = ([one["mean"] for one in part["task_estimates"]] for part in (found, wanted))
    np.testing.assert_allclose(means, others, rtol=1e-5, atol=1e-5)
    assert run("fit", str(path), *columns, "--no-batches") == 0
    assert capsys.readouterr().out == whole
