"""A soak: studies killed, starved of disk and damaged, resumed, and compared byte by byte.

    python -m tests.trials.soak --minutes 10

A chain is one folder: drivers are started on it one after another, each disturbed in a way drawn
from the chain's seed, until all cells are done; then the collected file and every cell must have
the bytes of an undisturbed run. Whatever else is wrong (a traceback, an exit code, a process left
behind, a damaged file) is a failure, too. ``--chain SEED`` repeats one chain, as far as timing can
be repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bayesmeta import Study, collect, grid, run_study, write_record
from bayesmeta.runner.folder import Folder
from bayesmeta.runner.progress import progress_bar
from bayesmeta.runner.provenance import versions
from bayesmeta.runner.study import tasks_of
from tests.helpers import ROOT, hear_ctrl_c, in_session, wait_until
from tests.runner.example_cells import draws

RECORD = ROOT / "analyses" / "hardening" / "soak.json"
study = Study("soak", grid({"seconds": 0.03, "matrix": 60}, run=range(40)), draws, 7, ("run",))
"""A second of work for one process."""
MOST = 8
"""Disturbed drivers in a chain; the next one is left alone."""
TIMEOUT = 120.0


# ---- what is compared


def fingerprint(study: Study, folder: Path) -> dict[str, str]:
    """Digests of the collected file and of every cell's data."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "collected.nc"
        write_record(collect(study, folder), file)
        found = {"collected": hashlib.sha256(file.read_bytes()).hexdigest()}
    store = Folder(folder)
    store.find()
    data = store.read([task.key for task in tasks_of(study)])
    for i, task in enumerate(tasks_of(study)):
        digest = hashlib.sha256()
        for name in sorted(map(str, data.data_vars)):
            digest.update(name.encode() + data[name].values[i].tobytes())
        found[task.id] = digest.hexdigest()
    return found


def differences(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """What does not have the expected bytes."""
    return sorted(k for k in found.keys() | expected.keys() if found.get(k) != expected.get(k))


# ---- drivers


class Driver:
    """``bayesmeta study run`` in a session of its own."""

    def __init__(self, folder: Path, mode: list[str], largest: int | None = None) -> None:
        def prepare() -> None:
            hear_ctrl_c()
            if largest is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

        handle, name = tempfile.mkstemp(prefix="soak-", suffix=".log")  # not on the full disk
        os.close(handle)
        self.log = Path(name)
        command = [sys.executable, "-m", "bayesmeta.cli", "study", "run", "tests.trials.soak:study"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, *mode, "--folder", str(folder)],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                preexec_fn=prepare,
            )

    def lives(self) -> bool:
        return self.process.poll() is None

    def listens(self) -> bool:
        """Whether it handles SIGTERM, as the command line does from its first line on."""
        return not self.lives() or caught(self.process.pid, signal.SIGTERM)

    def workers(self) -> list[int]:
        """Worker processes that have started to run Python."""
        return [pid for pid, line in in_session(self.process.pid).items() if "spawn_main" in line]

    def end(self) -> int:
        """Wait; the exit code."""
        return self.process.wait(TIMEOUT)

    def kill(self) -> None:
        """Everything that is left of it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.unlink(missing_ok=True)


def is_bar(line: str) -> bool:
    """Whether a line is that of the progress bar, which is blank where nothing is done yet."""
    return "━" in line or f"/{len(study.cells)} cells " in line


def is_trackers(line: str, code: int) -> bool:
    """Whether Python's own tracker of semaphores says that a killed driver has left some."""
    return code == -9 and ("resource_tracker: " in line or line.strip() == "warnings.warn(")


def caught(pid: int, kind: signal.Signals) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (kind - 1) & 1)


# ---- disturbances: each runs one driver and returns the exit codes that are right

JOBS = (["--jobs", "1"], ["--jobs", "2"])
DASK = ["--dask", "2"]
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}


class Chain:
    """One folder and its disturbed drivers."""

    def __init__(
        self, seed: int, base: Path, counts: Counter[str], spans: dict[str, float]
    ) -> None:
        self.seed, self.rng, self.counts = seed, random.Random(seed), counts
        self.spans = spans
        self.base = base
        self.folder = base / "study"
        self.failures: list[dict[str, Any]] = []
        self.driver: Driver | None = None

    def fail(self, what: str, **more: Any) -> None:
        self.failures.append({"seed": self.seed, "what": what, **more})

    def go(self, expected: dict[str, str]) -> None:
        """Disturb until all is done; compare; damage a file; compare again."""
        for _ in range(MOST):
            kind = self.rng.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
            if self._run(kind, KINDS[kind][0]) == 0:
                break
        else:
            self._run("nothing", Chain.nothing)
        self._compare(expected)
        if self.rng.random() < 0.3:
            self._damage()
            self._run("nothing", Chain.nothing)
            self._compare(expected)

    def _run(self, kind: str, disturb: Callable[[Chain], tuple[Driver, set[int]]]) -> int:
        if self.folder.exists():
            self.counts["resumes"] += 1
        driver, right = disturb(self)
        try:
            code = driver.end()
            said = driver.log.read_text()
            if code not in right:
                self.fail("exit code", kind=kind, code=code, said=said[-2000:])
            lines = [line for line in said.splitlines() if line.strip() and not is_bar(line)]
            lines = [line for line in lines if not is_trackers(line, code)]
            if any(not line.startswith("bayesmeta: ") for line in lines) or len(lines) > 1:
                self.fail("noise", kind=kind, code=code, said=said[-2000:])
            left = lambda: in_session(driver.process.pid)  # noqa: E731
            if not wait_until(lambda: not left(), 30):
                self.fail("processes left", kind=kind, left=list(left().values()))
        except subprocess.TimeoutExpired:
            self.fail("hangs", kind=kind, said=driver.log.read_text()[-2000:])
            code = -1
        finally:
            driver.kill()
        _, damaged = Folder(self.folder).find()
        if damaged:
            self.fail("damaged files", kind=kind, files=[file.name for file in damaged])
        return code

    def _compare(self, expected: dict[str, str]) -> None:
        self.counts["comparisons"] += 1
        try:
            wrong = differences(fingerprint(study, self.folder), expected)
        except Exception as error:
            self.fail("cannot be collected", said=str(error))
            return
        if wrong:
            self.fail("other bytes", where=wrong)

    def _sleep(self, driver: Driver, most: float) -> None:
        """A random while, less where the driver ends."""
        end = time.monotonic() + self.rng.uniform(0, most)
        while driver.lives() and time.monotonic() < end:
            time.sleep(0.005)

    def _hit(self, name: str, pid: int, kind: signal.Signals, group: bool = False) -> None:
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(pid, kind)
            self.counts[f"kill: {name}"] += 1

    def _driver(self, mode: list[str] | None = None, **options: Any) -> Driver:
        self.driver = Driver(self.folder, mode or self.rng.choice(JOBS), **options)
        return self.driver

    # each: (driver, right exit codes)

    def nothing(self) -> tuple[Driver, set[int]]:
        return self._driver(["--jobs", "2"]), {0}

    def signalled(self, mode: list[str] | None = None) -> tuple[Driver, set[int]]:
        """The driver alone, or its group, as a terminal does, at any moment of its life."""
        mode = mode or self.rng.choice(JOBS)
        name = self.rng.choice(list(SIGNALS))
        group = name == "SIGINT" and self.rng.random() < 0.5
        driver = self._driver(mode)
        where = ("group" if group else "driver") + " on Dask" * (mode == DASK)
        wait_until(driver.listens, TIMEOUT)
        self._sleep(driver, self.spans[" ".join(mode)])
        if driver.lives():
            self._hit(f"{name} to a {where}", driver.process.pid, SIGNALS[name], group)
        return driver, {0, -9} if name == "SIGKILL" else {0, 130}

    def signalled_on_dask(self) -> tuple[Driver, set[int]]:
        return self.signalled(DASK)

    def worker_cut(self, mode: tuple[str, ...] = ("--jobs", "2")) -> tuple[Driver, set[int]]:
        """Two workers at most: a third death would be the cell's own failure."""
        driver = self._driver(list(mode))
        name = "a Dask worker" if "--dask" in mode else "a worker"
        for _ in range(self.rng.randint(1, 2)):
            wait_until(lambda: not driver.lives() or bool(driver.workers()), TIMEOUT)
            self._sleep(driver, self.spans[" ".join(mode)] / 2)
            if workers := driver.workers():
                self._hit(f"SIGKILL to {name}", self.rng.choice(workers), signal.SIGKILL)
        return driver, {0}

    def worker_cut_on_dask(self) -> tuple[Driver, set[int]]:
        """Also before the cluster has started, which ends the driver with a clear line."""
        driver, _ = self.worker_cut(tuple(DASK))
        driver.end()
        starts = "a Dask cluster of 2 processes does not start" not in driver.log.read_text()
        return driver, {0} if starts else {2}

    def disk_filled(self) -> tuple[Driver, set[int]]:
        """A small file system filled up to a few blocks, or files that may not grow."""
        self.counts["disks filled"] += 1
        ballast = self.base / "ballast"
        if not self.base.is_mount():
            return self._driver(largest=self.rng.randint(500, 60_000)), {0, 2}
        left = self.rng.randint(0, 80_000)
        free = shutil.disk_usage(self.base).free
        ballast.write_bytes(bytes(max(0, free - left)))
        driver = self._driver()
        with suppress(subprocess.TimeoutExpired):
            driver.end()
        ballast.unlink()
        return driver, {0, 2}

    def temporaries_deleted(self) -> tuple[Driver, set[int]]:
        """What the driver is about to rename is gone: it stops, or has been quicker."""
        driver = self._driver()
        end = time.monotonic() + TIMEOUT
        while driver.lives() and time.monotonic() < end:
            for pattern in ("cells/.*.nc", ".manifest.*.json"):
                for file in self.folder.glob(pattern):
                    with suppress(FileNotFoundError):
                        file.unlink()
                        self.counts["temporaries deleted"] += 1
        return driver, {0, 2}

    def _damage(self) -> None:
        """Change, cut or empty a finished file."""
        file = self.rng.choice(sorted((self.folder / "cells").glob("[!.]*.nc")))
        content = bytearray(file.read_bytes())
        place = self.rng.randrange(len(content))
        how = self.rng.choice(["changed", "cut"])
        if how == "changed":
            content[place] ^= 1 << self.rng.randrange(8)
        file.write_bytes(content if how == "changed" else content[:place])
        self.counts[f"files {how}"] += 1


KINDS: dict[str, tuple[Callable[[Chain], tuple[Driver, set[int]]], float]] = {
    "signal": (Chain.signalled, 12.0),
    "worker": (Chain.worker_cut, 2.0),
    "disk": (Chain.disk_filled, 1.5),
    "temporaries": (Chain.temporaries_deleted, 0.5),
    "signal on Dask": (Chain.signalled_on_dask, 0.5),
    "worker on Dask": (Chain.worker_cut_on_dask, 0.5),
}
"""Disturbances, and how often each is drawn relative to the others."""


@contextmanager
def place() -> Iterator[Path]:
    """A folder on a small file system of its own, where that is allowed; removed in the end."""
    base = Path(tempfile.mkdtemp(prefix="soak-"))
    size = ["mount", "-t", "tmpfs", "-o", "size=2m", "soak", str(base)]
    try:
        mounted = os.geteuid() == 0 and not subprocess.run(size, capture_output=True).returncode
    except OSError:
        mounted = False
    try:
        yield base
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(base)], check=True)
        shutil.rmtree(base, ignore_errors=True)


def run_chain(
    seed: int, expected: dict[str, str], counts: Counter[str], spans: dict[str, float]
) -> list[dict[str, Any]]:
    """One chain; what failed in it."""
    with place() as base:
        chain = Chain(seed, base, counts, spans)
        try:
            chain.go(expected)
        finally:
            if chain.driver is not None:
                chain.driver.kill()
    counts["chains"] += 1
    return chain.failures


def lifetimes() -> dict[str, float]:
    """How long an undisturbed driver lives on this machine, from its first line on."""
    found = {}
    for mode in (*JOBS, DASK):
        with tempfile.TemporaryDirectory() as base:
            driver = Driver(Path(base) / "study", mode)
            try:
                wait_until(driver.listens, TIMEOUT)
                start = time.monotonic()
                driver.end()
                found[" ".join(mode)] = time.monotonic() - start
            finally:
                driver.kill()
    return found


def source() -> str:
    """The digest of all code that makes results, which is written into them."""
    files = sorted([*(ROOT / "bayesmeta").rglob("*.py"), *(ROOT / "tests").rglob("*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def soak(minutes: float, seed: int, only: int | None = None) -> dict[str, Any]:
    """Chains for some minutes, or a single one; the record."""
    start = time.monotonic()
    counts: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    before = source()
    with tempfile.TemporaryDirectory() as folder:
        run_study(study, folder, jobs=1)
        expected = fingerprint(study, Path(folder))
    seconds, spans = int(60 * minutes), lifetimes()
    with progress_bar("soak", "s", seconds) as tick:
        for number in range(seed, seed + 1_000_000) if only is None else [only]:
            failures += run_chain(number, expected, counts, spans)
            tick(time.monotonic() - start)
            if source() != before:
                raise SystemExit("soak: the source was edited meanwhile; nothing is recorded")
            if time.monotonic() - start >= seconds:
                break
    kills = {name: n for name, n in sorted(counts.items()) if name.startswith("kill: ")}
    others = {name: n for name, n in sorted(counts.items()) if name not in kills}
    return {
        "kills": sum(kills.values()),
        "kinds": {name.removeprefix("kill: "): n for name, n in kills.items()},
        **others,
        "failures": failures,
        "seconds": round(time.monotonic() - start, 1),
        "seed": seed,
        "versions": versions() | {"python": platform.python_version(), "system": platform.system()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first chain")
    parser.add_argument("--chain", type=int, metavar="SEED", help="run this chain alone")
    parser.add_argument("--record", type=Path, default=RECORD, metavar="FILE")
    options = parser.parse_args()
    try:
        found = soak(options.minutes, options.seed, options.chain)
    except KeyboardInterrupt:
        print("soak: interrupted; nothing is recorded", file=sys.stderr)
        return 130
    text = json.dumps(found, indent=2) + "\n"
    if options.chain is None:
        options.record.parent.mkdir(parents=True, exist_ok=True)
        options.record.write_text(text)
    print(text)
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
