"""Ctrl-C held back where it would leave something half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the block ends; SIGTERM too, where it is handled like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[Any] = []
    kinds = [signal.SIGINT]
    if signal.getsignal(signal.SIGTERM) is signal.default_int_handler:
        kinds.append(signal.SIGTERM)
    old = [(kind, signal.signal(kind, lambda *_: held.append(None))) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in old:
            signal.signal(kind, handler)
    if held:
        raise KeyboardInterrupt


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Block Ctrl-C in this thread; processes started in the block never receive it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
