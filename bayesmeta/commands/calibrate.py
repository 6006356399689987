"""``bayesmeta calibrate``: how good is an estimator, in your setting?"""

from __future__ import annotations

import argparse
import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import InputError, real, whole
from bayesmeta.commands.running import add_workers, workers_of
from bayesmeta.commands.table import (
    add_data_options,
    in_options,
    naming_options,
    read_tasks,
    say_notes,
    write_and_say,
)
from bayesmeta.display import visible

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console
    from rich.text import Text

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
    parser.set_defaults(noise_sd=None, plot=None)
    family = parser.add_argument_group("the family, where there is no FILE")
    family.add_argument("--dim", type=int, metavar="D", help=f"features (default: {DIM})")
    family.add_argument("--horizon", type=int, metavar="T", help="steps of a task (default: 200)")
    family.add_argument(
        "--explore",
        metavar="HOW",
        help="a number: so many exploration steps of each task; a name: all steps of this agent, "
        "see 'bayesmeta agents' (default: all steps explore)",
    )
    lab = parser.add_argument_group("the lab")
    lab.add_argument("--tasks", metavar="N,M,…", help="how many (default: 100, or all of FILE)")
    lab.add_argument(
        "--estimators",
        default="moment,reml",
        metavar="A,B,…",
        help="methods of fit, 'moment-widened(10)' with its c_w, and posterior "
        "(default: %(default)s)",
    )
    lab.add_argument(
        "--intervals",
        metavar="A,B,…",
        help="wald, wald-natural, profile, bootstrap, radii; central, hdi (default: wald and "
        "central)",
    )
    lab.add_argument(
        "--wrong",
        metavar="HOW",
        help="how the model is wrong: 'heavy-tailed theta', 'clustered theta', 'skewed theta', "
        "'heavy-tailed noise', 'unequal noise', 'noise told too small', 'noise told too large' "
        "(default: it is right)",
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
        "--out", type=Path, metavar="OUT.nc", help="write all replications as NetCDF"
    )
    parser.set_defaults(command=_calibrate)


def _calibrate(options: argparse.Namespace) -> int:
    from bayesmeta.calibration.lab import calibrate
    from bayesmeta.calibration.measures import measures
    from bayesmeta.calibration.rows import rows_of
    from bayesmeta.report.console import rendered
    from bayesmeta.runner.files import writable_folder
    from bayesmeta.runner.progress import progress_bar
    from bayesmeta.simulation.records import record_writer

    workers = workers_of(options)
    if options.out is not None:
        if options.out.suffix != ".nc":
            raise InputError(f"--out must end in .nc, got {options.out}")
        writable_folder(options.out.parent)
    with naming_options():
        arguments, design = _where(options)
        lab = calibrate(
            **arguments,
            estimators=_listed(options.estimators),
            intervals=None if options.intervals is None else _listed(options.intervals),
            levels=[real("--levels", text) for text in _listed(options.levels)],
            wrong=options.wrong,
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
        text = rendered(partial(_print, found=found), plain_width=100)
    files: dict[Path, Writer] = {}
    if options.out is not None:
        files[options.out] = record_writer(lab)
        text += "" if options.json else f"\nwrote {visible(options.out)}"
    if design is not None:
        say_notes(design)
    write_and_say(files, text)
    return 0


def _where(options: argparse.Namespace) -> tuple[dict[str, Any], Design | None]:
    """What ``calibrate`` is told of tasks and data, and the table where there is one."""
    tasks = None if options.tasks is None else [_number(t) for t in _listed(options.tasks)]
    if options.file is not None:
        for name in ("dim", "horizon", "explore"):
            if getattr(options, name) is not None:
                raise InputError(f"--{name} is of a simulated family; a table has its own")
        if options.noise_sd is None:
            options.noise_sd = "estimate"
        design = read_tasks(options)
        return {"where": design.stats, "tasks": tasks, "noise_sd": design.noise_sd}, design
    for name in ("formula", "task", "reward", "features", "fixed", "weights", "noise_var"):
        if getattr(options, name):
            option = name.replace("_", "-")
            raise InputError(f"--{option} describes a table; give its FILE, too")
    from bayesmeta.environment import paper_family

    dim = DIM if options.dim is None else whole("--dim", options.dim, least=1)
    horizon = 200 if options.horizon is None else whole("--horizon", options.horizon, least=1)
    noise = options.noise_sd
    if noise not in (None, "estimate"):
        noise = real("--noise-sd", noise, above=0.0)
    family = paper_family(dim=dim, horizon=horizon)
    how = _explore(options.explore)
    return {"where": family, "tasks": tasks, "noise_sd": noise, "explore": how}, None


def _explore(text: str | None) -> Exploration | str | None:
    if text is None or not text.isdigit():
        return text
    from bayesmeta.agents.exploration import first_steps

    return first_steps(int(text))


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(text: str) -> int:
    if not text.isdigit():
        raise InputError(f"--tasks must be whole numbers with commas, as in 20,100, got {text!r}")
    return int(text)


def _print(to: Console, found: xr.Dataset) -> None:
    """A row for every estimator and number of tasks, the verdict, and what went wrong."""
    from bayesmeta.calibration.verdict import in_words
    from bayesmeta.report.console import label, table

    level = float(found.level.max())
    columns = ["estimator", "tasks", "mu", "sd", "next task", "width of mu", "bias of mu"]
    title = f"Coverage of {100 * level:g}% regions in percent; mean width and largest bias of mu"
    rows: list[list[str | Text]] = []
    for tasks in found.tasks.values:
        for name in found.estimator.values:
            at = found.sel(estimator=name, tasks=tasks, level=level)
            rows.append([label(name), str(int(tasks)), *_cells(at)])
    to.print(table(title, columns, rows))
    print_line = partial(to.print, markup=False, highlight=False, soft_wrap=True)
    for tasks in found.tasks.values:
        print_line(in_words(found, int(tasks), level))
    for line in _shortfalls(found, level):
        print_line(line)


def _cells(at: xr.Dataset) -> list[str]:
    """Means over features, with Monte-Carlo errors of coverages and bias."""
    import numpy as np

    cells = []
    for kind in ("mu", "sd"):
        one = _of_kind(at, kind)
        error = float(np.nanmax([*one.coverage_error, 0]))  # of one: features go together
        cells.append(_percent(float(one.coverage.mean()), error))
    cells.append(_percent(float(at.next_coverage), float(at.next_coverage_error)))
    mu = _of_kind(at, "mu")
    cells.append(_short(float(mu.width.mean())))
    worst = int(np.nan_to_num(np.abs(mu.bias.values)).argmax())
    bias, error = float(mu.bias[worst]), float(mu.bias_error[worst])
    cells.append(f"{bias:.3f} ± {error:.3f}" if math.isfinite(error) else _short(bias))
    return cells


def _of_kind(at: xr.Dataset, kind: str) -> xr.Dataset:
    names = [q for q in at.quantity.values if str(q).startswith(f"{kind}[")]
    return at.sel(quantity=names)


def _percent(value: float, error: float) -> str:
    if not math.isfinite(value):
        return "none"
    return f"{100 * value:.1f}" + (f" ± {100 * error:.1f}" if math.isfinite(error) else "")


def _short(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "none"


def _shortfalls(found: xr.Dataset, level: float) -> list[str]:
    """Where estimates or intervals are lacking: nothing is left out without a word."""
    lines = []
    for tasks in found.tasks.values:
        for name in map(str, found.estimator.values):
            at = found.sel(estimator=name, tasks=tasks, level=level)
            parts = []
            if at.failed > 0:
                parts.append(f"failed in {100 * float(at.failed):.3g}% of replications")
            else:
                lacking = 1 - float(_of_kind(at, "sd").available.min())
                if lacking > 0:
                    parts.append(f"no interval of an sd in {100 * lacking:.3g}%")
                if at.next_available < 1:
                    share = 1 - float(at.next_available)
                    parts.append(f"no prior for the next task in {100 * share:.3g}%")
            if parts:
                lines.append(f"{name}, {int(tasks)} tasks: {'; '.join(parts)}")
    for name, texts in json.loads(found.attrs.get("problems", "{}")).items():
        text, count = next(iter(texts.items()))
        lines.append(f"{name}: {in_options(visible(text))} ({count} times)")
    return lines
