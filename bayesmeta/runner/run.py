"""Studies: many independent cells, run anywhere, and resumable."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bayesmeta.checks import InputError, of_type, whole
from bayesmeta.runner.executors import (
    Serial,
    Workers,
    check_picklable,
    each,
    processes,
    usable_cores,
)
from bayesmeta.runner.plain import plain
from bayesmeta.runner.progress import Tick
from bayesmeta.runner.provenance import changes, commit, versions
from bayesmeta.runner.store import Cell, Failure, Store
from bayesmeta.runner.study import (
    CellTask,
    Result,
    Settings,
    Study,
    check_dims,
    one_line,
    run_cell,
    source_of,
    tasks_of,
)

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
    """without their tracebacks, which are in the folder"""
    before: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Cells that raised."""
        return len(self.failures)

    @property
    def remaining(self) -> int:
        """Cells not yet run."""
        return self.total - self.done - self.failed

    @property
    def complete(self) -> bool:
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
    jobs = whole("jobs", jobs, least=1) if jobs is not None else usable_cores()
    if dask is not None:
        whole("dask", dask, least=1)
    keys = {task.key for task in tasks_of(study)}
    if len(keys) == 0:
        raise InputError(f"study {study.name} has no cells")
    check_dims(study)
    store = Store(folder)
    with store.lock():
        run = _Run(study, store, keys, retry_failed)
        return run.go(jobs, scheduler, dask, progress) if run.left else run.report()


class _Run:
    """One session of a driver."""

    def __init__(self, study: Study, store: Store, keys: set[str], retry_failed: bool) -> None:
        self.study, self.store, self.total = study, store, len(keys)
        self.source = source_of(study.function)
        found, damaged = store.find()
        self.notes = [_aside(file) for file in damaged]
        self.done = keys & set(found)
        self.before = len(self.done)
        made_by = Counter(found[key].versions for key in self.done)
        self.notes += _other_versions(made_by, versions() | self.source)
        missing = keys - self.done
        self.failures = {k: _short(f) for k, f in store.failures().items() if k in missing}
        self.skip = set() if retry_failed else set(self.failures)
        self.left = len(missing) - len(self.skip)
        self.ended = self.total - self.left  # with what ends in this session
        self.elsewhere: Counter[str] = Counter()

    def go(
        self, jobs: int, scheduler: str | None, dask: int | None, progress: Bar | None
    ) -> Report:
        with ExitStack() as stack:
            workers = self._workers(stack, jobs, scheduler, dask)
            tick = stack.enter_context(progress(self.total, self.ended)) if progress else _silent

            def look() -> None:
                tick(self.ended + min(workers.fraction(), self.total - self.ended))

            def watch() -> None:
                look()
                if self.store.is_due():
                    self._flush()

            workers.watch = look
            session = self._open_session(workers)
            try:
                for task, future in each(workers, run_cell, self._waiting(), watch):
                    with _uninterrupted():
                        self._take(task, future, workers)
            except KeyboardInterrupt:
                self._finish(session)
                raise Interrupted(self.report()) from None
            except BaseException:
                with suppress(InputError):  # the first error is the one to tell
                    self._finish(session)
                raise
            self._finish(session)
        return self.report()

    def _workers(
        self, stack: ExitStack, jobs: int, scheduler: str | None, dask: int | None
    ) -> Workers:
        if scheduler is not None or dask is not None:
            from bayesmeta.runner import cluster

            workers, notes = stack.enter_context(cluster.dask(scheduler, dask, self.study.function))
            self.notes += notes
            return workers
        if jobs == 1:
            return Serial()
        check_picklable(f"the function of study {self.study.name}", self.study.function)
        return stack.enter_context(processes(min(jobs, self.left)))

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
                "the same packages there, or start it with PYTHONPATH set"
            ) from None
        self.ended += 1
        result = future.result() if error is None else Result(None, 0.0, {}, one_line(error))
        if result.data is None:
            self._note(Failure(task.id, task.key, result.error, result.traceback))
            return
        text = json.dumps(result.versions | self.source)
        if result.versions != versions():
            self.elsewhere[text] += 1
        cell = Cell(task.id, task.key, task.settings, result.seconds, text, result.data)
        self.store.add(cell)

    def _note(self, failure: Failure) -> None:
        self.store.fail(failure)
        self.failures[failure.key] = _short(failure)

    def _flush(self) -> None:
        """Write what is waiting. Only what is written counts as done."""
        with _uninterrupted():
            written, refused = self.store.flush()
            self.done.update(written)
            for failure in refused:
                self._note(failure)

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

    def _finish(self, session: dict[str, Any]) -> None:
        """Write everything; a further Ctrl-C has to wait."""
        with suppress(KeyboardInterrupt), _uninterrupted():
            self._flush()
            self.store.forget_failures(self.done)
            self.failures = {k: f for k, f in self.failures.items() if k not in self.done}
            session |= {"ended": _now(), "cells": len(self.done) - self.before}
            self._write_manifest()
            self.notes += _other_versions(self.elsewhere, versions() | self.source)

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
                "failed": len(self.failures),
                "sessions": self.sessions,
            }
        )

    def report(self) -> Report:
        failures = list(self.failures.values())
        return Report(
            self.study.name, self.store.folder, self.total, len(self.done), failures, self.before,
            self.notes,
        )  # fmt: skip


def _short(failure: Failure) -> Failure:
    return failure._replace(traceback="")


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


def _other_versions(counts: Counter[str], now: dict[str, str]) -> list[str]:
    """What to say of results that other versions made, or another state of the study's file."""
    found = [(json.loads(text), count) for text, count in counts.items()]
    return [
        f"{count} cells were made by other versions ({changes(made_by, now)}); to make them anew, "
        "use an empty folder"
        for made_by, count in found
        if made_by != now
    ]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C (and a request to end, where that is taken for one) back until the block ends."""
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


def study_status(study: Study, folder: Path | str) -> Report:
    """How a study stands; changes nothing."""
    store = Store(folder)
    keys = {task.key for task in tasks_of(study)}
    found, damaged = store.find()
    done = keys & set(found)
    missing = keys - done
    failures = [_short(f) for key, f in store.failures().items() if key in missing]
    notes = [f"{file} is damaged; its cells will be run again" for file in damaged]
    made_by = Counter(found[key].versions for key in done)
    notes += _other_versions(made_by, versions() | source_of(study.function))
    return Report(study.name, store.folder, len(keys), len(done), failures, 0, notes)


def forget_study(study: Study, folder: Path | str) -> None:
    """Remove a study's folder, unless it holds cells of another."""
    found, damaged = Store(folder).find()
    if not damaged and set(found) <= {task.key for task in tasks_of(study)}:
        shutil.rmtree(folder)
