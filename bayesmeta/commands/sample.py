"""``bayesmeta sample``: the posterior of the prior of tasks in a table of one's own."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bayesmeta.checks import InputError, real
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

    from bayesmeta.commands.parsing import Subparsers
    from bayesmeta.posterior.priors import LKJ
    from bayesmeta.runner.files import Writer
    from bayesmeta.statistics import TaskStatistics

FEW = 3
"""Tasks up to which the prior decides."""
_SETTINGS = ("draws", "tune", "chains", "random_seed", "target_accept")
"""Options that ``sample_posterior`` takes, and checks, as they are."""
_EACH = ("mean_sd", "scale")
"""Parts of the prior with a number for every feature."""
_PRIOR = {
    "mean_sd": "mu_i ~ N(m_i, S^2) about the pooled estimate m; one S, or S,S,… for the intercept "
    "and the features in their order",
    "scale": "standard deviations of Sigma ~ half-normal(S); one S, or S,S,… for those that differ "
    "between tasks",
    "eta": "its correlations ~ LKJ(S)",
    "noise_scale": "the noise's standard deviation ~ half-normal(S)",
}
"""Parts of the prior that an option changes."""


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
    prior = sample.add_argument_group("the prior, in the units of the data")
    for name, text in _PRIOR.items():
        told = "2" if name == "eta" else "from the data"
        kind = str if name in _EACH else float
        prior.add_argument(_option(name), type=kind, metavar="S", help=f"{text} (default: {told})")
    prior.add_argument(
        "--no-centre",
        dest="centre",
        action="store_const",
        const=False,
        help="do not take features about their means; with an intercept they are, so that their "
        "origin does not matter, and the prior of the intercept is of the level there",
    )
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


def _option(field: str) -> str:
    return f"--prior-{field.replace('_', '-')}"


class Places(NamedTuple):
    """Where the results go; ``old`` are names of files that will be replaced."""

    draws: Path
    page: Path
    plot: Path | None
    predictions: Path | None
    old: list[str]


class Notes(NamedTuple):
    """What else to say of a fit; empty text where there is nothing."""

    conflict: str
    few: str
    undetermined: str


def _sample(options: argparse.Namespace) -> int:
    """Draw, write and print; exit code 1 where the draws should not be trusted."""
    from bayesmeta.estimators.fit import FEATURES
    from bayesmeta.fitted.posterior import FittedPosterior
    from bayesmeta.fitted.quantities import checked_level
    from bayesmeta.posterior.sampling import check_settings
    from bayesmeta.runner.progress import compiling

    settings = {name: getattr(options, name) for name in _SETTINGS}
    with naming_options():
        check_settings(**settings)
        level = checked_level(options.level)
        design = read_tasks(options)
        stats, noise = design.stats, design.noise_sd
        if stats.dim > FEATURES:
            raise InputError(
                f"{stats.dim} features are more than sample takes ({FEATURES}); use fewer, or "
                "bayesmeta fit --method moment-clipped"
            )
        prior = _prior(stats, noise, options)
        new = read_new(options, design)
        places = _places(options, new)
        with compiling():
            notes = _notes(stats, noise, prior, options.centre)
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
        text = (_json if options.json else _tables)(tree, places, notes, level)
        files = _files(tree, places, level)
        if new is not None:
            fitted = FittedPosterior(design, tree, level)
            how = {"rewards": options.with_noise}
            files[new.place] = predicted(new, lambda rows: fitted.predict(rows, **how))
    write_and_say(files, text)
    return 0 if tree.attrs["trusted"] else 1


def _prior(stats: TaskStatistics, noise: float | None, options: argparse.Namespace) -> LKJ | None:
    """The default prior with the parts that are given; None where none is."""
    import numpy as np

    from bayesmeta.posterior.defaults import default_prior

    given: dict[str, Any] = {}
    for field in _PRIOR:
        option, value = _option(field), getattr(options, f"prior_{field}")
        if value is None:
            continue
        parts = value.split(",") if field in _EACH else [value]
        numbers = [real(option, part, above=0.0) for part in parts]
        own = stats.differs if field == "scale" else np.ones(stats.dim, dtype=bool)
        if len(numbers) not in (1, own.sum(), stats.dim):
            names = np.array(stats.feature_labels, dtype=object)[own]
            raise InputError(
                f"{option} has {len(numbers)} numbers; give one, or {len(names)}, for "
                f"{', '.join(map(repr, map(str, names)))}"
            )
        if 1 < len(numbers) < stats.dim:  # the others' is not used
            every = np.ones(stats.dim)
            every[own] = numbers
            numbers = every.tolist()
        given[field] = numbers[0] if len(numbers) == 1 else numbers
    if noise is not None and "noise_scale" in given:
        raise InputError("--prior-noise-scale is for an unknown noise; --noise-sd says it")
    return replace(default_prior(stats, noise, options.centre), **given) if given else None


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


def _notes(
    stats: TaskStatistics, noise: float | None, prior: LKJ | None, centre: bool | None
) -> Notes:
    """A prior that contradicts the data, few tasks, data that more draws would not help."""
    from bayesmeta.posterior.centring import centring_of
    from bayesmeta.posterior.conflict import at_odds

    centring = centring_of(stats, centre)
    inside = stats if centring is None else centring.inside(stats)
    found = at_odds(inside, noise, prior.settled(stats.dim)) if prior else ()
    conflict = few = ""
    if found:
        conflict = (
            f"the prior does not suit the data: {'; '.join(map(in_options, found))}; are its "
            "numbers in their units?"
        )
    if len(stats) <= FEW:
        few = (
            f"{len(stats)} tasks say little about how tasks differ, so the answer depends on the "
            "prior: give your own (--prior-scale, --prior-mean-sd)"
        )
    return Notes(conflict, few, _undetermined(stats, noise))


def _undetermined(stats: TaskStatistics, noise: float | None) -> str:
    """REML's advice where the data do not determine the prior; nothing where they do."""
    from bayesmeta.estimators.estimate import Status
    from bayesmeta.estimators.fit import fit_prior

    try:
        status = fit_prior(stats, noise).status
    except InputError:  # it cannot tell
        return ""
    if status not in (Status.NOT_IDENTIFIED, Status.NO_NOISE):
        return ""
    return f"{in_options(status.advice)}; more draws will not help"


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


def _files(tree: xr.DataTree, places: Places, level: float) -> dict[Path, Writer]:
    """The draws, the page, and the plot of the tasks if asked for."""
    from bayesmeta.report.figures.page import posterior_page
    from bayesmeta.report.posterior import write_tree

    page = posterior_page(tree, level)
    files: dict[Path, Writer] = {
        places.draws: lambda to: write_tree(tree, to),
        places.page: lambda to: page.savefig(to, dpi=100),
    }
    if places.plot is not None:
        from bayesmeta.report.figures.tasks import figure_tasks

        tasks = figure_tasks(tree, level=level)
        files[places.plot] = lambda to: tasks.savefig(to, dpi=110)
    return files


def _json(tree: xr.DataTree, places: Places, notes: Notes, level: float) -> str:
    from bayesmeta.report.posterior import as_json

    found = as_json(tree, in_options, level)
    found["identified"] = not notes.undetermined
    found["prior_conflict"] = notes.conflict
    found["advice"] = "; ".join(text for text in (*notes, found["advice"]) if text)
    files = {name: getattr(places, name) for name in ("draws", "page", "plot", "predictions")}
    found["files"] = {name: str(path) for name, path in files.items() if path is not None}
    return json.dumps(found, indent=2, allow_nan=False)


def _tables(tree: xr.DataTree, places: Places, notes: Notes, level: float) -> str:
    from bayesmeta.report.console import rendered
    from bayesmeta.report.posterior import print_posterior

    show = partial(print_posterior, tree=tree, wording=in_options, level=level)
    lines = [rendered(show, plain_width=160)]
    lines += [visible(text) for text in (notes.conflict, notes.few) if text]
    if notes.undetermined:
        lines.append(f"not identified: {notes.undetermined}")
    replaced = f" (replaced {' and '.join(places.old)})" if places.old else ""
    wrote = f"wrote {places.draws.name} and {places.page.name} in {places.draws.parent}{replaced}"
    lines.append(visible(wrote))
    also = (places.plot, places.predictions)
    lines += [visible(f"wrote {path}") for path in also if path is not None]
    return "\n".join(lines)
