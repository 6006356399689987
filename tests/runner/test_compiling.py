"""What is said while kernels are compiled, and when nothing is."""

from __future__ import annotations

import io
import time

from numba.core import event
from rich.console import Console

from bayesmeta.runner.progress import compiling


def shown(compiled: float, terminal: bool = True, then: float = 0.0) -> str:
    """What a terminal shows of work that compiles for some seconds."""
    out = io.StringIO()
    with compiling(Console(file=out, force_terminal=terminal, width=80), after=0.05):
        if compiled:
            with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
                time.sleep(compiled)
        told = out.getvalue()
        time.sleep(then)
        assert out.getvalue().startswith(told) and len(out.getvalue()) - len(told) < 40
    return out.getvalue()


def test_only_while_something_is_compiled() -> None:
    """Not before a while, not without compiling, not where nobody looks; and it ends with it."""
    assert "compiling, once on this machine" in shown(0.4, then=0.4)
    assert shown(0.0, then=0.2) == ""
    assert "compiling" not in shown(0.005, then=0.2)
    assert shown(0.4, terminal=False) == ""
