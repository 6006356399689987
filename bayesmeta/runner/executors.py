"""Workers that compute calls and return futures: this process, or processes of its own.

``cluster`` has those of Dask. ``each`` hands calls to any of them: a bounded number of futures at a
time, and calls whose worker died once more.
"""

from __future__ import annotations

import math
import multiprocessing as mp
import os
import pickle
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from bayesmeta.checks import InputError
from bayesmeta.runner import limits, progress
from bayesmeta.runner.pinning import PINNED, pinned
from bayesmeta.runner.signals import without_ctrl_c

POLL = 0.1
"""Seconds between two updates of the progress."""


def usable_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerDied(RuntimeError):
    """The worker of a call died every time the call was tried."""


class Workers(Protocol):
    """Runs calls in this process or in others and returns futures."""

    name: str
    tries: int
    """How often a call is tried before its future fails with ``WorkerDied``."""
    died: tuple[type[BaseException], ...]
    """Exceptions of a future whose worker died."""
    watch: Callable[[], None]
    """Called from time to time while ``submit`` blocks."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Run a call; like ``Executor.submit``."""
        ...

    def limit(self) -> int:
        """The number of calls to have under way."""
        ...

    def fraction(self) -> float:
        """Sum over the calls under way of the fraction of each that is done."""
        ...

    def reason(self, future: Future[Any]) -> Exception | None:
        """Why the worker of a call was ended, if on purpose; the call is then not tried again."""
        ...


def each[K](
    workers: Workers,
    call: Callable[..., Any],
    items: Iterable[tuple[K, tuple[Any, ...]]],
    watch: Callable[[], None] = lambda: None,
) -> Iterator[tuple[K, Future[Any]]]:
    """``call(*arguments)`` for every (key, arguments), as finished futures, in any order.

    No more than ``workers.limit()`` are under way, so that ``items`` may be endless. A call whose
    worker dies is made again, up to ``workers.tries`` times; then its future has ``WorkerDied``.
    Finished futures are yielded before anything is raised.
    """
    waiting, again = iter(items), deque[tuple[K, tuple[Any, ...]]]()
    under_way: dict[Future[Any], tuple[K, tuple[Any, ...]]] = {}
    deaths: Counter[K] = Counter()
    while True:
        while len(under_way) < workers.limit():
            item = again.popleft() if again else next(waiting, None)
            if item is None:
                break
            under_way[workers.submit(pinned, call, *item[1])] = item
        if not under_way:
            return
        try:
            done, _ = wait(under_way, timeout=POLL, return_when=FIRST_COMPLETED)
        except KeyboardInterrupt:
            yield from _ready(under_way, workers)
            raise
        finished, lost = [], False
        for future in done:
            key, arguments = under_way.pop(future)
            if future.cancelled():
                lost = True
                continue
            if isinstance(future.exception(), workers.died):
                reason = workers.reason(future)
                deaths[key] += 1
                if reason is None and deaths[key] < workers.tries:
                    again.append((key, arguments))
                    continue
                future = _died(reason)
            finished.append((key, future))
        yield from finished
        if lost:
            raise InputError(
                f"{workers.name} went away while it worked; start it and its workers again, then "
                "run the same command"
            )
        watch()


def _ready[K](
    under_way: dict[Future[Any], tuple[K, tuple[Any, ...]]], workers: Workers
) -> list[tuple[K, Future[Any]]]:
    """The calls that have ended, other than by the death of their worker."""
    return [
        (key, future)
        for future, (key, _) in under_way.items()
        if future.done()
        and not future.cancelled()
        and not isinstance(future.exception(), workers.died)
    ]


def _died(reason: Exception | None) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(
        reason
        or WorkerDied(
            "its worker died whenever it was tried (out of memory, or a crash in compiled code?)"
        )
    )
    return future


def check_picklable(what: str, value: object) -> None:
    """Refuse what cannot be sent to another process, before any is started."""
    try:
        pickle.dumps(value)
    except Exception as error:
        reason = str(error)
    else:
        main = sys.modules["__main__"]
        if getattr(value, "__module__", "") != "__main__" or hasattr(main, "__file__"):
            return
        reason = "it was typed in, not read from a file"
    raise InputError(
        f"{what} cannot be sent to other processes ({reason}); define it at the top of a module, "
        "or use jobs=1 without a timeout"
    )


class Serial:
    """Makes calls in this process; ``submit`` returns when the call has ended."""

    name, tries = "this process", 1
    died: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self._fraction = 0.0
        self.watch: Callable[[], None] = lambda: None

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with progress.listening(self._hear):
            try:
                future.set_result(call(*arguments))
            except Exception as error:
                future.set_exception(error)
        self._fraction = 0.0
        return future

    def _hear(self, fraction: float) -> None:
        self._fraction = fraction
        self.watch()

    def limit(self) -> int:
        return 1

    def fraction(self) -> float:
        return self._fraction

    def reason(self, future: Future[Any]) -> Exception | None:
        return None


class _Process:
    """A pool of one worker process, so that its death breaks no other's pool."""

    def __init__(self) -> None:
        context = mp.get_context("spawn")
        self.fraction = context.Value("d", math.nan, lock=False)  # NaN until it starts
        self.clock = limits.Clock(context)
        self.pool = ProcessPoolExecutor(
            1,
            mp_context=context,
            initializer=_start_worker,
            initargs=(self.fraction, self.clock.shared()),
        )
        self.future: Future[Any] | None = None

    def is_dead(self) -> bool:
        future = self.future
        return (
            future is not None
            and future.done()
            and isinstance(future.exception(), BrokenProcessPool)
        )

    def is_idle(self) -> bool:
        return self.future is not None and self.future.done()

    def children(self) -> list[mp.process.BaseProcess]:
        return list((getattr(self.pool, "_processes", None) or {}).values())

    def end(self) -> None:
        children = self.children()
        self.pool.shutdown(wait=False, cancel_futures=True)
        for child in children:
            child.terminate()
            child.join(5)
            if child.is_alive():
                child.kill()
                child.join()


class Processes:
    """Makes calls in child processes, which end with this one.

    With a ``timeout`` the calls are to be wrapped by ``limits.limited``.
    """

    tries = 3
    died: tuple[type[BaseException], ...] = (BrokenProcessPool,)

    def __init__(self, count: int, timeout: float = math.inf) -> None:
        self.timeout = timeout
        self.name = "1 process" if count == 1 else f"{count} processes"
        self.watch: Callable[[], None] = lambda: None
        self._count, self._stillborn = count, 0
        self._all: list[_Process] = []
        self._clocks = WeakKeyDictionary[
            Future[Any], limits.Clock
        ]()  # also of processes that are gone

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        self._replace_dead()
        while True:
            idle = next((process for process in self._all if process.is_idle()), None)
            process = idle or _Process()
            if idle is None:
                self._all.append(process)
            try:
                with without_ctrl_c():  # a child that is still importing would print a traceback
                    process.future = process.pool.submit(call, *arguments)
            except BrokenProcessPool:  # killed since its last call ended; try another
                self._all.remove(process)
                continue
            self._clocks[process.future] = process.clock
            return process.future

    def _replace_dead(self) -> None:
        dead = [process for process in self._all if process.is_dead()]
        self._stillborn += sum(math.isnan(process.fraction.value) for process in dead)
        for process in dead:
            self._all.remove(process)
        if self._stillborn > self.tries:
            raise InputError(
                "worker processes die before they do any work; from a script, call this under "
                'if __name__ == "__main__":'
            )

    def limit(self) -> int:
        for process in self._all:
            if process.clock.is_overdue(self.timeout):
                process.clock.ended = True
                for child in process.children():
                    child.kill()
        return self._count

    def fraction(self) -> float:
        values = [p.fraction.value for p in self._all if not p.is_idle()]
        return float(sum(value for value in values if not math.isnan(value)))

    def reason(self, future: Future[Any]) -> Exception | None:
        clock = self._clocks[future]
        where = clock.where()
        if where or clock.ended:
            return limits.timed_out(self.timeout, where)
        return None

    def end(self) -> None:
        for process in self._all:
            process.end()
        self._all = []


def _start_worker(fraction: Any, clock: tuple[Any, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles Ctrl-C
    threading.Thread(target=_follow_parent, daemon=True).start()
    # for libraries that are not loaded yet; numba, once loaded, refuses another number
    names = [name for name in PINNED if name != "NUMBA_NUM_THREADS" or "numba" not in sys.modules]
    os.environ.update(dict.fromkeys(names, "1"))

    def hear(value: float) -> None:
        fraction.value = value

    hear(0.0)
    progress.listen(hear)
    limits.set_clock(clock)


def _follow_parent() -> None:
    """End this process when its driver ends, even by SIGKILL."""
    parent = mp.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


@contextmanager
def processes(count: int, timeout: float = math.inf) -> Iterator[Processes]:
    """``count`` processes, terminated when the block ends."""
    workers = Processes(count, timeout)
    try:
        yield workers
    finally:
        workers.end()
