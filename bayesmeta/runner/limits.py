"""Time limits of calls in worker processes: a process whose call runs for too long ends itself.

``faulthandler`` watches from a thread that needs no lock of Python's, so that loops in compiled
code end, too, and it says where the call was.
"""

from __future__ import annotations

import faulthandler
import os
import time
from collections.abc import Callable
from multiprocessing.context import BaseContext
from typing import Any

GRACE = 5.0
"""Seconds beyond the limit; then a process that cannot end itself (stopped, say) is killed."""


LONGEST = 1e9
"""Seconds, about what ``faulthandler`` can count: thirty years."""


class TimedOut(RuntimeError):
    """A call ran for longer than it may; its process was ended."""

    where = ""
    """The lines of source at which it was."""


class Clock:
    """Shared by a worker process and its parent: since when a call runs, and where it was ended."""

    def __init__(self, context: BaseContext) -> None:
        self.began = context.Value("d", 0.0, lock=False)  # 0: no call runs
        self.reader, self.writer = context.Pipe(duplex=False)
        self.ended = False
        """Whether the parent has ended the process."""

    def shared(self) -> tuple[Any, Any]:
        """What the worker process needs, for ``set_clock``."""
        return self.began, self.writer

    def is_overdue(self, seconds: float) -> bool:
        """Whether the process should have ended itself."""
        began = float(self.began.value)
        return began > 0 and time.monotonic() - began > seconds + GRACE

    def where(self) -> str:
        """Where the call was when its process ended itself; empty where it did not."""
        if not self.reader.poll():
            return ""
        threads = os.read(self.reader.fileno(), 20_000).decode(errors="replace").split("\n\n")
        return "\n\n".join(text for text in threads if "in _follow_parent" not in text) or "?"


_clock: tuple[Any, Any] | None = None


def set_clock(shared: tuple[Any, Any]) -> None:
    """In a worker process: what its parent shares with it."""
    global _clock
    _clock = shared


def limited(
    seconds: float,
    prepare: Callable[[], object],
    call: Callable[..., Any],
    /,
    *arguments: Any,
) -> Any:
    """Make a call in a worker process, which ends if the call runs for more than ``seconds``.

    What ``prepare`` does before the call does not count.
    """
    assert _clock is not None, "a call with a time limit needs a process of its own"
    prepare()
    began, writer = _clock
    began.value = time.monotonic()
    faulthandler.dump_traceback_later(min(seconds, LONGEST), exit=True, file=writer.fileno())
    try:
        return call(*arguments)
    finally:
        faulthandler.cancel_dump_traceback_later()
        began.value = 0.0


def timed_out(seconds: float, where: str) -> TimedOut:
    """The error of a call that was ended."""
    error = TimedOut(f"it ran for more than {seconds:g} s, so its process was ended")
    error.where = where
    return error
