"""The command line: thin, and quick to start."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from bayesmeta.checks import InputError

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; exit code 0 done, 2 bad input (one line says what), 130 interrupted."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except InputError as error:
        print(f"bayesmeta: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bayesmeta: interrupted", file=sys.stderr)
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
    reproduce.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
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

    agents = commands.add_parser("agents", help="list the roster of agents")
    agents.set_defaults(command=_agents)
    return parser


def _version() -> str:
    from importlib.metadata import version

    return version("bayesmeta")


def _reproduce(options: argparse.Namespace) -> int:
    from rich.console import Console

    from bayesmeta.agents import FIGURE_1, find_agents
    from bayesmeta.checks import whole
    from bayesmeta.progress import progress_bar
    from bayesmeta.records import writable_folder

    names = [name.strip() for name in options.agents.split(",") if name.strip()] or list(FIGURE_1)
    find_agents(names)
    for name, least in (("runs", 1), ("tasks", 1), ("seed", 0), ("jobs", 1)):
        whole(f"--{name}", getattr(options, name), least=least)
    names = list(dict.fromkeys(names))
    was_there = options.out.exists()
    folder = writable_folder(options.out)

    from bayesmeta.studies import figure1

    console = Console()
    try:
        with progress_bar("playing tasks", options.runs * options.tasks) as tick:
            record = figure1.run(
                runs=options.runs,
                tasks=options.tasks,
                seed=options.seed,
                jobs=options.jobs,
                agents=names,
                progress=tick,
            )
        figure1.write(record, folder, names)
    except BaseException:
        if not was_there:
            with suppress(OSError):  # leave no empty folder behind
                folder.rmdir()
        raise
    _print_summary(console, record, names)
    console.print(f"wrote {', '.join(figure1.FILES)} in {folder}")
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
