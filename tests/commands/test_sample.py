"""``bayesmeta sample``: the posterior of a table of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers import SLEEP_COLUMNS as COLUMNS
from tests.helpers import run

pytestmark = pytest.mark.slow


def test_a_posterior_from_a_csv(
    sleep: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Tables with intervals and the verdict; a NetCDF that ArviZ reads; a page; and JSON. The
    posterior mean lies within a standard deviation of REML's estimate."""
    import arviz as az

    out = tmp_path / "new" / "sleep.nc"
    command = ["sample", str(sleep), *COLUMNS, "--out", str(out)]
    assert run(*command) == 0
    shown = capsys.readouterr().out
    words = ("mu[intercept]", "sd[Days]", "corr[Days, intercept]", "sigma", "R-hat", "± sd", "308")
    words += ("sigma ~ half-normal(", "the draws can be trusted", "wrote sleep.nc")
    assert all(word in shown for word in words)
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    tree = az.from_netcdf(out)
    own = {"posterior", "sample_stats", "prior", "log_prior", "log_likelihood"}
    own |= {"prior_predictive", "posterior_predictive"}
    assert set(tree.children) == own | {"observed_data", "constant_data"}
    assert tree["posterior"]["mu"].dims == ("chain", "draw", "feature")
    plot = tmp_path / "plots" / "tasks.png"
    assert run(*command, "--json", "--random-seed", "1", "--draws", "500", "--plot", str(plot)) == 0
    found = json.loads(capsys.readouterr().out)
    assert plot.read_bytes().startswith(b"\x89PNG") and found["files"]["plot"] == str(plot)
    assert found["rows"] == 180 and found["identified"] is True
    assert {one["level"] for one in found["intervals"]} == {0.95}
    assert found["status"] == "ok" and found["features"] == ["intercept", "Days"]
    assert abs(found["mean"][0] - 251.405) < 6.8 and abs(found["mean"][1] - 10.467) < 1.6
    assert found["intervals"][-1]["quantity"] == "sigma"
    first = found["task_estimates"][0]
    assert first["task"] == "308" and abs(first["mean"][1] - 19.67) < 1.5  # lme4's coef()
    narrow = ["--prior-scale", "30,0.001", "--prior-eta", "1.5", "--prior-noise-scale", "2"]
    assert run(*command, "--json", "--draws", "200", *narrow) in (0, 1)
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert "the noise is near 25.59, its --prior-noise-scale 2" in told.err
    assert found["prior"]["eta"] == 1.5 and found["prior"]["scale"] == [30.0, 0.001]
    spread = {row["quantity"]: row["estimate"] for row in found["intervals"]}
    assert spread["sd[Days]"] < 0.01 < spread["sd[intercept]"]  # what it was told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--prior-scale", "-1"], "--prior-scale must be greater than 0"),
        (["--prior-scale", "1,x"], "--prior-scale must be a number"),
        (
            ["--prior-mean-sd", "1,2,3"],
            "--prior-mean-sd has 3 numbers; give one, or 2, for 'intercept', 'Days'",
        ),
        (["--method", "reml"], "argument --method: invalid choice: 'reml'"),
        (["--draws", "0"], "--draws must be at least 1"),
        (["--tune", "0"], "--tune must be at least 1"),
        (["--seed", str(2**64)], "--seed must be less than 2**64"),
        (["--target-accept", "1"], "--target-accept must be between 0 and 1"),
        (["--out", "a.csv"], "--out must be a file that ends in .nc"),
        (["--plot", "posterior.png"], "--plot must be a file of its own"),
        (["--sort", "Days"], "--sort is of --plot"),
        (["--plot", "tasks.png", "--sort", "Day"], "unknown --sort 'Day'; did you mean 'Days'?"),
        (["--plot", "tasks.txt"], "--plot must end in .png"),
        (["--task", "Who"], "there is no column 'Who'"),
        (["--prior-noise-scale", "1", "--noise-sd", "2"], "--noise-sd"),
    ],
)
def test_bad_options_are_refused(
    sleep: Path,
    options: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line that names the option, exit code 2, and no file."""
    monkeypatch.chdir(tmp_path)
    assert run("sample", str(sleep), *COLUMNS, *options) == 2
    error = capsys.readouterr().err
    assert words in error and len(error.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["sleep.csv"]


def test_a_posterior_not_to_be_trusted_has_exit_code_1(
    sleep: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Written and shown all the same, with what is wrong."""
    command = ["sample", str(sleep), *COLUMNS]
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
    command = ["sample", str(tmp_path / "t.csv"), "--task", "t", "--reward", "y", "--intercept"]
    command += ["--draws", "50", "--tune", "100", "--out", str(tmp_path / "a.nc")]
    assert run(*command) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "not identified: the data do not determine" in shown and "give --noise-sd" in shown
    assert run(*command, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["identified"] is False and found["advice"].startswith("the data do not determine")
