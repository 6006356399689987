"""Time limits of cells: whatever a cell does, its process is ended, and the others go on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.runner import executors, limits
from tests.helpers import run, wait_until
from tests.runner.example_cells import small_study, stuck
from tests.runner.sockets import LINUX, family, listening


def study(*runs: int, **settings: Any) -> bm.Study:
    """Runs 1 and 3 get stuck, 4 crashes."""
    return bm.Study("stuck", bm.grid(settings, run=runs), stuck, 7, ("run",))


def alive(marker: Path) -> list[int]:
    """Of the processes that cells have run in."""
    found = {int(file.suffix[1:]) for file in marker.iterdir()}
    return [pid for pid in found if Path("/proc", str(pid)).exists()]


def same(data: xr.Dataset, runs: list[int]) -> None:
    """The bits of undisturbed cells are those of a run without limits in this process."""
    undisturbed = small_study(max(runs) + 1)
    expected = bm.collect(undisturbed, bm.run_study(undisturbed, jobs=1)).sel(run=runs)
    np.testing.assert_array_equal(data.value.sel(run=runs), expected.value)


@LINUX
@pytest.mark.slow
def test_a_stuck_cell_is_ended_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deaf to signals and holding Python's lock, or stopped: a failure, its process gone."""
    monkeypatch.setattr(limits, "GRACE", 0.5)
    marker = tmp_path / "marker"
    marker.mkdir()
    some = study(1, 0, 2, 3, marker=str(marker))
    report = bm.run_study(some, tmp_path / "out", jobs=2, timeout=1)
    assert report.done == 2 and sorted(f.id for f in report.failures) == ["run=1", "run=3"]
    assert {failure.error for failure in report.failures} == {
        "TimedOut: it ran for more than 1 s, so its process was ended"
    }
    text = (tmp_path / "out" / "failures.jsonl").read_text()
    assert re.search(r"example_cells.py.*line \d+ in stuck", text)  # where it was
    assert wait_until(lambda: not alive(marker), 10)
    same(bm.collect(some, tmp_path / "out", partial=True), [0, 2])


@LINUX
@pytest.mark.slow
def test_with_a_limit_one_job_is_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a stuck cell can be ended, and a crash in compiled code ends a child alone."""
    monkeypatch.setattr(executors.Processes, "tries", 1)
    report = bm.run_study(study(0, 4), tmp_path, jobs=1, timeout=60)
    assert report.done == 1 and "its worker died" in report.failures[0].error
    with pytest.raises(limits.TimedOut, match=r"more than 0\.5 s"):
        bm.run_study(study(1), jobs=1, timeout=0.5, raise_errors=True)


@LINUX
@pytest.mark.slow
def test_a_stuck_cell_is_ended_on_dask(tmp_path: Path) -> None:
    """In a child of the worker, which goes on; and the local cluster listens on loopback only."""
    marker = tmp_path / "marker"
    marker.mkdir()
    some = study(0, 1, 2, marker=str(marker))
    open_to: set[str] = set()

    @contextmanager
    def bar(total: int, done: int) -> Iterator[object]:
        def tick(now: float) -> None:
            if not open_to:
                open_to.update(listening(family(os.getpid())))

        yield tick

    report = bm.run_study(some, tmp_path / "out", dask=1, timeout=1, progressbar=bar)
    assert report.done == 2 and [failure.id for failure in report.failures] == ["run=1"]
    assert report.failures[0].error.startswith("TimedOut: it ran for more than 1 s")
    same(bm.collect(some, tmp_path / "out", partial=True), [0, 2])
    assert wait_until(lambda: not alive(marker), 10)
    assert open_to == {"127.0.0.1"}


def test_a_limit_is_a_positive_number(capsys: pytest.CaptureFixture[str]) -> None:
    """In Python and on the command line, before anything is done."""
    for wrong in (0, -1, float("nan"), "soon"):
        with pytest.raises(bm.InputError, match="timeout must be"):
            bm.run_study(small_study(1), timeout=wrong)  # type: ignore[arg-type]
    assert run("study", "run", "figure1-definiteness", "--timeout", "0") == 2
    assert "--timeout must be greater than 0" in capsys.readouterr().err
