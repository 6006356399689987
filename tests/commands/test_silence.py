"""Nothing is ignored in silence: options that would do nothing, formulas of R, marks of fits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.fitted.tables import chains_and_draws
from tests.helpers import SLEEP_COLUMNS as COLUMNS
from tests.helpers import run

FORMULA = ["--formula", "Reaction ~ Days + (Days | Subject)"]


def refused(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """The one line of a refusal."""
    assert run(*command) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1, told
    return told.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([*COLUMNS, "--seed", "3"], "--seed is of --confint bootstrap; give that, too"),
        ([*COLUMNS, "--sort", "Days"], "--sort is of --plot; give that, too"),
        ([*FORMULA, "--task", "Subject"], "--formula says it all; leave out --task"),
    ],
)
def test_options_that_do_nothing(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are refused, with what to do."""
    assert words in refused(capsys, "fit", "sleepstudy", *options)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ("factor(Days) + (1 | Subject)", "write C(Days) in place of factor(Days)"),
        ("as.factor(Days) + (1 | Subject)", "write C(Days) in place of as.factor(Days)"),
        ("I(Days^2) + (1 | Subject)", "write I(Days**2) in place of I(Days^2)"),
        ("Days + np.sqrt((Days+1)^2) + (1 | Subject)", "write np.sqrt((Days+1)**2) in place of"),
        (". + (1 | Subject)", "'.' (all other columns) is not supported; name the features"),
        ("Days + (. | Subject)", "'.' (all other columns) is not supported; name the features"),
    ],
)
def test_formulas_of_r(terms: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What to write instead."""
    said = refused(capsys, "fit", "sleepstudy", "--formula", f"Reaction ~ {terms}")
    assert words in said and "formulaic" not in said and "xor" not in said


def test_names_with_dots_and_powers_of_sums_stay(tmp_path: Path) -> None:
    """Columns of R's names, numbers with dots, interactions by ^, a function called factor."""
    table = bm.load_data("sleepstudy").rename(columns={"Days": "all.days"})
    table["factor"] = np.sin(np.arange(len(table)))
    formula = "Reaction ~ (all.days + factor)^2 + I(factor * .5) + (1 | Subject)"
    found = bm.tabulate(table.rename(columns={"all.days": "days"}), formula.replace("all.", ""))
    assert len(found.stats.feature_labels) == 5
    assert bm.tabulate(table, "Reaction ~ all.days + (1 | Subject)").stats.dim == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"draws": 100}, "unknown option 'draws' of reml; it needs method=\"posterior\""),
        ({"widening": 1.0, "method": "posterior"}, "unknown option 'widening' of posterior"),
        ({"levle": 0.9}, "unknown option 'levle'; did you mean 'level'?"),
        ({"nois_sd": 1}, "unknown option 'nois_sd'; did you mean 'noise_sd'?"),
    ],
)
def test_unknown_options_of_python(options: dict[str, object], words: str) -> None:
    """What they may have been."""
    with pytest.raises(bm.InputError) as caught:
        bm.fit(bm.load_data("sleepstudy"), FORMULA[1], **options)
    assert words in str(caught.value)


def test_predictions_of_singular_fits_are_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As tasks are: a column, and one line."""
    rng = np.random.default_rng(1)
    shop, x = np.arange(8).repeat(6), rng.standard_normal(48)
    y = rng.normal(0, 2, 8)[shop] + 0.5 * x + rng.standard_normal(48)
    frame = pd.DataFrame({"shop": shop, "x": x, "y": y})
    fitted = bm.fit(frame, "y ~ x + (x | shop)")
    assert fitted.predict(frame)["conditional"].all() and fitted.tasks()["conditional"].all()
    plain = bm.fit(bm.load_data("sleepstudy"), FORMULA[1])
    assert not plain.predict(pd.DataFrame({"Days": [1.0]}))["conditional"].any()
    table, out = tmp_path / "t.csv", tmp_path / "out.csv"
    frame.to_csv(table, index=False)
    (tmp_path / "new.csv").write_text("shop,x\n1,2.0\n")
    asked = ["--predict", str(tmp_path / "new.csv"), "--predictions", str(out)]
    assert run("fit", str(table), "--formula", "y ~ x + (x | shop)", *asked) == 0
    told = capsys.readouterr().err
    assert "predictions are conditional on a covariance that is singular" in told
    assert told.count("\n") == 1
    assert pd.read_csv(out)["conditional"].tolist() == [True]


@pytest.mark.slow
def test_known_noise_is_not_one_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The noise of every row is known, so there is neither an estimate nor a prior of it."""
    table = ["eight_schools", "--formula", "effect ~ 1 + (1 | school)", "--noise-se", "se"]
    assert run("fit", *table, "--json") == 0
    assert json.loads(capsys.readouterr().out)["noise_sd"] is None
    drawn = ["--draws", "50", "--tune", "100", "--out", str(tmp_path / "a.nc"), "--json"]
    assert run("sample", *table, *drawn) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert found["noise_sd"] is None and found["prior"]["noise_scale"] is None


def test_plurals() -> None:
    """One chain is no chains."""
    assert chains_and_draws({"chain": 1, "draw": 50}) == "1 chain of 50 draws"
    assert chains_and_draws({"chain": 2, "draw": 1}) == "2 chains of 1 draw"
