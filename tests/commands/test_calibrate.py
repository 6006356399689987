"""``bayesmeta calibrate``: the lab in one command."""

from __future__ import annotations

import json
from pathlib import Path

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
    """Rows with the promised keys, one for each quantity and level, and the Dataset beside them."""
    out = tmp_path / "new" / "lab.nc"
    arguments = ["--tasks", "10,20", "--estimators", "moment,reml", "--levels", "0.5,0.9"]
    assert run("calibrate", *SMALL, *arguments, "--json", "--out", str(out)) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(list(row) == KEYS for row in rows)
    quantities = ["mu[x1]", "mu[x2]", "sd[x1]", "sd[x2]", "corr[x2, x1]"]
    quantities += ["cov[x1, x1]", "cov[x2, x1]", "cov[x2, x2]", "next task"]
    assert [row["quantity"] for row in rows[:18:2]] == quantities
    assert len(rows) == 2 * 2 * 9 * 2
    lab = bm.read_record(out)
    assert lab.sizes["replication"] == 12
    found = bm.measures(lab)
    at = {"estimator": "reml", "tasks": 20, "quantity": "mu[x1]", "level": 0.9}
    (row,) = [row for row in rows if all(row[key] == value for key, value in at.items())]
    assert row["coverage"] == pytest.approx(float(found.coverage.sel(at)))
    assert row["interval_score"] == pytest.approx(float(found.interval_score.sel(at)))


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
    assert "moment-clipped" in shown and "width of mu" in shown and "next task" in shown
    (sentence,) = [line for line in shown.splitlines() if line.startswith("With 18 tasks")]
    assert "of mu by" in sentence and "of sd by" in sentence and "12 replications" in sentence


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
        (["--task", "shop"], "--task describes a table"),
        (["--noise-sd", "-1"], "--noise-sd must be greater than 0"),
        (["--out", "lab.csv"], "--out must end in .nc"),
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
