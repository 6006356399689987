"""Ctrl-C and SIGTERM: delayed where they must be, never lost, never a traceback."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayesmeta.runner.signals import KINDS, never_lost, uninterrupted, without_ctrl_c
from tests.helpers import ROOT, hear_ctrl_c


@pytest.fixture(autouse=True)
def handled_alike() -> Iterator[None]:
    """SIGTERM handled as the command line does; every block restores what it found."""
    before = [signal.getsignal(kind) for kind in KINDS]
    for kind in KINDS:
        signal.signal(kind, signal.default_int_handler)
    hook = sys.unraisablehook
    try:
        yield
        assert all(signal.getsignal(kind) is signal.default_int_handler for kind in KINDS)
        assert sys.unraisablehook is hook
    finally:
        for kind, handler in zip(KINDS, before, strict=True):
            signal.signal(kind, handler)


@pytest.mark.parametrize("kind", KINDS)
def test_swallowed_where_nothing_can_be_raised(
    kind: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a callback from compiled code, as of LLVM, Python prints it and goes on: it comes again
    soon, not only when the block ends, and nothing is printed."""
    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(kind))
    went_on, start = False, time.monotonic()
    with pytest.raises(KeyboardInterrupt), never_lost():
        callback()
        went_on = True
        time.sleep(30)
    assert went_on and time.monotonic() - start < 20
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", KINDS)
def test_caught_by_a_library_that_returns(kind: signal.Signals) -> None:
    """As samplers do, with what they have: raised when the block ends."""
    after = False
    with pytest.raises(KeyboardInterrupt), never_lost():
        try:
            signal.raise_signal(kind)
        except KeyboardInterrupt:
            after = True
    assert after


class Panic(BaseException):
    """Like Rust's, no Exception."""


@pytest.mark.parametrize("error", [ValueError, Panic, SystemExit])
def test_turned_into_another_error(error: type[BaseException]) -> None:
    """What comes of it is not what happened."""
    with pytest.raises(KeyboardInterrupt), never_lost():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise error("no results to take") from None


def test_without_ctrl_c_errors_pass() -> None:
    """And other errors that cannot be raised are shown as ever."""
    with pytest.raises(ValueError, match="mine"), never_lost():
        raise ValueError("mine")


def test_an_ignored_signal_stays_ignored() -> None:
    """As in a process in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with never_lost(), uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("block", [uninterrupted, without_ctrl_c])
@pytest.mark.parametrize("kind", KINDS)
def test_delayed_until_the_block_ends(block: object, kind: signal.Signals) -> None:
    """Blocks in one another, too: the outermost decides."""
    steps = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        with block():  # type: ignore[operator]
            signal.raise_signal(kind)
            steps.append("inner")
        steps.append("outer")
    assert steps == ["inner", "outer"]
    with pytest.raises(KeyboardInterrupt), block():  # type: ignore[operator]
        signal.raise_signal(kind)
        steps.append("alone")
    assert steps[-1] == "alone"


# ---- a process of its own


def process(code: str, *arguments: str) -> tuple[int, str]:
    """The exit code of the command line after some preparation, and what it prints as errors."""
    whole = f"import os, signal, sys, threading\n{code}\nfrom bayesmeta.cli import main\n"
    whole = f'if __name__ == "__main__":\n    {"    ".join(whole.splitlines(True))}'
    whole += f"    sys.argv = {['bayesmeta', *arguments]!r}\n    sys.exit(main())\n"
    done = subprocess.run(
        [sys.executable, "-c", whole],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=100,
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("module", ["argparse", "numpy.linalg", "rich.table"])
def test_while_modules_are_loaded(module: str, kind: signal.Signals) -> None:
    """Code 130 and one line."""
    code = f"""
class Finder:
    def find_spec(name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {int(kind)})
sys.meta_path.insert(0, Finder)"""
    assert process(code, "agents") == (130, "bayesmeta: interrupted\n")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["atexit.register", "threading._register_atexit"])
def test_while_the_process_ends(when: str, kind: signal.Signals) -> None:
    """The command has ended well, and that is what its code says."""
    code = f"import atexit\n{when}(os.kill, os.getpid(), {int(kind)})"
    assert process(code, "agents") == (0, "")


def test_while_workers_start(tmp_path: object) -> None:
    """SIGTERM just after a worker was started, before it got what it needs: its traceback used to
    be shown."""
    code = """
from multiprocessing import util
real = util.spawnv_passfds
def spawn(path, arguments, handles):
    found = real(path, arguments, handles)
    if any("spawn_main" in str(argument) for argument in arguments):
        os.kill(os.getpid(), signal.SIGTERM)
    return found
util.spawnv_passfds = spawn"""
    arguments = ("study", "run", "tests.runner.example_cells:slow", "--jobs", "2", "--folder")
    found, said = process(code, *arguments, f"{tmp_path}/out")
    assert found == 130 and "Traceback" not in said and "Error" not in said
    assert "bayesmeta: interrupted; small: 0 of 40 cells done, 0 failed, 40 remaining" in said


def test_the_exit_code_where_exec_was_interrupted(tmp_path: Path) -> None:
    """KeyboardInterrupt that passes through ``exec`` makes Python end by SIGINT after all, though
    it was caught; not the command line."""
    (tmp_path / "interrupted.py").write_text(
        "import sys\n"
        "from bayesmeta import cli\n"
        "def run(arguments):\n"
        "    exec('raise KeyboardInterrupt')\n"
        "cli._run = run\n"
        "sys.exit(cli.main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 130
    assert ended.stderr == "bayesmeta: interrupted\n"
