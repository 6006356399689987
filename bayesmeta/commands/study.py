"""``bayesmeta study``: list, run, look at and collect studies."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.checks import InputError
from bayesmeta.commands.running import add_workers, print_report, run, workers_of

if TYPE_CHECKING:
    from bayesmeta.commands.parsing import Subparsers
    from bayesmeta.runner.study import Study

RESULTS = Path("results")
"""Below the current folder: where cells are stored unless ``--folder`` says otherwise."""


def add(commands: Subparsers) -> None:
    """Add the command and its actions."""
    study = commands.add_parser(
        "study",
        help="run recorded studies, or your own, on processes or a Dask cluster",
        description="A study is many independent cells. Run again, it goes on where it stopped.",
    )
    actions = study.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="the studies there are")
    listing.add_argument(
        "--records",
        type=Path,
        metavar="FOLDER",
        help="also show which studies are recorded in this folder, as in 'analyses'",
    )
    listing.set_defaults(command=_study_list)
    for name, command, text in (
        ("run", _study_run, "run the cells that are missing or failed"),
        ("status", _study_status, "show how a study stands; exit code 0 when all cells are done"),
        ("collect", _study_collect, "write the finished study as one NetCDF file"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument("name", metavar="NAME", help="see 'list'; your own: module:variable")
        action.add_argument(
            "--folder", type=Path, help="where the cells are kept (default: results/NAME)"
        )
        action.set_defaults(command=command)
        if name == "run":
            add_workers(action)
            action.add_argument(
                "--retry-failed",
                action=argparse.BooleanOptionalAction,
                default=True,
                help="run cells again that failed before (default: yes)",
            )
        if name == "collect":
            to = action.add_mutually_exclusive_group()
            to.add_argument("--out", type=Path, help="file to write (default: FOLDER.nc)")
            to.add_argument(
                "--record",
                type=Path,
                metavar="FOLDER",
                help="folder of records, as in 'analyses'; the study knows its file there",
            )
            action.add_argument(
                "--raw", action="store_true", help="all variables, not only those the study keeps"
            )
            action.add_argument(
                "--partial", action="store_true", help="allow missing cells, as NaN"
            )


def _find(options: argparse.Namespace) -> tuple[Study, Path]:
    from bayesmeta.studies import find_study

    if ":" in options.name:
        sys.path.insert(0, str(Path.cwd()))  # so that a user's module is found, as by python -m
    study = find_study(options.name)
    return study, options.folder or RESULTS / study.name


def _study_list(options: argparse.Namespace) -> int:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from bayesmeta.runner.run import study_status
    from bayesmeta.studies import all_studies

    table = Table(title="Studies", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    recorded = ["recorded"] if options.records is not None else []
    for column in ("name", "cells", "done", *recorded, "what it is"):
        table.add_column(column, no_wrap=column == "name")
    for name, study in all_studies().items():
        row = [name, str(len(study.cells)), str(study_status(study, RESULTS / name).done)]
        if options.records is not None:
            row.append("yes" if (options.records / study.record).is_file() else "no")
        table.add_row(*row, study.note)
    Console().print(table)
    print(f"done: cells in {RESULTS}/NAME")
    return 0


def _study_run(options: argparse.Namespace) -> int:
    study, folder = _find(options)
    workers = workers_of(options)
    report = run(study, folder, workers, study.name, "cells", retry_failed=options.retry_failed)
    return print_report(report)


def _study_status(options: argparse.Namespace) -> int:
    from bayesmeta.runner.run import study_status

    return print_report(study_status(*_find(options)))


def _study_collect(options: argparse.Namespace) -> int:
    from bayesmeta.runner.collect import collect, collect_kept
    from bayesmeta.runner.run import study_status
    from bayesmeta.simulation.records import write_record

    study, folder = _find(options)
    if options.record is not None and not study.record:
        raise InputError(f"study {study.name} names no file for its record; use --out FILE")
    out = options.out or Path(f"{folder.resolve()}.nc")
    if options.record is not None:
        out = options.record / study.record
    collected = collect if options.raw else collect_kept
    data = collected(study, folder, partial=options.partial)
    write_record(data, out)
    sizes = ", ".join(f"{size} {name}" for name, size in data.sizes.items())
    status = study_status(study, folder)
    missing = status.total - status.done
    print(f"wrote {out} ({sizes})" + (f"; {missing} cells are missing" if missing else ""))
    for note in status.notes:
        print(f"  note: {note}")
    return 0
