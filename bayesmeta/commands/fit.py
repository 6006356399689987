"""``bayesmeta fit``: estimate the prior of tasks in a table of one's own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.checks import InputError
from bayesmeta.commands.predictions import add_predict_options, predicted, read_new
from bayesmeta.commands.table import (
    add_data_options,
    add_output_options,
    in_options,
    naming_options,
    read_tasks,
    say_notes,
    write_and_say,
)
from bayesmeta.display import visible

if TYPE_CHECKING:
    from bayesmeta.commands.parsing import Subparsers
    from bayesmeta.fitted.prior import FittedPrior
    from bayesmeta.runner.files import Writer

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
        example='bayesmeta fit sleepstudy --formula "Reaction ~ Days + (Days | Subject)"',
    )
    add_data_options(fit)
    how = fit.add_argument_group("the estimate")
    how.add_argument(
        "--method",
        type=_method,
        choices=METHODS,
        default="reml",
        help="default: %(default)s; split and gls are in Python only",
    )
    how.add_argument(
        "--widening", type=float, metavar="C", help="c_w of eq. (12), for moment-widened"
    )
    how.add_argument("--horizon", type=int, metavar="T", help="steps of a task, for moment-widened")
    how.add_argument(
        "--confint",
        choices=("wald", "profile", "bootstrap"),
        default="wald",
        help="how intervals are found (default: %(default)s)",
    )
    how.add_argument("--seed", type=int, metavar="N", help="of --confint bootstrap (default: 0)")
    add_output_options(fit)
    add_predict_options(fit)
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


def _check_used(options: argparse.Namespace) -> None:
    """No option is given that would do nothing."""
    if options.seed is not None and options.confint != "bootstrap":
        raise InputError("--seed is of --confint bootstrap; give that, too, or leave --seed out")


def _fit(options: argparse.Namespace) -> int:
    from bayesmeta.fitted.fit import fit
    from bayesmeta.fitted.prior import FittedPrior
    from bayesmeta.report.console import rendered
    from bayesmeta.report.fitted import as_json, print_fit
    from bayesmeta.runner.progress import compiling

    _check_widening(options)
    _check_used(options)
    with naming_options(), compiling():
        design = read_tasks(options)
        new = read_new(options, design)
        fitted = fit(
            design,
            method=options.method,
            level=options.level,
            widening=options.widening,
            horizon=options.horizon,
        )
        assert isinstance(fitted, FittedPrior)
        ends = fitted.confint(options.confint, random_seed=options.seed or 0)
        found = as_json(fitted, in_options, ends)
        files = _files(options, fitted)
        if new is not None:
            files[new.place] = predicted(
                new, lambda rows: fitted.predict(rows, rewards=options.with_noise)
            )
    names = {"plot": options.plot, "predictions": None if new is None else new.place}
    found["files"] = {name: str(path) for name, path in names.items() if path is not None}
    text = json.dumps(found, indent=2, allow_nan=False)
    if not options.json:
        text = rendered(lambda to: print_fit(to, fitted, in_options, ends))
        text = "\n".join([text, *(f"wrote {visible(path)}" for path in files)])
    told = [] if new is None else list(new.notes)
    if new is not None and fitted.conditional:
        told.append(
            "predictions are conditional on a covariance that is singular or not determined: too "
            "short; bayesmeta sample includes its uncertainty"
        )
    say_notes(design, told)
    write_and_say(files, text)
    return 0


def _files(options: argparse.Namespace, fitted: FittedPrior) -> dict[Path, Writer]:
    """The picture, if it is asked for."""
    from bayesmeta.report.figures.tasks import figure_fit
    from bayesmeta.runner.files import writable_folder

    if options.plot is None:
        return {}
    if not fitted.estimate.usable:
        raise InputError(f"--plot: {in_options(fitted.estimate.status.advice)}")
    figure = figure_fit(fitted, options.sort)
    writable_folder(options.plot.parent)
    return {options.plot: lambda to: figure.savefig(to, dpi=110)}
