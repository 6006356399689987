"""``bayesmeta calibrate``: the lab in one command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from tests.helpers import SLEEP_COLUMNS as COLUMNS
from tests.helpers import run

SMALL = ["--dim", "2", "--horizon", "30", "--replications", "12", "--jobs", "1"]
KEYS = [
    "estimator", "tasks", "quantity", "level", "coverage", "coverage_error", "width",
    "interval_score", "bias", "bias_error", "rmse",
]  # fmt: skip


def test_a_family_as_json_and_as_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Rows with the promised keys, one for each quantity and level; the files hold the same."""
    out = tmp_path / "new" / "lab"
    arguments = ["--tasks", "10,20", "--estimators", "moment,reml", "--levels", "0.5,0.9"]
    assert run("calibrate", *SMALL, *arguments, "--json", "--out", str(out)) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(list(row) == KEYS for row in rows)
    quantities = list(dict.fromkeys(row["quantity"] for row in rows))
    assert quantities[:5] == ["mu[0]", "mu[1]", "sd[0]", "sd[1]", "corr[1, 0]"]
    assert quantities[5:] == ["cov[0, 0]", "cov[1, 0]", "cov[1, 1]", "next task"]
    assert len(rows) == 2 * 2 * len(quantities) * 2
    assert json.loads((out / "measures.json").read_text()) == rows
    lab = bm.read_record(out / "lab.nc")
    assert lab.sizes["replication"] == 12
    found = bm.measures(lab)
    at = {"estimator": "reml", "tasks": 20, "quantity": "mu[x1]", "level": 0.9}
    same = at | {"quantity": "mu[0]"}
    (row,) = [row for row in rows if all(row[key] == value for key, value in same.items())]
    table = pd.read_csv(out / "measures.csv")
    assert table.name[table.quantity == "mu[0]"].unique().tolist() == ["mu[x1]"]
    expected = pd.DataFrame(rows).coverage.astype(float)
    np.testing.assert_allclose(table.coverage, expected, rtol=1e-5)
    assert row["coverage"] == pytest.approx(float(found.coverage.sel(at)))
    assert row["interval_score"] == pytest.approx(float(found.interval_score.sel(at)))


def test_estimators_that_fit_the_table_are_the_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Moments take all coefficients to differ between tasks; where some do not, ml is asked."""
    own = ["--formula", "Reaction ~ Days + (1 | Subject)", "--replications", "3", "--jobs", "1"]
    assert run("calibrate", "sleepstudy", *own, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["estimator"] for row in rows} == {"ml", "reml"}
    assert run("calibrate", *SMALL, "--tasks", "10", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["estimator"] for row in rows} == {"moment", "reml"}


def test_a_wrong_world(capsys: pytest.CaptureFixture[str]) -> None:
    """As the same call of the lab has it, and not as the right world."""
    command = ["calibrate", *SMALL, "--tasks", "10", "--estimators", "moment", "--json"]
    wrong = "clustered theta"
    assert run(*command, "--wrong", wrong) == 0
    rows = json.loads(capsys.readouterr().out)
    family = bm.paper_family(dim=2, horizon=30)
    options = {"tasks": 10, "estimators": "moment", "replications": 12, "jobs": 1}
    for name, same in ((wrong, True), (None, False)):
        found = bm.measures(bm.calibrate(family, wrong=name, **options))
        bias = float(found.bias.sel(tasks=10, estimator="moment", quantity="mu[x1]"))
        assert (rows[0]["bias"] == pytest.approx(bias)) is same


def test_a_table_for_people(capsys: pytest.CaptureFixture[str], sleep: Path) -> None:
    """A row for every estimator, and a sentence; of one's own table."""
    command = ["calibrate", str(sleep), *COLUMNS, "--replications", "12", "--jobs", "1"]
    assert run(*command, "--estimators", "moment-clipped,reml") == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in shown
    (head,) = [line.split() for line in lines if line.startswith(" estimator")]
    assert head == ["estimator", "mu", "sd", "next", "task", "width", "score", "rmse", "bias"]
    rows = [line.split()[0] for line in lines if line.startswith((" moment", " reml"))]
    assert rows == ["moment-clipped", "reml"]
    sentence = " ".join(shown[shown.index("With 18 tasks") :].split())
    assert "of mu by" in sentence and "of sd by" in sentence and "12 replications" in sentence
    assert "moment-clipped, 18 tasks: no interval of corr in 100%" in sentence


def test_worlds_side_by_side(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Ways of data and wrong models are keys of rows, and parts of names in the table."""
    command = ["calibrate", *SMALL, "--tasks", "10", "--estimators", "moment", "--out"]
    more = ["--explore", "30,UKTS", "--wrong", "nothing,skewed theta", "--levels", "0.9"]
    assert run(*command, str(tmp_path), *more) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "moment, 30 steps, skewed theta" in shown
    rows = json.loads((tmp_path / "measures.json").read_text())
    worlds = {(row["data"], row["wrong"]) for row in rows}
    assert worlds == {(a, b) for a in ("30 steps", "UKTS") for b in ("nothing", "skewed theta")}


def test_goes_on_from_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The second time all replications are there, and the rows are the same."""
    command = ["calibrate", *SMALL, "--tasks", "10", "--json", "--folder", str(tmp_path / "lab")]
    assert run(*command) == 0
    first = capsys.readouterr().out
    assert run(*command) == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--estimators", "rmel"], "did you mean 'reml'"),
        (["--estimators", ","], "no estimators"),
        (["--replications", "0"], "--replications must be at least 1"),
        (["--levels", "0.5,1.5"], "below 1"),
        (["--levels", "high"], "--levels must be a number"),
        (["--tasks", "20;100"], "--tasks must be whole numbers"),
        (["--explore", "nobody"], "unknown agent"),
        (["--explore", "500"], "horizon"),
        (["--explore", ","], "explore is empty"),
        (["--wrong", "skewd theta"], "did you mean 'skewed theta'"),
        (["--task", "shop"], "--task describes a table"),
        (["--intercept"], "--intercept describes a table"),
        (["--noise-sd", "-1"], "--noise-sd must be greater than 0"),
        (["--intervals", "walt"], "unknown intervals"),
        (["--wrong", "skewed"], "did you mean 'skewed theta'"),
        (["nothing.csv", "--task", "a", "--reward", "b", "--features", "c"], "nothing.csv"),
        (["sleepstudy", "--dim", "3"], "--dim is of a simulated family"),
    ],
)
def test_bad_input(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line."""
    small = [] if arguments[0] == "sleepstudy" or arguments[0].endswith(".csv") else SMALL
    assert run("calibrate", *small, *arguments) == 2
    said = capsys.readouterr()
    assert said.out == "" and words in said.err and len(said.err.splitlines()) == 1


def test_a_table_without_repetitions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What would help is named as options of the command."""
    once = tmp_path / "once.csv"
    once.write_text("shop,sales\n" + "".join(f"s{i},{i * i}\n" for i in range(8)))
    command = ["calibrate", str(once), "--task", "shop", "--reward", "sales", "--intercept"]
    assert run(*command, "--jobs", "1") == 2
    said = capsys.readouterr().err
    assert "no data can be drawn like these" in said and "give --noise-sd" in said


def test_nothing_is_left_of_a_command_that_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The folder is made before the work, and gone after an error; one that was there stays."""
    new, old = tmp_path / "new", tmp_path / "old"
    old.mkdir()
    for out in (new, old):
        assert run("calibrate", *SMALL, "--estimators", "rmel", "--out", str(out)) == 2
    assert old.exists() and not new.exists()
    (tmp_path / "file").write_text("")
    assert run("calibrate", *SMALL, "--out", str(tmp_path / "file")) == 2
    assert "cannot write in" in capsys.readouterr().err
