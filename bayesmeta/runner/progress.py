"""Progress of long work: reported by the work, shown as a bar."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, RLock, Thread, Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

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
    console = Console(stderr=True)
    with Progress(*columns, console=console) as bar, _shown_on(console):
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

    console = Console(stderr=True)
    with console.status(title), _shown_on(console):
        yield


_shown: Console | None = None
"""Where a bar or a status is shown just now: a line printed elsewhere would run into it."""


@contextmanager
def _shown_on(console: Console) -> Iterator[None]:
    global _shown
    before, _shown = _shown, console
    try:
        yield
    finally:
        _shown = before


LONGEST = 300.0
"""Seconds after which nobody watches for kernels any more."""
COMPILING = "compiling what this needs, once on this machine: a minute at most"
SOON, LONG = 1.0, 3.0
"""Seconds after which it is said: on a terminal, where it goes away again; elsewhere."""


@contextmanager
def compiling(console: Console | None = None, after: float | None = None) -> Iterator[None]:
    """Say on standard error that kernels are compiled, here or by processes of a study.

    On a terminal it is said while they are; elsewhere, and above a bar, by one line that stays.
    Nothing is said where all are kept on disk, or in the first seconds, ``after`` if given. What
    other processes compile shows in the folders where kernels are kept.
    """
    from numba.core import event
    from rich.console import Console

    console = Console(stderr=True) if console is None else console
    if after is None:
        after = SOON if console.is_terminal else LONG
    told = _Told(console, after)

    class Listener(event.Listener):
        def on_start(self, event: object) -> None:
            told.begin()

        def on_end(self, event: object) -> None:
            told.end()

    ended = Event()
    Thread(target=_watch, args=(told.say, after, ended), daemon=True).start()
    try:
        with event.install_listener("numba:compile", Listener()):
            yield
    finally:
        ended.set()
        told.close()


class _Told:
    """What is said while something lasts, from some seconds after it first began."""

    def __init__(self, console: Console, after: float) -> None:
        self.console, self.lock = console, RLock()
        self.status = console.status(f"{COMPILING} …")
        self.timer = Timer(after, self._late)
        self.timer.daemon = True
        self.depth, self.due, self.said, self.closed = 0, False, False, False

    def begin(self) -> None:
        with self.lock:
            self.depth += 1
            if self.due:
                self._show()
            elif self.timer.ident is None:
                self.timer.start()

    def end(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.status.stop()

    def say(self) -> None:
        """Say it by a line, once."""
        with self.lock:
            if not (self.said or self.closed):
                self.said = True
                where = self.console if _shown is None else _shown
                where.print(f"bayesmeta: {COMPILING}", highlight=False, soft_wrap=True)

    def _late(self) -> None:
        with self.lock:
            self.due = True
            if self.depth > 0:
                self._show()

    def _show(self) -> None:
        if self.console.is_terminal and _shown is None:
            self.status.start()
        else:
            self.say()

    def close(self) -> None:
        self.timer.cancel()
        with self.lock:
            self.depth, self.closed = 0, True
            self.status.stop()


def _watch(say: Callable[[], None], after: float, ended: Event) -> None:
    """Call ``say`` when compiled kernels have been put on disk for so many seconds."""
    first, begin = math.inf, time.time()
    while not ended.wait(min(after, 1.0) / 2) and time.time() < begin + LONGEST:
        newest = max(map(_changed, _kept()), default=0.0)
        if newest > begin:
            first = min(first, newest)
            if newest - first >= after:
                say()
                return


def _kept() -> Iterator[Path]:
    """Files of compiled kernels, as numba names them."""
    for folder in _folders():
        yield from folder.glob("*.nbc")


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # replaced meanwhile
        return 0.0


def _folders() -> set[Path]:
    """Where numba keeps the kernels that are loaded in this process."""
    loaded = [own for name, own in [*sys.modules.items()] if name.startswith("bayesmeta.kernels.")]
    caches = [getattr(one, "_cache", None) for own in loaded for one in [*vars(own).values()]]
    paths = {getattr(cache, "cache_path", None) for cache in caches}
    return {Path(path) for path in paths if isinstance(path, str)}


def _rest(rate: float, left: float, unit: str) -> str:
    speed = f"{rate:.3g} {unit}/s" if rate >= 0.1 else f"{60 * rate:.2g} {unit}/min"
    minutes, seconds = divmod(round(left), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{speed}, {hours}:{minutes:02}:{seconds:02} left"
