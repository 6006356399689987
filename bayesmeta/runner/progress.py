"""How far long work is: said from inside, shown as a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tick = Callable[[float], None]
"""Called now and then with how much is done."""

_listener: Tick | None = None


def report_progress(fraction: float) -> None:
    """Say from inside a cell what part of it is done; unheard, it costs nothing."""
    if _listener is not None:
        _listener(fraction)


def listen(listener: Tick | None) -> None:
    """From now on hear what work in this process says."""
    global _listener
    _listener = listener


@contextmanager
def listening(listener: Tick) -> Iterator[None]:
    """Hear it for a while; work within the work is not confused with it."""
    before = _listener
    listen(listener)
    try:
        yield
    finally:
        listen(before)


@contextmanager
def progress_bar(title: str, unit: str, total: int, done: int = 0) -> Iterator[Tick]:
    """A progress bar on standard error: what is done, the rate, the time left.

    ``done`` were done before; the rate is that of the others. The bar never goes back.
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
    """Say on standard error what takes a while, where nobody can tell how long."""
    from rich.console import Console

    with Console(stderr=True).status(title):
        yield


def _rest(rate: float, left: float, unit: str) -> str:
    speed = f"{rate:.3g} {unit}/s" if rate >= 0.1 else f"{60 * rate:.2g} {unit}/min"
    minutes, seconds = divmod(round(left), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{speed}, {hours}:{minutes:02}:{seconds:02} left"
