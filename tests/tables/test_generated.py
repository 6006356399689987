"""Bad and odd tables by the hundred, generated: one line that names the problem, or a right answer.

A case is an ordinary table of random sizes, a change that makes it odd, and what the command must
say: words of its one line, or nothing where it must answer. An answer is checked against least
squares with the full covariance of each task, on features made here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from tests.properties.command import bayesmeta

SEEDS = range(3)
Rng = np.random.Generator

PLAIN = ["--task", "g", "--reward", "y", "--features", "x,z", "--intercept"]
TEXT = ["--task", "g", "--reward", "y", "--features", "x", "--fixed", "f", "--intercept"]
FORMULA = ["--formula", "y ~ x + z + f + (x | g)"]
FIXED = ["--formula", "y ~ x + z + (1 | g)"]
KNOWN = [*FIXED, "--noise-var", "w"]
ERRORS = [*FIXED, "--noise-se", "w"]
WEIGHTS = [*FIXED, "--weights", "w"]
DROP = [*FORMULA, "--drop-missing"]


def ordinary(rng: Rng) -> pd.DataFrame:
    """6-12 tasks of 6-12 rows, in any order."""
    tasks = np.repeat(np.arange(rng.integers(6, 13)), rng.integers(6, 13))
    tasks = rng.permutation(tasks)
    n = len(tasks)
    frame = pd.DataFrame(
        {
            "g": [f"t{one}" for one in tasks],
            "x": rng.standard_normal(n),
            "z": rng.standard_normal(n),
            "f": rng.permutation(np.resize(["low", "mid", "top"], n)),
            "w": rng.uniform(0.5, 2.0, n),
        }
    )
    theta = rng.standard_normal((tasks.max() + 1, 2))
    frame["y"] = 3 + theta[tasks, 0] + theta[tasks, 1] * frame["x"] + rng.standard_normal(n)
    return frame.astype({"f": object})


def cell(name: str, value: object) -> Callable[[pd.DataFrame, Rng], pd.DataFrame]:
    """One cell, in any row."""

    def change(frame: pd.DataFrame, rng: Rng) -> pd.DataFrame:
        frame = frame.astype({name: object})
        frame.loc[int(rng.integers(len(frame))), name] = value
        return frame

    return change


def column(
    name: str, make: Callable[[pd.DataFrame], Any]
) -> Callable[[pd.DataFrame, Rng], pd.DataFrame]:
    """A column of its own."""
    return lambda frame, rng: frame.assign(**{name: make(frame)})


def as_text(change: Callable[[str], str]) -> Callable[[pd.DataFrame, Rng], str]:
    """The text of the file."""
    return lambda frame, rng: change(frame.to_csv(index=False))


def same(frame: pd.DataFrame, rng: Rng) -> pd.DataFrame:
    return frame


def holes(frame: pd.DataFrame, rng: Rng) -> pd.DataFrame:
    """Thirty cells or so, in all columns."""
    frame = frame.astype(object)
    for name in ("x", "z", "f", "y"):
        frame.loc[rng.integers(len(frame), size=7), name] = rng.choice(["", "NA", "NaN", "null"])
    return frame


class Odd(NamedTuple):
    """A change of a table, what is asked, and the words of the refusal; None: an answer."""

    change: Callable[[pd.DataFrame, Rng], pd.DataFrame | str]
    arguments: list[str]
    words: str | None


CASES = {
    "plain": Odd(same, PLAIN, None),
    "text": Odd(same, TEXT, None),
    "formula": Odd(same, FORMULA, None),
    "known": Odd(same, KNOWN, None),
    "errors": Odd(same, ERRORS, None),
    "weights": Odd(same, WEIGHTS, None),
    "missing reward": Odd(cell("y", None), PLAIN, "1 row is without a value in 'y': row "),
    "missing feature": Odd(cell("x", "NA"), FORMULA, "1 row is without a value in 'x': row "),
    "missing category": Odd(cell("f", ""), FORMULA, "1 row is without a value in 'f': row "),
    "missing task": Odd(cell("g", ""), FORMULA, "1 row is without a value in 'g': row "),
    "missing weight": Odd(cell("w", ""), WEIGHTS, "1 row is without a value in 'w': row "),
    "holes": Odd(holes, FORMULA, "rows are without a value in"),
    "holes left out": Odd(holes, DROP, None),
    "all missing": Odd(column("x", lambda f: ""), DROP, "no rows with all values"),
    "text in numbers": Odd(cell("x", "abc"), PLAIN, "column 'x' has 'abc', which is not a finite"),
    "comma for point": Odd(cell("y", "1,5"), FORMULA, "column 'y' has '1,5'"),
    "text in rewards": Odd(column("y", lambda f: "high"), PLAIN, "column 'y' has 'high'"),
    "infinite": Odd(cell("z", "inf"), FORMULA, "column 'z' has inf"),
    "dates": Odd(column("x", lambda f: "2020-01-01"), PLAIN, "dates as text"),
    "duplicate header": Odd(
        as_text(lambda t: t.replace("g,x,z", "g,x,x", 1)), PLAIN, "there are 2 columns 'x'"
    ),
    "no such column": Odd(
        as_text(lambda t: t.replace("g,x,z", "g,x,q", 1)), FORMULA, "there is no column 'z'"
    ),
    "no such task": Odd(
        as_text(lambda t: t.replace("g,x,z", "G,x,z", 1)), FORMULA, "there is no column 'g'"
    ),
    "empty": Odd(as_text(lambda t: ""), PLAIN, "is empty"),
    "header only": Odd(as_text(lambda t: t.split("\n")[0] + "\n"), FORMULA, "there are no rows"),
    "short row": Odd(as_text(lambda t: t + "t0,1,2\n"), PLAIN, "has 3 fields, but the header has"),
    "semicolons": Odd(as_text(lambda t: t.replace(",", ";")), PLAIN, "separate columns by commas"),
    "one task": Odd(column("g", lambda f: "a"), PLAIN, "task"),
    "two features alike": Odd(column("z", lambda f: 2 * f["x"]), PLAIN, "linearly dependent"),
    "a constant": Odd(column("z", lambda f: 1.0), PLAIN, "linearly dependent"),
    "zeros": Odd(column("z", lambda f: 0.0), PLAIN, "linearly dependent"),
    "huge": Odd(cell("x", 1e200), PLAIN, "1e+200"),
    "tiny": Odd(column("z", lambda f: f["z"] * 1e-150), PLAIN, "choose other units"),
    "large units": Odd(column("z", lambda f: f["z"] * 1e12), PLAIN, None),
    "small units": Odd(column("z", lambda f: f["z"] * 1e-12), PLAIN, None),
    "one category": Odd(column("f", lambda f: "low"), FORMULA, "one category only, 'low'"),
    "many categories": Odd(
        lambda f, rng: pd.concat([f] * 9, ignore_index=True).assign(
            f=[f"c{i}" for i in range(9 * len(f))]
        ),
        FORMULA,
        "categories",
    ),
    "unicode": Odd(column("g", lambda f: f["g"] + " Zürich 東京 🙂"), FORMULA, None),
    "unicode categories": Odd(column("f", lambda f: "ä" + f["f"]), FORMULA, None),
    "negative variance": Odd(cell("w", -0.5), KNOWN, "column 'w' has -0.5 in row "),
    "zero standard error": Odd(cell("w", 0), ERRORS, "standard errors must be positive"),
    "zero weight": Odd(cell("w", 0), WEIGHTS, "weights must be positive"),
    "text weight": Odd(cell("w", "heavy"), WEIGHTS, "column 'w' has 'heavy'"),
    "two noises": Odd(same, [*KNOWN, "--weights", "w"], "give one of --weights, --noise-var"),
    "noise twice": Odd(same, [*KNOWN, "--noise-sd", "1"], "omit --noise-sd"),
    "both ways": Odd(same, [*FORMULA, "--reward", "y"], "leave out --reward"),
    "neither way": Odd(same, ["--task", "g", "--features", "x"], "give --reward"),
    "no task": Odd(same, ["--formula", "y ~ x"], "names no task"),
    "double bar": Odd(same, ["--formula", "y ~ x + (x || g)"], "'||'"),
    "crossed": Odd(same, ["--formula", "y ~ x + (1 | g) + (1 | f)"], "2 terms with a bar"),
    "no mean": Odd(same, ["--formula", "y ~ 1 + (x | g)"], "no mean of its own"),
    "log of negative": Odd(same, ["--formula", "y ~ np.log(x) + (1 | g)"], "not a finite number"),
    "syntax": Odd(same, ["--formula", "y ~ x * + (1 | g)"], "formula"),
    "fixed is a feature": Odd(same, [*PLAIN, "--fixed", "x"], "named twice"),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", ["no-batches", "batches"])
def test_one_line_or_a_right_answer(name: str, seed: int, how: str, tmp_path: Path) -> None:
    """Of every case; in batches, the words may be those of the reader."""
    odd = CASES[name]
    rng = np.random.default_rng([16, seed, list(CASES).index(name)])
    made = odd.change(ordinary(rng), rng)
    path = tmp_path / "table.csv"
    path.write_text(made if isinstance(made, str) else made.to_csv(index=False))
    ended = bayesmeta("fit", path, *odd.arguments, "--json", f"--{how}")
    if odd.words is not None:
        assert ended.code == 2 and "\n" not in ended.error, ended
        assert ended.error.startswith("bayesmeta: ")
        assert how == "batches" or odd.words in ended.error, ended.error
        return
    assert ended.code == 0, ended
    assert ("left out" in ended.error) == ("--drop-missing" in odd.arguments)
    searched = seed == 0 and how == "batches"
    check_answer(json.loads(ended.output), pd.read_csv(path), odd.arguments, searched)


class Dense(NamedTuple):
    """Rows sorted by task, features in units of their sizes, and their places by task."""

    x: np.ndarray
    y: np.ndarray
    noise: np.ndarray
    """variances of rows, in units of sigma^2"""
    tasks: list[np.ndarray]
    vary: list[int]
    known: bool


def dense(found: dict[str, Any], frame: pd.DataFrame, arguments: list[str]) -> Dense:
    """The rows that an answer speaks of, with features made here."""
    given = " ".join(arguments)
    columns = {"intercept": pd.Series(1.0, frame.index), "x": frame["x"], "z": frame["z"]}
    if "--fixed" in arguments or "+ f" in given:
        known = frame["f"].notna()
        for level in sorted(frame["f"].dropna().unique())[1:]:
            columns[f"f[T.{level}]"] = (frame["f"] == level).astype(float).where(known)
    used = pd.DataFrame({name: columns[name] for name in found["features"]})
    used = used.assign(y=frame["y"], g=frame["g"], w=frame["w"]).dropna()
    noise = np.ones(len(used))
    for option, power in (("--noise-var", 1), ("--noise-se", 2), ("--weights", -1)):
        if option in arguments:
            noise = noise * used["w"].to_numpy() ** power
    labels = used["g"].to_numpy()
    return Dense(
        used[found["features"]].to_numpy(float),
        used["y"].to_numpy(),
        noise,
        [np.flatnonzero(labels == one) for one in used["g"].unique()],
        [found["features"].index(name) for name in found["varying"]],
        any(one in arguments for one in ("--noise-var", "--noise-se")),
    )


def restricted(rows: Dense, cov: np.ndarray, variance: float) -> tuple[float, np.ndarray]:
    """The restricted log-likelihood as lme4 has it, from the covariance of all rows of each task,
    and the mean that is best there."""
    d = rows.x.shape[1]
    left, right, value = np.zeros((d, d)), np.zeros(d), 0.0
    solved = []
    for mine in rows.tasks:
        a, y = rows.x[mine], rows.y[mine]
        omega = a @ cov @ a.T + variance * np.diag(rows.noise[mine])
        both = np.linalg.solve(omega, np.column_stack([a, y]))
        left, right = left + a.T @ both[:, :-1], right + a.T @ both[:, -1]
        value -= np.linalg.slogdet(omega)[1] + y @ both[:, -1]
        solved.append(both)
    mean = np.linalg.solve(left, right)
    value += right @ mean - np.linalg.slogdet(left)[1]
    return 0.5 * (value - (len(rows.y) - d) * np.log(2 * np.pi)), mean


def highest(rows: Dense) -> tuple[float, np.ndarray, float]:
    """The largest restricted log-likelihood that SciPy finds from a start of its own, with Sigma
    and sigma there; the entries of a root of Sigma are free."""
    from scipy.optimize import minimize

    d, q = rows.x.shape[1], len(rows.vary)
    places = np.tril_indices(q)

    def spread(free: np.ndarray) -> tuple[np.ndarray, float]:
        root, cov = np.zeros((q, q)), np.zeros((d, d))
        root[places] = free[: len(places[0])]
        cov[np.ix_(rows.vary, rows.vary)] = root @ root.T
        return cov, 1.0 if rows.known else float(np.exp(2 * free[-1]))

    start = np.append(np.eye(q)[places], [] if rows.known else [0.0])
    ended = minimize(lambda free: -restricted(rows, *spread(free))[0], start, method="BFGS")
    cov, variance = spread(ended.x)
    return -float(ended.fun), cov, variance


def check_answer(
    found: dict[str, Any], frame: pd.DataFrame, arguments: list[str], searched: bool
) -> None:
    """Mean and log-likelihood are those of the covariance and the noise that were found; and where
    it is ``searched``, these are the best: deviations and likelihood of another optimiser."""
    rows = dense(found, frame, arguments)
    assert found["rows"] == len(rows.y) and found["tasks"] == len(rows.tasks)
    units = np.sqrt((rows.x**2).mean(axis=0))  # a likelihood is that of the features as given
    cov = np.array(found["cov"]) * np.outer(units, units)
    noise = 1.0 if rows.known else found["noise_sd"]  # null: known row by row, in units of 1
    rows = rows._replace(x=rows.x / units)
    value, mean = restricted(rows, cov, noise**2)
    np.testing.assert_allclose(np.array(found["mean"]) * units, mean, atol=1e-4)
    assert found["log_likelihood"] == pytest.approx(value - np.log(units).sum(), abs=1e-6)
    if not searched:
        return
    best, cov_there, variance = highest(rows)
    assert value == pytest.approx(best, abs=1e-4)
    sds = [np.sqrt(np.diag(one)[rows.vary]) for one in (cov, cov_there)]
    np.testing.assert_allclose(sds[0], sds[1], atol=0.02)
    assert noise == pytest.approx(np.sqrt(variance), rel=1e-3)


def test_there_are_a_hundred() -> None:
    """Tables, not counting that each is read in two ways."""
    assert len(CASES) * len(SEEDS) >= 150


NEW = {
    "same": Odd(same, FORMULA, None),
    "new tasks": Odd(column("g", lambda f: "new"), FORMULA, None),
    "without tasks": Odd(lambda f, rng: f.drop(columns="g"), FORMULA, None),
    "without rewards": Odd(lambda f, rng: f.drop(columns="y"), TEXT, None),
    "one level": Odd(column("f", lambda f: "top"), FORMULA, None),
    "holes left out": Odd(holes, DROP, None),
    "missing column": Odd(lambda f, rng: f.drop(columns="x"), FORMULA, "there is no column 'x'"),
    "missing category": Odd(lambda f, rng: f.drop(columns="f"), TEXT, "there is no column 'f'"),
    "unknown level": Odd(cell("f", "huge"), FORMULA, "column 'f' has the category 'huge' in row "),
    "level in capitals": Odd(column("f", lambda f: f["f"].str.upper()), TEXT, "has the category"),
    "missing value": Odd(cell("z", ""), FORMULA, "1 row is without a value in 'z': row "),
    "missing level": Odd(cell("f", "NA"), TEXT, "1 row is without a value in 'f': row "),
    "missing task": Odd(cell("g", ""), FORMULA, "1 row is without a value in 'g': row "),
    "text": Odd(cell("x", "abc"), PLAIN, "column 'x' has 'abc', which is not a finite"),
    "infinite": Odd(cell("x", "inf"), PLAIN, "column 'x' has inf"),
    "predicted already": Odd(column("low", lambda f: 1), PLAIN, "there is a column 'low'"),
    "empty": Odd(as_text(lambda t: ""), PLAIN, "is empty"),
    "header only": Odd(as_text(lambda t: t.split("\n")[0] + "\n"), PLAIN, "there are no rows"),
    "short row": Odd(as_text(lambda t: t + "t0,1\n"), PLAIN, "has 2 fields, but the header has"),
    "duplicate header": Odd(
        as_text(lambda t: t.replace("g,x,z", "g,x,x", 1)), PLAIN, "there are 2 columns 'x'"
    ),
}
"""Tables of ``--predict``."""


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize("name", NEW)
def test_new_rows(name: str, seed: int, tmp_path: Path) -> None:
    """One line and no file, or a prediction of every row that has all values."""
    odd = NEW[name]
    rng = np.random.default_rng([17, seed, list(NEW).index(name)])
    frame = ordinary(rng)
    made = odd.change(frame.sample(25, random_state=seed, ignore_index=True), rng)
    table, new, out = (tmp_path / f"{one}.csv" for one in ("table", "new", "out"))
    frame.to_csv(table, index=False)
    new.write_text(made if isinstance(made, str) else made.to_csv(index=False))
    asked = ["--predict", new, "--predictions", out]
    ended = bayesmeta("fit", table, *odd.arguments, *asked, "--json")
    if odd.words is not None:
        assert ended.code == 2 and "\n" not in ended.error and odd.words in ended.error, ended
        assert not out.exists()
        return
    assert ended.code == 0, ended
    found, told = pd.read_csv(out), json.loads(ended.output)
    read = [one for one in ("g", "x", "z", "f") if one in found and one != "y"]
    used = [one for one in read if one != "z" or "z" in told["features"]]
    assert len(found) == len(pd.read_csv(new).dropna(subset=used))
    if "g" not in found or not found["g"].isin(frame["g"]).any():
        features = {"intercept": 1.0, "x": found["x"], "z": found["z"]}
        features |= {f"f[T.{one}]": (found["f"] == one).astype(float) for one in ("mid", "top")}
        wanted = sum(
            m * features[one] for m, one in zip(told["mean"], told["features"], strict=True)
        )
        np.testing.assert_allclose(found["mean"], wanted, atol=1e-9)


SORTS: dict[str, Callable[[pd.Series], Any]] = {
    "text": lambda f: f,
    "shuffled": lambda f: pd.Categorical(f, ["top", "low", "mid"]),
    "ordered": lambda f: pd.Categorical(f, ["mid", "top", "low", "none"], ordered=True),
    "numbers": lambda f: pd.Categorical(f.map({"low": 10, "mid": 9, "top": 2})),
}


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize("kind", SORTS)
def test_categories_of_parquet(kind: str, seed: int, tmp_path: Path) -> None:
    """The same features and means, whole and in batches."""
    frame = ordinary(np.random.default_rng([18, seed])).assign(f=lambda t: SORTS[kind](t["f"]))
    path = tmp_path / "table.parquet"
    frame.to_parquet(path, index=False, row_group_size=10)
    one, two = (
        json.loads(bayesmeta("fit", path, *TEXT, "--json", f"--{how}").output)
        for how in ("batches", "no-batches")
    )
    first = {"text": "low", "shuffled": "top", "ordered": "mid", "numbers": "2"}[kind]
    assert one["features"] == two["features"] and f"f[T.{first}]" not in one["features"]
    assert len(one["features"]) == 4
    np.testing.assert_allclose(one["mean"], two["mean"], rtol=1e-5, atol=1e-6)
