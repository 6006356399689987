"""``tabulate``: plain columns, categories, missing values, weights, the shipped data sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.data.shipped import NAMES
from tests.helpers import run

TABLE = pd.DataFrame(
    {
        "g": list("aabbcc"),
        "y": [1.0, 2, 4, 3, 6, 8],
        "x": [0.0, 1, 2, 3, 4, 6],
        "z": [1.0, 0, 0, 1, 2, 1],
        "f": list("uvwuvw"),
        "v": [0.5, 1, 2, 4, 1, 1],
    }
)
PLAIN = {"task": "g", "reward": "y"}


def test_plain_columns_are_those_of_from_frame() -> None:
    """The same bits, the same labels, no notes."""
    design = bm.tabulate(TABLE, **PLAIN, features=["x", "z"], intercept=True)
    stats = bm.TaskStatistics.from_frame(TABLE, "g", "y", ["x", "z"], intercept=True)
    np.testing.assert_array_equal(design.stats.gram, stats.gram)
    np.testing.assert_array_equal(design.stats.moment, stats.moment)
    assert design.stats.tasks == stats.tasks and design.stats.features == stats.features
    assert design.notes == () and design.dropped == 0 and design.noise_sd is None
    assert design.formula == "y ~ 1 + x + z + (1 + x + z | g)"


def test_fixed_columns_and_text() -> None:
    """Columns of ``fixed`` do not vary; text is coded beside its first category, with a note."""
    design = bm.tabulate(TABLE, **PLAIN, features="x", fixed=["f"], intercept=True)
    assert design.stats.feature_labels == ["intercept", "x", "f[T.v]", "f[T.w]"]
    assert design.stats.differs.tolist() == [True, True, False, False]
    assert design.notes == ("column 'f' has 3 categories, compared with 'u'",)
    again = bm.tabulate(TABLE, design.formula)
    np.testing.assert_array_equal(again.stats.gram, design.stats.gram)
    assert again.stats.varying == design.stats.varying


def test_weights_variances_and_standard_errors() -> None:
    """Known variances are weights with sigma = 1; the same for new rows."""
    weighted = bm.tabulate(TABLE, "y ~ 1 + (1 | g)", weights="v")
    known = bm.tabulate(TABLE, "y ~ 1 + (1 | g)", noise_var="v")
    errors = bm.tabulate(TABLE.assign(s=np.sqrt(TABLE["v"])), "y ~ 1 + (1 | g)", noise_se="s")
    assert weighted.noise_sd is None and known.noise_sd == errors.noise_sd == 1.0
    np.testing.assert_allclose(weighted.stats.gram.ravel(), [1.5, 6, 2])
    np.testing.assert_allclose(known.stats.gram.ravel(), [3, 0.75, 2])
    np.testing.assert_allclose(errors.stats.gram, known.stats.gram)
    assert known.weights is not None and known.rows is not None
    np.testing.assert_array_equal(known.weights(TABLE[:3]), [2, 1, 0.5])
    np.testing.assert_array_equal(known.rows.weights, 1 / TABLE["v"])
    with pytest.raises(bm.InputError, match="give one of weights, noise_var and noise_se"):
        bm.tabulate(TABLE, "y ~ 1 + (1 | g)", weights="v", noise_var="v")


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-200])
def test_weights_name_column_and_row(value: float) -> None:
    """The row of the file, also after rows were left out."""
    frame = TABLE.assign(v=[1.0, 1, 1, value, 1, 1], x=[np.nan, *TABLE["x"][1:]])
    for option in ("weights", "noise_var", "noise_se"):
        with pytest.raises(bm.InputError, match=r"column 'v' has .* in row 4 .* must be"):
            bm.tabulate(frame, "y ~ x + (1 | g)", drop_missing=True, **{option: "v"})


def test_missing_values_are_all_named() -> None:
    """Counted, with columns and at most twenty rows; or left out."""
    frame = pd.concat([TABLE] * 10, ignore_index=True)
    frame.loc[range(0, 60, 2), "x"] = np.nan
    frame.loc[3, "f"] = None
    frame.loc[5, "g"] = ""
    frame.loc[7, "z"] = np.nan  # not read
    with pytest.raises(bm.InputError) as caught:
        bm.tabulate(frame, "y ~ x + f + (1 | g)")
    said = str(caught.value)
    assert said.startswith("32 rows are without a value in 'g', 'x' and 'f': rows 1, 3, 4, 5, 6, 7")
    assert "35 and 12 more (not counting the header)" in said and "drop_missing" in said
    design = bm.tabulate(frame, "y ~ x + f + (1 | g)", drop_missing=True)
    assert design.dropped == 32 and design.rows is not None and len(design.rows.reward) == 28
    assert "left out 32 rows" in design.notes[0]
    with pytest.raises(bm.InputError, match="no rows with all values"):
        bm.tabulate(TABLE.assign(x=np.nan), "y ~ x + (1 | g)", drop_missing=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "give task"),
        ({"task": "g"}, "give reward"),
        (PLAIN, "features is empty"),
        (PLAIN | {"features": ["x", "x"]}, "named twice"),
        (PLAIN | {"features": ["x"], "fixed": ["x"]}, "named twice"),
        (PLAIN | {"features": ["nope"]}, "there is no column 'nope'"),
        ({"formula": "y ~ x + (1 | g)", "features": "x"}, "leave out features"),
        ({"formula": "y ~ x + (1 | g)", "task": "f"}, "leave out task"),
        ({"formula": "y ~ x + (1 | g)", "noise_var": "nope"}, "there is no column 'nope'"),
        ({"formula": "y ~ x + (1 | g)", "noise_var": "y"}, "column 'y' is the reward"),
    ],
)
def test_requests_that_are_refused(arguments: dict[str, object], words: str) -> None:
    """In one line."""
    with pytest.raises(bm.InputError, match=words):
        bm.tabulate(TABLE, **arguments)  # type: ignore[arg-type]


def test_what_is_no_table_is_refused() -> None:
    """By its type."""
    with pytest.raises(bm.InputError, match="source must be a pandas or Dask DataFrame"):
        bm.tabulate([1, 2], "y ~ x + (1 | g)")


@pytest.mark.parametrize(
    ("name", "rows", "formula", "known"),
    [
        ("sleepstudy", 180, "Reaction ~ Days + (Days | Subject)", {}),
        ("eight_schools", 8, "effect ~ 1 + (1 | school)", {"noise_se": "se"}),
        ("bcg", 13, "yi ~ ablat + (1 | trial)", {"noise_var": "vi"}),
    ],
)
def test_shipped_data_sets(name: str, rows: int, formula: str, known: dict[str, str]) -> None:
    """They load and tabulate; the variances of BCG's log risk ratios follow from its counts."""
    frame = bm.load_data(name)
    assert name in NAMES and len(frame) == rows
    assert len(bm.tabulate(frame, formula, **known).stats) > 5  # type: ignore[arg-type]
    if name == "bcg":
        treated, control = frame["tpos"] + frame["tneg"], frame["cpos"] + frame["cneg"]
        ratio = np.log(frame["tpos"] / treated / (frame["cpos"] / control))
        variance = 1 / frame["tpos"] - 1 / treated + 1 / frame["cpos"] - 1 / control
        np.testing.assert_allclose(frame["yi"], ratio, rtol=1e-12)
        np.testing.assert_allclose(frame["vi"], variance, rtol=1e-12)


def test_an_unknown_data_set() -> None:
    """The list of those that there are."""
    with pytest.raises(bm.InputError, match=r"did you mean 'sleepstudy'.*bcg, eight_schools"):
        bm.load_data("sleepstudies")


def test_commands_read_shipped_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is no file of that name, and they say so; with options as in Python."""
    monkeypatch.chdir(tmp_path)
    arguments = ["eight_schools", "--formula", "effect ~ 1 + (1 | school)"]
    assert run("fit", *arguments, "--noise-se", "se", "--json") == 0
    shown = capsys.readouterr()
    assert shown.err == "bayesmeta: eight_schools is a data set of the package\n"
    assert '"mean"' in shown.out
    assert run("fit", *arguments, "--noise-se", "se", "--noise-sd", "2") == 2
    assert "omit --noise-sd" in capsys.readouterr().err
    Path("eight_schools").write_text("school,effect\na,\nb,1\nb,2\nc,\nc,2\nc,4\n")
    assert run("fit", *arguments) == 2
    assert capsys.readouterr().err == (
        "bayesmeta: 2 rows are without a value in 'effect': rows 1 and 4 (not counting the "
        "header); fill them in, or leave these rows out by --drop-missing\n"
    )
    assert run("fit", *arguments, "--drop-missing", "--json") == 0
    assert "left out 2 rows without a value in 'effect': 1 and 4" in capsys.readouterr().err
