"""Processes: the same bits, deaths survived, threads pinned, work handed out a little at a time."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.executors import PINNED, Serial, each
from tests import example_cells as example
from tests.example_cells import small_study
from tests.processes import in_session, wait_until

ROOT = Path(__file__).parent.parent
LINUX = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks at processes in /proc"
)


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    """What an undisturbed run in this process gives."""
    folder = tmp_path_factory.mktemp("serial")
    bm.run_study(example.slow, folder, jobs=1)
    return bm.collect(example.slow, folder)


def test_two_processes_give_the_same_bits(serial: xr.Dataset, tmp_path: Path) -> None:
    """And use both."""
    report = bm.run_study(example.slow, tmp_path, jobs=2)
    assert report.done == 40
    xr.testing.assert_identical(bm.collect(example.slow, tmp_path), serial)


def test_threads_are_pinned_in_processes_and_left_alone_here(tmp_path: Path) -> None:
    """One thread each for numba and BLAS; the environment of the driver is what it was."""
    before = {name: os.environ.get(name) for name in PINNED}
    study = bm.Study("threads", bm.grid(run=range(4)), example.threads, 0, ("run",))
    bm.run_study(study, tmp_path, jobs=2)
    data = bm.collect(study, tmp_path)
    assert (data.numba == 1).all() and (data.blas == 1).all()
    assert os.getpid() not in data.process
    assert {name: os.environ.get(name) for name in PINNED} == before


def test_a_worker_that_dies_has_its_cells_run_again(tmp_path: Path) -> None:
    """Killed once: run again. Killed every time: a failure that says so. The others: done."""
    settings = {"marker": str(tmp_path / "marker")}
    study = bm.Study("dies", bm.grid(settings, run=range(6)), example.dies_once, 7, ("run",))
    report = bm.run_study(study, tmp_path / "out", jobs=2)
    assert (report.done, report.failed) == (5, 1)
    assert report.failures[0].id == "run=2" and "its worker died" in report.failures[0].error
    bm.run_study(small_study(6), tmp_path / "small", jobs=1)
    expected = bm.collect(small_study(6), tmp_path / "small").sel(run=[0, 1, 3, 4, 5])
    xr.testing.assert_identical(bm.collect(study, tmp_path / "out", partial=True), expected)


def test_work_is_handed_out_a_little_at_a_time() -> None:
    """A study of any number of cells holds only as many futures as its workers allow."""
    taken = 0

    def items() -> Iterator[tuple[int, tuple[int]]]:
        nonlocal taken
        for i in range(1000):
            taken += 1
            yield i, (i,)

    class Three(Serial):
        held = most = 0

        def limit(self) -> int:
            return 3

        def submit(self, call: object, /, *arguments: object) -> Future[object]:
            Three.held += 1
            Three.most = max(Three.most, Three.held)
            return super().submit(call, *arguments)  # type: ignore[arg-type]

    seen = 0
    for key, future in each(Three(), abs, items()):
        seen += 1
        Three.held -= 1
        assert future.result() == key
        assert taken <= seen + 5
    assert seen == 1000 and Three.most <= 6


def test_work_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    """Before a process is started, with a way out."""
    study = bm.Study("local", bm.grid(run=range(2)), lambda settings, seed: xr.Dataset())
    with pytest.raises(bm.InputError, match=r"cannot be pickled.*use jobs=1"):
        bm.run_study(study, tmp_path / "out", jobs=2)
    assert list(tmp_path.iterdir()) == []


def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    """Its processes die at once; the study does not go on for ever."""
    script = tmp_path / "script.py"
    script.write_text(
        "import bayesmeta as bm\nfrom tests.example_cells import small_study\n"
        f"bm.run_study(small_study(4), {str(tmp_path / 'out')!r}, jobs=2)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert 'under if __name__ == "__main__":' in done.stderr.splitlines()[-1]


DRIVER = """
import sys
from contextlib import contextmanager
import bayesmeta as bm
from bayesmeta import store
from tests.example_cells import slow

store.SHARD_SECONDS = store.LONG_SECONDS = 0.03  # write often, so that writing is hit, too

@contextmanager
def bar(total, done):
    yield lambda now: print("at work" if now > done else "ready", flush=True)

if __name__ == "__main__":
    bm.run_study(slow, sys.argv[1], jobs=int(sys.argv[2]), progress=bar)
"""


@LINUX
def test_killed_ten_times_and_resumed(serial: xr.Dataset, tmp_path: Path) -> None:
    """SIGKILL at random moments, then a run to the end: bit for bit the undisturbed result."""
    script, out = tmp_path / "driver.py", tmp_path / "out"
    script.write_text(DRIVER)
    moments = random.Random(4)
    killed, done = 0, []
    for attempt in range(10):
        jobs = 2 if attempt % 5 == 4 else 1
        driver = subprocess.Popen(
            [sys.executable, str(script), str(out), str(jobs)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert driver.stdout
        for _ in range(moments.randrange(8)):
            assert driver.stdout.readline() in ("ready\n", "at work\n")
        time.sleep(moments.uniform(0.0, 0.06))
        driver.kill()
        killed += driver.wait(30) == -signal.SIGKILL
        driver.stdout.close()
        assert wait_until(lambda pid=driver.pid: not in_session(pid), 20)  # its workers, too
        if out.exists():
            done.append(bm.study_status(example.slow, out).done)
    assert killed == 10
    assert done == sorted(done) and 0 < done[-1] < 40  # disturbed at work, and nothing lost
    temporary = out / "cells" / ".run=39.0123.abc.nc"
    temporary.write_bytes(b"half a result")
    report = bm.run_study(example.slow, out, jobs=1)
    assert report.done == 40 and report.before == done[-1] and report.notes == []
    assert not temporary.exists()
    xr.testing.assert_identical(bm.collect(example.slow, out), serial)
    assert np.isfinite(serial.value).all()
