"""Processes: the same bits, deaths survived, threads pinned, work handed out a little at a time."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.runner.executors import Serial, each, processes
from bayesmeta.runner.pinning import PINNED
from tests.helpers import ROOT, in_session, wait_until
from tests.runner import example_cells as example
from tests.runner.example_cells import small_study

pytestmark = pytest.mark.slow

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
    """Also where BLAS would sum differently with more threads."""
    report = bm.run_study(example.slow, tmp_path, jobs=2)
    assert report.done == 40
    xr.testing.assert_identical(bm.collect(example.slow, tmp_path), serial)


def test_a_worker_that_dies_has_its_cells_run_again(tmp_path: Path) -> None:
    """Killed once: run again. Killed every time: a failure that says so. The others: done.

    In every process numerical libraries may use one thread; here the environment is what it was.
    """
    before = {name: os.environ.get(name) for name in PINNED}
    settings = {"marker": str(tmp_path / "marker")}
    study = bm.Study("dies", bm.grid(settings, run=range(6)), example.dies_once, 7, ("run",))
    report = bm.run_study(study, tmp_path / "out", jobs=2)
    assert (report.done, report.failed) == (5, 1)
    assert report.failures[0].id == "run=2" and "its worker died" in report.failures[0].error
    data = bm.collect(study, tmp_path / "out", partial=True).dropna("run")
    bm.run_study(small_study(6), tmp_path / "small", jobs=1)
    expected = bm.collect(small_study(6), tmp_path / "small").sel(run=[0, 1, 3, 4, 5])
    np.testing.assert_array_equal(data.value, expected.value)
    assert data.run.values.tolist() == [0, 1, 3, 4, 5]
    again = bm.run_study(study, tmp_path / "out", jobs=2)  # only the deadly cell is left
    assert (again.done, again.failed) == (5, 1) and "its worker died" in again.failures[0].error
    assert (data.threads == 1).all() and data.sizes["library"] == len(PINNED)
    assert os.getpid() not in data.process and len(np.unique(data.process)) >= 2
    assert {name: os.environ.get(name) for name in PINNED} == before


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
    with pytest.raises(bm.InputError, match=r"of study local cannot be sent.*use jobs=1"):
        bm.run_study(study, tmp_path / "out", jobs=2)
    assert list(tmp_path.iterdir()) == []


def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    """Its processes die at once; the study does not go on for ever."""
    script = tmp_path / "script.py"
    script.write_text(
        "import bayesmeta as bm\ndef cell(settings, seed): pass\n"
        "study = bm.Study('unguarded', bm.grid(run=range(4)), cell)\n"
        f"bm.run_study(study, {str(tmp_path / 'out')!r}, jobs=2)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert 'under if __name__ == "__main__":' in done.stderr.splitlines()[-1]


NURSERY = """
import os, sys
from contextlib import contextmanager
import bayesmeta as bm
from bayesmeta.runner import folder
from tests.runner.example_cells import slow

folder.SHARD_SECONDS = 0.03  # write often, so that writing is hit, too

@contextmanager
def bar(total, done):
    yield lambda now: print("at work", flush=True)

if __name__ == "__main__":
    import dask.array, distributed, h5netcdf  # what xarray loads as it goes: load it once
    for jobs in sys.stdin:
        if os.fork() == 0:
            os.setsid()
            print(os.getpid(), flush=True)
            bm.run_study(slow, sys.argv[1], jobs=int(jobs), progressbar=bar)
            os._exit(0)
        pid, status = os.wait()
        print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""


@LINUX
def test_killed_ten_times_and_resumed(serial: xr.Dataset, tmp_path: Path) -> None:
    """SIGKILL at random moments, then a run to the end: bit for bit the undisturbed result.

    Drivers are forked from a process that has loaded all libraries, since that takes seconds.
    """
    script, out = tmp_path / "nursery.py", tmp_path / "out"
    script.write_text(NURSERY)
    moments = random.Random(4)
    done = [0]
    with subprocess.Popen(
        [sys.executable, str(script), str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as nursery:
        assert nursery.stdin and nursery.stdout
        for attempt in range(10):
            jobs = 2 if attempt == 6 else 1
            print(jobs, file=nursery.stdin, flush=True)
            driver = int(nursery.stdout.readline())
            for _ in range(moments.randrange(8)):
                assert nursery.stdout.readline() == "at work\n"
            time.sleep(moments.uniform(0.0, 0.06))
            os.kill(driver, signal.SIGKILL)
            line = "at work\n"
            while line == "at work\n":
                line = nursery.stdout.readline()
            assert line == f"ended {-signal.SIGKILL}\n"
            assert wait_until(lambda session=driver: not in_session(session), 20)  # workers, too
            done.append(bm.study_status(example.slow, out).done)
        nursery.stdin.close()
    assert done == sorted(done) and 0 < done[-1] < 40  # disturbed at work, and nothing lost
    temporary = out / "cells" / ".run=39.0123.abc.nc"
    temporary.write_bytes(b"half a result")
    report = bm.run_study(example.slow, out, jobs=1)
    assert report.done == 40 and report.before == done[-1] and report.notes == []
    assert not temporary.exists()
    xr.testing.assert_identical(bm.collect(example.slow, out), serial)
    assert np.isfinite(serial.value).all()


def test_a_script_that_has_loaded_numba_may_compile_in_its_workers(tmp_path: Path) -> None:
    """Workers load the script, and numba with it, before they are told to use one thread; numba
    then refuses to compile if its number of threads has changed."""
    script = tmp_path / "script.py"
    script.write_text(
        "import numba\nimport xarray as xr\nimport bayesmeta as bm\n"
        "@numba.njit\ndef double(x):\n    return 2 * x\n"
        "def cell(settings, seed):\n    return xr.Dataset({'value': double(settings['run'])})\n"
        "study = bm.Study('script', bm.grid(run=range(4)), cell, 0, ('run',))\n"
        "if __name__ == '__main__':\n"
        f"    report = bm.run_study(study, {str(tmp_path / 'out')!r}, jobs=2)\n"
        "    print(report.done, report.failed)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment |= {"NUMBA_NUM_THREADS": "2"}  # also where there is one core
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["4", "0"], done.stderr


def test_a_death_is_explained_after_its_process_was_replaced() -> None:
    """Two workers die at once: a call made again for the first removes both processes, before
    anybody has asked why the second died."""
    with processes(2) as workers:
        lost = [workers.submit(os._exit, 1) for _ in range(2)]
        wait(lost)
        assert workers.submit(abs, -3).result() == 3
        assert [workers.reason(future) for future in lost] == [None, None]
