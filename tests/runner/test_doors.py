"""Clusters as docs/cluster.md starts them: who can reach them, and which workers are believed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

import bayesmeta as bm
from bayesmeta.runner import cluster
from bayesmeta.runner.provenance import versions
from bayesmeta.runner.report import OtherSource
from tests.helpers import ROOT, run, wait_until
from tests.runner import example_cells
from tests.runner.example_cells import small_study
from tests.runner.sockets import LINUX, family, free_port, is_loopback, listening

pytestmark = [LINUX, pytest.mark.slow]

PAGE = (ROOT / "docs" / "cluster.md").read_text()
TLS = PAGE[PAGE.index("## On several machines") :]

Start = Callable[..., subprocess.Popen[bytes]]


@contextmanager
def starter(folder: Path) -> Iterator[Start]:
    """Starts commands, each in a session of its own, and ends them all."""
    with ExitStack() as stack:

        def start(
            command: str, environment: Mapping[str, str] = MappingProxyType({})
        ) -> subprocess.Popen[bytes]:
            words = shlex.split(command)
            assert words[0] == "dask"
            log = stack.enter_context((folder / "log").open("ab"))
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            stack.callback(process.wait, 20)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
            return process

        yield start


def commands(text: str, port: int) -> list[str]:
    """The lines that start a scheduler and workers, on a free port of this machine."""
    lines = re.findall(r"^dask .*$", text, flags=re.MULTILINE)
    return [re.sub("HEAD|NODE1", "127.0.0.1", line.replace("8786", str(port))) for line in lines]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Start, list[int]]]:
    """The page's scheduler, and what starts workers."""
    folder, port = tmp_path_factory.mktemp("started"), free_port()
    first, *others = commands(PAGE[: PAGE.index(TLS)], port)
    assert len(others) == 2 and others[0] == others[1]
    with starter(folder) as start:
        scheduler = start(first)
        worker = start(others[0])
        yield f"tcp://127.0.0.1:{port}", start, [scheduler.pid, worker.pid]


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """For machines that are busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "PATIENCE", 40.0)
        yield


def test_the_commands_of_the_readme_listen_on_this_machine_only(
    started: tuple[str, Start, list[int]],
) -> None:
    """Scheduler, nanny and worker with their dashboards: five sockets, on loopback."""
    address, _, processes = started
    assert bm.run_study(small_study(2), scheduler=address).complete
    found = [open_to for pid in processes for open_to in listening(family(pid))]
    assert len(found) == 5 and all(map(is_loopback, found)), found


def test_a_socket_that_is_open_to_all_is_seen() -> None:
    """The look can fail: on both kinds of addresses."""
    with socket.socket() as four, socket.socket(socket.AF_INET6) as six:
        four.bind(("0.0.0.0", 0))
        four.listen()
        assert not all(map(is_loopback, listening({os.getpid()})))
        four.close()
        six.bind(("::", 0))
        six.listen()
        assert not all(map(is_loopback, listening({os.getpid()})))


def altered_package(folder: Path) -> Path:
    """A copy of the package in which noise is doubled and the check is gone."""
    shutil.copytree(
        ROOT / "bayesmeta", folder / "bayesmeta", ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "bayesmeta/runner/guard.py").unlink()
    file = folder / "bayesmeta/environment.py"
    file.write_text(file.read_text() + "\nNOISE = 2\n")
    return folder


def test_a_worker_with_other_source_is_refused_before_it_computes(
    started: tuple[str, Start, list[int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 and a line that names it; only what the other worker made is kept."""
    address, start, _ = started
    (line,) = set(commands(PAGE[: PAGE.index(TLS)], 0)[1:])
    path = f"{altered_package(tmp_path / 'other')}:{ROOT}"
    altered = start(line.replace("tcp://127.0.0.1:0", address), {"PYTHONPATH": path})
    client = cluster._connect(address, "the cluster")
    assert wait_until(lambda: len(client.nthreads()) == 2, 60)
    client.close()

    slow, command = "tests.runner.example_cells:slow", ("study", "run", "--scheduler", address)
    assert run(*command, slow, "--folder", str(tmp_path / "out")) == 1
    shown, ours = capsys.readouterr(), versions()
    (said,) = [text for text in shown.err.splitlines() if text.startswith("bayesmeta: ")]
    assert re.match(
        rf"bayesmeta: the worker at tcp://127\.0\.0\.1:\d+ runs other source of bayesmeta "
        rf"\({ours['bayesmeta']}, source \w{{12}}\) than this process "
        rf"\({ours['bayesmeta']}, source {ours['source']}\), and was refused",
        said,
    )
    assert "--allow-other-source" in said and "cells done, 0 failed" in shown.out
    status = bm.study_status(example_cells.slow, tmp_path / "out")
    assert status.done < 40 and status.failed == 0 and status.notes == []

    marker = tmp_path / "marker"
    marker.mkdir()
    settings = {"marker": str(marker), "seconds": 0.1}
    some = bm.Study("some", bm.grid(settings, run=range(10, 30)), example_cells.stuck, 0, ("run",))
    with pytest.raises(OtherSource, match="the worker at"):
        bm.run_study(some, scheduler=address)
    assert not family(altered.pid) & {int(file.suffix[1:]) for file in marker.iterdir()}
    report = bm.run_study(some, scheduler=address, allow_other_source=True)
    assert report.complete
    assert family(altered.pid) & {int(file.suffix[1:]) for file in marker.iterdir()}
    (note,) = report.notes
    assert re.search(rf"made by other versions \(source \w+ then, {ours['source']} now\)", note)


def test_the_readmes_cluster_with_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its certificate and variables; a study runs, and nobody gets in without the key."""
    setup = "".join(re.findall(r"```sh\n((?:openssl|tls=).*?)```", TLS, flags=re.DOTALL))
    made = subprocess.run(
        ["bash", "-ec", f"{setup}\nenv -0"], cwd=tmp_path, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    pairs = [line.partition("=") for line in made.stdout.split("\0") if line.startswith("DASK_")]
    environment = {name: value for name, _, value in pairs}
    assert len(environment) == 8
    port = free_port()
    first, second = commands(TLS, port)
    (study,) = re.findall(r"^bayesmeta (study run .*)$", TLS, flags=re.MULTILINE)
    study = study.replace("HEAD:8786", f"127.0.0.1:{port}")
    study = study.replace("figure1-definiteness", "tests.runner.example_cells:two")
    with starter(tmp_path) as start:
        processes = [start(first, environment), start(second, environment)]
        assert wait_until(lambda: len(listening(family(processes[1].pid))) == 3, 60)
        command = [sys.executable, "-m", "bayesmeta.cli", *study.split()]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "2 of 2 cells done" in done.stdout
        assert all(is_loopback(a) for p in processes for a in listening(family(p.pid)))
        monkeypatch.setattr(cluster, "PATIENCE", 3.0)
        for protocol in ("tcp", "tls"):  # in the clear, and encrypted without the key
            with pytest.raises(bm.InputError, match="cannot reach the Dask scheduler"):
                bm.run_study(small_study(2), scheduler=f"{protocol}://127.0.0.1:{port}")
