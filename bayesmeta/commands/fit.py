"""``bayesmeta fit``: the prior of tasks in a table of one's own."""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import InputError, one_of, real, whole

if TYPE_CHECKING:
    from pandas import DataFrame

    from bayesmeta.commands.parsing import Subparsers
    from bayesmeta.posterior.priors import LKJ
    from bayesmeta.runner.files import Writer
    from bayesmeta.statistics import TaskStatistics

FEW = 3
"""Tasks up to which the prior decides."""
_DRAWING = ("out", "draws", "tune", "chains", "seed", "target_accept")
_EACH = ("mean_sd", "scale")
"""Parts of the prior with a number for every feature."""
_PRIOR = {
    "mean_sd": "mu_i ~ N(m_i, S^2) about the pooled estimate m; one S, or S,S,… for the intercept "
    "and the features in their order",
    "scale": "standard deviations of Sigma ~ half-normal(S); one S, or S,S,… likewise",
    "eta": "its correlations ~ LKJ(S)",
    "noise_scale": "the noise's standard deviation ~ half-normal(S)",
}
"""Options of --method posterior."""
_WORDS = {
    r"\(draws, tune\)": "(--draws, --tune)",
    r"\btarget_accept\b": "--target-accept",
    r"\bnoise_sd\b": "--noise-sd",
    r"\bchains=": "--chains ",
    r"\btune longer": "tune longer (--tune)",
    r"\ba prior that says more": "a prior that says more (--prior-scale, --prior-eta, …)",
}
"""Advice in Python, and what it is called on the command line."""


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
    fit.add_argument(
        "--features", action="append", default=[], metavar="A,B,…",
        help="columns, with commas; may be repeated, and a name that has a comma stands alone",
    )  # fmt: skip
    fit.add_argument("--intercept", action="store_true", help="add a feature that is always 1")
    fit.add_argument(
        "--noise-sd", default="estimate", metavar="S", help="a number, or 'estimate' (the default)"
    )
    fit.add_argument(
        "--method", default="reml",
        help="moment, moment-widened, moment-clipped, ml, reml, posterior (default: %(default)s); "
        "split and gls are in Python only",
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
    drawing = fit.add_argument_group("of --method posterior")
    drawing.add_argument(
        "--out", type=Path, metavar="FILE.nc",
        help="draws as NetCDF; a page with prior, posterior and diagnostics beside it as .png "
        "(default: posterior.nc)",
    )  # fmt: skip
    drawing.add_argument("--draws", type=int, metavar="K", help="of each chain (default: 1000)")
    drawing.add_argument("--tune", type=int, metavar="K", help="before them (default: 500)")
    drawing.add_argument("--chains", type=int, metavar="K", help="default: 4")
    drawing.add_argument("--seed", type=int, metavar="S", help="default: 0")
    drawing.add_argument(
        "--target-accept", type=float, metavar="P", help="nearer 1 where draws diverge (0.8)"
    )
    for name, text in _PRIOR.items():
        option = f"--prior-{name.replace('_', '-')}"
        told = "2" if name == "eta" else "from the data"
        kind = str if name in _EACH else float
        drawing.add_argument(option, type=kind, metavar="S", help=f"{text} (default: {told})")
    fit.set_defaults(command=_fit)


def _fit(options: argparse.Namespace) -> int:
    from bayesmeta.estimators.fit import METHODS
    from bayesmeta.report.fitted import read_table
    from bayesmeta.statistics import TaskStatistics

    methods = [m for m in METHODS if m not in ("split", "gls")]
    one_of("--method", options.method, [*methods, "posterior"])
    posterior = options.method == "posterior"
    noise = (
        None if options.noise_sd == "estimate" else real("--noise-sd", options.noise_sd, above=0.0)
    )
    if options.plot is not None and options.plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InputError(f"--plot must end in .png, .pdf or .svg, got {options.plot}")
    given = {name: getattr(options, name) is not None for name in ("widening", "horizon")}
    if options.method == "moment-widened" and not all(given.values()):
        lacking = " and ".join(f"--{name}" for name, there in given.items() if not there)
        raise InputError(f"moment-widened needs {lacking}")
    for name, there in given.items():
        if there and options.method != "moment-widened":
            raise InputError(
                f"--{name} is for --method moment-widened; {options.method} does not use it"
            )
    for name in (*_DRAWING, *(f"prior_{field}" for field in _PRIOR)):
        if getattr(options, name) is not None and not posterior:
            shown = name.replace("_", "-")
            raise InputError(f"--{shown} is for --method posterior; {options.method} draws nothing")
    for name, least in (("draws", 1), ("tune", 1), ("chains", 1), ("seed", 0)):
        if getattr(options, name) is not None:
            whole(f"--{name}", getattr(options, name), least=least)
    if options.seed is not None and options.seed >= 2**64:
        raise InputError(f"--seed must be less than 2^64, got {options.seed}")
    frame = read_table(options.file, options.task)
    stats = TaskStatistics.from_frame(
        frame,
        options.task,
        options.reward,
        _columns(frame, options.features),
        intercept=options.intercept,
    )
    if len(frame) < stats.dim:
        raise InputError(
            f"{options.file} has {len(frame)} rows, fewer than the {stats.dim} features"
        )
    run = _draw if posterior else _estimate
    try:
        return run(stats, noise, options)
    except InputError as error:
        raise InputError(_in_options(str(error))) from None


def _columns(frame: DataFrame, given: list[str]) -> list[str]:
    """The columns of --features: each is a column as it stands, or several with commas."""
    return [
        name
        for text in given
        for name in ([text] if text in frame.columns else map(str.strip, text.split(",")))
        if name
    ]


def _in_options(text: str) -> str:
    """Advice in the words of the command line."""
    for python, option in _WORDS.items():
        text = re.sub(python, option, text)
    return text


def _estimate(stats: TaskStatistics, noise: float | None, options: argparse.Namespace) -> int:
    """A closed form or a likelihood's maximum."""
    from rich.console import Console

    from bayesmeta.estimators.fit import fit_prior
    from bayesmeta.report.fitted import as_json, print_fit
    from bayesmeta.runner.files import writable_folder, write_atomically

    estimate = fit_prior(
        stats, noise, options.method, widening=options.widening, horizon=options.horizon
    )
    if options.plot is not None:
        from bayesmeta.report.figures.tasks import figure_fit

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


def _prior(stats: TaskStatistics, noise: float | None, options: argparse.Namespace) -> LKJ | None:
    """The default prior with what is given put in its place; None where nothing is."""
    from bayesmeta.posterior.priors import default_prior

    given: dict[str, Any] = {}
    for field in _PRIOR:
        option, value = f"--prior-{field.replace('_', '-')}", getattr(options, f"prior_{field}")
        if value is None:
            continue
        parts = value.split(",") if field in _EACH else [value]
        numbers = [real(option, part, above=0.0) for part in parts]
        if len(numbers) not in (1, stats.dim):
            raise InputError(
                f"{option} has {len(numbers)} numbers; give one, or {stats.dim}, for "
                f"{', '.join(map(repr, map(str, stats.feature_labels)))}"
            )
        given[field] = numbers[0] if len(numbers) == 1 else numbers
    if noise is not None and "noise_scale" in given:
        raise InputError("--prior-noise-scale is for an unknown noise; --noise-sd says it")
    return replace(default_prior(stats, noise), **given) if given else None


def _undetermined(stats: TaskStatistics, noise: float | None) -> str:
    """What REML says of data that more draws would not help; nothing where all is determined."""
    from bayesmeta.estimators.estimate import Status
    from bayesmeta.estimators.fit import fit_prior

    try:
        status = fit_prior(stats, noise).status
    except InputError:  # it cannot tell
        return ""
    if status not in (Status.NOT_IDENTIFIED, Status.NO_NOISE):
        return ""
    return f"{_in_options(status.value)}; more draws will not help"


def _draw(stats: TaskStatistics, noise: float | None, options: argparse.Namespace) -> int:
    """The posterior, drawn; exit code 1 where the draws should not be trusted."""
    import warnings

    from rich.console import Console

    from bayesmeta.posterior.diagnostics import Diagnosis, diagnose
    from bayesmeta.posterior.priors import PriorWarning, at_odds
    from bayesmeta.posterior.sampling import FitWarning, sample_posterior
    from bayesmeta.report.figures.page import posterior_page
    from bayesmeta.report.posterior import as_json, print_posterior, write_tree
    from bayesmeta.runner.files import writable_folder, write_together

    out = options.out or Path("posterior.nc")
    if out.suffix != ".nc" or out.is_dir():
        raise InputError(f"--out must be a file that ends in .nc, got {out}")
    prior = _prior(stats, noise, options)
    folder, picture = writable_folder(out.parent), out.with_suffix(".png").name
    place = None
    if options.plot is not None:
        place = writable_folder(options.plot.parent) / options.plot.name
        if place.is_dir() or place.resolve() in ((folder / out.name).resolve(),
                                                 (folder / picture).resolve()):  # fmt: skip
            raise InputError(
                f"--plot must be a file of its own, got {options.plot} ({out.name} has the draws, "
                f"{picture} the page)"
            )
    old = [name for name in (out.name, picture) if (folder / name).exists()]
    given = {name: getattr(options, name) for name in _DRAWING[1:]}
    settings = {name: value for name, value in given.items() if value is not None}
    odd = at_odds(stats, noise, prior.settled(stats.dim)) if prior else ""
    if odd:
        odd = f"the prior does not suit the data: {odd}; are its numbers in their units?"
        print(f"bayesmeta: {odd}", file=sys.stderr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)  # said already
        warnings.simplefilter("ignore", FitWarning)  # the verdict is printed, and the exit code
        tree = sample_posterior(stats, noise, prior=prior, progress=not options.json, **settings)
    page = posterior_page(tree)
    files: dict[Path, Writer] = {
        folder / out.name: lambda to: write_tree(tree, to),
        folder / picture: lambda to: page.savefig(to, dpi=100),
    }
    if place is not None:
        from bayesmeta.report.figures.tasks import figure_tasks

        tasks = figure_tasks(tree)
        files[place] = lambda to: tasks.savefig(to, dpi=110)
    write_together(files)
    doubt = _undetermined(stats, noise)
    few = ""
    if len(stats) <= FEW:
        few = (f"{len(stats)} tasks say little about how tasks differ, so the answer depends on "
               "the prior: give your own (--prior-scale, --prior-mean-sd)")  # fmt: skip
    verdict = Diagnosis(c._replace(advice=_in_options(c.advice)) for c in diagnose(tree))
    if options.json:
        found = as_json(tree, verdict) | {"identified": not doubt}
        found["prior_conflict"] = odd
        found["advice"] = "; ".join(text for text in (odd, few, doubt, found["advice"]) if text)
        found["files"] = {
            name: str(path) for name, path in zip(("draws", "page", "plot"), files, strict=False)
        }
        print(json.dumps(found, indent=2, allow_nan=False))
    else:
        console = Console()
        print_posterior(console if console.is_terminal else Console(width=160), tree, verdict)
        for text in (odd, few):
            if text:
                print(text)
        if doubt:
            print(f"not identified: {doubt}")
        replaced = f" (replaced {' and '.join(old)})" if old else ""
        print(f"wrote {out.name} and {picture} in {folder}{replaced}")
        if options.plot is not None:
            print(f"wrote {options.plot}")
    return 0 if tree.attrs["trusted"] else 1
