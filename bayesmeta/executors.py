"""Where work is done: in this process, or in a few of its own (``cluster``: by Dask).

All take work as ``concurrent.futures`` does, and ``each`` keeps any of them busy: a bounded number
of futures at a time, and work lost with its worker done again.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import pickle
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import wait as wait_for
from typing import Any, Protocol

from bayesmeta import progress
from bayesmeta.checks import InputError

POLL = 0.1
"""Seconds between looks at how far the work is."""
PINNED = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip
"""Set to 1 in our own processes: they share the cores among them, not within each."""


class WorkerDied(RuntimeError):
    """The process that did the work ended before the work did, more than once."""


class Workers(Protocol):
    """Something that does work."""

    name: str
    tries: int
    died: tuple[type[BaseException], ...]

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Do this work; like ``Executor.submit``."""
        ...

    def limit(self) -> int:
        """How much work to hand out at a time."""
        ...

    def fraction(self) -> float:
        """Parts of unfinished work already done, added up."""
        ...


def each[K](
    workers: Workers,
    call: Callable[..., Any],
    items: Iterable[tuple[K, tuple[Any, ...]]],
    watch: Callable[[], None] = lambda: None,
) -> Iterator[tuple[K, Future[Any]]]:
    """``call(*arguments)`` for every (key, arguments), as finished futures, in any order.

    No more than ``workers.limit()`` are under way, so that ``items`` may be endless. Work whose
    worker dies is done again; when it has died ``workers.tries`` times the future says so.
    """
    waiting, again = iter(items), deque[tuple[K, tuple[Any, ...]]]()
    under_way: dict[Future[Any], tuple[K, tuple[Any, ...]]] = {}
    deaths: Counter[K] = Counter()
    succeeded = False

    def fill() -> None:
        while len(under_way) < workers.limit():
            item = again.popleft() if again else next(waiting, None)
            if item is None:
                return
            under_way[workers.submit(call, *item[1])] = item

    while True:
        fill()
        if not under_way:
            return
        done, _ = wait(under_way, timeout=POLL, return_when=FIRST_COMPLETED)
        finished = []
        for future in done:
            key, arguments = under_way.pop(future)
            if future.cancelled():
                raise InputError(f"{workers.name} went away while it worked; start it again")
            error = future.exception()
            if isinstance(error, workers.died):
                deaths[key] += 1
                if not succeeded and sum(deaths.values()) >= 3 * max(workers.limit(), 2):
                    raise InputError(
                        f"the workers ({workers.name}) die before they do any work; from a script, "
                        'call this under if __name__ == "__main__":'
                    ) from error
                if deaths[key] < workers.tries:
                    again.append((key, arguments))
                    continue
                future = _failed(WorkerDied(
                    "its worker died whenever it was tried (out of memory, or a crash in compiled "
                    "code?)"
                ))  # fmt: skip
            elif error is None:
                succeeded = True
            finished.append((key, future))
        if finished and workers.limit() > 1:
            fill()  # first keep the workers busy, then look at what they did
        yield from finished
        watch()


def _failed(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def check_picklable(what: str, value: object) -> None:
    """Refuse what cannot be sent to another process, before any is started."""
    try:
        pickle.dumps(value)
    except Exception as error:
        raise InputError(
            f"{what} cannot be pickled ({error}), which more than one process needs; define "
            "functions at the top of a module, or use jobs=1"
        ) from None


class Serial:
    """This process does the work, at once."""

    name, tries = "this process", 1
    died: tuple[type[BaseException], ...] = ()

    def __init__(self, watch: Callable[[], None] = lambda: None) -> None:
        self._fraction, self._watch = 0.0, watch

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        progress.listen(self._hear)
        try:
            future.set_result(call(*arguments))
        except Exception as error:
            future.set_exception(error)
        finally:
            progress.listen(None)
            self._fraction = 0.0
        return future

    def _hear(self, fraction: float) -> None:
        self._fraction = fraction
        self._watch()

    def limit(self) -> int:
        return 1

    def fraction(self) -> float:
        return self._fraction


class _Process:
    """One worker process. On its own in a pool, so that its death harms no other's work."""

    def __init__(self) -> None:
        context = mp.get_context("spawn")
        self.fraction = context.Value("d", 0.0, lock=False)
        self.pool = ProcessPoolExecutor(
            1, mp_context=context, initializer=_start_worker, initargs=(self.fraction,)
        )


class Processes:
    """Processes of this one's own, which end with it."""

    tries = 3
    died: tuple[type[BaseException], ...] = (BrokenProcessPool,)

    def __init__(self, count: int) -> None:
        self.name = f"{count} processes"
        self._count = count
        self._idle: list[_Process] = []
        self._all: list[_Process] = []

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        while True:
            process = self._idle.pop() if self._idle else self._start()
            try:
                future = process.pool.submit(call, *arguments)
            except BrokenProcessPool:  # it died while idle
                self._all.remove(process)
                continue
            future.add_done_callback(partial(self._finished, process))
            return future

    def _start(self) -> _Process:
        process = _Process()
        self._all.append(process)
        return process

    def _finished(self, process: _Process, future: Future[Any]) -> None:
        process.fraction.value = 0.0
        if isinstance(future.exception(), BrokenProcessPool):
            self._all.remove(process)
        else:
            self._idle.append(process)

    def limit(self) -> int:
        return self._count

    def fraction(self) -> float:
        return float(sum(process.fraction.value for process in list(self._all)))

    def shutdown(self) -> None:
        for process in self._all:
            process.pool.shutdown(wait=False, cancel_futures=True)


def _start_worker(fraction: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what Ctrl-C means
    threading.Thread(target=_follow_parent, daemon=True).start()

    def hear(value: float) -> None:
        fraction.value = value

    progress.listen(hear)


def _follow_parent() -> None:
    """End this process when its driver dies, however it died."""
    parent = mp.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


@contextmanager
def local(jobs: int, work: object, watch: Callable[[], None]) -> Iterator[Serial | Processes]:
    """This process where one is enough, otherwise several; ``work`` is what is sent to them."""
    if jobs == 1:
        yield Serial(watch)
        return
    check_picklable("the work", work)
    with processes(jobs) as workers:
        yield workers


@contextmanager
def processes(count: int) -> Iterator[Processes]:
    """``count`` processes, one thread each, gone at the end however it comes."""
    before = set(mp.active_children())
    old = {name: os.environ.get(name) for name in PINNED}
    os.environ.update(dict.fromkeys(PINNED, "1"))  # read by libraries when a process loads them
    workers = Processes(count)
    try:
        yield workers
    finally:
        workers.shutdown()
        for child in set(mp.active_children()) - before:
            child.terminate()
            child.join()
        for name, value in old.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
