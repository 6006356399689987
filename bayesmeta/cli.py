"""The command line: parses options, and loads a command's modules only when it is run."""

# Nothing that takes time to load is imported here: before ``main``, Ctrl-C shows a traceback.
from __future__ import annotations

import atexit
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from bayesmeta.runner.signals import KINDS, never_lost

if TYPE_CHECKING:
    import argparse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Exit codes: 0 done, 1 not all done, 2 bad input, 130 Ctrl-C or SIGTERM.

    Without ``arguments`` they are those of the process, which is to end when this returns.
    """
    alone = arguments is None
    codes: list[int] = []
    if alone:
        atexit.register(_end, codes)  # early, so that it is called late
        if not sys.warnoptions:
            # as a program: results are looked at before they are shown, which says more than these
            warnings.simplefilter("ignore", RuntimeWarning)
    before = signal.getsignal(signal.SIGTERM)
    with suppress(ValueError):  # only the main thread can handle signals
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # batch systems send SIGTERM
    try:
        with never_lost():
            code = _run(arguments)
    except KeyboardInterrupt as stop:
        told = type(stop) is KeyboardInterrupt and stop.args  # by the command, not by what it calls
        said = f"; {stop}" if told else ""
        print(f"bayesmeta: interrupted{said}", file=sys.stderr)
        code = 130
    finally:
        if not alone:
            with suppress(ValueError, TypeError):  # TypeError: it was not set from Python
                signal.signal(signal.SIGTERM, before)
    if alone:
        codes.append(code)
        _leave(code)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    from bayesmeta.checks import InputError
    from bayesmeta.display import visible

    try:
        options = _parser().parse_args(arguments)
        code = int(options.command(options))
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"bayesmeta: {visible(' '.join(str(error).splitlines()))}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader closed the pipe, as head does
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        return 0


def _leave(code: int) -> None:
    """The command has ended, and so does the process, unless it hangs: a first signal is ignored,
    so that it prints nothing more; a second one ends the process at once."""
    late: list[int] = []

    def hear(kind: int, frame: object) -> None:
        if late:
            os._exit(code)
        late.append(kind)

    with suppress(ValueError):
        for kind in KINDS:
            if signal.getsignal(kind) is not signal.SIG_IGN:
                signal.signal(kind, hear)


def _end(codes: list[int]) -> None:
    """Python's very last steps restore the default, death by the signal, unless it is ignored. They
    also end by SIGINT where KeyboardInterrupt has passed through ``exec``, as in the making of a
    named tuple, though it was caught: not if the process has ended before."""
    with suppress(ValueError):
        for kind in KINDS:
            signal.signal(kind, signal.SIG_IGN)
    if codes == [130]:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(130)


def _parser() -> argparse.ArgumentParser:
    from bayesmeta.commands import (
        agents,
        calibrate,
        check,
        explore,
        fit,
        reproduce,
        sample,
        study,
        theory,
    )
    from bayesmeta.commands.parsing import Parser

    parser = Parser(prog="bayesmeta", description="Metalearning linear bandits by prior update.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for command in (reproduce, study, fit, sample, calibrate, check, theory, agents, explore):
        command.add(commands)
    return parser


def _version() -> str:
    from importlib.metadata import version

    return version("bayesmeta")


if __name__ == "__main__":
    sys.exit(main())
