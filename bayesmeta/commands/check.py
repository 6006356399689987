"""``bayesmeta check``: which of the paper's claims hold, by how much, and which do not."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from bayesmeta.checks import InputError, one_of, whole

if TYPE_CHECKING:
    from rich.console import Console

    from bayesmeta.claims.run import Checked
    from bayesmeta.claims.verdict import Verdict
    from bayesmeta.commands.parsing import Subparsers


def add(commands: Subparsers) -> None:
    """Add the command."""
    check = commands.add_parser(
        "check",
        help="check the claims the paper prints",
        description="Check every claim of the paper that the catalogue lists. Exit code 0 where "
        "all verdicts are the recorded ones, 1 where one has changed.",
    )
    how = check.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="the points that decide (the default)")
    how.add_argument("--full", action="store_true", help="the whole grid")
    check.add_argument("--only", nargs="+", default=[], metavar="ID", help="only these claims")
    check.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts as JSON, too")
    check.add_argument(
        "--teeth",
        action="store_true",
        help="measure the smallest constant that each check would still accept (slower)",
    )
    check.add_argument("--seed", type=int, default=0, help="of the random points (default: 0)")
    check.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    from rich.console import Console

    from bayesmeta.claims.run import as_json, changed, check_claims
    from bayesmeta.runner.files import write_atomically
    from bayesmeta.runner.progress import compiling, progress_bar

    names = _names(options)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # quotations have letters that ASCII lacks
    with compiling(), progress_bar("checking", "claims", len(names)) as show:
        found = check_claims(
            names,
            quick=not options.full,
            seed=options.seed,
            progress=show,
            bite=options.teeth,
        )
    console = Console()
    _tables(console, found, options.teeth)
    _counts(console, found)
    for one in found if options.only else ():
        _explain(console, one)
    if options.json is not None:
        text = json.dumps(as_json(found), indent=2, allow_nan=False) + "\n"
        write_atomically(options.json, lambda to: to.write_text(text))
        console.print(f"wrote {options.json}")
    different = changed(found, quick=not options.full)
    if not different:
        console.print("all verdicts are the recorded ones")
    for name, (before, now) in different.items():
        console.print(f"changed: {name} was {before}, is {now}")
    return 1 if different else 0


def _names(options: argparse.Namespace) -> list[str]:
    """The ids of the claims asked for; all options are checked here, before the work."""
    from bayesmeta.claims import all_claims
    from bayesmeta.runner.files import writable_folder

    names = list(dict.fromkeys(name for text in options.only for name in text.split(",")))
    for name in names:
        one_of("--only", name, all_claims())
    whole("--seed", options.seed)
    if options.json is not None:
        if options.json.is_dir():
            raise InputError(f"--json must name a file, {options.json} is a folder")
        writable_folder(options.json.parent)
    return names or list(all_claims())


def _tables(console: Console, found: list[Checked], bite: bool) -> None:
    """A table for each section."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from bayesmeta.claims.run import accepted

    for section in dict.fromkeys(one.claim.section for one in found):
        table = Table(
            title=section.value, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0)
        )
        columns = ("claim", "verdict", "slack", *(["accepts"] * bite), "why")
        for column in columns:
            table.add_column(column, no_wrap=column != "why")
        for one in found:
            if one.claim.section is section:
                word = one.verdict.verdict
                shown = word.upper() if word == "violated" else word.split(",")[0]
                why = escape(one.verdict.why)
                accepts = [accepted(one.teeth)] * bite
                table.add_row(one.claim.id, shown, _slack(one.verdict), *accepts, why)
        console.print(table)


def _slack(verdict: Verdict) -> str:
    if verdict.loose_by is None and verdict.verdict != "violated":
        return ""
    return f"{verdict.slack:.2g}" if verdict.slack > -1e6 else "< -1e6"


def _counts(console: Console, found: list[Checked]) -> None:
    """How many claims of each group hold."""
    from bayesmeta.claims.run import grouped_ids
    from bayesmeta.claims.verdict import Outcome

    words = {one.claim.id: one.verdict.verdict for one in found}
    for title, ids in grouped_ids(words).items():
        here = [words[name] for name in ids]
        counts = (f"{here.count(word)} {word}" for word in get_args(Outcome))
        if ids:
            console.print(f"{title}: " + ", ".join(counts))
    console.print(
        "slack: 1 - left/right at the tightest point, 0 where a bound is sharp, negative where it "
        "fails, nothing for equalities; why: the first point that fails",
        style="dim",
    )


def _explain(console: Console, one: Checked) -> None:
    """Everything about a claim: where the paper has it, what was found, what follows."""
    from rich.markup import escape

    from bayesmeta.claims import correction_of

    claim, verdict = one.claim, one.verdict
    console.print(f"\n[bold]{claim.id}[/]: {escape(claim.statement)}")
    for relation in ("corrects", "sharpens", "reading_of"):
        if getattr(claim, relation):
            console.print(f"  {relation.replace('_', ' ')}: {getattr(claim, relation)}")
    console.print(f"  printed in: {escape(claim.where)}")
    console.print(f"  printed: “{escape(claim.quote)}”", highlight=False)
    examples = [] if verdict.counterexample is None else [verdict.counterexample, *verdict.others]
    for found in examples:
        _point(console, f"counterexample ({claim.sides}):", found)
    if not examples and verdict.loose_by is not None:
        title = (
            f"the bound is {verdict.loose_by:.4g} times what was found, or more; least slack at:"
        )
        _point(console, title, verdict.worst)
    why = "where it goes wrong" if verdict.verdict == "violated" else "remark"
    for title, text in ((why, claim.remark), ("what survives", claim.survives)):
        if text:
            console.print(f"  {title}: {escape(text)}")
    better = correction_of(claim.id)
    if better is not None:
        console.print(f"  corrected: --only {better.id}")


def _point(console: Console, title: str, found: dict[str, Any]) -> None:
    """The parameters of a point and its two sides, one a row."""
    from rich.markup import escape

    console.print(f"  {escape(title)}")
    for name, value in found.items():
        shown = f"{value:.6g}" if isinstance(value, float) else value
        if name == "interval":
            shown = " to ".join(f"{end:.6g}" for end in value)
        console.print(f"    {escape(name)} = {escape(str(shown))}", highlight=False)
