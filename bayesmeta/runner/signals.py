"""Ctrl-C held back where it would leave something half done, and never lost."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

KINDS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what batch systems send; the command line handles both alike."""
AGAIN = 0.02
"""Seconds after which a Ctrl-C that was swallowed is sent again."""


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the block ends; SIGTERM too, where it is handled by a function."""
    if not _in_main_thread():
        yield
        return
    held: list[Any] = []
    old: dict[signal.Signals, Any] = {}
    try:
        for kind in KINDS:
            if callable(handler := signal.getsignal(kind)):
                old[kind] = handler
                signal.signal(kind, lambda *received: held.append(received))
        yield
    finally:
        for kind, handler in old.items():
            signal.signal(kind, handler)
    if held:
        old[held[0][0]](*held[0])


@contextmanager
def never_lost() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block, at the latest, where Ctrl-C came in it.

    Libraries lose it: in a callback from compiled code or in ``__del__`` Python can only print what
    is raised and go on (``sys.unraisablehook``), so that it is sent again a moment later; others
    catch it and return, or raise something else instead.
    """
    if not _in_main_thread():
        yield
        return
    raised: list[int] = []
    again: list[threading.Timer] = []
    old: dict[signal.Signals, Any] = {}
    hook = sys.unraisablehook

    def note(kind: int, frame: Any) -> None:
        try:
            old[signal.Signals(kind)](kind, frame)
        except KeyboardInterrupt:
            raised.append(kind)
            raise

    def retry(unraisable: sys.UnraisableHookArgs) -> None:
        if not (raised and issubclass(unraisable.exc_type, KeyboardInterrupt)):
            hook(unraisable)
            return
        main = threading.main_thread().ident
        assert main is not None
        timer = threading.Timer(AGAIN, signal.pthread_kill, (main, raised[-1]))
        timer.daemon = True
        again.append(timer)
        timer.start()

    try:
        for kind in KINDS:
            if callable(handler := signal.getsignal(kind)):
                old[kind] = handler
                signal.signal(kind, note)
        if hasattr(signal, "pthread_kill"):
            sys.unraisablehook = retry
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        if raised:
            raise KeyboardInterrupt from None
        raise
    finally:
        sys.unraisablehook = hook
        for timer in again:
            timer.cancel()
        for kind, handler in old.items():
            signal.signal(kind, handler)
    if raised:
        raise KeyboardInterrupt


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Start processes in this block: they never receive Ctrl-C, and it waits until they have all
    that they need to start, without which they would print a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    # SIGTERM is not blocked, as processes inherit what is: they could no longer be terminated
    with uninterrupted():
        resource_tracker.ensure_running()  # started later, it would undo the blocking
        old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)
