"""Shared by the commands that run a study: options for workers, the bar, the report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import real, whole

if TYPE_CHECKING:
    from bayesmeta.runner.report import Report
    from bayesmeta.runner.study import Study


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Options that say where a study runs."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--jobs", type=int, help="processes (default: one for each core; 1: no other process)"
    )
    where.add_argument(
        "--scheduler", metavar="ADDRESS", help="use a Dask cluster, as in tcp://127.0.0.1:8786"
    )
    where.add_argument(
        "--dask", type=int, metavar="N", help="use a Dask cluster of N processes on this machine"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="end a cell that runs for longer, and note it as failed (default: never)",
    )
    parser.add_argument(
        "--allow-other-source",
        action="store_true",
        help="take results of Dask workers that run other source of bayesmeta",
    )


def workers_of(options: argparse.Namespace) -> dict[str, Any]:
    """Where and how a study is to run, as ``run_study`` takes it."""
    for name in ("jobs", "dask"):
        if getattr(options, name) is not None:
            whole(f"--{name}", getattr(options, name), least=1)
    if options.timeout is not None:
        real("--timeout", options.timeout, above=0)
    names = ("jobs", "scheduler", "dask", "timeout", "allow_other_source")
    return {name: getattr(options, name) for name in names}


@contextmanager
def saying_what_is_kept() -> Iterator[None]:
    """Where Ctrl-C stops a study, say how it stands, and whether the command would go on."""
    from bayesmeta.runner.report import Interrupted

    try:
        yield
    except Interrupted as stop:
        kept = "the same command goes on from there"
        if stop.report.folder is None:
            kept = "nothing is kept: give --folder FOLDER, and the same command can go on"
        raise KeyboardInterrupt(f"{stop.report}; {kept}") from None


@contextmanager
def kept_only_if_filled(folder: Path | None) -> Iterator[None]:
    """A folder to write in, made before any long work; on failure no new, empty one is left."""
    from bayesmeta.runner.files import writable_folder

    if folder is None:
        yield
        return
    new = not folder.exists()
    try:
        writable_folder(folder)
        yield
    except BaseException:
        if new:
            with suppress(OSError):
                folder.rmdir()
        raise


def run(
    study: Study, folder: Path, workers: dict[str, Any], title: str, unit: str, **options: Any
) -> Report:
    """Run a study with a progress bar; a refused worker is told on standard error."""
    from bayesmeta.runner.progress import compiling, progress_bar
    from bayesmeta.runner.report import OtherSource
    from bayesmeta.runner.run import run_study

    bar = partial(progress_bar, title, unit)
    # a study of one's own may do without numba, which takes a while to load
    telling = compiling() if "numba" in sys.modules else nullcontext()
    try:
        with telling, saying_what_is_kept():
            return run_study(study, folder, progressbar=bar, **workers, **options)
    except OtherSource as error:
        print(f"bayesmeta: {error}", file=sys.stderr)
        return error.report


def print_report(report: Report) -> int:
    """Print how a study stands; returns exit code 0 where every cell is done, otherwise 1."""
    print(report)
    for failure in report.failures[:5]:
        print(f"  failed: {failure.id}: {failure.error}")
    if report.failed > 5:
        print(f"  and {report.failed - 5} more")
    if report.failed and report.folder is not None:
        print(f"  tracebacks: {report.folder / 'failures.jsonl'}")
    for note in report.notes:
        print(f"  note: {note}")
    return 0 if report.complete else 1
