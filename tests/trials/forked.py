"""Tests of a copy of the package, in a process forked from one that has imported all it needs.

A copy of the checkout (a tree) is made of hard links, so it costs nothing; a file that is changed
is put in place of its link. Compiled kernels lie in the tree's ``__pycache__`` folders and are
shared, too: their stamp is fixed in all trees, and whoever changes a kernel removes what was
compiled of it and of its callers.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from numba.core import event

WARM = (  # noqa: SIM905
    "numpy scipy.stats scipy.optimize scipy.linalg scipy.special scipy.integrate numba numba.core "
    "pandas xarray h5netcdf h5py rich.progress pytest hypothesis hypothesis.extra.numpy jinja2 "
    "cloudpickle threadpoolctl pyarrow matplotlib pymc nutpie arviz"
).split()
"""Imported before forking; not the package."""
TOO_LONG = 40.0
"""Tests that take longer, in seconds, are left out."""
ROOM = 30.0
"""Seconds that any run of tests may take beyond four times what its tests took unchanged."""
FIXED_STAMP = '\n\ndef kernel_digest() -> str:\n    return "of the trial"\n'
"""At the end of sources.py of a tree."""


class Ran(NamedTuple):
    """How a run of tests ended: ``ended`` is "passed", "failed" or "timeout"."""

    ended: str
    test: str
    error: str
    """Name of the exception of the first test that failed."""
    tests: dict[str, dict[str, Any]]
    """Of the tests that passed: ``seconds`` without compiling, and where asked for ``reached``, the
    functions (file:name) they ran."""
    outside: list[str]
    """Functions that ran while test files were imported."""
    seconds: float


def warm_up() -> None:
    for name in WARM:
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def copy_tree(root: Path, tree: Path) -> None:
    """The files of a checkout that are not ignored, but for notebooks."""
    command = ["git", "ls-files", "-coz", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if not name.startswith(("notebooks/", ".ci/")) and (root / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)


def link_tree(base: Path, tree: Path) -> None:
    shutil.copytree(base, tree, copy_function=os.link)


def replace_file(path: Path, text: str) -> None:
    """Not through the link: the others keep theirs."""
    path.unlink()
    path.write_text(text)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


class _Plugin:
    """Runs the wanted tests in the wanted order; notes the first failure, times, functions."""

    def __init__(self, tree: Path, wanted: list[str] | None, watch: bool) -> None:
        self.package = f"{tree}/"
        self.order = None if wanted is None else {name: i for i, name in enumerate(wanted)}
        self.watch = watch
        self.test = self.error = ""
        self.tests: dict[str, dict[str, Any]] = {}
        self.failed: set[str] = set()
        self.outside: set[str] = set()
        self.fixtures: dict[int, set[str]] = {}
        self.reached = self.outside
        self.compiling: Any = None
        if watch:
            self.compiling = event.TimingListener()
            event.register("numba:compile", self.compiling)
            monitor = sys.monitoring
            monitor.use_tool_id(monitor.COVERAGE_ID, "mutants")
            monitor.register_callback(
                monitor.COVERAGE_ID, monitor.events.PY_START, self._function_starts
            )
            monitor.set_events(monitor.COVERAGE_ID, monitor.events.PY_START)

    def _function_starts(self, code: Any, _: int) -> Any:
        if code.co_filename.startswith(self.package + "bayesmeta"):
            name = code.co_qualname.partition(".<locals>")[0]
            self.reached.add(f"{code.co_filename.removeprefix(self.package)}:{name}")
        return sys.monitoring.DISABLE

    def _compiled(self) -> float:
        """Seconds spent in the compiler so far."""
        return self.compiling.duration if self.compiling and self.compiling.done else 0.0

    def _watch(self, reached: set[str]) -> None:
        self.reached = reached
        if self.watch:
            sys.monitoring.restart_events()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.order is not None:
            items[:] = [item for item in items if item.nodeid in self.order]
            items.sort(key=lambda item: self.order[item.nodeid])  # type: ignore[index]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        own: set[str] = set()
        self._watch(own)
        start, compiled = time.perf_counter(), self._compiled()
        result = yield
        seconds = time.perf_counter() - start - (self._compiled() - compiled)
        self._watch(self.outside)
        info = getattr(item, "_fixtureinfo", None)
        for definitions in info.name2fixturedefs.values() if info else ():
            own = own.union(*(self.fixtures.get(id(one), ()) for one in definitions))
        if item.nodeid not in self.failed:
            self.tests[item.nodeid] = {"seconds": seconds, "reached": sorted(own)}
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        before = self.reached
        self._watch(self.fixtures.setdefault(id(fixturedef), set()))
        try:
            return (yield)
        finally:
            self._watch(before)

    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> None:
        error = call.excinfo
        if error is not None and not error.errisinstance(pytest.skip.Exception):
            self.failed.add(item.nodeid)
            if not self.test:
                self.test, self.error = item.nodeid, error.typename

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.test:
            self.test, self.error = report.nodeid, "while collecting"


def _in_child(
    tree: Path, files: list[str], wanted: list[str] | None, jit: bool, watch: bool, stop: bool
) -> None:
    """Never returns."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.chdir(tree)
        out = os.open(tree / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0), os.dup2(out, 1), os.dup2(out, 2)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        for name in [*sys.modules]:
            if name.partition(".")[0] in ("tests", "bayesmeta"):
                del sys.modules[name]
        os.environ["PYTHONPATH"] = str(tree)
        sys.path.insert(0, str(tree))
        importlib.invalidate_caches()
        if not jit:
            _do_not_compile(tree)
        plugin = _Plugin(tree, wanted, watch)
        options = ["-o", "addopts=", "-q", "-p", "no:cacheprovider", "--tb=short"]
        options += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
        options += ["-x"] if stop else []
        code = int(pytest.main([*options, f"--rootdir={tree}", *files], plugins=[plugin]))
        if code not in (0, 1, 5) and not plugin.test:
            plugin.test, plugin.error = "collection", f"pytest ended with {code}"
        found = [plugin.test, plugin.error, plugin.tests, sorted(plugin.outside)]
        (tree / "ran.json").write_text(json.dumps(found))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _do_not_compile(tree: Path) -> None:
    """Kernels as plain Python. Records need another class for that."""
    import numba

    os.environ["NUMBA_DISABLE_JIT"] = "1"
    numba.config.DISABLE_JIT = 1
    if not (tree / "bayesmeta" / "kernels" / "play.py").exists():
        return
    import numpy as np

    def with_records(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def called(agents: Any, *rest: Any) -> Any:
            names = ("settings", "totals")
            records = {name: getattr(agents, name).view(np.recarray) for name in names}
            return kernel(agents._replace(**records), *rest)

        return called

    for module, name in (("kernels.play", "play_all"), ("agents.ensemble", "play_block")):
        home = importlib.import_module(f"bayesmeta.{module}")
        setattr(home, name, with_records(getattr(home, name)))


def run_tests(
    tree: Path,
    files: Iterable[str],
    wanted: list[str] | None = None,
    *,
    timeout: float,
    jit: bool = True,
    watch: bool = False,
    stop: bool = True,
) -> Ran:
    """Fork, run the wanted tests of some files of a tree, and end all that they have started.

    ``timeout`` is of the processor's time, so that a busy machine does no harm; six times that may
    pass on the clock.
    """
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans of tests become children of this process
    (tree / "ran.json").unlink(missing_ok=True)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _in_child(tree, list(files), wanted, jit, watch, stop)
    ended, status, passed, last = "", 0, 0.0, start
    try:
        while not ended:
            pid, status = os.waitpid(child, os.WNOHANG)
            now = time.monotonic()
            passed, last = passed + min(now - last, 1.0), now  # a pause of all of us is no time
            if pid:
                ended = "ran"
            elif _spent(child) > timeout or passed > 6 * timeout:
                ended = "timeout"
            else:
                time.sleep(0.02)
    finally:
        end_descendants()
    seconds = time.monotonic() - start
    if ended == "timeout":
        return Ran("timeout", "", "", {}, [], seconds)
    try:
        test, error, tests, outside = json.loads((tree / "ran.json").read_text())
    except (OSError, ValueError):
        code = os.waitstatus_to_exitcode(status)
        return Ran("failed", "", f"the process ended with {code}", {}, [], seconds)
    return Ran("failed" if test else "passed", test, error, tests, outside, seconds)


def _spent(pid: int) -> float:
    """Seconds of processor time, of processes that it has started and waited for, too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def end_descendants() -> None:
    """Kill what this process has started, and what that has started."""
    while True:
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if fields[0] != "Z":
                    parents[int(entry.name)] = int(fields[1])
        found = {os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        found.discard(os.getpid())
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            pass
        if not found:
            return
        time.sleep(0.01)
