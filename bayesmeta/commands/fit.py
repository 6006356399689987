"""``bayesmeta fit``: estimate the prior of tasks in a table of one's own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.checks import InputError
from bayesmeta.commands.table import (
    add_data_options,
    in_options,
    naming_options,
    read_tasks,
    say,
    say_notes,
)
from bayesmeta.display import visible

if TYPE_CHECKING:
    from bayesmeta.commands.parsing import Subparsers

METHODS = ("moment", "moment-widened", "moment-clipped", "ml", "reml")
"""Those of ``fit_prior`` that need nothing but the table: without split and gls."""
_WIDENED = ("widening", "horizon")
"""Options of moment-widened."""


def add(commands: Subparsers) -> None:
    """Add the command."""
    fit = commands.add_parser(
        "fit",
        help="estimate the prior of tasks in a table of your own",
        description="Estimate the mean and covariance of the parameters of tasks from a CSV or "
        "Parquet file with a row for every reward (a linear mixed model, to a statistician). "
        "bayesmeta sample draws from their posterior.",
    )
    add_data_options(fit)
    fit.add_argument(
        "--method",
        type=_method,
        choices=METHODS,
        default="reml",
        help="default: %(default)s; split and gls are in Python only",
    )
    fit.add_argument(
        "--widening",
        type=float,
        metavar="C",
        help="c_w of eq. (12), for moment-widened",
    )
    fit.add_argument("--horizon", type=int, metavar="T", help="steps of a task, for moment-widened")
    fit.add_argument(
        "--confint",
        choices=("wald", "profile", "bootstrap"),
        default="wald",
        help="how intervals are found (default: %(default)s)",
    )
    fit.add_argument(
        "--level", type=float, default=0.95, metavar="P", help="of intervals (default: 0.95)"
    )
    fit.add_argument("--seed", type=int, default=0, metavar="N", help="of --confint bootstrap")
    fit.add_argument("--sort", metavar="FEATURE", help="order the tasks of --plot by this feature")
    fit.set_defaults(command=_fit)


def _method(text: str) -> str:
    """The name of a method, as argparse's ``type``."""
    if text == "posterior":
        raise argparse.ArgumentTypeError(
            "the posterior has a command of its own, with the same columns: bayesmeta sample FILE"
        )
    return text


def _check_widening(options: argparse.Namespace) -> None:
    """moment-widened needs both of its options, no other method takes them."""
    lacking = [name for name in _WIDENED if getattr(options, name) is None]
    if options.method == "moment-widened":
        if lacking:
            needed = " and ".join(f"--{name}" for name in lacking)
            raise InputError(f"moment-widened needs {needed}")
        return
    for name in _WIDENED:
        if name not in lacking:
            raise InputError(
                f"--{name} is for --method moment-widened; {options.method} does not use it"
            )


def _fit(options: argparse.Namespace) -> int:
    from bayesmeta.fitted.fit import fit
    from bayesmeta.fitted.prior import FittedPrior
    from bayesmeta.report.console import rendered
    from bayesmeta.report.fitted import as_json, print_fit
    from bayesmeta.runner.files import writable_folder, write_atomically

    _check_widening(options)
    with naming_options():
        design = read_tasks(options)
        fitted = fit(
            design,
            method=options.method,
            level=options.level,
            widening=options.widening,
            horizon=options.horizon,
        )
        assert isinstance(fitted, FittedPrior)
        ends = fitted.confint(options.confint, random_seed=options.seed)
        found = as_json(fitted, in_options, ends)
    text = json.dumps(found, indent=2, allow_nan=False)
    if not options.json:
        text = rendered(lambda to: print_fit(to, fitted, in_options, ends))
    if options.plot is None:
        say_notes(design)
        say(text)
        return 0
    from bayesmeta.report.figures.tasks import figure_fit

    if not fitted.estimate.usable:
        raise InputError(f"--plot: {in_options(fitted.estimate.status.advice)}")
    with naming_options():
        figure = figure_fit(fitted, options.sort)

    def draw_and_say(to: Path) -> None:
        """The text comes when the file is filled and before it is put in place: if one of them
        cannot be written, the other is not."""
        figure.savefig(to, dpi=110)
        say(text if options.json else f"{text}\nwrote {visible(options.plot)}")

    writable_folder(options.plot.parent)
    say_notes(design)
    write_atomically(options.plot, draw_and_say)
    return 0
