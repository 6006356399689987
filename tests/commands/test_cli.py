"""The command line: what it writes, what it refuses in one line, what Ctrl-C leaves behind."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bayesmeta as bm
from bayesmeta.agents.roster import ROSTER
from bayesmeta.report import figure1 as files
from bayesmeta.report.figure1 import FILES
from bayesmeta.simulation import simulate
from tests.helpers import hear_ctrl_c, in_session, run, wait_until

TINY = ["reproduce", "--runs", "2", "--tasks", "20", "--jobs", "1", "--agents", "KTS,UKTS"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny run."""
    out = tmp_path_factory.mktemp("cli") / "new" / "figure1"
    assert run(*TINY, "--out", str(out)) == 0
    return out


def test_reproduce_writes_four_files(folder: Path) -> None:
    """Figure, record and two summaries, and nothing besides."""
    assert {path.name for path in folder.iterdir()} == {
        "figure1.png",
        "figure1.nc",
        "summary.json",
        "summary.csv",
    }
    assert (folder / "figure1.png").read_bytes().startswith(b"\x89PNG")


def test_reproduce_summary(folder: Path) -> None:
    """Every agent has the promised figures, KTS's regret is the unit, the table says the same."""
    summary = json.loads((folder / "summary.json").read_text())
    assert list(summary) == ["KTS", "UKTS"]
    for row in summary.values():
        assert {
            "normalised_regret",
            "interval",
            "mean_error",
            "covariance_error",
            "not_positive_definite",
        } <= set(row)
        low, high = row["interval"]
        assert low < row["normalised_regret"] < high
    assert summary["KTS"]["normalised_regret"] == pytest.approx(1.0)
    assert summary["KTS"]["mean_error"] == 0.0 < summary["UKTS"]["mean_error"]
    with (folder / "summary.csv").open(newline="") as file:
        table = {row["agent"]: row for row in csv.DictReader(file)}
    for name, row in summary.items():
        assert float(table[name]["normalised_regret"]) == row["normalised_regret"]
        ends = [float(table[name]["interval_low"]), float(table[name]["interval_high"])]
        assert ends == row["interval"]


def test_reproduce_record(folder: Path) -> None:
    """The record is the simulation itself, and gives the summary that was written."""
    record = bm.read_record(folder / "figure1.nc")
    assert dict(record.sizes) == {"run": 2, "agent": 2, "task": 20}
    again = bm.simulate(bm.paper_family(), bm.agents.find_agents(["KTS", "UKTS"]), tasks=20, runs=2)
    assert record.identical(again)
    assert bm.summarise(record) == json.loads((folder / "summary.json").read_text())


def test_reproduce_twice_gives_the_same_bytes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Same seed, same files; what was there by these names is replaced, the rest left alone."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "summary.json").write_text("old")
    assert run(*TINY, "--out", str(tmp_path)) == 0
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name
    assert len(list(tmp_path.iterdir())) == 5 and (tmp_path / "notes.txt").read_text() == "mine"
    shown = capsys.readouterr().out
    assert "UKTS" in shown and tmp_path.name in shown.replace("\n", "")


def test_a_single_run_has_no_intervals(tmp_path: Path) -> None:
    """One run: intervals are null, the JSON has no NaN; KTS is played though not asked for."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    assert run(*TINY, "--runs", "1", "--agents", "UKTS", "--out", str(tmp_path)) == 0
    text = (tmp_path / "summary.json").read_text()
    summary = json.loads(text, parse_constant=refuse)
    assert set(summary) == {"KTS", "UKTS"}
    assert summary["UKTS"]["interval"] is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--agents", "KTX"], ["agent", "'KTX'", "did you mean 'KTS'?"]),
        (["--agents", "KTS,All-MTS-tau"], ["agent", "did you mean 'All-MTS_tau'?"]),
        (["--tasks", "0"], ["--tasks", "at least 1"]),
        (["--tasks", "-5"], ["--tasks", "at least 1"]),
        (["--runs", "-1"], ["--runs", "at least 1"]),
        (["--runs", "0"], ["--runs", "at least 1"]),
        (["--jobs", "0"], ["--jobs", "at least 1"]),
        (["--jobs", "1", "--dask", "2"], ["--dask", "not allowed with argument --jobs"]),
        (["--seed", "-1"], ["--seed", "at least 0"]),
        (["--tasks", "many"], ["--tasks", "'many'"]),
        (["--runs", "1.5"], ["--runs", "'1.5'"]),
        (["--jobs", ""], ["--jobs", "''"]),
        (["--task", "nan"], ["--tasks", "'nan'"]),
        (["--nonsense"], ["--nonsense"]),
        (["--tasks"], ["--tasks"]),
    ],
)
def test_bad_input_is_refused_in_one_line(
    arguments: list[str], named: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, one line on standard error that names the argument, nothing left behind."""
    assert run(*TINY, "--out", str(tmp_path / "out"), *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and shown.err.endswith("\n")
    assert all(word in shown.err for word in named)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["file", "file/sub", "file/sub/deeper"])
def test_unwritable_out_is_refused_in_one_line(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path at or under a regular file, which not even root can write to; named by its path."""
    (tmp_path / "file").write_text("mine")
    assert run(*TINY, "--out", str(tmp_path / where)) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1
    assert str(tmp_path / where) in shown.err
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command, one line says that one is needed."""
    assert run() == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and "COMMAND" in shown.err


def test_agents_lists_the_roster(capsys: pytest.CaptureFixture[str]) -> None:
    """Every row by name."""
    assert run("agents") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ROSTER)


def test_python_runs_the_package() -> None:
    """``python -m bayesmeta``, with the command's exit codes."""
    command = [sys.executable, "-m", "bayesmeta", "fit", "nowhere.csv", "--formula", "y ~ (1 | g)"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and ended.stderr == "bayesmeta: there is no file nowhere.csv\n"


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Both end well, and help names what is written and every option."""
    assert run("--version") == 0 and capsys.readouterr().out.strip() == bm.__version__
    assert run("reproduce", "--help") == 0
    shown = capsys.readouterr().out
    options = (
        "--runs",
        "--tasks",
        "--seed",
        "--jobs",
        "--agents",
        "--out",
        "--scheduler",
        "--dask",
    )
    assert all(word in shown for word in (*options, *FILES))


@pytest.mark.parametrize("step", ["record_run", "figure_1", "summarise"])
def test_interrupted_at_any_step_no_result_is_written(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C while playing, drawing or summarising: code 130; finished runs alone are kept."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate if step == "record_run" else files, step, interrupt)
    assert run(*TINY, "--out", str(tmp_path)) == 130
    assert "bayesmeta: interrupted" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["unfinished"] * (step != "record_run")
    monkeypatch.undo()
    assert run(*TINY, "--out", str(tmp_path)) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)


def has_started(pid: int) -> bool:
    """Whether a worker is past its start: it ignores SIGINT, which the driver handles."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    mask = next(line for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(mask.split()[1], 16) & (1 << (signal.SIGINT - 1)))


class Long:
    """A long run in a session of its own, with its two workers at work."""

    def __init__(self, folder: Path) -> None:
        self.out, self.log = folder / "out", folder / "log"
        command = [sys.executable, "-m", "bayesmeta.cli", "reproduce", "--runs", "4"]
        command += ["--tasks", "200000", "--jobs", "2", "--agents", "KTS,UKTS"]
        with self.log.open("w") as log:
            self.driver = subprocess.Popen(
                [*command, "--out", str(self.out)],
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=hear_ctrl_c,
            )

    def workers_at_work(self) -> bool:
        assert self.driver.poll() is None, self.log.read_text()
        workers = [pid for pid, line in in_session(self.driver.pid).items() if "spawn_main" in line]
        return len(workers) == 2 and all(map(has_started, workers))

    def all_gone(self) -> bool:
        return not in_session(self.driver.pid)


@pytest.fixture
def long_run(tmp_path: Path) -> Iterator[Long]:
    """A long run past its start; whatever is left of it is killed in the end."""
    process = Long(tmp_path)
    try:
        assert wait_until(process.workers_at_work, 240)  # kernels may have to be compiled
        yield process
    finally:
        if not process.all_gone():
            os.killpg(process.driver.pid, signal.SIGKILL)
        process.driver.wait(30)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("to", ["driver", "group"])
def test_ctrl_c_ends_everything(long_run: Long, to: str) -> None:
    """SIGINT to the driver alone, or as a terminal sends it: code 130, no file, no process."""
    (os.kill if to == "driver" else os.killpg)(long_run.driver.pid, signal.SIGINT)
    assert long_run.driver.wait(60) == 130
    assert wait_until(long_run.all_gone, 15), in_session(long_run.driver.pid)
    assert not long_run.out.exists()  # it was made by the run, and is empty
    log = long_run.log.read_text()
    assert "bayesmeta: interrupted" in log and "Traceback" not in log


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_workers_do_not_outlive_a_killed_driver(long_run: Long) -> None:
    """SIGKILL gives the driver no chance to clean up; its workers end by themselves."""
    assert len(in_session(long_run.driver.pid)) >= 3
    long_run.driver.kill()
    assert long_run.driver.wait(60) == -signal.SIGKILL
    assert wait_until(long_run.all_gone, 15), in_session(long_run.driver.pid)
    left = {str(path.relative_to(long_run.out)) for path in long_run.out.rglob("*")}
    assert left == {"unfinished", "unfinished/cells", "unfinished/lock", "unfinished/manifest.json"}


@pytest.mark.parametrize("command", ["fit", "sample"])
def test_help_has_groups_and_an_example(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All options are in a group with a name, but for --help; the example can be copied."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run(command, "--help") == 0
    shown = capsys.readouterr().out
    alone = shown[shown.index("\noptions:") :].split("\n\n")[0]
    assert alone.strip().split("\n")[1:] == [
        "  -h, --help            show this help message and exit"
    ]
    for group in ("the model", "the noise", "rows", "output", "predictions"):
        assert f"\n{group}" in shown
    for option in ("--level", "--predict", "--json", "--plot", "--formula"):
        assert f"\n  {option} " in shown
    assert f"\nexample:\n  bayesmeta {command} sleepstudy" in shown
    assert max(map(len, shown.split("\n"))) <= 80
