"""What ``fit`` and ``sample`` share: a table of one's own, its options, advice that names them."""

from __future__ import annotations

import argparse
import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import Advice, InputError, one_of, real
from bayesmeta.data.shipped import NAMES as DATA_SETS
from bayesmeta.data.shipped import data_path
from bayesmeta.display import visible

if TYPE_CHECKING:
    from bayesmeta.runner.files import Writer
    from bayesmeta.statistics import TaskStatistics
    from bayesmeta.tables.design import Design

OPTIONS = {
    "random_seed": "--seed",
    "prior": "--prior-scale, --prior-eta, …",
    "scale": "--prior-scale",
    "noise_scale": "--prior-noise-scale",
    "sample_posterior": "bayesmeta sample",
    "limit": "limit (in Python, fit_prior)",
    "centre=False": "--no-centre",
    "confint('profile')": "--confint profile",
    "confint('bootstrap')": "--confint bootstrap",
}
"""Arguments whose option has another name than theirs."""


def in_options(text: str) -> str:
    """Advice with the names of options; other text as it is."""
    return text.in_options(OPTIONS) if isinstance(text, Advice) else text


@contextmanager
def naming_options() -> Iterator[None]:
    """Errors raised inside name options instead of arguments."""
    try:
        yield
    except InputError as error:
        raise InputError(in_options(error.args[0])) from None


_COLUMNS = ("formula", "task", "reward", "features", "fixed", "weights", "noise_var", "noise_se")
"""Options that name columns."""
LEVEL = 0.95
"""Of intervals, unless another is asked for."""


def add_data_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """The table, which of its columns are what, and how it is read."""
    parser.add_argument(
        "file",
        type=Path,
        nargs=None if required else "?",
        metavar="FILE",
        help=f"CSV or Parquet, with a header; or a data set of the package: {', '.join(DATA_SETS)}",
    )
    _add_model(parser.add_argument_group("the model: a formula, or columns"))
    _add_noise(parser.add_argument_group("the noise"))
    rows = parser.add_argument_group("rows")
    rows.add_argument(
        "--drop-missing", action="store_true", help="leave out rows that lack a value"
    )
    rows.add_argument(
        "--batches",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="sum up the file in batches, in little memory (by default above 200 MB)",
    )


def _add_model(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--formula",
        metavar="F",
        help="as lme4 has it: 'y ~ x + (x | task)'; instead of the five options below",
    )
    group.add_argument("--task", metavar="COLUMN", help="which task a row belongs to")
    group.add_argument("--reward", metavar="COLUMN", help="the reward (the response)")
    group.add_argument(
        "--features",
        action="append",
        default=[],
        metavar="A,B,…",
        help="columns, with commas; may be repeated, and a name that has a comma stands alone",
    )
    group.add_argument("--intercept", action="store_true", help="add a feature that is always 1")
    group.add_argument(
        "--fixed",
        action="append",
        default=[],
        metavar="A,B,…",
        help="more columns, whose coefficients are the same in all tasks",
    )


def _add_noise(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--noise-sd", default="estimate", metavar="S", help="a number, or 'estimate' (the default)"
    )
    group.add_argument("--noise-var", metavar="COLUMN", help="known variances of the rows")
    group.add_argument("--noise-se", metavar="COLUMN", help="known standard errors of the rows")
    group.add_argument(
        "--weights", metavar="COLUMN", help="a row's noise has the variance S^2 / weight"
    )


def refuse_table(options: argparse.Namespace) -> None:
    """Refuse options of ``add_data_options`` where there is no FILE they could be about."""
    for name in (*_COLUMNS, "intercept", "drop_missing"):
        if getattr(options, name):
            raise InputError(f"--{name.replace('_', '-')} describes a table; give its FILE, too")


def add_output_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """What is shown; the group, for more."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--level", type=float, default=LEVEL, metavar="P", help="of intervals (default: 0.95)"
    )
    group.add_argument("--json", action="store_true", help="print JSON instead of tables")
    group.add_argument("--plot", type=Path, metavar="OUT.png", help="draw tasks and prior")
    group.add_argument("--sort", metavar="FEATURE", help="order the tasks of --plot by this one")
    return group


def read_tasks(options: argparse.Namespace) -> Design:
    """The table with the statistics of its tasks; its ``noise_sd`` is None where the noise is to
    be estimated."""
    from bayesmeta.tables.batches import from_file, in_batches
    from bayesmeta.tables.design import tabulate
    from bayesmeta.tables.reading import read_table

    noise = (
        None if options.noise_sd == "estimate" else real("--noise-sd", options.noise_sd, above=0.0)
    )
    if options.plot is not None and options.plot.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InputError(f"--plot must end in .png, .pdf or .svg, got {options.plot}")
    if options.sort is not None and options.plot is None:
        raise InputError("--sort is of --plot; give that, too, or leave --sort out")
    if options.formula is not None and options.task is not None:
        raise InputError("--formula says it all; leave out --task")
    path, notes = options.file, []
    if not path.exists() and str(path) in DATA_SETS:
        path = data_path(str(path))
        notes = [f"{options.file} is a data set of the package"]
    source: Any = path
    known: list[str] = []
    if options.formula is None and (options.task is None or options.reward is None):
        _ask_for_columns(path, options)
    if options.formula is None and (options.features or options.fixed):
        # what stands between commas depends on the names of columns
        if in_batches(path, options.batches):
            known = from_file(path, options.task or "").columns
        else:
            source = read_table(path, options.task or "")
            known = list(source.columns)
    design = tabulate(
        source,
        options.formula,
        task=options.task,
        reward=options.reward,
        features=_columns(known, options.features, "--features"),
        intercept=options.intercept,
        fixed=_columns(known, options.fixed, "--fixed"),
        weights=options.weights,
        noise_var=options.noise_var,
        noise_se=options.noise_se,
        drop_missing=options.drop_missing,
        batches=options.batches,
    )
    if noise is not None and design.noise_sd is not None:
        raise InputError("--noise-var and --noise-se say the noise of every row; omit --noise-sd")
    stats = design.stats
    if options.sort is not None:
        own = zip(map(str, stats.feature_labels), stats.differs, strict=True)
        one_of("--sort", options.sort, [name for name, differs in own if differs])
    rows = 0 if stats.count is None else int(stats.count.sum())
    if rows < stats.dim:
        raise InputError(f"{options.file} has {rows} rows, fewer than the {stats.dim} features")
    for label in map(str, stats.tasks or ()):
        if not label.strip() or "\0" in label:
            raise InputError(f"column {design.task!r} has the label {label!r}; give tasks a name")
    return design._replace(
        noise_sd=design.noise_sd if noise is None else noise, notes=(*notes, *design.notes)
    )


def _ask_for_columns(path: Path, options: argparse.Namespace) -> None:
    """Refuse a table without a formula, or task and reward, with the names to choose from."""
    from bayesmeta.tables.batches import from_file, in_batches
    from bayesmeta.tables.reading import read_table

    if in_batches(path, options.batches):
        names = from_file(path, "").columns
    else:
        names = [str(one) for one in read_table(path, "").columns]
    lacking = "--task" if options.task is None else "--reward"
    raise InputError(
        f"give {lacking}, a column, or --formula; the columns are "
        f"{', '.join(map(repr, names)):.200}"
    )


def _columns(known: list[str], given: list[str], option: str) -> list[str]:
    """The columns of an option: each is a column as it stands, or several with commas."""
    names = []
    for text in given:
        for part in [text] if text in known else text.split(","):
            name = part.strip()
            if part != name and part in known:
                if name in known and part != text:
                    raise InputError(
                        f"{option}: there are columns {name!r} and {part!r}; name each by itself"
                    )
                name = part
            if name:
                names.append(name)
    return names


def say_notes(design: Design, more: Sequence[str] = ()) -> None:
    """Say what was done to the table, and ``more``, once nothing can be refused any more."""
    for note in (*design.notes, *more):
        print(f"bayesmeta: {visible(note)}", file=sys.stderr)
    say_alike(design.stats)


def say_alike(stats: TaskStatistics) -> None:
    """Say where two labels of tasks differ in what is not seen; once nothing can be refused any
    more, as a refusal is one line."""
    seen: dict[str, str] = {}
    for label in map(str, stats.tasks or ()):
        shown = _as_seen(label)
        if shown in seen:
            note = f"tasks {seen[shown]!a} and {label!a} look the same and are kept apart"
            print(f"bayesmeta: {note}", file=sys.stderr)
            return
        seen[shown] = label


def _as_seen(label: str) -> str:
    """A label as one sees it: without blanks at its ends and characters that do not show."""
    if label.isascii():
        return " ".join(label.split())
    text = "".join(c for c in label if unicodedata.category(c) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", text).split())


def say(text: str) -> None:
    """Print at once: what cannot be printed is an error here, not when the program ends.

    A reader that closed the pipe, as ``head`` does, has what it wanted.
    """
    try:
        try:
            print(text, flush=True)
        except UnicodeEncodeError:  # a terminal that does not know the characters
            coding = sys.stdout.encoding
            print(text.encode(coding, "backslashreplace").decode(coding), flush=True)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        raise InputError(f"cannot write to standard output ({error.strerror or error})") from None


def write_and_say(files: dict[Path, Writer], text: str) -> None:
    """Files and text: all or none. The text comes when all files are filled and before they are
    put in place, so that if one of them cannot be written, the others are not."""
    from bayesmeta.runner.files import write_together

    if not files:
        say(text)
        return
    last, fill = list(files.items())[-1]

    def fill_and_say(to: Path) -> None:
        fill(to)
        say(text)

    write_together(files | {last: fill_and_say})
