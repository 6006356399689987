"""A real Dask cluster on this machine: the same bits, also when a worker or the scheduler dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.runner import cluster
from tests.helpers import ROOT, wait_until
from tests.runner.example_cells import draws, slow, small_study
from tests.runner.sockets import free_port

pytestmark = pytest.mark.slow

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
"""Of workers, which must find the tests; the scheduler need not."""


class Cluster:
    """A scheduler and workers as a user starts them, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.address = folder, f"tcp://127.0.0.1:{free_port()}"
        port = self.address.rpartition(":")[2]
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start(
            "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-show"
        )

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        environment = os.environ if "scheduler" in command else ENVIRONMENT
        with (self.folder / f"log{len(self.processes)}").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *command],
                env=environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def add_worker(self) -> subprocess.Popen[bytes]:
        return self.start(
            "worker",
            self.address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--host",
            "127.0.0.1",
        )

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster with a scheduler alone."""
    (tmp_path / "dask").mkdir()
    made = Cluster(tmp_path / "dask")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    folder = tmp_path_factory.mktemp("serial")
    bm.run_study(slow, folder, jobs=1)
    return bm.collect(slow, folder)


def test_a_cluster_gives_the_same_bits_also_when_a_worker_is_killed(
    dask: Cluster, serial: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers; then again, one killed with SIGKILL while it works; then the scheduler."""
    monkeypatch.setattr(cluster, "PATIENCE", 40.0)
    workers = [dask.add_worker() for _ in range(2)]
    report = bm.run_study(slow, tmp_path / "whole", scheduler=dask.address)
    assert report.done == 40 and report.notes == []
    xr.testing.assert_identical(bm.collect(slow, tmp_path / "whole"), serial)

    at_work: list[float] = []

    @contextmanager
    def bar(total: int, done: int) -> Iterator[object]:
        def tick(now: float) -> None:
            at_work.append(now)
            if now >= 5 and workers[0].poll() is None:
                workers[0].kill()

        yield tick

    report = bm.run_study(slow, tmp_path / "killed", scheduler=dask.address, progressbar=bar)
    assert workers[0].wait(5) == -signal.SIGKILL and min(at_work) < 40
    assert report.done == 40 and report.failed == 0
    xr.testing.assert_identical(bm.collect(slow, tmp_path / "killed"), serial)

    long = small_study(400, 0.05)
    threading.Timer(1.5, dask.scheduler.kill).start()
    with pytest.raises(bm.InputError, match=f"the Dask scheduler at {dask.address} went away"):
        bm.run_study(long, tmp_path / "lost", scheduler=dask.address)
    kept = bm.study_status(long, tmp_path / "lost").done
    assert 0 < kept < 400


def test_a_local_cluster_gives_the_same_bits(serial: xr.Dataset, tmp_path: Path) -> None:
    """``--dask 2``."""
    assert bm.run_study(slow, tmp_path, dask=2).done == 40
    xr.testing.assert_identical(bm.collect(slow, tmp_path), serial)


def test_a_simulation_on_a_cluster_gives_the_same_bits() -> None:
    """``bm.simulate`` runs where studies run, with its family and agents sent along."""
    family = bm.paper_family(dim=2, horizon=8)
    here, there = (
        bm.simulate(family, ["UKTS", "KTS"], tasks=6, runs=2, **where)
        for where in ({}, {"dask": 2})
    )
    xr.testing.assert_identical(there, here)


def lazy(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """A result whose values Dask has yet to compute."""
    return draws(settings, seed).chunk().map(lambda values: values + 1)


def test_cells_may_use_dask_themselves(serial: xr.Dataset, tmp_path: Path) -> None:
    """On a cluster that waits for the cell they are computed in the cell, or all would wait."""
    study = bm.Study("small", bm.grid(slow.cells["run=0"], run=range(6)), lazy, 7, ("run",))
    assert bm.run_study(study, tmp_path, dask=2).done == 6
    data = bm.collect(study, tmp_path)
    np.testing.assert_array_equal(data.value, serial.value.isel(run=slice(6)) + 1)


def test_a_module_that_workers_lack_stops_the_study(
    dask: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One clear word instead of a failure for every cell. The function's own module travels."""
    (tmp_path / "helper_here.py").write_text("import xarray as xr\n")
    (tmp_path / "only_here.py").write_text(
        "import helper_here\n\n\ndef cell(settings, seed):\n    return helper_here.xr.Dataset()\n"
    )
    (tmp_path / "travels.py").write_text(
        "import xarray as xr\n\n\ndef inner():\n    return xr.Dataset({'x': 1})\n\n\n"
        "def cell(settings, seed):\n    return inner()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here  # type: ignore[import-not-found]
    import travels  # type: ignore[import-not-found]

    dask.add_worker()
    study = bm.Study("lacking", bm.grid(run=range(4)), only_here.cell, 0, ("run",))
    with pytest.raises(bm.InputError, match=r"cannot import .*helper_here.*PYTHONPATH"):
        bm.run_study(study, tmp_path / "out", scheduler=dask.address)
    assert not (tmp_path / "out").exists()
    good = bm.Study("travelling", bm.grid(run=range(2)), travels.cell, 0, ("run",))
    assert bm.run_study(good, tmp_path / "one", scheduler=dask.address).complete
    monkeypatch.setattr(travels, "inner", lambda: xr.Dataset({"x": 2}))  # edited and loaded anew
    assert bm.run_study(good, tmp_path / "two", scheduler=dask.address).complete
    assert (bm.collect(good, tmp_path / "one").x == 1).all()
    assert (bm.collect(good, tmp_path / "two").x == 2).all()
    for name in ("only_here", "helper_here", "travels"):
        monkeypatch.delitem(sys.modules, name)


def test_an_unreachable_scheduler_is_told_after_a_bounded_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens there; nothing is left behind."""
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    start = time.monotonic()
    with pytest.raises(bm.InputError, match="cannot reach the Dask scheduler at"):
        address = f"tcp://127.0.0.1:{free_port()}"
        bm.run_study(small_study(2), tmp_path / "out", scheduler=address)
    assert time.monotonic() - start < 30
    for address in ("nonsense", "tcp://", "", "tcp://127.0.0.1"):
        with pytest.raises(bm.InputError, match="scheduler must be an address such as"):
            bm.run_study(small_study(2), tmp_path / "out", scheduler=address)
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_without_workers_is_told(
    dask: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a bounded wait, with what to do."""

    def listens() -> bool:
        host, _, port = dask.address.removeprefix("tcp://").partition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    assert wait_until(listens, 40)
    monkeypatch.setattr(cluster, "WAIT_FOR_WORKERS", 2.0)
    with pytest.raises(bm.InputError, match=r"has had no workers for 2 s.*dask worker"):
        bm.run_study(small_study(2), tmp_path / "out", scheduler=dask.address)
    assert not (tmp_path / "out").exists()


def test_without_dask_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(bm.InputError, match=r"Dask is not installed.*pip install"):
        bm.run_study(small_study(2), tmp_path / "out", dask=2)
    assert list(tmp_path.iterdir()) == []


def test_workers_with_several_threads_are_noted() -> None:
    """They work on one cell at a time, which a user would wonder about."""
    assert cluster._notes({"a": 1, "b": 1}) == []
    (note,) = cluster._notes({"a": 1, "b": 4})
    assert "1 of 2 Dask workers have several threads" in note and "--nthreads 1" in note


def blocked(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """A cell: whether Ctrl-C reaches the process that computes it."""
    status = Path("/proc/self/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
    return xr.Dataset({"blocked": int(mask, 16) >> (signal.SIGINT - 1) & 1})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="masks are read from /proc")
def test_ctrl_c_does_not_reach_the_workers(tmp_path: Path) -> None:
    """A terminal sends it to them, too: they would print a traceback each."""
    study = bm.Study("blocked", bm.grid(run=range(2)), blocked, dims=("run",))
    bm.run_study(study, tmp_path, dask=1)
    assert bm.collect(study, tmp_path)["blocked"].values.tolist() == [1, 1]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
