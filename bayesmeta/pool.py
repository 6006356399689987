"""Run the same function for many runs: in this process, or in a few that end with it."""

from __future__ import annotations

import multiprocessing as mp
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from multiprocessing.connection import wait as wait_for
from typing import Any

from bayesmeta.checks import InputError

Tick = Callable[[int], None]
"""Called now and then with how much is done (all runs together, for the caller of ``each_run``)."""

_done: Any = None  # in a worker: the array of counters shared with the driver


def each_run[T](
    work: Callable[[int, Tick], T], runs: int, jobs: int, progress: Tick | None = None
) -> list[T]:
    """[work(0, tick), work(1, tick), …], whatever the number of processes.

    On Ctrl-C, or when a run fails, the other processes are ended before the exception goes on.
    """
    if jobs == 1 or runs == 1:
        counts = [0] * runs

        def tick(run: int, done: int) -> None:
            counts[run] = done
            if progress is not None:
                progress(sum(counts))

        return [work(run, lambda done, run=run: tick(run, done)) for run in range(runs)]  # type: ignore[misc]
    try:
        pickle.dumps(work)
    except Exception as error:
        raise InputError(
            f"jobs={jobs} needs a family and agents that can be pickled ({error}); "
            "define functions at the top of a module, or use jobs=1"
        ) from None
    context = mp.get_context("spawn")
    counters = context.Array("q", runs, lock=False)
    before = set(mp.active_children())
    executor = ProcessPoolExecutor(
        min(jobs, runs), mp_context=context, initializer=_start_worker, initargs=(counters,)
    )
    try:
        futures = [executor.submit(_work_in_worker, work, run) for run in range(runs)]
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            if progress is not None:
                progress(sum(counters))
        executor.shutdown()
        return [future.result() for future in futures]
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in set(mp.active_children()) - before:
            child.terminate()
            child.join()
        raise


def _start_worker(counters: Any) -> None:
    global _done
    _done = counters
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what Ctrl-C means
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    """End this process when its driver dies, however it died."""
    parent = mp.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _work_in_worker[T](work: Callable[[int, Tick], T], run: int) -> T:
    def tick(done: int) -> None:
        _done[run] = done

    return work(run, tick)
