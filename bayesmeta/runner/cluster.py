"""Workers of a Dask cluster, on this machine or on many."""

from __future__ import annotations

import logging
import math
import multiprocessing as mp
import pickle
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from bayesmeta.checks import InputError
from bayesmeta.kernels import sources
from bayesmeta.runner import guard
from bayesmeta.runner.executors import Processes, each
from bayesmeta.runner.signals import without_ctrl_c

PATIENCE = 10.0
"""Seconds to wait for a scheduler to answer."""
WAIT_FOR_WORKERS = 60.0
"""Seconds to wait for a worker; an adaptive cluster may have none at first."""
IDLE = 30.0
"""Seconds after which a worker ends the child process of calls with a time limit."""


class Dask:
    """The workers of a Dask scheduler; see ``executors.Workers``."""

    tries = 1  # the scheduler itself repeats calls, on other workers

    def __init__(
        self, client: Any, name: str, timeout: float = math.inf, any_source: bool = False
    ) -> None:
        from distributed.scheduler import KilledWorker

        self._timeout, self._any_source = timeout, any_source
        self.name = name
        self.died: tuple[type[BaseException], ...] = (KilledWorker,)
        self._client = client
        self._executor: Executor = client.get_executor(pure=False)
        self.watch: Callable[[], None] = lambda: None
        self._limit, self._look_at, self._seen = 0, 0.0, time.monotonic()

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        # as bytes whose loading makes the call, so that the scheduler need not import its modules
        import cloudpickle

        sent = cloudpickle.dumps(_Call(call, arguments))
        if self._timeout < math.inf:
            sent = pickle.dumps(_Call(in_child, (self._timeout, sent)))
        if not self._any_source:
            sent = pickle.dumps(_guarded(sent))
        return self._executor.submit(pickle.loads, sent)

    def limit(self) -> int:
        """Two for every worker there is now: one under way, one waiting."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + 1.0
            count = len(_ask(self._client, self.name))
            if count:
                self._seen, self._limit = now, 2 * count
            elif now - self._seen > WAIT_FOR_WORKERS:
                raise InputError(
                    f"{self.name} has had no workers for {WAIT_FOR_WORKERS:g} s; start some, with: "
                    "dask worker ADDRESS --nthreads 1"
                )
        return max(self._limit, 1)

    def fraction(self) -> float:
        return 0.0

    def reason(self, future: Future[Any]) -> Exception | None:
        return None


class _Call:
    """A call that is made when its pickle is loaded."""

    def __init__(self, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._parts = call, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._parts


def _guarded(sent: bytes) -> _Call:
    """A pickled call with the check of the worker's source before it, in words of its own."""
    words = "exec(text, space) or space['guarded'](*arguments)"
    arguments = _text(sources), sources.digest(), sent
    return _Call(eval, (words, {"text": _text(guard), "space": {}, "arguments": arguments}))


@cache
def _text(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text()


_child = Processes(1)
_child_in_use = threading.Lock()
_idle: threading.Timer | None = None


def in_child(timeout: float, call: bytes) -> Any:
    """On a worker: load a pickled call in a child process, which can be ended.

    The child is kept for the next call, for a while. A worker of several threads has one child.
    """
    global _idle
    from distributed import get_worker

    worker = get_worker()

    def watch() -> None:
        if worker.status.name in ("closing", "closed", "stopping", "stopped", "failed"):
            _child.end()  # its pool would keep the worker from ending
            raise RuntimeError("the worker is being closed")

    # nannies start workers as daemons, which multiprocessing allows no children; ours end with us
    mp.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    with _child_in_use:
        if _idle is not None:
            _idle.cancel()
        _child.timeout = timeout
        try:
            ((_, future),) = each(_child, pickle.loads, [(None, (call,))], watch)
            return future.result()
        finally:
            _idle = threading.Timer(IDLE, _end_child)
            _idle.daemon = True
            _idle.start()


def _end_child() -> None:
    with _child_in_use:
        _child.end()


def _ask(client: Any, name: str) -> dict[str, int]:
    """Address -> threads of every worker."""
    try:
        threads: dict[str, int] = client.nthreads()
    except Exception as error:
        raise InputError(
            f"{name} went away ({_line(error)}); start it and its workers again, then run the same "
            "command"
        ) from None
    return threads


def _line(error: BaseException) -> str:
    return " ".join(f"{error or type(error).__name__}".split())[:120]


@contextmanager
def dask(
    scheduler: str | None,
    count: int | None,
    function: Callable[..., Any],
    timeout: float = math.inf,
    any_source: bool = False,
) -> Iterator[tuple[Dask, list[str]]]:
    """The cluster at a scheduler's address, or one of ``count`` processes here; and notes on it.

    A user's module that defines ``function`` is sent along, so that workers need no copy of it, and
    do not run an earlier state of it that they have imported. A worker whose source of this package
    differs refuses (``guard``), unless ``any_source``.
    """
    if scheduler is not None and not re.fullmatch(r"(\w+://)?[^\s/:]+:\d+|tls://.+", scheduler):
        raise InputError(
            f"scheduler must be an address such as tcp://127.0.0.1:8786, got {scheduler!r}"
        )
    try:
        import cloudpickle  # noqa: F401
        import distributed  # noqa: F401
    except ImportError:
        raise InputError(
            "Dask is not installed; add it with: pip install 'bayesmeta[dask]'"
        ) from None
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        stack.enter_context(_sent_along(function))
        address: Any = scheduler
        name = f"the Dask scheduler at {scheduler}"
        if scheduler is None:
            name = f"a Dask cluster of {count} processes"
            address = _local_cluster(count, name)
            stack.callback(address.close, timeout=10)
        client = _connect(address, name)
        stack.callback(client.close, timeout=5)
        threads = _ask(client, name)
        if not threads:
            logging.getLogger("bayesmeta").warning(
                "%s has no workers yet; waiting for up to %g s", name, WAIT_FOR_WORKERS
            )
        yield Dask(client, name, timeout, any_source), _notes(threads)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's own logs; errors are reported by this package, once."""
    logs = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


@contextmanager
def _sent_along(function: Callable[..., Any]) -> Iterator[None]:
    """Pickle the module of a user's function by value."""
    import cloudpickle

    module = sys.modules.get(function.__module__)
    if module is None or function.__module__.startswith("bayesmeta."):
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _local_cluster(count: int | None, name: str) -> Any:
    import distributed

    try:
        with without_ctrl_c():  # which a terminal sends to workers, too
            return distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
    except RuntimeError as error:
        raise InputError(
            f"{name} does not start ({_line(error)}); from a script, call this under "
            'if __name__ == "__main__":'
        ) from None


def _connect(address: Any, name: str) -> Any:
    import distributed

    try:
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:
        raise InputError(
            f"cannot reach {name} within {PATIENCE:g} s ({_line(error)}); is it running, and "
            "is this its address (dask scheduler prints it)?"
        ) from None


def _notes(threads: dict[str, int]) -> list[str]:
    several = [address for address, count in threads.items() if count > 1]
    if not several:
        return []
    return [
        f"{len(several)} of {len(threads)} Dask workers have several threads, but work on one cell "
        "at a time; dask worker ADDRESS --nthreads 1 --nworkers N uses N cores"
    ]
