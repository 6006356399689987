"""Tables: what from_arrays, from_frame, CSV and Parquet make of rows, against plain Python."""

from __future__ import annotations

import csv
import io
import json
import math
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import bayesmeta as bm
from bayesmeta.report.fitted import as_json
from bayesmeta.statistics import TaskStatistics
from tests.properties.command import Ended, bayesmeta
from tests.properties.rule import ask, holds_for, refuse
from tests.strategies import (
    ORDINARY,
    PLAIN,
    Table,
    contained,
    label_sets,
    often,
    reals,
    tables,
    texts,
)


def grouped(
    labels: list[Any], rewards: list[float], features: list[list[float]]
) -> dict[Any, tuple[list[list[float]], list[float]]]:
    """Rows and rewards by task, in order of appearance: a plain dictionary."""
    found: dict[Any, tuple[list[list[float]], list[float]]] = {}
    for label, reward, row in zip(labels, rewards, features, strict=True):
        rows, own = found.setdefault(label, ([], []))
        rows.append(list(row))
        own.append(reward)
    return found


def check_statistics(
    stats: TaskStatistics, labels: list[Any], rewards: list[float], features: list[list[float]]
) -> None:
    """Sums by task are those of a dictionary, to the rounding of their terms."""
    groups = grouped(labels, rewards, features)
    assert stats.tasks is not None and list(stats.tasks) == list(groups), (
        stats.tasks,
        list(groups),
    )
    assert stats.count is not None and stats.energy is not None
    for j, (rows, own) in enumerate(groups.values()):
        a, x = np.array(rows, dtype=np.longdouble), np.array(own, dtype=np.longdouble)
        assert stats.count[j] == len(own)
        _near(stats.gram[j], a.T @ a, np.abs(a).T @ np.abs(a))
        _near(stats.moment[j], a.T @ x, np.abs(a).T @ np.abs(x))
        _near(stats.energy[j], x @ x, x @ x)


def _near(found: Any, expected: Any, terms: Any) -> None:
    """Equal to the rounding of sums whose terms have these sizes; tiny products may vanish."""
    gap = np.abs(np.asarray(found, np.longdouble) - expected)
    assert (gap <= 1e-14 * terms + 1e-305).all(), (found, expected)


class Rows(NamedTuple):
    """What from_arrays is given, and what that stands for; None: it must be refused."""

    labels: Any
    rewards: Any
    features: Any
    expected: tuple[list[Any], list[float], list[list[float]]] | None


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    table = draw(tables())
    names = draw(label_sets(table.tasks))
    labels = [names[k] for k in table.task]
    rewards, x = contained(draw, table.rewards)
    features, a = contained(draw, table.features)
    known = x is not None and a is not None and all(one == one for one in names)
    container = draw(st.sampled_from(["list", "array", "tuple", "object", "Series"]))
    given: Any = labels
    if container == "object":
        given = np.empty(len(labels), dtype=object)
        given[:] = labels
    elif container == "array":
        given = np.array(labels)
        labels = given.tolist() if given.ndim == 1 else labels
    elif container == "Series":
        given = pd.Series(labels, dtype=object)
    elif container == "tuple":
        given = tuple(labels)
    if draw(st.integers(0, 9)) == 9:
        given, known = given[:-1], False
    expected = (labels, x.tolist(), a.tolist()) if known else None  # type: ignore[union-attr]
    return Rows(given, rewards, features, expected)


@holds_for(rows(), weight=8, examples=40)
def from_arrays_sums_by_task(case: Rows) -> None:
    """Labels that Python tells apart are tasks apart; no cell that is no number is used."""
    stats = ask(TaskStatistics.from_arrays, case.labels, case.rewards, case.features)
    assert case.expected is not None, f"made {stats!r} of what is no table of numbers"
    check_statistics(stats, *case.expected)


# ---- DataFrames, and the same by way of a Parquet file.


class Framed(NamedTuple):
    """A DataFrame with columns task, y, x1 … and some to spare, and what it stands for."""

    frame: pd.DataFrame
    features: list[str]
    intercept: bool
    expected: tuple[list[Any], list[float], list[list[float]]] | None


def column(draw: st.DrawFn, values: np.ndarray) -> tuple[Any, np.ndarray | None]:
    """A column of numbers in a type of pandas, and the numbers; None: it must be refused."""
    kind = draw(
        st.sampled_from(
            [
                *("float64", "float64", "float32", "int64", "uint8", "bool", "Float64", "Int64"),
                *("object", "text", "category", "Decimal", "missing", "timedelta", "datetime"),
                *("complex", "lists", "words", "period"),
            ]
        )
    )
    whole = np.clip(np.nan_to_num(values), -9, 9).round()
    finite = values if np.isfinite(values).all() else None
    if kind in ("int64", "Int64"):
        return pd.Series(whole).astype(kind), whole
    if kind in ("uint8", "bool"):
        return pd.Series(np.abs(whole)).astype(kind), np.abs(whole) if kind == "uint8" else np.abs(
            whole
        ) > 0
    if kind == "float32":
        short = pd.Series(np.clip(values, -1e30, 1e30)).astype(kind)
        return short, None if finite is None else short.to_numpy().astype(float)
    if kind in ("Float64", "category", "object") and finite is not None:
        return pd.Series(values).astype(kind), values
    if kind == "text" and finite is not None:
        return pd.Series([repr(float(one)) for one in values], dtype=object), values
    if kind == "Decimal":
        small = [Decimal(int(one)) / 4 for one in whole]
        return pd.Series(small, dtype=object), np.array(list(map(float, small)))
    seconds = pd.Series(whole.astype("int64"))
    odd: dict[str, Any] = {
        "missing": lambda: pd.Series([None, *values[1:]]),
        "timedelta": lambda: pd.to_timedelta(seconds, unit="s"),
        "datetime": lambda: pd.to_datetime(seconds, unit="s"),
        "complex": lambda: pd.Series(values + 1j),
        "lists": lambda: pd.Series([[1.0]] * len(values)),
        "words": lambda: pd.Series(["high"] * len(values)),
        "period": lambda: pd.Series(pd.period_range("2020-01", periods=len(values), freq="M")),
    }
    if kind in odd and finite is not None:
        return odd[kind](), None
    return pd.Series(values), finite


@st.composite
def frames(draw: st.DrawFn, *, odd: int = 3, file: bool = False) -> Framed:
    """One column or so is of an odd type; for a file, no name stands for two columns, and labels
    are of one type."""
    flavours = (*ORDINARY, *ORDINARY, "scaled", "extreme", "broken")
    enough: dict[str, Any] = {"tasks": (2, 8), "rows": (3, 6), "dims": (1, 3)} if file else {}
    table = draw(tables(flavours=flavours, **enough))
    names = draw(label_sets(table.tasks, mixed=not file))
    labels = [names[k] for k in table.task]
    series = pd.Series(labels, dtype=object)
    known = not any(one is None or one != one or one == "" for one in labels)
    if draw(st.booleans()):
        series = series.infer_objects()
        labels = series.tolist()
    data: dict[str, Any] = {"task": series}
    numbers = {}
    for name, values in {
        "y": table.rewards,
        **{f"x{i + 1}": table.features[:, i] for i in range(table.dim)},
    }.items():
        if draw(st.integers(0, odd)) == odd:
            data[name], numbers[name] = column(draw, values)
        else:
            finite = np.isfinite(values).all()
            data[name], numbers[name] = values, values if finite else None
    data["spare"] = "?"
    features = [f"x{i + 1}" for i in range(table.dim)]
    order = draw(st.permutations(list(data)))
    frame = pd.DataFrame({name: data[name] for name in order})
    if draw(st.integers(0, 4)) == 4:
        frame.index = np.arange(len(frame))[::-1]
    if not file and draw(st.integers(0, 9)) == 9:  # two columns of one name
        frame = pd.concat([frame, frame[["x1"]].iloc[::-1].reset_index(drop=True)], axis=1)
        known = False
    intercept = draw(st.booleans())
    wanted = draw(st.permutations(features))
    if not known or any(numbers[name] is None for name in ("y", *features)):
        return Framed(frame, wanted, intercept, None)
    columns = [np.ones(len(labels))] if intercept else []
    columns += [np.asarray(numbers[name], float) for name in wanted]
    rows = np.column_stack(columns).tolist()
    return Framed(
        frame, wanted, intercept, (labels, np.asarray(numbers["y"], float).tolist(), rows)
    )


@holds_for(frames(), weight=8, examples=30)
def from_frame_sums_by_task(case: Framed) -> None:
    """As pandas' own values have it; dates, lengths of time, lists and gaps are no numbers."""
    stats = ask(
        TaskStatistics.from_frame, case.frame, "task", "y", case.features, intercept=case.intercept
    )
    assert case.expected is not None, f"made {stats!r} of what is no table of numbers"
    check_statistics(stats, *case.expected)
    assert stats.features == ("intercept",) * case.intercept + tuple(case.features)


def check_command(
    ended: Ended, expected: tuple[list[Any], list[float], list[list[float]]] | None, method: str
) -> None:
    """The command prints what fit_prior says of the rows that were expected, as strict JSON."""
    if ended.code == 2:
        refuse(ended.error)
    assert ended.code == 0, ended
    if ended.error:
        assert "look the same and are kept apart" in ended.error, ended
        assert ended.error.endswith("\n") and ended.error[:-1].isprintable(), ended
    found = json.loads(ended.output, parse_constant=_not_json)
    assert expected is not None, f"printed {found['tasks']} tasks of what is no table of numbers"
    labels, rewards, features = expected
    stats = TaskStatistics.from_arrays(as_labels(labels), rewards, features)
    assert found["tasks"] == len(stats) and found["rows"] == len(rewards), (found, len(stats))
    told = as_json(bm.fit(stats, noise_sd=1.0, method=method))
    assert found["status"] == told["status"], (found["status"], told["status"])
    assert [one["task"] for one in found["task_estimates"]] == [
        one["task"] for one in told["task_estimates"]
    ]
    for name in ("mean", "cov", "mean_sd", "noise_sd", "log_likelihood"):
        same_numbers(name, found[name], told[name])
    for one, other in zip(found["task_estimates"], told["task_estimates"], strict=True):
        same_numbers("task mean", one["mean"], other["mean"])


def as_labels(labels: list[Any]) -> np.ndarray:
    """An array of objects, so that NumPy makes nothing else of them."""
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out


def same_numbers(name: str, found: Any, expected: Any) -> None:
    """The same to the digits that reading text may cost; absent where it is absent."""
    if expected is None:
        assert found is None, name
        return
    a, b = np.array(found, dtype=float), np.array(expected, dtype=float)
    assert a.shape == b.shape, (name, found, expected)
    scale = np.abs(b).max(initial=0.0)
    assert (np.abs(a - b) <= 1e-6 * scale).all(), (name, found, expected)


def _not_json(word: str) -> Any:
    raise AssertionError(f"{word} is not JSON")


@holds_for(frames(odd=8, file=True), weight=4, examples=12)
def parquet_is_read_as_written(case: Framed) -> None:
    """``bayesmeta fit`` of a Parquet file: pandas' values, or one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        try:
            case.frame.to_parquet(path)
        except Exception:  # this frame cannot be a Parquet file
            path.write_bytes(b"PAR1")
        back = None
        if case.expected is not None and path.stat().st_size > 4:
            labels = pd.read_parquet(path)["task"].tolist()
            back = (labels, *case.expected[1:])
        options = ["--features", ",".join(case.features), *["--intercept"] * case.intercept]
        command = ["fit", path, "--task", "task", "--reward", "y", *options]
        ended = bayesmeta(*command, "--noise-sd", "1", "--method", "moment", "--json")
    check_command(ended, back, "moment")


# ---- CSV files.

HEADER = ["task", "y", "x1", "x2"]


class Text(NamedTuple):
    """A CSV file and the options that read it."""

    content: bytes
    features: list[str]
    intercept: bool
    method: str


def written(draw: st.DrawFn, value: float) -> str:
    """A number as people write it."""
    if not math.isfinite(value):
        return draw(st.sampled_from(["nan", "inf", "", "NA", "-inf", "Infinity"]))
    ways = [
        repr(value),
        repr(value),
        f"{value:.17g}",
        f"{value:+.15e}",
        f" {value!r}",
        f"{value!r} ",
    ]
    return draw(st.sampled_from(ways))


@st.composite
def csv_texts(draw: st.DrawFn) -> Text:
    """What csv.writer writes, and sometimes a field more, a field less, an odd line."""
    flavours = (*ORDINARY, *ORDINARY, "scaled", "broken")
    table: Table = draw(tables(flavours=flavours, tasks=(2, 8), rows=(2, 6), dims=(1, 2)))
    kind = draw(st.sampled_from([texts(), PLAIN, st.integers(0, 12).map(str)]))
    unique = st.lists(kind, min_size=table.tasks, max_size=table.tasks, unique=True)
    names = draw(often(unique, st.just(["1", "01", "1.0", " 1", "a", "A", "NA", "é"]), of=5))
    spare = draw(
        st.lists(often(st.sampled_from(["", "note", "x3", "NA"]), st.just("y"), of=12), max_size=2)
    )
    header = [*HEADER[: 2 + table.dim], *spare]
    out = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(out, lineterminator=end, quoting=quoting)
    writer.writerow(header)
    odds = ["more", "less", "all more", "blank", "comma", "cell"]
    odd = draw(often(st.just(""), st.sampled_from(odds), of=3))
    place = draw(st.integers(0, len(table.task) - 1))
    for k, (j, reward, row) in enumerate(
        zip(table.task, table.rewards, table.features, strict=True)
    ):
        fields = [names[j % len(names)], *(written(draw, float(x)) for x in (reward, *row))]
        fields += ["7"] * len(spare)
        if odd == "all more" or (odd == "more" and k == place):
            fields.append(draw(st.sampled_from(["8", "", "z"])))
        if odd == "cell" and k == place:
            fields[draw(st.integers(1, 1 + table.dim))] = draw(
                st.sampled_from(["1,5", "x", "1e999"])
            )
        if odd == "less" and k == place:
            fields.pop()
        if odd == "blank" and k == place:
            out.write(end)
        writer.writerow(fields)
    text = out.getvalue()
    if odd == "comma":
        text = text.rstrip("\r\n") + "," + end
    encoding = draw(often(st.just("utf-8"), st.sampled_from(["utf-8-sig", "utf-16", "cp1252"]), 8))
    content = text.encode(encoding, errors="replace")
    features = draw(st.permutations(header[2 : 2 + table.dim]))
    method = draw(st.sampled_from(["moment", "moment", "ml", "reml"]))
    return Text(content, features, draw(st.booleans()), method)


def parsed(case: Text) -> tuple[list[Any], list[float], list[list[float]]] | None:
    """The rows as Python's csv module reads them; None where they are no table of numbers."""
    try:
        text = case.content.decode("utf-8-sig")
        lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
    except (UnicodeDecodeError, csv.Error):
        return None
    header, *body = lines
    used = ["task", "y", *case.features]
    if any(header.count(name) != 1 for name in used) or any(len(r) > len(header) for r in body):
        return None
    try:
        labels = [row[header.index("task")] for row in body]
        rewards, *columns = ([float(row[header.index(name)]) for row in body] for name in used[1:])
    except (ValueError, IndexError):
        return None
    ones = [[1.0] * len(body)] if case.intercept else []
    features = np.column_stack([*ones, *columns])
    if not (np.isfinite(features).all() and np.isfinite(rewards).all() and all(labels)):
        return None
    return labels, rewards, features.tolist()


@holds_for(csv_texts(), weight=8, examples=12)
def csv_is_read_as_python_reads_it(case: Text) -> None:
    """``bayesmeta fit`` of a CSV file: the rows of Python's csv module, or one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(case.content)
        options = ["--features", ",".join(case.features), *["--intercept"] * case.intercept]
        command = ["fit", path, "--task", "task", "--reward", "y", *options]
        ended = bayesmeta(*command, "--noise-sd", "1", "--method", case.method, "--json")
        assert [file.name for file in Path(folder).iterdir()] == ["table.csv"]
    check_command(ended, parsed(case), case.method)


# ---- Options of the command.


class Options(NamedTuple):
    """Options of ``bayesmeta fit`` on an ordinary table."""

    options: list[str]
    plot: str | None


@st.composite
def option_lists(draw: st.DrawFn) -> Options:
    numbers = st.one_of(
        reals(0.1, 5).map(repr),
        st.sampled_from(
            ["1", "estimate", "1e-300", "1e100", "1e308", "0", "-1", "nan", "inf", "x"]
        ),
        st.integers(-120, 120).map(lambda k: f"1e{k}"),
    )
    method = draw(
        st.sampled_from(["moment", "moment-clipped", "ml", "reml", "moment-widened", "gls", "Reml"])
    )
    options = ["--method", method]
    if draw(st.booleans()):
        options += ["--noise-sd", draw(numbers)]
    widened = method == "moment-widened"
    if draw(st.integers(0, 9)) > (1 if widened else 8):
        options += ["--widening", draw(numbers)]
    if draw(st.integers(0, 9)) > (1 if widened else 8):
        options += ["--horizon", draw(st.sampled_from(["5", "1", "0", "1.5", "-3", "9" * 30]))]
    features = draw(
        often(
            st.sampled_from([["x1"], ["x1,x2"], ["x1", "x2"], [" x2 , x1"]]),
            st.sampled_from([["x1,x1"], ["nothing"], ["y"], ["task"], [""], ["x1,"], []]),
        )
    )
    for text in features:
        options += ["--features", text]
    columns = often(
        st.just(("task", "y")), st.sampled_from([("y", "y"), ("x1", "y"), ("no", "y")]), 6
    )
    task, reward = draw(columns)
    options += ["--task", task, "--reward", reward, *["--intercept"] * draw(st.booleans())]
    plot = draw(often(st.none(), st.sampled_from(["a.png", "a.txt", "no/a.svg"]), of=40))
    return Options(options, plot)


def ordinary_csv() -> str:
    """Six tasks of five rows."""
    rng = np.random.default_rng(1)
    lines = ["task,y,x1,x2"]
    for j in range(6):
        theta = rng.normal(1.0, 1.0, 2)
        for _ in range(5):
            row = rng.standard_normal(2)
            reward = row @ theta + 0.5 * rng.standard_normal()
            lines.append(f"{j},{reward!r},{row[0]!r},{row[1]!r}".replace("np.float64", ""))
    return "\n".join(lines).replace("(", "").replace(")", "") + "\n"


@holds_for(option_lists(), weight=6, examples=20)
def options_of_fit(case: Options) -> None:
    """Strict JSON of finite numbers with a mean that is the oracle's, or one line and no file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text(ordinary_csv())
        plot = [] if case.plot is None else ["--plot", Path(folder) / case.plot]
        ended = bayesmeta("fit", path, *case.options, "--json", *plot)
        files = sorted(file.name for file in Path(folder).rglob("*") if file.is_file())
    if ended.code == 2:
        assert files == ["table.csv"], files
        refuse(ended.error)
    assert ended.code == 0 and not ended.error, ended
    found = json.loads(ended.output, parse_constant=_not_json)
    names = [name for name in found["features"] if name != "intercept"]
    task = case.options[case.options.index("--task") + 1]
    assert task != "y" and not {"y", "task"} & set(names), "a column in two roles"
    assert found["tasks"] == (6 if task == "task" else 30) and found["rows"] == 30
    assert found["noise_sd"] > 0 and np.isfinite(found["mean"]).all()
    assert np.isfinite(found["cov"]).all() and np.isfinite(found["mean_sd"]).all()
    if found["method"].startswith("moment") and task == "task":
        _check_mean(found["mean"], names, "intercept" in found["features"])


def _check_mean(mean: list[float], names: list[str], intercept: bool) -> None:
    """The mean of least squares task by task, eq. (10)."""
    body = [line.split(",") for line in ordinary_csv().splitlines()[1:]]
    groups = grouped(
        [row[0] for row in body],
        [float(row[1]) for row in body],
        [
            [1.0] * intercept + [float(row[2 + ["x1", "x2"].index(name)]) for name in names]
            for row in body
        ],
    )
    thetas = [np.linalg.lstsq(np.array(a), np.array(x))[0] for a, x in groups.values()]
    np.testing.assert_allclose(mean, np.mean(thetas, axis=0), rtol=1e-9)
