"""Studies: many independent cells, run anywhere, and resumable."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bayesmeta.cells import CellTask, Result, Settings, Study, plain, run_cell, tasks_of
from bayesmeta.checks import InputError, of_type, whole
from bayesmeta.executors import Workers, each, local
from bayesmeta.progress import Tick
from bayesmeta.provenance import changes, commit, versions
from bayesmeta.store import Cell, Failure, Place, Store

Bar = Callable[[int, int], AbstractContextManager[Tick]]
"""(total, done before) -> a progress bar."""


@dataclass(frozen=True)
class Report:
    """How a study stands: counts of cells, failures, and what should be known besides."""

    name: str
    folder: Path
    total: int
    done: int
    failures: list[Failure]
    before: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Cells that raised."""
        return len(self.failures)

    @property
    def remaining(self) -> int:
        """Cells not yet run."""
        return self.total - self.done - self.failed

    def __bool__(self) -> bool:
        """Whether every cell is done."""
        return self.done == self.total

    def __str__(self) -> str:
        earlier = f" ({self.before} of them earlier)" if self.before else ""
        return (
            f"{self.name}: {self.done} of {self.total} cells done{earlier}, "
            f"{self.failed} failed, {self.remaining} remaining"
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a study: what is finished has been written."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def run_study(
    study: Study,
    folder: Path | str,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    dask: int | None = None,
    retry_failed: bool = True,
    progress: Bar | None = None,
) -> Report:
    """Run the cells that ``folder`` does not hold yet.

    ``jobs`` processes do the work (default: one for each core; 1: this process), or the workers of
    the Dask ``scheduler`` at an address, or a local cluster of ``dask`` processes. The bits are the
    same. A cell that raises is noted and the others go on; noted ones are run again unless
    ``retry_failed`` is off. On Ctrl-C what is finished is written and ``Interrupted`` raised.
    ``progress(total, done)`` is a context that gives the function to call with the number done.
    """
    of_type("study", study, Study, "make one with Study(name, cells, function)")
    if sum(option is not None for option in (jobs, scheduler, dask)) > 1:
        raise InputError("choose one of jobs, scheduler and dask")
    jobs = whole("jobs", jobs, least=1) if jobs is not None else os.cpu_count() or 1
    if dask is not None:
        whole("dask", dask, least=1)
    keys = {task.key for task in tasks_of(study)}
    if len(keys) == 0:
        raise InputError(f"study {study.name} has no cells")
    store = Store(folder)
    with store.lock():
        return _Run(study, store, keys, retry_failed).go(jobs, scheduler, dask, progress)


class _Run:
    """One session of a driver."""

    def __init__(self, study: Study, store: Store, keys: set[str], retry_failed: bool) -> None:
        self.study, self.store, self.total = study, store, len(keys)
        self.started = time.monotonic()
        found, damaged = store.find()
        self.notes = [_aside(file) for file in damaged]
        self.done = keys & set(found)
        self.notes += _other_versions([found[key] for key in self.done])
        self.before = len(self.done)
        self.failures = {k: f for k, f in store.failures().items() if k in keys - self.done}
        self.skip = set() if retry_failed else set(self.failures)
        self.watch: Callable[[], None] = lambda: None

    def go(
        self,
        jobs: int,
        scheduler: str | None,
        dask: int | None,
        progress: Bar | None,
    ) -> Report:
        left = self.total - self.before - len(self.skip)
        if not left:
            return self.report()
        with ExitStack() as stack:
            workers = self._workers(stack, min(jobs, left), scheduler, dask)
            tick = stack.enter_context(progress(self.total, self.before)) if progress else _silent
            self.watch = lambda: self._look(workers, tick)
            session = self._open_session(workers)
            try:
                for task, future in each(
                    workers, run_cell, self._waiting(), watch=lambda: self.watch()
                ):
                    with _uninterrupted():
                        self._take(task, future, workers)
                with _uninterrupted():
                    self._note(self.store.flush())
            except KeyboardInterrupt:
                with _uninterrupted():
                    self._note(self.store.flush())
                raise Interrupted(self.report()) from None
            finally:
                self._close_session(session)
        return self.report()

    def _workers(
        self, stack: ExitStack, jobs: int, scheduler: str | None, dask: int | None
    ) -> Workers:
        if scheduler is not None or dask is not None:
            from bayesmeta import cluster

            workers, notes = stack.enter_context(cluster.dask(scheduler, dask))
            self.notes += notes
            return workers
        return stack.enter_context(local(jobs, self.study.function, lambda: self.watch()))

    def _waiting(self) -> Iterator[tuple[CellTask, tuple[Any, ...]]]:
        skip = self.done | self.skip
        for task in tasks_of(self.study):
            if task.key not in skip:
                yield task, (self.study.function, task.settings, task.seed)

    def _take(self, task: CellTask, future: Future[Any], workers: Workers) -> None:
        """Keep what a worker sent back."""
        error = future.exception()
        if isinstance(error, ImportError):
            raise InputError(
                f"a worker of {workers.name} cannot import what the study needs ({error}); install "
                "the same bayesmeta there, and the module of the function"
            ) from None
        if error is not None:
            result = Result(None, 0.0, {}, f"{type(error).__name__}: {error}")
        else:
            result = future.result()
        if result.data is None:
            self._note([Failure(task.id, task.key, result.error, result.traceback)])
            return
        self.done.add(task.key)
        text = json.dumps(result.versions)
        cell = Cell(task.id, task.key, task.settings, result.seconds, text, result.data)
        self._note(self.store.add(cell))

    def _note(self, failures: list[Failure]) -> None:
        for failure in failures:
            self.done.discard(failure.key)
            self.failures[failure.key] = failure
            self.store.fail(failure)

    def _look(self, workers: Workers, tick: Tick) -> None:
        with _uninterrupted():
            self._note(self.store.flush(due=True))
        ended = len(self.done) + len(self.failures.keys() - self.done)
        tick(ended + min(workers.fraction(), max(self.total - ended, 0)))

    def _open_session(self, workers: Workers) -> dict[str, Any]:
        session: dict[str, Any] = {
            "started": _now(),
            "ended": None,
            "process": os.getpid(),
            "workers": workers.name,
            "versions": versions(),
            "commit": commit(),
        }
        self.sessions = [*self.store.manifest().get("sessions", [])[-99:], session]
        self._write_manifest()
        return session

    def _close_session(self, session: dict[str, Any]) -> None:
        with _uninterrupted():
            self.store.forget_failures(self.done)
            session |= {"ended": _now(), "cells": len(self.done) - self.before}
            self._write_manifest()

    def _write_manifest(self) -> None:
        study = self.study
        self.store.write_manifest(
            {
                "study": study.name,
                "function": study.function_name,
                "seed": study.seed,
                "dims": list(study.dims),
                "cells": self.total,
                "settings": _common(study.cells.values()),
                "done": len(self.done),
                "failed": len(self.failures.keys() - self.done),
                "sessions": self.sessions,
            }
        )

    def report(self) -> Report:
        return Report(
            self.study.name,
            self.store.folder,
            self.total,
            len(self.done),
            [failure for key, failure in self.failures.items() if key not in self.done],
            self.before,
            time.monotonic() - self.started,
            self.notes,
        )


def _silent(done: float) -> None:
    """No progress bar."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _common(settings: Iterable[Settings]) -> dict[str, Any]:
    """The settings that all cells share (those of a cell are kept with its result)."""
    found: dict[str, Any] | None = None
    for one in settings:
        texts = {name: json.dumps(value, default=plain) for name, value in one.items()}
        found = texts if found is None else dict(found.items() & texts.items())
        if not found:
            break
    return {name: json.loads(value) for name, value in sorted((found or {}).items())}


def _aside(file: Path) -> str:
    """Put a damaged file out of the way."""
    file.rename(file.with_name(file.name + ".damaged"))
    return f"{file} is damaged: it was renamed to {file.name}.damaged, and its cells run again"


def _other_versions(places: list[Place]) -> list[str]:
    """What to say of results that other versions made."""
    now = versions()
    counts: dict[str, int] = {}
    for place in places:
        counts[place.versions] = counts.get(place.versions, 0) + 1
    return [
        f"{count} cells were made by other versions ({changes(json.loads(text), now)}); to make "
        "them anew, use an empty folder"
        for text, count in counts.items()
        if json.loads(text) != now
    ]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the block is through; a second one would come too late to harm."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[Any] = []
    old = signal.signal(signal.SIGINT, lambda *_: held.append(None))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
    if held:
        raise KeyboardInterrupt


def study_status(study: Study, folder: Path | str) -> Report:
    """How a study stands; changes nothing."""
    store = Store(folder)
    keys = {task.key for task in tasks_of(study)}
    found, damaged = store.find()
    done = keys & set(found)
    failures = [f for key, f in store.failures().items() if key in keys - done]
    notes = [f"{file} is damaged; its cells will be run again" for file in damaged]
    notes += _other_versions([found[key] for key in done])
    seconds = sum(found[key].seconds for key in done)
    return Report(study.name, store.folder, len(keys), len(done), failures, 0, seconds, notes)
