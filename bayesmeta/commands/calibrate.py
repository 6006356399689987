"""``bayesmeta calibrate``: how good is an estimator, in your setting?"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import InputError, real, whole
from bayesmeta.commands.parsing import listed
from bayesmeta.commands.running import (
    add_workers,
    kept_only_if_filled,
    saying_what_is_kept,
    workers_of,
)
from bayesmeta.commands.table import (
    add_data_options,
    in_options,
    naming_options,
    read_tasks,
    refuse_table,
    say_notes,
    write_and_say,
)
from bayesmeta.display import visible

if TYPE_CHECKING:
    from bayesmeta.agents.exploration import Exploration
    from bayesmeta.commands.parsing import Subparsers
    from bayesmeta.runner.files import Writer
    from bayesmeta.tables.design import Design

DIM = 5


def add(commands: Subparsers) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "calibrate",
        help="how good is an estimator of the prior, in your setting?",
        description="Draw data again and again, from the family of the paper's experiment or with "
        "the designs of a table of your own, and show how often the intervals of every estimator "
        "hold the truth, how wide they are, and how good a forecast of the next task they make.",
        example="bayesmeta calibrate --dim 2 --tasks 20,100 --estimators moment,reml "
        "--replications 100",
    )
    add_data_options(parser, required=False)
    parser.set_defaults(noise_sd=None, plot=None, sort=None)
    family = parser.add_argument_group("the family, where there is no FILE")
    family.add_argument("--dim", type=int, metavar="D", help=f"features (default: {DIM})")
    family.add_argument("--horizon", type=int, metavar="T", help="steps of a task (default: 200)")
    family.add_argument(
        "--explore",
        metavar="A,B,…",
        help="a number: so many exploration steps of each task; a name: all steps of this agent, "
        "see 'bayesmeta agents'; several are judged side by side (default: all steps explore)",
    )
    lab = parser.add_argument_group("the lab")
    lab.add_argument("--tasks", metavar="N,M,…", help="how many (default: 100, or all of FILE)")
    lab.add_argument(
        "--estimators",
        metavar="A,B,…",
        help="methods of fit, 'moment-widened(10)' with its c_w, and posterior (default: "
        "moment,reml; ml,reml where FILE has coefficients that are the same for all tasks)",
    )
    lab.add_argument(
        "--intervals",
        metavar="A,B,…",
        help="wald, wald-natural, profile, bootstrap, radii; central, hdi (default: wald and "
        "central)",
    )
    lab.add_argument(
        "--wrong",
        metavar="A,B,…",
        help="how the model is wrong: 'heavy-tailed theta', 'clustered theta', 'skewed theta', "
        "'heavy-tailed noise', 'unequal noise', 'noise told too small', 'noise told too large', "
        "or 'nothing'; several are judged side by side (default: it is right)",
    )
    lab.add_argument(
        "--levels", default="0.5,0.8,0.9,0.95", metavar="P,Q,…", help="default: %(default)s"
    )
    lab.add_argument("--replications", type=int, default=200, metavar="R", help="default: 200")
    lab.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    where = parser.add_argument_group("where it runs")
    where.add_argument(
        "--folder", type=Path, help="keep replications here, and go on from those that are there"
    )
    add_workers(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print rows of JSON instead of a table")
    output.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write figures, the measures as JSON and CSV, and all replications as NetCDF",
    )
    parser.set_defaults(command=_calibrate)


def _usual(arguments: dict[str, Any]) -> str:
    """Estimators that can be applied there."""
    where = arguments.get("where")
    return "ml,reml" if getattr(where, "varying", None) is not None else "moment,reml"


def _calibrate(options: argparse.Namespace) -> int:
    from bayesmeta.calibration.lab import calibrate
    from bayesmeta.calibration.measures import measures
    from bayesmeta.calibration.rows import rows_of
    from bayesmeta.report.console import rendered
    from bayesmeta.report.lab import lab_files, print_lab
    from bayesmeta.runner.progress import compiling, progress_bar

    workers = workers_of(options)
    with kept_only_if_filled(options.out), naming_options(), compiling():
        arguments, design = _where(options)
        with saying_what_is_kept():
            lab = calibrate(
                **arguments,
                estimators=listed(options.estimators or _usual(arguments)),
                intervals=None if options.intervals is None else listed(options.intervals),
                levels=[real("--levels", text) for text in listed(options.levels)],
                wrong=_wrong(options.wrong),
                replications=whole("--replications", options.replications, least=1),
                random_seed=whole("--seed", options.seed),
                folder=options.folder,
                progressbar=partial(progress_bar, "calibrate", "replications"),
                **workers,
            )
        found = measures(lab)
        if options.json:
            text = json.dumps(rows_of(found), indent=2, allow_nan=False)
        else:
            text = rendered(lambda to: print_lab(to, found, in_options), plain_width=80)
        files: dict[Path, Writer] = {}
        if options.out is not None:
            files = lab_files(lab, found, options.out)
            names = ", ".join(path.name for path in files)
            text += "" if options.json else f"\nwrote {names} in {visible(options.out)}"
        if design is not None:
            say_notes(design)
        write_and_say(files, text)
    return 0


def _where(options: argparse.Namespace) -> tuple[dict[str, Any], Design | None]:
    """What ``calibrate`` is told of tasks and data, and the table where there is one."""
    tasks = None if options.tasks is None else [_tasks(text) for text in listed(options.tasks)]
    if options.file is not None:
        for name in ("dim", "horizon", "explore"):
            if getattr(options, name) is not None:
                raise InputError(f"--{name} is of a simulated family; a table has its own")
        if options.noise_sd is None:
            options.noise_sd = "estimate"
        design = read_tasks(options)
        return {"where": design.stats, "tasks": tasks, "noise_sd": design.noise_sd}, design
    refuse_table(options)
    from bayesmeta.environment import paper_family

    dim = DIM if options.dim is None else whole("--dim", options.dim, least=1)
    horizon = 200 if options.horizon is None else whole("--horizon", options.horizon, least=1)
    noise = options.noise_sd
    if noise not in (None, "estimate"):
        noise = real("--noise-sd", noise, above=0.0)
    family = paper_family(dim=dim, horizon=horizon)
    how = _explore(options.explore)
    return {"where": family, "tasks": tasks, "noise_sd": noise, "explore": how}, None


def _tasks(text: str) -> int:
    if not text.isdigit():
        raise InputError(f"--tasks must be whole numbers with commas, as in 20,100, got {text!r}")
    return int(text)


def _wrong(text: str | None) -> str | list[str] | None:
    """As ``calibrate`` takes it: one name, or several."""
    names = None if text is None else listed(text)
    return names[0] if names is not None and len(names) == 1 else names


def _explore(text: str | None) -> Any:
    """As ``calibrate`` takes it: a way in which data come about, or several by their names."""
    if text is None:
        return None
    from bayesmeta.agents.exploration import first_steps

    ways: dict[str, Exploration | str] = {}
    for part in listed(text):
        if part.isdigit():
            ways[f"{part} steps"] = first_steps(int(part))
        else:
            ways[part] = part
    return next(iter(ways.values())) if len(ways) == 1 else ways
