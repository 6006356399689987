"""Categories: one rule, whichever way a table comes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.tables import batches, csvbatches
from bayesmeta.tables.design import Design

WAYS = ("frame", "parquet", "parquet in batches", "dask", "parquet by dask")
"""Of tables that know what a category is."""
ROWS = 600


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 rows, 4 kB of a CSV."""
    monkeypatch.setattr(batches, "ROWS", 64)
    monkeypatch.setattr(csvbatches, "BLOCK", 1 << 12)


def table(f: Any) -> pd.DataFrame:
    """Twenty tasks with a column of categories, which come at any place."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"g": [f"t{one}" for one in rng.integers(0, 20, ROWS)]})
    return frame.assign(x=rng.normal(size=ROWS), y=rng.normal(size=ROWS), f=f)


def drawn(values: list[Any], seed: int = 1) -> list[Any]:
    """A value for every row; the last one is first, and only late rows have the first one."""
    rng = np.random.default_rng(seed)
    places = rng.integers(1, len(values), ROWS)
    places[0] = len(values) - 1
    places[ROWS // 2 :: 7] = 0
    return [values[one] for one in places]


def read(frame: pd.DataFrame, way: str, folder: Path, **options: Any) -> Design:
    """A table, come in one of the ways."""
    options = {"formula": "y ~ x + f + (x | g)"} | options
    if way == "frame":
        return bm.tabulate(frame, **options)
    if way == "dask":
        dask = pytest.importorskip("dask.dataframe")
        return bm.tabulate(dask.from_pandas(frame, npartitions=5, sort=False), **options)
    if way == "parquet by dask":
        dask = pytest.importorskip("dask.dataframe")
        frame.to_parquet(folder / "dask.parquet", row_group_size=100)
        parts = dask.read_parquet(folder / "dask.parquet", split_row_groups=True)
        return bm.tabulate(parts, **options)
    kind, _, how = way.partition(" ")
    path = folder / f"table.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, index=False, row_group_size=100)
    else:
        frame.to_csv(path, index=False)
    return bm.tabulate(path, batches=how == "in batches", **options)


def features(design: Design) -> list[str]:
    """Those of the categories."""
    return [name for name in design.stats.feature_labels if name.startswith("f")]


Kinds = dict[str, tuple[Callable[[], Any], list[str]]]
KINDS: Kinds = {
    "text": (lambda: drawn(["low", "mid", "high"]), ["f[T.low]", "f[T.mid]"]),
    "unordered": (
        lambda: pd.Categorical(drawn(["low", "mid", "high"]), ["mid", "low", "high", "none"]),
        ["f[T.low]", "f[T.high]"],
    ),
    "ordered": (
        lambda: pd.Categorical(drawn(["low", "mid", "high"]), ["low", "mid", "high"], ordered=True),
        ["f[T.mid]", "f[T.high]"],
    ),
    "words like numbers": (
        lambda: pd.Categorical(drawn(["10", "9", "01"]), ["9", "10", "01"]),
        ["f[T.10]", "f[T.01]"],
    ),
    "whole numbers": (lambda: pd.Categorical(drawn([2, 10, 9])), ["f[T.9]", "f[T.10]"]),
    "numbers": (lambda: pd.Categorical(drawn([2.5, 10.0, 9.0])), ["f[T.9]", "f[T.10]"]),
    "words for missing": (lambda: drawn(["None", "NA", "some"]), ["f[T.None]", "f[T.some]"]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_is_the_same(kind: str, way: str, tmp_path: Path) -> None:
    """The order of a pandas categorical; text is sorted; a categorical of numbers is no number."""
    made, wanted = KINDS[kind]
    frame = table(made())
    found = read(frame, way, tmp_path)
    assert features(found) == wanted
    plain = read(
        frame,
        way,
        tmp_path,
        formula=None,
        task="g",
        reward="y",
        features=["x", "f"],
        intercept=True,
    )
    assert features(plain) == wanted
    whole = bm.tabulate(frame, "y ~ x + f + (x | g)")
    np.testing.assert_allclose(found.stats.gram, whole.stats.gram, atol=1e-9)
    np.testing.assert_array_equal(found.matrix(frame), whole.matrix(frame))


@pytest.mark.parametrize("way", ["csv", "csv in batches"])
@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["low", "mid", "high"], ["f[T.low]", "f[T.mid]"]),
        (["2020-Q2", "2020-Q1", "2020-Q3"], ["f[T.2020-Q2]", "f[T.2020-Q3]"]),
        ([True, False], ["f"]),
        (["9", "10", "01"], ["f"]),
    ],
)
def test_csv(values: list[Any], wanted: list[str], way: str, tmp_path: Path) -> None:
    """Text is sorted, and what reads as a number is one."""
    assert features(read(table(drawn(values)), way, tmp_path)) == wanted


@pytest.mark.parametrize("way", [*WAYS, "csv", "csv in batches"])
def test_categories_of_rows_that_are_left_out_do_not_count(way: str, tmp_path: Path) -> None:
    """Not as features that are always zero."""
    frame = table(drawn(["low", "mid", "high"]))
    frame.loc[frame["f"] == "high", "x"] = np.nan
    frame.loc[0, "f"] = None
    assert features(read(frame, way, tmp_path, drop_missing=True)) == ["f[T.mid]"]


@pytest.mark.parametrize("how", [True, False])
def test_dictionaries_that_no_order_comes_with_are_sorted(how: bool, tmp_path: Path) -> None:
    """Those of Arrow, by appearance, and those that differ between parts of a file."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    frame = table(drawn(["low", "mid", "high"]))
    arrow = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    place = arrow.schema.get_field_index("f")
    coded = arrow.set_column(place, "f", arrow.column("f").dictionary_encode())
    pq.write_table(coded, tmp_path / "a.parquet")
    asked = "y ~ x + f + (x | g)"
    assert features(bm.tabulate(tmp_path / "a.parquet", asked, batches=how)) == [
        "f[T.low]",
        "f[T.mid]",
    ]
    halves = [
        pa.Table.from_pandas(
            frame[part].assign(f=pd.Categorical(frame["f"][part], order)), preserve_index=False
        )
        for part, order in (
            (slice(0, 300), ["mid", "low", "high"]),
            (slice(300, None), ["low", "mid", "high"]),
        )
    ]
    with pq.ParquetWriter(tmp_path / "b.parquet", halves[0].schema) as writer:
        for half in halves:
            writer.write_table(half)
    assert features(bm.tabulate(tmp_path / "b.parquet", asked, batches=how)) == [
        "f[T.low]",
        "f[T.mid]",
    ]


def test_dask_finds_categories_by_itself(tmp_path: Path) -> None:
    """Whose order nobody gave: sorted, also where a partition lacks some."""
    dask = pytest.importorskip("dask.dataframe")
    for values, wanted in (
        (["low", "mid", "high"], ["f[T.low]", "f[T.mid]"]),
        ([2, 10, 9], ["f[T.9]", "f[T.10]"]),
    ):
        parts = dask.from_pandas(table(drawn(values)), npartitions=9, sort=False)
        design = bm.tabulate(parts.astype({"f": "category"}), "y ~ x + f + (x | g)")
        assert features(design) == wanted
        table(pd.Categorical(drawn(values))).to_parquet(tmp_path / "t.parquet", row_group_size=50)
        parts = dask.read_parquet(tmp_path / "t.parquet", split_row_groups=True)
        assert features(bm.tabulate(parts, "y ~ x + f + (x | g)")) == wanted


def test_new_rows_may_spell_numbers_otherwise() -> None:
    """1 and 1.0 are one category; an unknown one is named."""
    design = bm.tabulate(table(pd.Categorical(drawn([1, 2, 3]))), "y ~ f + (1 | g)")
    new = pd.DataFrame({"f": [1.0, 3.0]})
    np.testing.assert_array_equal(design.matrix(new), [[1, 0, 0], [1, 0, 1]])
    with pytest.raises(bm.InputError, match="has the category '7' in row 2"):
        design.matrix(pd.DataFrame({"f": [1, 7]}))
    with pytest.raises(bm.InputError, match="two categories that are both written '1'"):
        bm.tabulate(table(pd.Categorical(drawn([1, "1", 2]))), "y ~ f + (1 | g)")


DATES = ("2024-01-31", "2024/1/3", "1.2.2024", "31-12-1999", "12/31/24", "2024-01-31T10:15:00Z")


@pytest.mark.parametrize("date", DATES)
def test_dates_as_text_are_refused(date: str) -> None:
    """As dates are; a categorical of them is one of categories."""
    frame = table([date, "2023-11-05"] * (ROWS // 2))
    with pytest.raises(bm.InputError, match=r"'f' holds dates as text.* C\(f\)"):
        bm.tabulate(frame, "y ~ f + (1 | g)")
    coded = bm.tabulate(frame.assign(f=frame["f"].astype("category")), "y ~ f + (1 | g)")
    assert coded.stats.dim == 2 and "2 categories" in coded.notes[0]


@pytest.mark.parametrize("text", ["1.2.10", "10-20-30", "2024-Q1", "2024-13", "a/b/24", "v2024"])
def test_other_text_is_no_date(text: str) -> None:
    """Versions, ranges, quarters; nor is a column with one word among its dates."""
    for other in ("another", "2024-01-31"):
        frame = table([text, other] * (ROWS // 2))
        assert bm.tabulate(frame, "y ~ f + (1 | g)").stats.dim == 2


@pytest.mark.parametrize("batched", [False, True])
def test_labels_of_which_some_are_numbers(batched: bool, tmp_path: Path) -> None:
    """Categories where the formula says C(f); otherwise the error says to write that."""
    table(["10", "10A", "11"] * (ROWS // 3)).to_csv(tmp_path / "t.csv", index=False)
    found = bm.tabulate(tmp_path / "t.csv", "y ~ C(f) + (1 | g)", batches=batched)
    assert list(found.stats.feature_labels) == ["intercept", "C(f)[T.10A]", "C(f)[T.11]"]
    with pytest.raises(bm.InputError, match=r"'10A', .* in row 2 .*write C\(f\) in a formula"):
        bm.tabulate(tmp_path / "t.csv", "y ~ f + (1 | g)", batches=batched)
    mixed = table([10, "10A", 11] * (ROWS // 3))
    again = bm.tabulate(mixed, "y ~ C(f) + (1 | g)")
    assert again.stats.feature_labels == found.stats.feature_labels
    np.testing.assert_array_equal(again.stats.gram, found.stats.gram)
