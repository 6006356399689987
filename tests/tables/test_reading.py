"""Tables that cannot be read as they are meant: refused in a line, never read as something else."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesmeta.checks import InputError
from bayesmeta.tables.design import tabulate
from bayesmeta.tables.reading import read_table
from tests.helpers import run

HEADER = "t,y,x"
ROWS = ["a,1.5,0", "a,2,1", "b,3,0", "b,5,2", "c,1,1", "c,0,3"]
LINES = [HEADER, *ROWS]
COLUMNS = ["--task", "t", "--reward", "y", "--features", "x"]
MOMENTS = [*COLUMNS, "--method", "moment-clipped", "--noise-sd", "1"]


def written(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    """A file with this text."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n".join([HEADER, *(f"7,{row}" for row in ROWS)]), "line 2 of"),
        ("\n".join([*LINES[:3], "b,3,0,9", *LINES[4:]]), "line 4 of"),
        ("\n".join([*LINES[:3], "b,3", *LINES[4:]]), "has 2 fields, but the header has 3"),
        ("\n".join([HEADER, *(f"{row}," for row in ROWS)]), "it ends in a comma"),
        ('t,y,x,"a\nb"\na,1,0,"one\n\ntwo"\na,2,1\n', "line 6 of"),
        ('t,y,x,n\na,1,0,"one\r\ntwo",9\r\n', "line 2 of"),
        ("# made by hand\n" + "\n".join(LINES), "line 2 of"),
        ("\n".join([*LINES, "# the end"]), "line 8 of"),
        ('t,y,x\na,"5"6,1\n', "line 2 of"),
        ('t,y,x\na,5,"1\nb,6,2\n', "cannot be read (unexpected end of data)"),
        ("\n".join(LINES).encode("utf-16"), "save it as CSV in UTF-8"),
        ("\n".join(LINES).encode("utf-16-le"), "NUL bytes"),
        ("t,y,x\na,1,\0\n", "NUL bytes"),
        ("\n \n", "is empty"),
        ('t,y\na,1\n"  "\n', "as 1 or as 2 rows"),
    ],
)
def test_rows_that_do_not_fit_are_refused(text: str | bytes, words: str, tmp_path: Path) -> None:
    """Rows with a field more or less, by the line of the file; odd quotes; other encodings."""
    with pytest.raises(InputError) as caught:
        read_table(written(tmp_path, text), "t")
    assert words in str(caught.value) and "table.csv" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "\r\n".join(LINES) + "\r\n",
        "\r".join(LINES),
        "\ufeff" + "\n".join(LINES),
        "\n" + "\n".join(LINES[:4]) + "\n\n  \n" + "\n".join(LINES[4:]) + "\n\n",
        "\n".join(['"t","y","x"', *(f'"{row.replace(",", '","')}"' for row in ROWS)]),
    ],
    ids=["crlf", "cr", "bom", "blank", "quoted"],
)
def test_ways_to_write_the_same_table(text: str, tmp_path: Path) -> None:
    """Line ends, a byte order mark, blank lines and quotes change nothing."""
    plain = read_table(written(tmp_path, "\n".join(LINES)), "t")
    pd.testing.assert_frame_equal(read_table(written(tmp_path, text), "t"), plain)
    assert plain["t"].tolist() == list("aabbcc") and plain["y"].sum() == 12.5
    packed = written(tmp_path, gzip.compress(text.encode()), "table.csv.gz")
    pd.testing.assert_frame_equal(read_table(packed, "t"), plain)


def test_a_trailing_comma_everywhere_is_a_column_without_a_name(tmp_path: Path) -> None:
    """As exports write it; the others keep their places."""
    frame = read_table(written(tmp_path, "\n".join(f"{line}," for line in LINES)), "t")
    assert frame.columns.tolist() == ["t", "y", "x", "Unnamed: 3"] and frame["x"].sum() == 7


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """All of it, as of a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = "\n".join([HEADER, *ROWS * 20_000])
    writer = threading.Thread(target=lambda: pipe.write_text(text))
    writer.start()
    frame = read_table(pipe, "t")
    writer.join()
    assert len(frame) == 120_000


@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero", "/"])
def test_devices_and_folders_are_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, at once."""
    assert run("fit", name, *COLUMNS) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("header", "arguments", "words"),
    [
        ("t,y,x,x", [], "there are 2 columns 'x'"),
        ("t,y,x,t", [], "there are 2 columns 't'"),
        ("t,y,x,z", ["--reward", "t"], "column 't' cannot be both the task and the reward"),
        ("t,y,x,z", ["--features", "y"], "column 'y' is the reward"),
        ("t,y,x,z", ["--features", "t"], "column 't' is the task"),
        ("t,y,x, x", ["--features", "z, x"], "columns 'x' and ' x'"),
        ("t, y,x,z", [], "the columns are 't', ' y', 'x', 'z'"),
        ("t,y\x1b[2J,x,z", [], r"'y\x1b[2J'"),
    ],
)
def test_columns_serve_for_one_thing(
    header: str,
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Names that stand twice, and columns that are asked for twice."""
    path = written(tmp_path, "\n".join([header, *(f"{row},4" for row in ROWS)]))
    assert run("fit", str(path), *COLUMNS, *arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_names_are_those_of_the_header(tmp_path: Path) -> None:
    """Not pandas' own for a name that stands twice, which a third column may have."""
    frame = read_table(written(tmp_path, "t,x,x,x.1\na,1,2,3\n"), "t")
    assert frame.columns.tolist() == ["t", "x", "x", "x.1"] and frame["x.1"].item() == 3


@pytest.mark.parametrize("cell", ["1_000", '"1,234"', "1 234", "0x10", "1e400", "inf", "5%", "1D5"])
def test_cells_that_are_no_plain_numbers(
    cell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named by row, not guessed at."""
    path = written(tmp_path, "\n".join([*LINES[:3], f"b,{cell},0", *LINES[4:]]))
    assert run("fit", str(path), *MOMENTS) == 2
    assert "column 'y' has" in (said := capsys.readouterr().err) and "in row 3" in said


def test_parquet_columns_that_are_no_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Durations, lists and structs are refused in a line, as numbers and as labels; a column that
    pandas kept as an index is a column."""
    frame = pd.DataFrame({"t": list("aabbcc"), "y": np.arange(6.0) ** 2, "x": range(6)})
    frame["took"] = pd.to_timedelta(frame["x"], unit="s")
    frame["list"], frame["struct"] = [[1, 2]] * 6, [{"a": 1}] * 6
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    for name, words in (("took", "holds durations"), ("list", "row 1"), ("struct", "row 1")):
        for option in ("--features", "--reward"):
            rest = {"--features": "x", "--reward": "y"} | {option: name}
            columns = [part for pair in rest.items() for part in pair]
            assert run("fit", str(path), "--task", "t", *columns) == 2
            said = capsys.readouterr().err
            assert words in said and repr(name) in said and said.count("\n") == 1
    for name in ("list", "struct"):
        assert run("fit", str(path), *COLUMNS, "--task", name) == 2
        assert "labels that are lists" in capsys.readouterr().err
    frame.set_index("t").to_parquet(path)
    assert run("fit", str(path), *MOMENTS, "--json") == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == 3
    frame.set_index("t", drop=False).to_parquet(path)
    assert run("fit", str(path), *MOMENTS) == 2
    said = capsys.readouterr().err
    assert "a column 't' and an index of that name" in said and said.count("\n") == 1


def test_labels_that_look_alike_are_kept_apart_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Blanks at the end, and letters with their accents in one piece or two; no label of blanks."""
    for pair in (("a", "a "), ("\u00e9", "e\u0301"), ("a b", "a\u00a0b"), ("a", "a\u200b")):
        text = "\n".join([HEADER, *(f"{label},{i},1" for label in pair for i in (1, 2))])
        assert run("fit", str(written(tmp_path, text)), *MOMENTS, "--json") == 0
        shown = capsys.readouterr()
        assert json.loads(shown.out)["tasks"] == 2
        assert "look the same and are kept apart" in shown.err and shown.err.isascii()
    text = "\n".join([*LINES, "  ,1,2"])
    assert run("fit", str(written(tmp_path, text)), *MOMENTS) == 2
    assert "has the label '  '" in capsys.readouterr().err
    text = "\n".join([HEADER, "a,1,0", "a ,1,0"])  # which cannot be used: that alone is said
    assert run("fit", str(written(tmp_path, text)), *MOMENTS) == 2
    assert "look the same" not in capsys.readouterr().err


@pytest.mark.slow
def test_many_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two hundred: the moments work, the likelihood and the posterior say what to do."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(200)]
    frame = pd.DataFrame(rng.standard_normal((630, 200)), columns=names)
    frame["y"], frame["t"] = rng.standard_normal(630), np.repeat(range(3), 210)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    command = [str(tmp_path / "wide.csv"), "--task", "t", "--reward", "y", "--json"]
    command += ["--features", ",".join(names)]
    assert run("fit", *command) == 2
    said = capsys.readouterr().err
    assert "200 features are more than reml takes (64)" in said and "moment-clipped" in said
    assert run("sample", *command, "--out", str(tmp_path / "a.nc")) == 2
    assert "200 features are more than sample takes (64)" in capsys.readouterr().err
    assert not (tmp_path / "a.nc").exists()
    assert run("fit", *command, "--method", "moment-clipped") == 0
    assert len(json.loads(capsys.readouterr().out)["mean"]) == 200


def program(*arguments: str, to: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, its output to a file or captured."""
    command = [sys.executable, "-m", "bayesmeta.cli", *arguments]
    if to is None:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    with to.open("w") as out:
        return subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.slow
def test_numbers_too_large_are_refused(tmp_path: Path) -> None:
    """No NaN in JSON, no warning of NumPy's on the terminal, nothing written."""
    path = written(tmp_path, "\n".join(LINES))
    plot = tmp_path / "plot.png"
    widened = ["--method", "moment-widened", "--widening", "1e308", "--horizon", "5", "--json"]
    done = program("fit", str(path), *COLUMNS, *widened, "--noise-sd", "1", "--plot", str(plot))
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("bayesmeta: ") and not plot.exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_print_that_fails_leaves_no_plot(tmp_path: Path) -> None:
    """One line, exit code 2, and no file of its own or half of one."""
    path = written(tmp_path, "\n".join(LINES))
    plot = ["--plot", str(tmp_path / "plot.png")]
    done = program("fit", str(path), *MOMENTS, *plot, to=Path("/dev/full"))
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "cannot write to standard output" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]


def test_a_data_set_is_named_where_it_is_taken_for_a_file() -> None:
    """In Python a name is a path, and the data sets are loaded."""
    with pytest.raises(InputError, match=r"no file sleepstudy; bm.load_data\('sleepstudy'\)"):
        tabulate("sleepstudy", "Reaction ~ Days + (1 | Subject)")
