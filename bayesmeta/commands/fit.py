"""``bayesmeta fit``: the prior of tasks in a table of one's own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.checks import InputError, one_of, real

if TYPE_CHECKING:
    from bayesmeta.commands.parsing import Subparsers


def add(commands: Subparsers) -> None:
    """Add the command."""
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
        help="moment, moment-widened, moment-clipped, ml or reml (default: %(default)s); split and "
        "gls are in Python only",
    )  # fmt: skip
    fit.add_argument(
        "--widening",
        type=float,
        metavar="C",
        help="c_w of moment-widened, eq. (12), which needs it",
    )
    fit.add_argument("--horizon", type=int, metavar="T", help="and the steps of a task, T")
    fit.add_argument("--json", action="store_true", help="print JSON instead of tables")
    fit.add_argument("--plot", type=Path, metavar="OUT.png", help="draw tasks and prior")
    fit.set_defaults(command=_fit)


def _fit(options: argparse.Namespace) -> int:
    from rich.console import Console

    from bayesmeta.estimators.fit import METHODS, fit_prior
    from bayesmeta.fitted import as_json, print_fit, read_table
    from bayesmeta.records import writable_folder, write_atomically
    from bayesmeta.statistics import TaskStatistics

    one_of("--method", options.method, [m for m in METHODS if m not in ("split", "gls")])
    noise = (
        None if options.noise_sd == "estimate" else real("--noise-sd", options.noise_sd, above=0.0)
    )
    if options.plot is not None and options.plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InputError(f"--plot must end in .png, .pdf or .svg, got {options.plot}")
    wide = options.method == "moment-widened"
    for name in ("widening", "horizon"):
        if (getattr(options, name) is not None) != wide:
            raise InputError(
                f"moment-widened needs --{name}"
                if wide
                else f"--{name} is for --method moment-widened; {options.method} does not use it"
            )
    names = [name.strip() for name in options.features.split(",") if name.strip()]
    frame = read_table(options.file, options.task)
    stats = TaskStatistics.from_frame(
        frame, options.task, options.reward, names, intercept=options.intercept
    )
    if len(frame) < stats.dim:
        raise InputError(
            f"{options.file} has {len(frame)} rows, fewer than the {stats.dim} features"
        )
    try:
        estimate = fit_prior(
            stats, noise, options.method, widening=options.widening, horizon=options.horizon
        )
    except InputError as error:  # in the words of the command line
        raise InputError(str(error).replace("noise_sd", "--noise-sd")) from None
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
