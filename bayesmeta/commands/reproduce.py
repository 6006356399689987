"""``bayesmeta reproduce``: the paper's experiment and Figure 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.commands.parsing import listed
from bayesmeta.commands.running import (
    add_workers,
    kept_only_if_filled,
    print_report,
    run,
    workers_of,
)

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

    from bayesmeta.commands.parsing import Subparsers


def add(commands: Subparsers) -> None:
    """Add the command."""
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
        "--seed", type=int, default=0, help="same seed, same results (default: %(default)s)"
    )
    add_workers(reproduce)
    reproduce.add_argument(
        "--agents",
        default="",
        metavar="A,B,…",
        help="rows to draw, with commas (default: the paper's six and two of ours, and two more "
        "of ours from a recorded study; see 'agents')",
    )
    reproduce.add_argument(
        "--out",
        type=Path,
        default=Path("results/figure1"),
        help="folder to write in (default: %(default)s)",
    )
    reproduce.set_defaults(command=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from rich.console import Console

    from bayesmeta.agents.roster import BAYESIAN, FIGURE_1, OURS, find_agents
    from bayesmeta.checks import whole

    given = listed(options.agents)
    names = given or [*FIGURE_1, *OURS]
    find_agents(names)
    for name, least in (("runs", 1), ("tasks", 1), ("seed", 0)):
        whole(f"--{name}", getattr(options, name), least=least)
    names = list(dict.fromkeys(names))
    workers = workers_of(options)

    from bayesmeta.report import figure1 as files
    from bayesmeta.runner.collect import collect_kept
    from bayesmeta.runner.run import forget_study
    from bayesmeta.studies import figure1

    console, folder = Console(), options.out
    study = figure1.study(
        runs=options.runs, tasks=options.tasks, random_seed=options.seed, agents=names
    )
    unfinished = folder / "unfinished"  # finished runs; removed when all are
    with kept_only_if_filled(folder):
        report = run(study, unfinished, workers, "playing", "runs")
        if not report.complete:
            return print_report(report)
        for note in report.notes:
            print(f"bayesmeta: {note}", file=sys.stderr)
        record = collect_kept(study, unfinished)
        shown, word = (record, "") if given else files.with_recorded(record)
        drawn = [*names, *[name for name in BAYESIAN if name in shown.agent and name not in names]]
        files.write(record, folder, drawn, shown)
    forget_study(study, unfinished)
    _print_summary(console, shown, drawn)
    if word:
        console.print(f"[dim]{word}[/dim]", highlight=False)
    console.print(f"wrote {', '.join(files.FILES)} in {folder}")
    return 0


def _print_summary(console: Console, record: xr.Dataset, drawn: Sequence[str]) -> None:
    from rich import box
    from rich.table import Table

    from bayesmeta.simulation.summaries import summarise

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
            name if name in drawn else f"({name})",
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
        "run whose covariance had to be raised. Rows in brackets were played as references.[/dim]"
    )


def _with_interval(value: object, ends: object) -> str:
    if isinstance(ends, list):
        return f"{value:.2f} ± {(ends[1] - ends[0]) / 2:.2f}"
    return f"{value:.2f}"
