"""``--predict`` and ``--level`` of ``fit`` and ``sample``: known tasks, new ones, bad files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from tests.helpers import SLEEP_COLUMNS as COLUMNS
from tests.helpers import run

FORMULA = "Reaction ~ Days + (Days | Subject)"
LAPLACE = ["--draws", "400", "--method", "laplace"]


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Rows of a known task and of one that is new."""
    path = tmp_path / "new.csv"
    path.write_text("Subject,Days,note\n308,10,a\n308,0,b\nnobody,10,c\n")
    return path


def test_fit_predicts(sleep: Path, new: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the fitted object does: the columns of the file, then the predictions at the level."""
    out = new.with_name("out.csv")
    asked = ["--predict", str(new), "--predictions", str(out), "--level", "0.8"]
    assert run("fit", str(sleep), *COLUMNS, *asked) == 0
    told = capsys.readouterr()
    assert "wrote" in told.out and "'nobody'" in told.err and "new task" in told.err
    found = pd.read_csv(out)
    numbers = ["mean", "sd", "low", "high"]
    assert found.columns.tolist() == ["Subject", "Days", "note", *numbers, "conditional"]
    assert found["note"].tolist() == ["a", "b", "c"]
    fitted = bm.fit(bm.load_data("sleepstudy"), FORMULA)
    with pytest.warns(bm.NewTaskWarning, match="'nobody'"):
        wanted = fitted.predict(pd.read_csv(new, dtype={"Subject": str}), level=0.8)
    np.testing.assert_allclose(found[numbers], wanted[numbers], rtol=1e-6)
    assert found["sd"][2] > found["sd"][0]
    assert run("fit", str(sleep), *COLUMNS, *asked, "--with-noise", "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"] == {"predictions": str(out)}
    assert (pd.read_csv(out)["sd"] > 25).all()


def test_sample_predicts(sleep: Path, new: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the uncertainty of the prior, at the level that all intervals have."""
    out = new.with_name("out.csv")
    command = ["sample", str(sleep), *COLUMNS, *LAPLACE, "--out", str(new.with_name("a.nc"))]
    command += ["--predict", str(new), "--predictions", str(out)]
    widths = {}
    for level in ("0.5", "0.9"):
        assert run(*command, "--level", level, "--json") in (0, 1)
        found = json.loads(capsys.readouterr().out)
        assert {one["level"] for one in found["intervals"]} == {float(level)}
        assert found["files"]["predictions"] == str(out)
        ends = pd.DataFrame(found["intervals"]).set_index("quantity").loc["mu[Days]"]
        table = pd.read_csv(out)
        widths[level] = [ends["high"] - ends["low"], *(table["high"] - table["low"])]
    ratio = np.array(widths["0.9"]) / np.array(widths["0.5"])
    assert (ratio > 1.8).all() and (ratio < 3.5).all()  # 2.44 of a normal
    assert abs(table["mean"][0] - 450) < 20 and abs(table["mean"][2] - 356) < 20
    assert run(*command, "--level", "0.8") in (0, 1)
    shown = capsys.readouterr().out
    assert "10%" in shown and "90%" in shown and "97.5%" not in shown


BAD = {
    "no such file": (None, [], "there is no file"),
    "empty": ("", [], "is empty"),
    "header only": ("Subject,Days\n", [], "there are no rows"),
    "no column": ("Subject,Weeks\n308,1\n", [], "there is no column 'Days'"),
    "a gap": ("Subject,Days\n308,\n309,1\n", [], "1 row is without a value in 'Days': row 1"),
    "no label": ("Subject,Days\n,1\n", [], "1 row is without a value in 'Subject': row 1"),
    "text": ("Subject,Days\n308,x\n", [], "column 'Days' has 'x'"),
    "column of the predictions": ("Subject,Days,sd\n308,1,2\n", [], "a column 'sd'"),
    "twice": ("Subject,Days,Days\n308,1,2\n", [], "2 columns 'Days'"),
    "itself": ("Subject,Days\n308,1\n", ["--predictions", "new.csv"], "another file"),
    "no csv": ("Subject,Days\n308,1\n", ["--predictions", "a.txt"], "must end in .csv"),
    "level": ("Subject,Days\n308,1\n", ["--level", "95"], "level must be below 1"),
}


@pytest.mark.parametrize("command", ["fit", "sample"])
@pytest.mark.parametrize("case", BAD)
def test_bad_files(
    case: str,
    command: str,
    sleep: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line that names the problem, exit code 2, and no file."""
    monkeypatch.chdir(sleep.parent)
    text, options, words = BAD[case]
    if text is not None:
        Path("new.csv").write_text(text)
    before = sorted(Path().iterdir())
    assert run(command, str(sleep), *COLUMNS, "--predict", "new.csv", *options) == 2
    told = capsys.readouterr()
    assert told.out == "" and words in told.err and told.err.count("\n") == 1, told.err
    assert sorted(Path().iterdir()) == before


def test_predictions_need_rows(sleep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An option that would do nothing is refused."""
    for option in (["--predictions", "a.csv"], ["--with-noise"]):
        assert run("fit", str(sleep), *COLUMNS, *option) == 2
        assert "give --predict" in capsys.readouterr().err


def test_rows_may_be_left_out_and_tasks_unnamed(
    tmp_path: Path, sleep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--drop-missing holds for new rows, too; without the column of tasks all are of new ones."""
    (tmp_path / "new.csv").write_text("Days,z\n1,\n,2\n3,3\n")
    out = tmp_path / "out.csv"
    asked = ["--predict", str(tmp_path / "new.csv"), "--predictions", str(out), "--drop-missing"]
    assert run("fit", str(sleep), *COLUMNS, *asked) == 0
    told = capsys.readouterr().err
    assert "left out 1 row without a value in 'Days': 2" in told
    assert "no column 'Subject'" in told and "new task" in told
    assert pd.read_csv(out)["Days"].tolist() == [1, 3]


def test_categories_of_new_rows_are_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where they look like numbers; an unknown one is named."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": np.repeat([f"t{i}" for i in range(12)], 10)})
    frame["f"] = pd.Categorical(rng.choice(["01", "02", "3"], 120), ["02", "01", "3"])
    frame["y"] = rng.normal(size=120) + rng.normal(size=12).repeat(10)
    frame.to_parquet(tmp_path / "t.parquet")
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    command = ["fit", str(tmp_path / "t.parquet"), "--formula", "y ~ f + (1 | g)"]
    command += ["--predict", str(new), "--predictions", str(out)]
    new.write_text("g,f\nt1,01\nt1,02\n")
    assert run(*command) == 0
    assert pd.read_csv(out, dtype=str)["f"].tolist() == ["01", "02"]
    capsys.readouterr()
    new.write_text("g,f\nt1,01\nt1,04\n")
    assert run(*command) == 2
    assert "new.csv: column 'f' has the category '04' in row 2" in capsys.readouterr().err


def test_what_does_not_vary_is_not_in_tables_of_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is in the summary; one line says so. The printed prior has no scale of it either."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": np.arange(12).repeat(10), "x": rng.normal(size=120)})
    frame["z"], frame["y"] = rng.normal(size=120), rng.normal(size=120)
    frame["y"] += rng.normal(size=12).repeat(10) + rng.normal(size=12).repeat(10) * frame["x"]
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    asked = [str(path), "--formula", "y ~ x + z + (x | g)"]
    drawn = ["--draws", "50", "--tune", "100", "--chains", "2"]  # laplace wants all to vary
    drawn += ["--out", str(tmp_path / "a.nc"), "--plot", str(tmp_path / "t.png")]
    for command in (["fit", *asked], ["sample", *asked, *drawn]):
        assert run(*command) in (0, 1)
        shown = capsys.readouterr().out
        tasks = shown[shown.index("Tasks") :]
        head = next(line for line in tasks.split("\n") if line.lstrip().startswith("task "))
        assert "mu[z]" in shown and " z " not in head and " x " in head
        assert "the same in all tasks, and not among these columns: z" in " ".join(tasks.split())
        assert run(*command, "--json") in (0, 1)
        found = json.loads(capsys.readouterr().out)
        assert found["features"] == ["intercept", "x", "z"]
        assert found["varying"] == ["intercept", "x"]
        assert "the same in all tasks, and not among task_estimates: z" in found["notes"]
        assert {len(one["mean"]) for one in found["task_estimates"]} == {2}
        assert {len(one["sd"]) for one in found["task_estimates"]} == {2}
        if command[0] == "sample":
            prior = " ".join(shown.split()).split("half-normal(")[1].split(")")[0]
            assert prior.count(",") == 1
            assert found["prior"]["scale"][2] is None
            assert run(*command, "--prior-scale", "1,2", "--json") in (0, 1)
            scale = json.loads(capsys.readouterr().out)["prior"]["scale"]
            assert scale == [1.0, 2.0, None]


def test_pictures_leave_out_what_does_not_vary() -> None:
    """A panel for every feature that does."""
    from bayesmeta.report.figures.tasks import figure_fit

    table = bm.load_data("sleepstudy").assign(z=lambda t: np.sin(np.arange(len(t))))
    fitted = bm.fit(table, "Reaction ~ Days + z + (Days | Subject)", level=0.5)
    assert isinstance(fitted, bm.FittedPrior)
    figure = figure_fit(fitted)
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes] == [
        "intercept",
        "Days",
    ]
    note = figure.get_supxlabel()
    assert "50%" in note and "95%" not in note and "same in all tasks" in note
