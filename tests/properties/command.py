"""The command line, run inside the test's process: code, output, error."""

from __future__ import annotations

import io
import signal
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from tests.helpers import run


class Ended(NamedTuple):
    """How a command ended; ``error`` without its line's end."""

    code: int
    output: str
    error: str


def bayesmeta(*arguments: object) -> Ended:
    """Run a command; where its code is 2 it said one line, on standard error alone."""
    out, err = io.StringIO(), io.StringIO()
    before = signal.getsignal(signal.SIGTERM)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = run(*map(str, arguments))
    finally:
        signal.signal(signal.SIGTERM, before)
    ended = Ended(code, out.getvalue(), err.getvalue())
    if code == 2:
        assert not ended.output and ended.error.endswith("\n"), ended
        return ended._replace(error=ended.error[:-1])
    return ended
