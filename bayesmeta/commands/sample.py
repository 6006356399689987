"""``bayesmeta sample``: the posterior of the prior of tasks in a table of one's own."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bayesmeta.checks import InputError
from bayesmeta.commands.hyperprior import Notes, add_prior_options, notes_on, prior_of
from bayesmeta.commands.predictions import New, add_predict_options, predicted, read_new
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
    import xarray as xr
    from rich.console import Console

    from bayesmeta.commands.parsing import Subparsers
    from bayesmeta.fitted.posterior import FittedPosterior
    from bayesmeta.posterior.priors import LKJ
    from bayesmeta.runner.files import Writer
    from bayesmeta.statistics import TaskStatistics

_SETTINGS = ("draws", "tune", "chains", "random_seed", "target_accept")
"""Options that ``sample_posterior`` takes, and checks, as they are."""


def add(commands: Subparsers) -> None:
    """Add the command."""
    sample = commands.add_parser(
        "sample",
        help="draw from the posterior of the prior of tasks in a table of your own",
        description="Draw from the posterior of the mean and covariance of the parameters of tasks "
        "in a CSV or Parquet file with a row for every reward. Exit code 1 where the draws should "
        "not be trusted. bayesmeta fit gives a single estimate.",
        example="bayesmeta sample sleepstudy --task Subject --reward Reaction \\\n"
        "      --features Days --intercept --level 0.9 --out sleep.nc",
    )
    add_data_options(sample)
    _add_sampler(sample.add_argument_group("the sampler"))
    add_prior_options(sample)
    output = add_output_options(sample)
    output.add_argument(
        "--out",
        type=Path,
        default=Path("posterior.nc"),
        metavar="FILE.nc",
        help="draws as NetCDF; a page with prior, posterior and diagnostics beside it as .png "
        "(default: %(default)s)",
    )
    add_predict_options(sample)
    sample.set_defaults(command=_sample)


def _add_sampler(group: argparse._ArgumentGroup) -> None:
    for name, default, text in (
        ("draws", 1000, "of each chain"),
        ("tune", None, "draws before them, by default as many as are needed"),
        ("chains", 4, "how many, side by side"),
    ):
        group.add_argument(
            f"--{name}",
            type=int,
            default=default,
            metavar="K",
            help=text if default is None else f"{text} (%(default)s)",
        )
    group.add_argument(
        "--seed",
        "--random-seed",
        dest="random_seed",
        type=int,
        default=0,
        metavar="S",
        help="of the draws (%(default)s)",
    )
    group.add_argument(
        "--method",
        choices=("auto", "nuts", "laplace"),
        default="auto",
        help="nuts; laplace, quick where tasks are many; auto: laplace where its weights pass "
        "every check and neither --tune nor --target-accept is given, else nuts (%(default)s)",
    )
    group.add_argument(
        "--target-accept",
        type=float,
        default=0.8,
        metavar="P",
        help="nearer 1 where draws diverge (%(default)s)",
    )


class Places(NamedTuple):
    """Where the results go; ``old`` are names of files that will be replaced."""

    draws: Path
    page: Path
    plot: Path | None
    predictions: Path | None
    old: list[str]


def _sample(options: argparse.Namespace) -> int:
    """Draw, write and print; exit code 1 where the draws should not be trusted."""
    from bayesmeta.estimators.fit import FEATURES
    from bayesmeta.fitted.posterior import FittedPosterior
    from bayesmeta.fitted.quantities import checked_level
    from bayesmeta.posterior.centring import told_by_rows
    from bayesmeta.posterior.sampling import check_settings
    from bayesmeta.runner.progress import compiling

    settings = {name: getattr(options, name) for name in _SETTINGS}
    with naming_options(), compiling():
        check_settings(**settings)
        level = checked_level(options.level)
        design = read_tasks(options)
        stats, noise = design.stats, design.noise_sd
        if stats.dim > FEATURES:
            raise InputError(
                f"{stats.dim} features are more than sample takes ({FEATURES}); use fewer, or "
                "bayesmeta fit --method moment-clipped"
            )
        options.centre = told_by_rows(stats, options.centre, design.rows)
        prior = prior_of(stats, noise, options)
        new = read_new(options, design)
        places = _places(options, new)
        notes = notes_on(stats, noise, prior, options.centre)
        say_notes(design, () if new is None else new.notes)
        if notes.conflict:
            print(f"bayesmeta: {visible(notes.conflict)}", file=sys.stderr)
        tree = _draw(
            stats,
            noise,
            prior,
            settings
            | {
                "method": options.method,
                "centre": options.centre,
                "rows": design.rows,
                "progressbar": not options.json,
            },
        )
        fitted = FittedPosterior(design, tree, level)
        text = (_json if options.json else _tables)(fitted, places, notes)
        files = _files(fitted, places, options.sort)
        if new is not None:
            how = {"rewards": options.with_noise}
            files[new.place] = predicted(new, lambda rows: fitted.predict(rows, **how))
    write_and_say(files, text)
    return 0 if tree.attrs["trusted"] else 1


def _places(options: argparse.Namespace, new: New | None) -> Places:
    """The files to write, in folders that can be written; refuses two results in one file."""
    from bayesmeta.runner.files import writable_folder

    out = options.out
    if out.suffix != ".nc" or out.is_dir():
        raise InputError(f"--out must be a file that ends in .nc, got {out}")
    folder = writable_folder(out.parent)
    draws, page = folder / out.name, folder / out.with_suffix(".png").name
    plot = None
    if options.plot is not None:
        plot = writable_folder(options.plot.parent) / options.plot.name
        if plot.is_dir() or plot.resolve() in (draws.resolve(), page.resolve()):
            raise InputError(
                f"--plot must be a file of its own, got {options.plot} ({draws.name} has the "
                f"draws, {page.name} the page)"
            )
    old = [path.name for path in (draws, page) if path.exists()]
    return Places(draws, page, plot, None if new is None else new.place, old)


def _draw(
    stats: TaskStatistics, noise: float | None, prior: LKJ | None, settings: dict[str, Any]
) -> xr.DataTree:
    """``sample_posterior`` without its warnings: what they say is printed with the results."""
    import warnings

    from bayesmeta.posterior.priors import PriorWarning
    from bayesmeta.posterior.sampling import FitWarning, sample_posterior

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        warnings.simplefilter("ignore", FitWarning)
        return sample_posterior(stats, noise, prior=prior, **settings)


def _files(fitted: FittedPosterior, places: Places, sort: str | None) -> dict[Path, Writer]:
    """The draws, the page, and the plot of the tasks if asked for."""
    from bayesmeta.report.figures.page import posterior_page
    from bayesmeta.report.posterior import write_tree

    page = posterior_page(fitted.tree, fitted.level)
    files: dict[Path, Writer] = {
        places.draws: lambda to: write_tree(fitted.tree, to),
        places.page: lambda to: page.savefig(to, dpi=100),
    }
    if places.plot is not None:
        from bayesmeta.report.figures.tasks import figure_tasks

        tasks = figure_tasks(fitted, sort)
        files[places.plot] = lambda to: tasks.savefig(to, dpi=110)
    return files


def _json(fitted: FittedPosterior, places: Places, notes: Notes) -> str:
    from bayesmeta.report.posterior import as_json

    found = as_json(fitted, in_options)
    found["identified"] = not notes.undetermined
    found["prior_conflict"] = notes.conflict
    found["advice"] = "; ".join(text for text in (*notes, found["advice"]) if text)
    files = {name: getattr(places, name) for name in ("draws", "page", "plot", "predictions")}
    found["files"] = {name: str(path) for name, path in files.items() if path is not None}
    return json.dumps(found, indent=2, allow_nan=False)


def _tables(fitted: FittedPosterior, places: Places, notes: Notes) -> str:
    from bayesmeta.report.console import rendered
    from bayesmeta.report.posterior import print_posterior

    def show(to: Console) -> None:
        print_posterior(to, fitted, in_options)
        said = [notes.conflict, notes.few]
        said.append(notes.undetermined and f"not identified: {notes.undetermined}")
        for text in filter(None, said):
            to.print(visible(text), markup=False, emoji=False, highlight=False)

    replaced = f" (replaced {' and '.join(places.old)})" if places.old else ""
    wrote = f"wrote {places.draws.name} and {places.page.name} in {places.draws.parent}{replaced}"
    also = (f"wrote {path}" for path in (places.plot, places.predictions) if path is not None)
    return "\n".join([rendered(show), visible(wrote), *map(visible, also)])
