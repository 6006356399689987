"""What is said while kernels are compiled, and when nothing is."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba.core import event
from rich.console import Console

from bayesmeta.runner import progress
from bayesmeta.runner.progress import COMPILING, compiling, progress_bar
from tests.helpers import SLEEP_COLUMNS, wait_until

LINE = f"bayesmeta: {COMPILING}\n"


def compile_for(seconds: float) -> None:
    """What numba tells its listeners; one kernel compiles another."""
    with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
        time.sleep(seconds)


def shown(compiled: float, terminal: bool = True, then: float = 0.0) -> str:
    """What standard error shows of work that compiles for some seconds."""
    out = io.StringIO()
    with compiling(Console(file=out, force_terminal=terminal, width=80), after=0.05):
        if compiled:
            compile_for(compiled)
        told = out.getvalue()
        time.sleep(then)
        assert out.getvalue().startswith(told) and len(out.getvalue()) - len(told) < 40
    return out.getvalue()


def test_only_while_something_is_compiled() -> None:
    """Not before a while, not without compiling; and on a terminal it ends with it."""
    assert "once on this machine" in shown(0.4, then=0.4)
    assert shown(0.0, then=0.2) == ""
    assert "compiling" not in shown(0.005, then=0.2)


def test_one_line_where_there_is_no_terminal() -> None:
    """Plain, and once, however many kernels are compiled."""
    assert shown(0.4, terminal=False) == LINE
    assert shown(0.005, terminal=False, then=0.2) == ""
    out = io.StringIO()
    with compiling(Console(file=out), after=0.05):
        for _ in range(3):
            compile_for(0.2)
    assert out.getvalue() == LINE


def test_beside_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """A line by the bar's own console, which knows where the bar is; no second display."""
    out = io.StringIO()
    terminal = Console(file=out, force_terminal=True)
    with compiling(terminal, after=0.05), progress_bar("playing", "runs", total=2) as tick:
        compile_for(0.4)
        tick(2)
    assert capsys.readouterr().err.startswith(LINE)
    assert "compiling" not in out.getvalue()
    with compiling(terminal, after=0.05):  # and when the bar has gone
        compile_for(0.4)
    assert "compiling" in out.getvalue()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of kernels, one of which was there before."""
    monkeypatch.setattr(progress, "_folders", lambda: {tmp_path})
    (tmp_path / "old.nbc").touch()
    os.utime(tmp_path / "old.nbc", (1e9, 1e9))
    yield tmp_path


def test_other_processes_compile(kept: Path) -> None:
    """The kernels that they put on disk, one after another, show it; a single one does not."""
    out, begin = io.StringIO(), time.time()

    def put(k: int) -> bool:
        """One more, a second after the one before."""
        (kept / f"{k}.nbc").touch()
        os.utime(kept / f"{k}.nbc", (begin + k, begin + k))
        return bool(out.getvalue())

    with compiling(Console(file=out), after=0.1):
        time.sleep(0.3)
        put(1)
        time.sleep(0.3)
        assert out.getvalue() == ""
        numbers = iter(range(2, 1000))
        assert wait_until(lambda: put(next(numbers)), 20)
    assert out.getvalue() == LINE


def test_kernels_are_where_they_are_looked_for() -> None:
    """numba's own folder of them: all that are loaded, once something is compiled."""
    from bayesmeta.kernels import play  # noqa: F401

    (folder,) = progress._folders()
    assert folder.name == "__pycache__" and folder.parent.name == "kernels"


@pytest.mark.slow
def test_a_first_use(tmp_path: Path) -> None:
    """Nothing is kept yet: one line on standard error, and standard output is JSON; then none."""
    command = [sys.executable, "-m", "bayesmeta", "fit", "sleepstudy", *SLEEP_COLUMNS, "--json"]
    known = "bayesmeta: sleepstudy is a data set of the package\n"
    for said in (LINE + known, known):
        done = subprocess.run(
            command,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == said
        assert json.loads(done.stdout)["status"] == "ok"
