"""Progress of long work: reported by the work, shown as a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

Tick = Callable[[float], None]
"""Called from time to time with how much is done."""

_listener: Tick | None = None


def report_progress(fraction: float) -> None:
    """Report from inside a cell what fraction of it is done; ignored where no bar is shown.

    Parameters
    ----------
    fraction : float
        Between 0 and 1.

    Examples
    --------
    >>> bm.report_progress(0.5)
    """
    if _listener is not None:
        _listener(fraction)


def listen(listener: Tick | None) -> None:
    """Call ``listener`` with what work in this process reports."""
    global _listener
    _listener = listener


@contextmanager
def listening(listener: Tick) -> Iterator[None]:
    """The same for the length of a block; the listener before it is restored."""
    before = _listener
    listen(listener)
    try:
        yield
    finally:
        listen(before)


@contextmanager
def progress_bar(title: str, unit: str, total: int, done: int = 0) -> Iterator[Tick]:
    """A progress bar on standard error: what is done, the rate, the time left.

    Parameters
    ----------
    title, unit : str
        Words before the bar, and after the counts.
    total, done : int
        How many there are, and how many were done before, which do not count for the rate.

    Yields
    ------
    callable
        To be called with the number done; the bar never goes back.

    Examples
    --------
    >>> with bm.runner.progress_bar("playing", "runs", total=2) as tick:
    ...     tick(2)
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rest]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, completed=done, count=f"{done}/{total}", rest="")
        start, most = time.monotonic(), float(done)

        def tick(now: float) -> None:
            nonlocal most
            most = min(max(most, now), total)
            rate = (most - done) / max(time.monotonic() - start, 1e-9)
            bar.update(
                task,
                completed=most,
                count=f"{int(most)}/{total} {unit}",
                rest=_rest(rate, (total - most) / rate, unit) if rate > 0 else "starting",
            )

        tick(done)
        yield tick


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """Show on standard error what is under way, where its length is not known."""
    from rich.console import Console

    with Console(stderr=True).status(title):
        yield


@contextmanager
def compiling(console: Console | None = None, after: float = 1.0) -> Iterator[None]:
    """Say on a terminal's standard error that kernels are compiled, while they are.

    Nothing is said where all are kept on disk, or in the first ``after`` seconds.
    """
    from rich.console import Console

    console = Console(stderr=True) if console is None else console
    if not console.is_terminal:
        yield
        return
    from numba.core import event

    told = _Told(console.status("compiling, once on this machine …"), after)

    class Listener(event.Listener):
        def on_start(self, event: object) -> None:
            told.begin()

        def on_end(self, event: object) -> None:
            told.end()

    try:
        with event.install_listener("numba:compile", Listener()):
            yield
    finally:
        told.close()


class _Told:
    """A status that is shown while something lasts, from some seconds after it first began."""

    def __init__(self, status: Status, after: float) -> None:
        self.status, self.lock = status, Lock()
        self.timer = Timer(after, self._show)
        self.timer.daemon = True
        self.depth, self.due = 0, False

    def begin(self) -> None:
        with self.lock:
            self.depth += 1
            if self.due:
                self.status.start()
            elif self.timer.ident is None:
                self.timer.start()

    def end(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.status.stop()

    def _show(self) -> None:
        with self.lock:
            self.due = True
            if self.depth > 0:
                self.status.start()

    def close(self) -> None:
        self.timer.cancel()
        with self.lock:
            self.depth = 0
            self.status.stop()


def _rest(rate: float, left: float, unit: str) -> str:
    speed = f"{rate:.3g} {unit}/s" if rate >= 0.1 else f"{60 * rate:.2g} {unit}/min"
    minutes, seconds = divmod(round(left), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{speed}, {hours}:{minutes:02}:{seconds:02} left"
