"""``bayesmeta check``: which of the paper's claims hold, by how much, and which do not."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    check.add_argument("--seed", type=int, default=0, help="of the random points (default: 0)")
    check.set_defaults(command=_check)


def _slack(verdict: Verdict) -> str:
    if verdict.loose_by is None and verdict.verdict != "violated":
        return ""
    return f"{verdict.slack:.2g}" if verdict.slack > -1e6 else "< -1e6"


def _explain(console: Console, one: Checked) -> None:
    """Everything about a claim."""
    from rich.markup import escape

    from bayesmeta.claims import all_claims

    claim, verdict = one.claim, one.verdict

    def points(title: str, found: dict[str, Any]) -> None:
        console.print(f"  {escape(title)}")
        for name, value in found.items():
            shown = f"{value:.6g}" if isinstance(value, float) else value
            if name == "interval":
                shown = " to ".join(f"{end:.6g}" for end in value)
            console.print(f"    {escape(name)} = {escape(str(shown))}", highlight=False)

    console.print(f"\n[bold]{claim.id}[/] (lines {claim.lines}): {escape(claim.statement)}")
    examples = [] if verdict.counterexample is None else [verdict.counterexample, *verdict.others]
    for found in examples:
        points(f"counterexample ({claim.sides}):", found)
    if not examples and verdict.loose_by is not None:
        points(f"tightest, the bound {verdict.loose_by:.4g} times what was found, at:",
               verdict.worst)  # fmt: skip
    why = "where it goes wrong" if verdict.verdict == "violated" else "remark"
    for title, text in ((why, claim.remark), ("what survives", claim.survives)):
        if text:
            console.print(f"  {title}: {escape(text)}")
    if f"{claim.id}-corrected" in all_claims():
        console.print(f"  corrected: --only {claim.id}-corrected")


def _check(options: argparse.Namespace) -> int:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from bayesmeta.claims import all_claims
    from bayesmeta.claims.run import as_json, changed, check_claims, grouped_ids
    from bayesmeta.runner.files import writable_folder, write_atomically
    from bayesmeta.runner.progress import progress_bar

    quick = not options.full
    names = list(dict.fromkeys(name for text in options.only for name in text.split(",")))
    for name in names:
        one_of("--only", name, all_claims())
    names = names or list(all_claims())
    whole("--seed", options.seed)
    if options.json is not None:
        if options.json.is_dir():
            raise InputError(f"--json must name a file, {options.json} is a folder")
        writable_folder(options.json.parent)
    with progress_bar("checking", "claims", len(names)) as show:
        found = check_claims(names, quick=quick, seed=options.seed, progress=show)
    console = Console()
    for section in dict.fromkeys(one.claim.section for one in found):
        table = Table(
            title=section, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0)
        )
        for column in ("claim", "verdict", "slack", "why"):
            table.add_column(column, no_wrap=column != "why")
        for one in found:
            if one.claim.section == section:
                word = one.verdict.verdict
                table.add_row(one.claim.id, word.upper() if word == "violated" else word,
                              _slack(one.verdict), escape(one.verdict.why))  # fmt: skip
        console.print(table)
    words = {one.claim.id: one.verdict.verdict for one in found}
    for title, ids in grouped_ids(words).items():
        counts = {word: sum(words[name] == word for name in ids)
                  for word in ("holds", "violated", "undecided")}  # fmt: skip
        if ids:
            console.print(f"{title}: " + ", ".join(f"{n} {word}" for word, n in counts.items()))
    console.print(
        "slack: 1 - left/right at the tightest point, 0 where a bound is sharp, negative where it "
        "fails, nothing for equalities; why: the first point that fails",
        style="dim",
    )
    for one in found if options.only else ():
        _explain(console, one)
    if options.json is not None:
        text = json.dumps(as_json(found), indent=2, allow_nan=False) + "\n"
        write_atomically(options.json, lambda to: to.write_text(text))
        console.print(f"wrote {options.json}")
    different = changed(found, quick)
    if not different:
        console.print("all verdicts are the recorded ones")
    for name, (before, now) in different.items():
        console.print(f"changed: {name} was {before}, is {now}")
    return 1 if different else 0
