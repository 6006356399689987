"""Looking after processes in tests."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path


def hear_ctrl_c() -> None:
    """For ``preexec_fn``: a process started in the background would otherwise ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def in_session(session: int) -> dict[int, str]:
    """The living processes of a session and their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] not in "ZX":
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except (OSError, IndexError):
                continue  # it ended while we looked
    return found


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true within the time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
