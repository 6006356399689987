"""``bayesmeta study``: what it says, writes, refuses, and its exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.simulation import simulate
from bayesmeta.streams import cell_seed
from bayesmeta.studies import all_studies, find_study
from tests.helpers import ROOT, hear_ctrl_c, run, wait_until
from tests.runner.example_cells import slow

pytestmark = pytest.mark.slow

SLOW = "tests.runner.example_cells:slow"


def test_list_names_every_study(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With cells and what is done; told where records are, that there is one of all."""
    monkeypatch.chdir(tmp_path)
    assert run("study", "list", "--records", str(ROOT / "analyses")) == 0
    shown = capsys.readouterr().out
    for name, study in all_studies().items():
        (line,) = [line for line in shown.splitlines() if line.split()[:1] == [name]]
        assert line.split()[1:4] == [str(len(study.cells)), "0", "yes"]
    assert run("study", "list") == 0
    assert "recorded" not in capsys.readouterr().out.split("what it is")[0]


def test_collect_records_in_the_folder_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FOLDER/<the study's file>, whatever the current folder is."""
    from tests.runner import example_cells as example

    study = replace(example.small_study(2), record="small/values.nc")
    monkeypatch.setattr(example, "recorded", study, raising=False)
    name, cells = "tests.runner.example_cells:recorded", str(tmp_path / "cells")
    assert run("study", "run", name, "--folder", cells, "--jobs", "1") == 0
    records = tmp_path / "records"
    assert run("study", "collect", name, "--folder", cells, "--record", str(records)) == 0
    written = bm.read_record(records / "small" / "values.nc")
    xr.testing.assert_identical(written, bm.collect(study, cells))


def test_run_status_and_collect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One's own study, from nothing to a file; status tells by its exit code."""
    folder = str(tmp_path / "out")
    assert run("study", "status", SLOW, "--folder", folder) == 1
    assert "0 of 40 cells done, 0 failed, 40 remaining" in capsys.readouterr().out
    assert run("study", "collect", SLOW, "--folder", folder) == 2
    assert "40 of 40 cells of small are not in" in capsys.readouterr().err
    assert run("study", "run", SLOW, "--folder", folder, "--jobs", "1") == 0
    shown = capsys.readouterr()
    assert "small: 40 of 40 cells done, 0 failed, 0 remaining" in shown.out
    assert run("study", "status", SLOW, "--folder", folder) == 0
    assert run("study", "collect", SLOW, "--folder", folder) == 0
    assert f"wrote {folder}.nc (40 run, 3 axis)" in capsys.readouterr().out.replace("\n", "")
    xr.testing.assert_identical(bm.read_record(f"{folder}.nc"), bm.collect(slow, folder))


def test_failures_are_shown_and_tell_by_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1, the first errors, where the tracebacks are; left alone where asked."""
    from tests.runner import example_cells as example

    study = bm.Study("quits", bm.grid(run=range(7)), example.quits)
    monkeypatch.setattr(example, "quitting", study, raising=False)
    command = [
        "study",
        "run",
        "tests.runner.example_cells:quitting",
        "--folder",
        str(tmp_path / "out"),
    ]
    assert run(*command, "--jobs", "1") == 1
    shown = capsys.readouterr().out
    assert "quits: 0 of 7 cells done, 7 failed, 0 remaining" in shown
    assert shown.count("SystemExit: 3") == 5 and "and 2 more" in shown
    assert "failures.jsonl" in shown
    assert run(*command, "--no-retry-failed") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "figure2"], ["unknown study", "'figure2'", "did you mean 'figure1'?"]),
        (["status", "nothing"], ["'nothing'", "figure1-ids", "module:variable"]),
        (["collect", "no_module:study"], ["cannot import 'no_module'", "ModuleNotFoundError"]),
        (["run", "./my_study.py:study"], ["is not module:variable", "without .py"]),
        (["run", "tests.runner.example_cells:none"], ["has no 'none'"]),
        (["run", "tests.runner.example_cells:not_a_study"], ["is not a Study but of type int"]),
        (["run", SLOW, "--jobs", "0"], ["--jobs must be at least 1"]),
        (["run", SLOW, "--dask", "0"], ["--dask must be at least 1"]),
        (["run", SLOW, "--jobs", "2", "--scheduler", "x"], ["not allowed with argument"]),
        (["collect", SLOW, "--record", "records"], ["small names no file for its record"]),
        ([], ["ACTION"]),
    ],
)
def test_bad_input_is_refused_in_one_line(
    arguments: list[str],
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit code 2, nothing on standard output, nothing left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    assert run("study", *arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1
    assert all(word in shown.err for word in words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_says_how_to_go_on(tmp_path: Path, kind: signal.Signals) -> None:
    """To a real driver with two processes: code 130, its cells kept, and it goes on.

    SIGINT to the group, as a terminal sends it; SIGTERM to the driver, as a batch system does.
    """
    command = [sys.executable, "-m", "bayesmeta.cli", "study", "run", SLOW, "--jobs", "2"]
    command += ["--folder", str(tmp_path / "out")]
    driver = subprocess.Popen(
        command,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )
    cells = tmp_path / "out" / "cells"
    assert wait_until(lambda: cells.is_dir() and any(cells.glob("[!.]*.nc")), 60)
    (os.killpg if kind is signal.SIGINT else os.kill)(driver.pid, kind)
    _, said = driver.communicate(timeout=30)
    assert driver.returncode == 130 and "Traceback" not in said
    done = bm.study_status(slow, tmp_path / "out").done
    words = " ".join(said.split())
    assert 0 < done < 40
    assert f"interrupted; small: {done} of 40 cells done, 0 failed, {40 - done} remaining" in words
    assert "the same command goes on from there" in words
    report = bm.run_study(slow, tmp_path / "out", jobs=1)
    assert report.complete and report.before == done


def test_reproduce_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of the figure is a cell: what an interrupted command finished is not played again."""
    tiny = ["reproduce", "--tasks", "20", "--jobs", "1", "--agents", "KTS", "--out", str(tmp_path)]
    played: list[int] = []
    original = simulate.record_run

    def stop(*arguments: object) -> xr.Dataset:
        played.append(int(arguments[-1]))  # type: ignore[call-overload]
        if len(played) == 3:
            raise KeyboardInterrupt
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(simulate, "record_run", stop)
    assert run(*tiny, "--runs", "4") == 130
    assert run(*tiny, "--runs", "4") == 0
    assert played == [cell_seed(0, f"run={k}") for k in (0, 1, 2, 2, 3)]
    assert not (tmp_path / "unfinished").exists()


def test_studies_are_found_by_name() -> None:
    """All names differ, all records too, and every note says what it is."""
    studies = all_studies()
    assert find_study("figure1-ids") is studies["figure1-ids"]
    assert len({study.record for study in studies.values()}) == len(studies)
    assert all(study.note and study.dims for study in studies.values())
