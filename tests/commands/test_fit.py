"""``bayesmeta fit``: a statistician's own table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers import SLEEP_COLUMNS as COLUMNS
from tests.helpers import run


@pytest.mark.parametrize("method", ["reml", "moment"])
def test_sleep_study_from_a_csv(
    sleep: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    """The numbers lme4 prints, as JSON, with every subject's shrunken estimate."""
    assert run("fit", str(sleep), *COLUMNS, "--method", method, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(found["mean"], [251.405, 10.467], atol=5e-4)
    np.testing.assert_allclose(found["cov"], [[612.09, 9.604], [9.604, 35.07]], atol=0.005)
    assert found["noise_sd"] ** 2 == pytest.approx(654.94, abs=0.005)
    assert found["features"] == ["intercept", "Days"] and found["status"] == "ok"
    first = found["task_estimates"][0]
    assert first["task"] == "308" and len(found["task_estimates"]) == 18
    np.testing.assert_allclose(first["mean"], [253.66, 19.67], atol=0.01)  # lme4's coef()


def test_tables_and_plot(sleep: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Labels, standard errors and the status in words; a picture where asked for."""
    plot = tmp_path / "new" / "prior.png"
    assert run("fit", str(sleep), *COLUMNS, "--plot", str(plot)) == 0
    shown = capsys.readouterr().out
    words = ("intercept", "Days", "251.405", "6.82456", "612.09", "0.07", "654.941", "372")
    assert all(word in shown for word in (*words, "status: estimated from data", str(plot.name)))
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_known_noise_and_many_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A noise that is given is used; only the first tasks are printed; all are in the figure."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": np.repeat([f"s{i}" for i in range(80)], 4), "x": rng.random(320)})
    frame["y"] = rng.standard_normal(320) + frame.x * np.repeat(rng.standard_normal(80), 4)
    path = tmp_path / "shops.csv"
    frame.to_csv(path, index=False)
    command = ["fit", str(path), "--task", "shop", "--reward", "y", "--features", "x"]
    assert run(*command, "--noise-sd", "1.5", "--plot", str(tmp_path / "a.png")) == 0
    shown = capsys.readouterr().out
    assert "sd 1.5" in shown and "and 60 more tasks" in shown
    assert run(*command, "--method", "moment-widened", "--widening", "1", "--horizon", "4") == 0


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        (None, ["--task", "Who"], ["no column 'Who'", "Subject"]),
        (None, ["--features", "Days,Days"], ["'Days' is named twice"]),
        (None, ["--noise-sd", "much"], ["--noise-sd must be a number", "'much'"]),
        (None, ["--noise-sd", "1_5"], ["--noise-sd must be a number", "'1_5'"]),
        (None, ["--widening", "1_5"], ["argument --widening: invalid float value: '1_5'"]),
        (None, ["--horizon", "1_5"], ["argument --horizon: invalid int value: '1_5'"]),
        (None, ["--noise-sd", "0"], ["--noise-sd must be greater than 0"]),
        (None, ["--method", "magic"], ["argument --method: invalid choice: 'magic'"]),
        (None, ["--method", "posterior"], ["argument --method", "bayesmeta sample FILE"]),
        (None, ["--method", "moment-widened"], ["needs --widening and --horizon"]),
        (None, ["--method", "moment-widened", "--widening", "1"], ["needs --horizon"]),
        (None, ["--plot", "picture.txt"], ["--plot must end in .png"]),
        (None, ["--draws", "10"], ["unrecognized arguments: --draws 10"]),
        (None, ["--prior-eta", "1"], ["unrecognized arguments: --prior-eta 1"]),
        (
            None,
            ["--method", "moment-widened", "--widening", "1", "--horizon", "0"],
            ["--horizon must be at least 1, got 0"],
        ),
        (
            None,
            ["--method", "moment-widened", "--widening", "1e308", "--horizon", "4"],
            ["--widening widens variances by", "give a smaller one"],
        ),
        (
            None,
            ["--method", "moment-widened", "--widening", "1e250", "--horizon", "4"],
            ["--widening widens variances by", "give a smaller one"],
        ),
        (None, ["--widening", "3"], ["--widening is for --method moment-widened"]),
        (None, ["--reward", "Days"], ["column 'Days' is the reward"]),
        ("exact", [], ["fit all rewards exactly"]),
        (("Days", 4, "four"), [], ["column 'Days'", "'four'", "row 5"]),
        (("Reaction", 2, None), [], ["1 row is without a value in 'Reaction': row 3 "]),
        (("Reaction", 2, "inf"), [], ["column 'Reaction'", "row 3"]),
        (("Subject", 7, None), [], ["without a value in 'Subject': row 8 "]),
        ("one", [], ["there is 1 task"]),
        ("short", [], ["has 1 rows, fewer than the 2 features"]),
        ("none", [], ["there are no rows"]),
    ],
)
def test_bad_tables_are_refused_in_one_line(
    change: object,
    arguments: list[str],
    words: list[str],
    sleep: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2 and what is wrong, with the row where it is in one; nothing is written."""
    frame = pd.read_csv(sleep, dtype=object)
    if isinstance(change, tuple):
        frame.loc[change[1], change[0]] = change[2]
    rows = {"one": 10, "short": 1, "none": 0}
    frame = frame.head(rows[change]) if change in rows else frame
    if change == "exact":
        frame["Reaction"] = frame["Days"]
    frame.to_csv(sleep, index=False)
    assert run("fit", str(sleep), *COLUMNS, *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1
    assert all(word in shown.err for word in words), shown.err


def test_labels_are_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """01 and 1 are two tasks, NA is a name, brackets and dollars are no markup."""
    labels = ["01", "1", "NA", "[/b]x", "$a_{b$"]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "who": np.repeat(labels, 6),
            "y[ms]": rng.standard_normal(30),
            "x": rng.standard_normal(30),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    columns = ["--task", "who", "--reward", "x", "--features", "y[ms]", "--intercept"]
    assert run("fit", str(tmp_path / "t.csv"), *columns, "--plot", str(tmp_path / "t.png")) == 0
    shown = capsys.readouterr().out
    assert "5 tasks" in shown and all(label in shown for label in (*labels, "y[ms]"))


def test_other_separators_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with semicolons has one column; Latin-1 is not UTF-8."""
    (tmp_path / "semi.csv").write_text("a;b;c\n1;2;3\n")
    assert run("fit", str(tmp_path / "semi.csv"), *COLUMNS) == 2
    assert "separate columns by commas" in capsys.readouterr().err
    (tmp_path / "latin.csv").write_bytes("Subject,Größe\n1,2\n".encode("latin-1"))
    assert run("fit", str(tmp_path / "latin.csv"), *COLUMNS) == 2
    assert "save it as CSV in UTF-8" in capsys.readouterr().err


def test_parquet_says_what_csv_says(
    sleep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same table in both formats, the same numbers."""
    pd.read_csv(sleep).to_parquet(tmp_path / "sleep.parquet")
    shown = []
    for path in (sleep, tmp_path / "sleep.parquet"):
        assert run("fit", str(path), *COLUMNS, "--json") == 0
        shown.append(json.loads(capsys.readouterr().out))
    assert shown[0] == shown[1] and shown[0]["tasks"] == 18


def test_files_that_are_no_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing, empty, or a Parquet file that is none."""
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bad.parquet").write_text("no")
    for name in ("missing.csv", "empty.csv", "bad.parquet"):
        assert run("fit", str(tmp_path / name), *COLUMNS) == 2
        shown = capsys.readouterr().err
        assert shown.count("\n") == 1 and ("Parquet" in shown or name in shown)


def test_names_with_commas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--features may be repeated; a name that has a comma stands alone."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((60, 4))
    frame = pd.DataFrame(values, columns=["price, net", "price", "size", "y"])
    frame.insert(0, "t", np.repeat(range(10), 6))
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["fit", str(tmp_path / "t.csv"), "--task", "t", "--reward", "y", "--json"]
    assert run(*command, "--features", "price, net", "--features", "price, size") == 0
    assert json.loads(capsys.readouterr().out)["features"] == ["price, net", "price", "size"]


def test_methods_are_those_that_need_nothing_but_a_table() -> None:
    """The command lists them itself, since it must start without loading the estimators."""
    from bayesmeta.commands.fit import METHODS
    from bayesmeta.estimators.fit import METHODS as ALL

    assert set(METHODS) == set(ALL) - {"split", "gls"}


def test_advice_names_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Errors, tables and JSON say --noise-sd where Python says noise_sd."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": range(30), "y": rng.standard_normal(30)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["fit", str(tmp_path / "t.csv"), "--task", "t", "--reward", "y", "--intercept"]
    assert run(*command) == 0
    shown = capsys.readouterr().out.replace("\n", " ")
    assert "give --noise-sd, " in shown and "noise_sd" not in shown
    assert run(*command, "--json") == 0
    assert "give --noise-sd" in json.loads(capsys.readouterr().out)["advice"]
    assert run(*command, "--method", "moment") == 2
    assert "give --noise-sd" in capsys.readouterr().err


def test_categories_of_a_formula_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text is coded, and said so; dates as text only where a formula says C(…)."""
    rng = np.random.default_rng(0)
    days = [f"2024-01-0{1 + i % 3}" for i in range(30)]
    frame = pd.DataFrame({"t": np.arange(30) // 6, "day": days, "x": rng.standard_normal(30)})
    frame["kind"] = [f"kind {day[-1]}" for day in days]
    frame.assign(y=rng.standard_normal(30)).to_csv(tmp_path / "t.csv", index=False)
    command = ["fit", str(tmp_path / "t.csv"), "--noise-sd", "1", "--formula"]
    assert run(*command, "y ~ kind + x + (1 | t)") == 0
    note = "bayesmeta: column 'kind' has 3 categories, compared with 'kind 1'\n"
    assert capsys.readouterr().err == note
    assert run(*command, "y ~ 0 + kind + (0 + kind | t)") == 0
    assert "has 3 categories\n" in capsys.readouterr().err
    for more in ([], ["--batches"]):
        assert run(*command, "y ~ day + (1 | t)", *more) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "dates as text, such as '2024-01-01'" in said
        assert run(*command, "y ~ C(day) + (1 | t)", *more) == 0
        said = capsys.readouterr().err
        assert said == note.replace("kind 1", "2024-01-01").replace("kind", "day")


@pytest.mark.parametrize("more", [[], ["--batches"], ["--task", "g"]])
def test_a_table_without_columns_names_them(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says what to give and what there is to choose from."""
    pd.DataFrame({"g": [1, 2], "x": [1.0, 2.0], "y": [3.0, 4.0]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert run("fit", str(tmp_path / "t.csv"), *more) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "the columns are 'g', 'x', 'y'" in said
    assert ("--reward" if "--task" in more else "--task") in said
