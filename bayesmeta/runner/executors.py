"""Where work is done: in this process, or in a few of its own (``cluster``: by Dask).

All take work as ``concurrent.futures`` does, and ``each`` keeps any of them busy: a bounded number
of futures at a time, and work lost with its worker done again.
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
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import wait as wait_for
from typing import Any, Protocol

from bayesmeta.checks import InputError
from bayesmeta.runner import progress

POLL = 0.1
"""Seconds between looks at how far the work is."""
PINNED = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip
"""Set to 1 in processes of our own."""


def usable_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerDied(RuntimeError):
    """The process that did the work ended before the work did, whenever it was tried."""


class Workers(Protocol):
    """Something that does work."""

    name: str
    tries: int
    died: tuple[type[BaseException], ...]
    watch: Callable[[], None]
    """Called now and then while ``submit`` keeps its caller waiting."""

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
    worker dies is done again; when it has died ``workers.tries`` times the future says so. Whatever
    is finished is handed over before anything is raised.
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
            ready = [future for future in under_way if future.done() and not future.cancelled()]
            yield from [
                (under_way[future][0], future)
                for future in ready
                if not isinstance(future.exception(), workers.died)
            ]
            raise
        finished, lost = [], False
        for future in done:
            key, arguments = under_way.pop(future)
            if future.cancelled():
                lost = True
                continue
            if isinstance(future.exception(), workers.died):
                deaths[key] += 1
                if deaths[key] < workers.tries:
                    again.append((key, arguments))
                    continue
                future = _failed(WorkerDied(
                    "its worker died whenever it was tried (out of memory, or a crash in compiled "
                    "code?)"
                ))  # fmt: skip
            finished.append((key, future))
        yield from finished
        if lost:
            raise InputError(
                f"{workers.name} went away while it worked; start it and its workers again, then "
                "run the same command"
            )
        watch()


def _failed(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def pinned(call: Callable[..., Any], /, *arguments: Any) -> Any:
    """Do work with one thread for numerical libraries.

    So the bits are the same wherever it is done, and processes do not fight for the cores. Dask
    arrays are computed here, too, rather than by the cluster that waits for this very work.
    """
    from threadpoolctl import threadpool_limits

    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        if "numba" in sys.modules:
            import numba

            stack.callback(numba.set_num_threads, numba.get_num_threads())
            numba.set_num_threads(1)
        if "dask" in sys.modules:
            import dask

            stack.enter_context(dask.config.set(scheduler="synchronous"))
        return call(*arguments)


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
        "or use jobs=1"
    )


class Serial:
    """This process does the work, at once."""

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


class _Process:
    """One worker process. On its own in a pool, so that its death harms no other's work."""

    def __init__(self) -> None:
        context = mp.get_context("spawn")
        self.fraction = context.Value("d", math.nan, lock=False)  # a number once it has started
        self.pool = ProcessPoolExecutor(
            1, mp_context=context, initializer=_start_worker, initargs=(self.fraction,)
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

    def end(self) -> None:
        children = list((getattr(self.pool, "_processes", None) or {}).values())
        self.pool.shutdown(wait=False, cancel_futures=True)
        for child in children:
            child.terminate()
            child.join(5)
            if child.is_alive():
                child.kill()
                child.join()


class Processes:
    """Processes of this one's own, which end with it."""

    tries = 3
    died: tuple[type[BaseException], ...] = (BrokenProcessPool,)

    def __init__(self, count: int) -> None:
        self.name = "1 process" if count == 1 else f"{count} processes"
        self.watch: Callable[[], None] = lambda: None
        self._count, self._stillborn = count, 0
        self._all: list[_Process] = []

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        self._replace_dead()
        while True:
            idle = next((process for process in self._all if process.is_idle()), None)
            process = idle or _Process()
            if idle is None:
                self._all.append(process)
            try:
                with _ctrl_c_later():  # a process that starts knows no better than to complain
                    process.future = process.pool.submit(call, *arguments)
            except BrokenProcessPool:  # it died while idle
                self._all.remove(process)
                continue
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
        return self._count

    def fraction(self) -> float:
        values = [p.fraction.value for p in self._all if not p.is_idle()]
        return float(sum(value for value in values if not math.isnan(value)))

    def end(self) -> None:
        for process in self._all:
            process.end()


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Hold Ctrl-C back here, and for good in processes started meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _start_worker(fraction: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what Ctrl-C means
    threading.Thread(target=_follow_parent, daemon=True).start()
    # for libraries that are not loaded yet; numba, once loaded, refuses another number
    names = [name for name in PINNED if name != "NUMBA_NUM_THREADS" or "numba" not in sys.modules]
    os.environ.update(dict.fromkeys(names, "1"))

    def hear(value: float) -> None:
        fraction.value = value

    hear(0.0)
    progress.listen(hear)


def _follow_parent() -> None:
    """End this process when its driver dies, however it died."""
    parent = mp.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


@contextmanager
def processes(count: int) -> Iterator[Processes]:
    """``count`` processes, gone at the end however it comes."""
    workers = Processes(count)
    try:
        yield workers
    finally:
        workers.end()
