"""``bayesmeta fit``: intervals, order of pictures, marks of singular fits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.fitted.prior import FittedPrior
from bayesmeta.report.fitted import as_json
from tests.helpers import SLEEP_COLUMNS as COLUMNS
from tests.helpers import run


def test_profile_ends_are_in_the_json(sleep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As lme4 has them, with their method and level."""
    assert run("fit", str(sleep), *COLUMNS, "--confint", "profile", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    ends = {one["quantity"]: (one["low"], one["high"]) for one in found["intervals"]}
    np.testing.assert_allclose(ends["sd[Days]"], (3.801, 8.753), atol=1e-3)
    assert {(one["method"], one["level"]) for one in found["intervals"]} == {("profile", 0.95)}
    assert found["aic"] == pytest.approx(1755.628, abs=1e-3) and found["conditional"] is False


def test_whose_ends_a_profile_has(sleep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the likelihood, which is said below a table by REML, where it may surprise."""
    for method, said in (("reml", "profile (of the likelihood, also after REML)"), ("ml", "")):
        assert run("fit", str(sleep), *COLUMNS, "--confint", "profile", "--method", method) == 0
        shown = capsys.readouterr().out
        assert "intervals: profile" in shown and ("also after REML" in shown) is bool(said)
        assert said in shown


def test_undefined_correlations_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tasks that hardly differ: in part of the replications a spread is 0, and there is no
    correlation. The share is printed and in the JSON."""
    rng = np.random.default_rng(17)
    x, y = rng.standard_normal((2, 48))
    frame = pd.DataFrame({"t": np.arange(8).repeat(6), "x": x, "y": y})
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    columns = ["--task", "t", "--reward", "y", "--features", "x", "--intercept"]
    assert run("fit", str(path), *columns, "--confint", "bootstrap") == 0
    shown = " ".join(capsys.readouterr().out.split())
    fit = bm.fit(frame, "y ~ x + (x | t)")
    assert isinstance(fit, FittedPrior)
    ends, drawn = fit.confint("bootstrap"), fit.redrawn()
    share = float(np.mean((drawn.cov[:, 0, 0] == 0) | (drawn.cov[:, 1, 1] == 0)))
    assert share > 0 and ends.attrs["undefined"] == {"corr[x, intercept]": share}
    assert f"left out: corr[x, intercept] in {share:.1%}" in shown
    told = as_json(fit, ends=ends)["intervals"]
    assert [one.get("undefined") for one in told] == [None] * 4 + [share, None]


def test_tables_fit_80_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five features with long names: names are cut in their middle, numbers are whole, and a
    singular fit has its stars."""
    rng = np.random.default_rng(0)
    names = [f"temperature_of_the_room_in_winter_{i}" for i in range(5)]
    frame = pd.DataFrame(1e-4 * rng.standard_normal((120, 5)), columns=names)
    frame["y"], frame["t"] = rng.standard_normal(120), np.arange(12).repeat(10)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    columns = ["--task", "t", "--reward", "y", "--features", ",".join(names)]
    plot = tmp_path / "t.png"
    assert run("fit", str(path), *columns, "--plot", str(plot), "--sort", names[1]) == 0
    shown = capsys.readouterr().out
    text = [line for line in shown.split("\n") if "wrote" not in line]
    assert max(map(len, text)) <= 80
    assert "_4" in shown and "* conditional on a covariance that is singular" in shown
    assert not any(line.rstrip().endswith("…") for line in text) and plot.exists()


def test_wald_intervals_that_there_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tasks that do not differ in x: null with a note in the JSON, a line in the table, both naming
    the option."""
    rng = np.random.default_rng(1)
    shop, x = np.arange(8).repeat(6), rng.standard_normal(48)
    y = rng.normal(0, 2, 8)[shop] + 0.5 * x + rng.standard_normal(48)
    path = tmp_path / "t.csv"
    pd.DataFrame({"shop": shop, "x": x, "y": y}).to_csv(path, index=False)
    columns = ["--task", "shop", "--reward", "y", "--features", "x", "--intercept"]
    assert run("fit", str(path), *columns, "--json") == 0
    found = json.loads(capsys.readouterr().out)["intervals"]
    ends = {one["quantity"]: one for one in found}
    assert ends["sd[x]"]["high"] is None and "use --confint profile" in ends["sd[x]"]["note"]
    assert "note" not in ends["mu[x]"]
    assert run("fit", str(path), *columns) == 0
    assert "no Wald interval of sd[intercept], sd[x]" in capsys.readouterr().out
    assert run("fit", str(path), *columns, "--confint", "profile") == 0
    assert "no Wald interval" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--level", "2"], "level must be below 1"),
        (["--confint", "magic"], "invalid choice"),
        (["--plot", "p.png", "--sort", "Weeks"], "Weeks"),
        (["--method", "moment", "--confint", "profile"], "profile intervals are of ml and reml"),
    ],
)
def test_bad_options(
    arguments: list[str], word: str, sleep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit code 2."""
    assert run("fit", str(sleep), *COLUMNS, *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and word in shown.err and shown.err.count("\n") == 1
