"""The command line: thin, and quick to start."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from bayesmeta.checks import InputError

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

    from bayesmeta.cells import Study
    from bayesmeta.study import Report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; exit code 0 done, 1 not all, 2 bad input (one line says what), 130 Ctrl-C."""
    options = _parser().parse_args(arguments)
    with suppress(ValueError):  # not in the main thread: there nobody sends signals
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a batch system's Ctrl-C
    try:
        return int(options.command(options))
    except InputError as error:
        print(f"bayesmeta: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        said = f"; {stop}; the same command goes on from there" if stop.args else ""
        print(f"bayesmeta: interrupted{said}", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="bayesmeta", description="Metalearning linear bandits by prior update.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's experiment and draw Figure 1",
        description="Run the experiment of Section 6 and draw Figure 1. Writes figure1.png, "
        "figure1.nc, summary.json and summary.csv.",
    )
    reproduce.add_argument(
        "--runs", type=int, default=10, help="independent repetitions (default: %(default)s)"
    )
    reproduce.add_argument(
        "--tasks", type=int, default=10_000, help="tasks in a run, N (default: %(default)s)"
    )
    reproduce.add_argument(
        "--seed", type=int, default=0, help="same seed, same bits (default: %(default)s)"
    )
    _add_workers(reproduce)
    reproduce.add_argument(
        "--agents",
        default="",
        metavar="A,B,…",
        help="rows to draw, separated by commas (default: the paper's six; see 'agents')",
    )
    reproduce.add_argument(
        "--out",
        type=Path,
        default=Path("results/figure1"),
        help="folder to write in (default: %(default)s)",
    )
    reproduce.set_defaults(command=_reproduce)
    _add_study(commands)

    fit = commands.add_parser(
        "fit",
        help="estimate the prior of tasks in a table of your own",
        description="Estimate the mean and covariance of the parameters of tasks from a CSV or "
        "Parquet file with a row for every reward (a linear mixed model, to a statistician).",
    )
    fit.add_argument("file", type=Path, metavar="FILE", help="CSV or Parquet, with a header")
    fit.add_argument("--task", required=True, metavar="COLUMN", help="which task a row belongs to")
    fit.add_argument("--reward", required=True, metavar="COLUMN", help="the reward (the response)")
    fit.add_argument("--features", default="", metavar="A,B,…", help="columns, with commas")
    fit.add_argument("--intercept", action="store_true", help="add a feature that is always 1")
    fit.add_argument(
        "--noise-sd", default="estimate", metavar="S", help="a number, or 'estimate' (the default)"
    )
    fit.add_argument(
        "--method", default="reml",
        help="moment, moment-widened, moment-clipped, ml or reml (default: %(default)s)",
    )  # fmt: skip
    fit.add_argument("--widening", type=float, metavar="C", help="c_w of moment-widened, eq. (12)")
    fit.add_argument("--horizon", type=int, metavar="T", help="steps of a task, for the same")
    fit.add_argument("--json", action="store_true", help="print JSON instead of tables")
    fit.add_argument("--plot", type=Path, metavar="OUT.png", help="draw tasks and prior")
    fit.set_defaults(command=_fit)

    agents = commands.add_parser("agents", help="list the roster of agents")
    agents.set_defaults(command=_agents)
    return parser


def _add_workers(parser: argparse.ArgumentParser) -> None:
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


def _add_study(commands: argparse._SubParsersAction[_Parser]) -> None:
    study = commands.add_parser(
        "study",
        help="run recorded studies, or your own, on processes or a Dask cluster",
        description="A study is many independent cells. Run again, it goes on where it stopped.",
    )
    actions = study.add_subparsers(required=True, metavar="ACTION", parser_class=_Parser)
    listing = actions.add_parser("list", help="the studies there are")
    listing.set_defaults(command=_study_list)
    for name, command, text in (
        ("run", _study_run, "run the cells that are missing or failed"),
        ("status", _study_status, "say how a study stands; exit code 0 when all cells are done"),
        ("collect", _study_collect, "write the finished study as one NetCDF file"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument("name", metavar="NAME", help="see 'list'; your own: module:variable")
        action.add_argument(
            "--folder", type=Path, help="where the cells are kept (default: results/NAME)"
        )
        action.set_defaults(command=command)
        if name == "run":
            _add_workers(action)
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
                "--record", action="store_true", help="write where analyses/ keeps this study"
            )
            action.add_argument(
                "--raw", action="store_true", help="all of it, not only what the study keeps"
            )
            action.add_argument(
                "--partial", action="store_true", help="also where cells are missing; NaN there"
            )


def _version() -> str:
    from importlib.metadata import version

    return version("bayesmeta")


def _reproduce(options: argparse.Namespace) -> int:
    from rich.console import Console

    from bayesmeta.agents import FIGURE_1, find_agents
    from bayesmeta.checks import whole
    from bayesmeta.records import writable_folder

    names = [name.strip() for name in options.agents.split(",") if name.strip()] or list(FIGURE_1)
    find_agents(names)
    for name, least in (("runs", 1), ("tasks", 1), ("seed", 0)):
        whole(f"--{name}", getattr(options, name), least=least)
    names = list(dict.fromkeys(names))
    workers = _workers(options)
    was_there = options.out.exists()
    folder = writable_folder(options.out)

    from bayesmeta.gather import collect_kept
    from bayesmeta.studies import figure1
    from bayesmeta.study import forget_study

    console = Console()
    study = figure1.study(runs=options.runs, tasks=options.tasks, seed=options.seed, agents=names)
    unfinished = folder / "unfinished"  # runs done so far; gone when all are
    try:
        report = _run(study, unfinished, workers, "playing", "runs")
        if not report.complete:
            return _print_report(report)
        for note in report.notes:
            _warn(note)
        record = collect_kept(study, unfinished)
        figure1.write(record, folder, names)
    except BaseException:
        if not was_there:
            with suppress(OSError):  # leave no empty folder behind
                folder.rmdir()
        raise
    forget_study(study, unfinished)
    _print_summary(console, record, names)
    console.print(f"wrote {', '.join(figure1.FILES)} in {folder}")
    return 0


def _workers(options: argparse.Namespace) -> dict[str, Any]:
    from bayesmeta.checks import whole

    for name in ("jobs", "dask"):
        if getattr(options, name) is not None:
            whole(f"--{name}", getattr(options, name), least=1)
    return {name: getattr(options, name) for name in ("jobs", "scheduler", "dask")}


def _run(
    study: Study, folder: Path, workers: dict[str, Any], title: str, unit: str, **options: Any
) -> Report:
    from functools import partial

    from bayesmeta.progress import progress_bar
    from bayesmeta.study import run_study

    bar = partial(progress_bar, title, unit)
    return run_study(study, folder, progress=bar, **workers, **options)


def _warn(text: str) -> None:
    print(f"bayesmeta: {text}", file=sys.stderr)


def _print_report(report: Report) -> int:
    """Say how a study stands; the exit code says whether all is done."""
    print(report)
    for failure in report.failures[:5]:
        print(f"  failed: {failure.id}: {failure.error}")
    if report.failed > 5:
        print(f"  and {report.failed - 5} more")
    if report.failed:
        print(f"  tracebacks: {report.folder / 'failures.jsonl'}")
    for note in report.notes:
        print(f"  note: {note}")
    return 0 if report.complete else 1


def _find(options: argparse.Namespace) -> tuple[Study, Path]:
    from bayesmeta.studies import find_study

    if ":" in options.name:
        sys.path.insert(0, str(Path.cwd()))  # one's own module, as python -m would find it
    study = find_study(options.name)
    return study, options.folder or Path("results") / study.name


def _study_list(options: argparse.Namespace) -> int:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from bayesmeta.studies import all_studies
    from bayesmeta.study import study_status

    table = Table(title="Studies", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("name", "cells", "done", "recorded", "what it is"):
        table.add_column(column, no_wrap=column == "name")
    for name, study in all_studies().items():
        done = study_status(study, Path("results") / name).done
        recorded = "yes" if (Path("analyses") / study.record).is_file() else "no"
        table.add_row(name, str(len(study.cells)), str(done), recorded, study.note)
    Console().print(table)
    print("done: cells in results/NAME; recorded: whether analyses/ has the result")
    return 0


def _study_run(options: argparse.Namespace) -> int:
    study, folder = _find(options)
    workers = _workers(options)
    report = _run(study, folder, workers, study.name, "cells", retry_failed=options.retry_failed)
    return _print_report(report)


def _study_status(options: argparse.Namespace) -> int:
    from bayesmeta.study import study_status

    return _print_report(study_status(*_find(options)))


def _study_collect(options: argparse.Namespace) -> int:
    from bayesmeta.gather import collect, collect_kept
    from bayesmeta.records import write_record
    from bayesmeta.study import study_status

    study, folder = _find(options)
    if options.record and not study.record:
        raise InputError(f"study {study.name} has no place in analyses/; use --out FILE")
    out = options.out or Path(f"{folder.resolve()}.nc")
    if options.record:
        out = Path("analyses") / study.record
    collected = collect if options.raw else collect_kept
    data = collected(study, folder, partial=options.partial)
    write_record(data, out)
    sizes = ", ".join(f"{size} {name}" for name, size in data.sizes.items())
    status = study_status(study, folder)
    missing = status.total - status.done
    print(f"wrote {out} ({sizes})" + (f"; {missing} cells are missing" if missing else ""))
    return 0


def _print_summary(console: Console, record: xr.Dataset, drawn: Sequence[str]) -> None:
    from rich import box
    from rich.table import Table

    from bayesmeta.summaries import summarise

    intervals = ", ± half a 95% t interval over runs" if record.sizes["run"] > 1 else ""
    table = Table(
        title="Regret in units of KTS's" + intervals,
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for column in ("agent", "regret", "less KTS's", "relative (2)", "|mean|", "|cov|", "not PD"):
        table.add_column(column, justify="left" if column == "agent" else "right", no_wrap=True)
    for name, row in summarise(record).items():
        table.add_row(
            name if name in drawn else f"[dim]{name}[/dim]",
            _with_interval(row["normalised_regret"], row["interval"]),
            _with_interval(row["difference_to_KTS"], row["difference_interval"]),
            _with_interval(row["relative_regret"], row["relative_interval"]),
            f"{row['mean_error']:.3f}",
            f"{row['covariance_error']:.3f}",
            f"{row['not_positive_definite']:g}",
        )
    console.print(table)
    console.print(
        "[dim]relative (2): less the regret of the same policy with the same exploration and the "
        "true prior. |mean|, |cov|: errors of the prior used in the last task. not PD: tasks per "
        "run whose covariance had to be raised. Dimmed rows were played as references.[/dim]"
    )


def _with_interval(value: object, ends: object) -> str:
    if isinstance(ends, list):
        return f"{value:.2f} ± {(ends[1] - ends[0]) / 2:.2f}"
    return f"{value:.2f}"


def _fit(options: argparse.Namespace) -> int:
    from rich.console import Console

    from bayesmeta.checks import one_of
    from bayesmeta.estimators.fit import METHODS, fit_prior
    from bayesmeta.fitted import as_json, print_fit, read_table
    from bayesmeta.records import writable_folder, write_atomically
    from bayesmeta.statistics import TaskStatistics

    one_of("--method", options.method, [m for m in METHODS if m not in ("split", "gls")])
    noise = None if options.noise_sd == "estimate" else _positive("--noise-sd", options.noise_sd)
    if options.plot is not None and options.plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InputError(f"--plot must end in .png, .pdf or .svg, got {options.plot}")
    names = [name.strip() for name in options.features.split(",") if name.strip()]
    frame = read_table(options.file)
    stats = TaskStatistics.from_frame(
        frame, options.task, options.reward, names, intercept=options.intercept
    )
    if len(frame) < stats.dim:
        raise InputError(
            f"{options.file} has {len(frame)} rows, fewer than the {stats.dim} features"
        )
    estimate = fit_prior(
        stats, noise, options.method, widening=options.widening, horizon=options.horizon
    )
    if options.plot is not None:
        from bayesmeta.plots import figure_fit

        if not estimate.usable:
            raise InputError(f"--plot: {estimate.status.value}")
        figure = figure_fit(stats, estimate)
        writable_folder(options.plot.parent)
        write_atomically(options.plot, lambda to: figure.savefig(to, dpi=110))
    if options.json:
        print(json.dumps(as_json(stats, estimate, options.method), indent=2))
    else:
        print_fit(Console(), stats, estimate, options.method)
        if options.plot is not None:
            print(f"wrote {options.plot}")
    return 0


def _positive(name: str, text: str) -> float:
    from bayesmeta.checks import real

    return real(name, text, above=0.0)


def _agents(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from bayesmeta.agents import FIGURE_1, ROSTER

    table = Table(title="The roster")
    for column in ("name", "policy", "in Figure 1", "measured against", "what it is"):
        table.add_column(column)
    for name, row in ROSTER.items():
        policy = row.policy.scheme.name.replace("_", "-").lower()
        table.add_row(name, policy, "yes" if name in FIGURE_1 else "", row.reference, row.note)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
