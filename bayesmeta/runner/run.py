"""Studies: many independent cells, run anywhere, and resumable."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from bayesmeta.checks import InputError, of_type, real, renamed, whole
from bayesmeta.runner import guard
from bayesmeta.runner.cell import (
    Result,
    compute_cell,
    load_libraries,
    one_line,
    run_cell,
    source_of,
)
from bayesmeta.runner.executors import (
    Serial,
    Workers,
    check_picklable,
    each,
    processes,
    usable_cores,
)
from bayesmeta.runner.folder import Folder
from bayesmeta.runner.limits import TimedOut, limited
from bayesmeta.runner.progress import Tick, progress_bar
from bayesmeta.runner.provenance import other_source, other_versions, versions
from bayesmeta.runner.report import Interrupted, OtherSource, Report
from bayesmeta.runner.sessions import Session
from bayesmeta.runner.shards import Cell
from bayesmeta.runner.signals import never_lost, uninterrupted
from bayesmeta.runner.store import Failure, Memory, Store
from bayesmeta.runner.study import CellTask, Study, check_dims, tasks_of

Bar = Callable[[int, int], AbstractContextManager[Tick]]
"""(total, done before) -> a progress bar."""


@renamed(progress="progressbar")
def run_study(
    study: Study,
    folder: Path | str | None = None,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    dask: int | None = None,
    timeout: float | None = None,
    allow_other_source: bool = False,
    retry_failed: bool = True,
    raise_errors: bool = False,
    progressbar: bool | Bar = False,
) -> Report:
    """Run the cells of a study that its folder does not hold yet.

    Parameters
    ----------
    study : Study
        What to run.
    folder : path, optional
        Where finished cells are stored; without one they are kept in memory, in the report.
    jobs, scheduler, dask
        Where to run: in ``jobs`` processes (default: one for each core; 1: this process, which a
        crash in compiled code would end), on the Dask scheduler at an address, or on a local Dask
        cluster of so many processes.
    timeout : float, optional
        Seconds for which a cell may run. Then its process is ended, also in compiled code, and the
        cell is noted as failed with the place where it was; the others go on. With a timeout
        ``jobs=1`` runs cells in a process of their own, and so does every Dask worker.
    allow_other_source : bool
        Take results of Dask workers whose source of this package differs, with a note; otherwise
        such a worker computes nothing, and ``OtherSource`` is raised.
    retry_failed : bool
        Whether cells that failed before are run again.
    raise_errors : bool
        Raise the first error of a cell, rather than note it and go on with the others.
    progressbar : bool or callable
        Show a bar; or ``progressbar(total, done)``, a context manager like ``progress_bar``.

    Returns
    -------
    Report
        Counts, failures and notes; pass it, or the folder, to ``collect``. On Ctrl-C finished
        cells are written, and ``Interrupted`` with the report is raised.

    Examples
    --------
    >>> def cell(settings, seed):
    ...     return bm.simulate(bm.paper_family(horizon=5), "KTS", tasks=settings["tasks"])
    >>> study = bm.Study("lengths", bm.grid(tasks=[2, 3]), cell, dims=("tasks",))
    >>> print(bm.run_study(study, jobs=1))
    lengths: 2 of 2 cells done, 0 failed, 0 remaining
    """
    of_type("study", study, Study, "make one with Study(name, cells, function)")
    count = _count(jobs, scheduler, dask)
    seconds = math.inf if timeout is None else real("timeout", timeout, above=0)
    keys = _checked_keys(study)
    store = Memory() if folder is None else Folder(folder)
    bar = progressbar
    if isinstance(bar, bool):
        bar = partial(progress_bar, study.name, "cells") if bar else _no_bar
    with never_lost(), store.lock():
        run = _Run(study, store, keys, retry_failed, raise_errors, seconds, allow_other_source)
        return run.go(count, scheduler, dask, bar) if run.left else run.report()


def _count(jobs: int | None, scheduler: str | None, dask: int | None) -> int:
    """The number of processes, where they are this machine's own."""
    if sum(option is not None for option in (jobs, scheduler, dask)) > 1:
        raise InputError("choose one of jobs, scheduler and dask")
    if dask is not None:
        whole("dask", dask, least=1)
    return whole("jobs", jobs, least=1) if jobs is not None else usable_cores()


def _checked_keys(study: Study) -> set[str]:
    """The keys of a study's cells, its cells and dimensions checked."""
    keys = {task.key for task in tasks_of(study)}
    if len(keys) == 0:
        raise InputError(f"study {study.name} has no cells")
    check_dims(study)
    return keys


class _Run:
    """One call of ``run_study``: what is done, what is left, what went wrong."""

    def __init__(
        self,
        study: Study,
        store: Store,
        keys: set[str],
        retry_failed: bool,
        raise_errors: bool,
        timeout: float,
        any_source: bool,
    ) -> None:
        self.study, self.store, self.total = study, store, len(keys)
        self.raise_errors, self.timeout, self.any_source = raise_errors, timeout, any_source
        self.source = source_of(study.function)
        found, damaged = store.find()
        self.notes = [_aside(file) for file in damaged]
        self.done = keys & set(found)
        self.before = len(self.done)
        made_by = Counter(found[key] for key in self.done)
        self.notes += other_versions(made_by, versions() | self.source)
        missing = keys - self.done
        self.failures = {k: _short(f) for k, f in store.failures().items() if k in missing}
        self.skip = set() if retry_failed else set(self.failures)
        self.left = len(missing) - len(self.skip)
        self.ended = self.total - self.left  # and every cell that ends in this call
        self.elsewhere: Counter[str] = Counter()

    def go(self, jobs: int, scheduler: str | None, dask: int | None, bar: Bar) -> Report:
        with ExitStack() as stack:
            workers = self._workers(stack, jobs, scheduler, dask)
            tick = stack.enter_context(bar(self.total, self.ended))

            def look() -> None:
                tick(self.ended + min(workers.fraction(), self.total - self.ended))

            def watch() -> None:
                look()
                if self.store.is_due():
                    self._flush()

            workers.watch = look
            session = Session(self.study, self.store, self.total, workers.name)
            session.write(len(self.done), len(self.failures))
            call: Callable[..., Any] = compute_cell if self.raise_errors else run_cell
            if self.timeout < math.inf:
                call = partial(limited, self.timeout, load_libraries, call)
            refused = ""
            try:
                for task, future in each(workers, call, self._waiting(), watch):
                    with uninterrupted():
                        refused = self._take(task, future, workers)
                    if refused:
                        break
            except KeyboardInterrupt:
                with suppress(KeyboardInterrupt):  # a further one
                    self._finish(session)
                raise Interrupted(self.report()) from None
            except BaseException:
                # a full disk, say; the first error is raised
                with suppress(InputError, KeyboardInterrupt):
                    self._finish(session)
                raise
            try:
                self._finish(session)
            except KeyboardInterrupt:
                raise Interrupted(self.report()) from None
        if refused:
            raise OtherSource(refused, self.report())
        return self.report()

    def _workers(
        self, stack: ExitStack, jobs: int, scheduler: str | None, dask: int | None
    ) -> Workers:
        if scheduler is not None or dask is not None:
            from bayesmeta.runner import cluster

            workers, notes = stack.enter_context(
                cluster.dask(scheduler, dask, self.study.function, self.timeout, self.any_source)
            )
            self.notes += notes
            return workers
        if jobs == 1 and self.timeout == math.inf:
            return Serial()
        check_picklable(f"the function of study {self.study.name}", self.study.function)
        for name, value in self.study.shared.items():
            check_picklable(name, value)
        return stack.enter_context(processes(min(jobs, self.left), self.timeout))

    def _waiting(self) -> Iterator[tuple[CellTask, tuple[Any, ...]]]:
        study, skip = self.study, self.done | self.skip
        for task in tasks_of(study):
            if task.key not in skip:
                yield task, (study.function, task.settings, task.seed, dict(study.shared))

    def _take(self, task: CellTask, future: Future[Any], workers: Workers) -> str:
        """Store what a worker sent back, or say why it is refused."""
        error = future.exception()
        if isinstance(error, RuntimeError) and error.args[:1] == (guard.MARK,):
            _, address, version, source = error.args
            return other_source(f"the worker at {address}", version, source)
        if error is not None and self.raise_errors:
            raise error
        if isinstance(error, ImportError):
            raise InputError(
                f"a worker of {workers.name} cannot import what the study needs ({error}); install "
                "the same packages there, or start it with PYTHONPATH set"
            ) from None
        self.ended += 1
        where = error.where if isinstance(error, TimedOut) else ""
        result = future.result() if error is None else Result(None, 0.0, {}, one_line(error), where)
        made_by = versions() | result.versions
        if made_by["source"] != versions()["source"] and not self.any_source:
            at = f"a worker of {workers.name}"
            return other_source(at, made_by["bayesmeta"], made_by["source"])
        if result.data is None:
            self._note(Failure(task.id, task.key, result.error, result.traceback))
            return ""
        text = json.dumps(result.versions | self.source)
        if result.versions != versions():
            self.elsewhere[text] += 1
        cell = Cell(task.id, task.key, task.settings, result.seconds, text, result.data)
        self.store.add(cell)
        return ""

    def _note(self, failure: Failure) -> None:
        self.store.fail(failure)
        self.failures[failure.key] = _short(failure)

    def _flush(self) -> None:
        """Write the cells that wait to be written; only written cells count as done."""
        with uninterrupted():
            written, refused = self.store.flush()
            self.done.update(written)
            for failure in refused:
                self._note(failure)

    def _finish(self, session: Session) -> None:
        """Write everything; Ctrl-C has to wait."""
        with uninterrupted():
            self._flush()
            self.store.forget_failures(self.done)
            self.failures = {k: f for k, f in self.failures.items() if k not in self.done}
            done = len(self.done)
            session.close(done, len(self.failures), done - self.before)
            self.notes += other_versions(self.elsewhere, versions() | self.source)

    def report(self) -> Report:
        failures = list(self.failures.values())
        done = len(self.done)
        return Report(
            self.study.name, self.store, self.total, done, failures, self.before, self.notes
        )


def _short(failure: Failure) -> Failure:
    return failure._replace(traceback="")


def _no_bar(total: int, done: int) -> AbstractContextManager[Tick]:
    return nullcontext(_ignore)


def _ignore(done: float) -> None:
    """Show nothing."""


def _aside(file: Path) -> str:
    """Rename a damaged file."""
    file.rename(file.with_name(file.name + ".damaged"))
    return f"{file} is damaged: it was renamed to {file.name}.damaged, and its cells run again"


def study_status(study: Study, folder: Path | str) -> Report:
    """How a study stands; changes nothing.

    Parameters
    ----------
    study : Study
        The study.
    folder : path
        Where its cells are stored; it need not exist.

    Returns
    -------
    Report
        Counts of cells that are done, failed and remaining, failures, and notes.

    Examples
    --------
    >>> import xarray as xr
    >>> study = bm.Study("none", bm.grid(n=[1, 2]), lambda settings, seed: xr.Dataset())
    >>> print(bm.study_status(study, "no-such-folder"))
    none: 0 of 2 cells done, 0 failed, 2 remaining
    """
    store = Folder(folder)
    keys = {task.key for task in tasks_of(study)}
    found, damaged = store.find()
    done = keys & set(found)
    missing = keys - done
    failures = [_short(f) for key, f in store.failures().items() if key in missing]
    notes = [f"{file} is damaged; its cells will be run again" for file in damaged]
    fault = store.manifest_fault()
    notes += [f"{fault}; remove it before the study is run again"] if fault else []
    made_by = Counter(found[key] for key in done)
    notes += other_versions(made_by, versions() | source_of(study.function))
    return Report(study.name, store, len(keys), len(done), failures, 0, notes)


def forget_study(study: Study, folder: Path | str) -> None:
    """Remove a study's folder, unless it holds cells of another."""
    found, damaged = Folder(folder).find()
    if not damaged and set(found) <= {task.key for task in tasks_of(study)}:
        shutil.rmtree(folder)
