"""Write the referee's report of this folder, its figure and the README's block.

python analyses/claims/report.py            # from the recorded run, claims.json
python analyses/claims/report.py --record   # check everything anew first, and record the verdicts
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bayesmeta.claims.run import as_json, check_claims, grouped_ids
from bayesmeta.environment import paper_family
from bayesmeta.plots_claims import figure_slack
from bayesmeta.progress import progress_bar
from bayesmeta.records import write_atomically
from bayesmeta.studies.report import table, write_block
from bayesmeta.theory.bounds import describe_theory, regime_of, smallest_both, vacuous

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
Row = dict[str, Any]


def record() -> None:
    """Check everything, quick and full, and keep what came of it."""
    from bayesmeta.claims import all_claims

    verdicts = {}
    for quick in (True, False):
        name = "quick" if quick else "full"
        with progress_bar(f"checking, {name}", "claims", len(all_claims())) as show:
            found = check_claims(quick=quick, progress=show)
        verdicts[name] = {one.claim.id: one.verdict.verdict for one in found}
    text = json.dumps(as_json(found), indent=1, allow_nan=False) + "\n"
    write_atomically(HERE / "claims.json", lambda to: to.write_text(text))
    kept = json.dumps(verdicts, indent=2) + "\n"
    path = ROOT / "bayesmeta" / "claims" / "recorded.json"
    write_atomically(path, lambda to: to.write_text(kept))


def number(value: object) -> str:
    """A number for reading."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}"


def looseness(row: Row) -> str:
    """How many times larger the bound is than what was found, where it is tightest."""
    slack = row["slack"]
    if slack is None or slack > 1 - 1e-15:
        return "beyond 1e15" if slack is None or slack < 1.5 else ""
    if row["kind"] == "I":
        return "exact"
    if slack < 1e-6:
        return "1 (sharp)"
    return f"{1 / (1 - slack):,.3g}"


def place(where: dict[str, Any]) -> str:
    """Where a point lies."""
    return ", ".join(
        f"{name} = {number(value)}"
        for name, value in where.items()
        if name not in ("left", "right")
    )


def failed(row: Row, rows: dict[str, Row]) -> str:
    """A violated claim: the counterexample, where the proof goes wrong, what survives."""
    found = row["counterexample"]
    left = "infinite" if found["left"] is None else number(found["left"])
    sides = f"{left} > {number(found['right'])}"
    sides += " (logarithms)" if found.get("logarithms") else ""
    inner = {k: v for k, v in found.items() if k not in ("counts", "interval", "logarithms")}
    lines = [
        f"### `{row['id']}` (lines {row['lines']})",
        f"*Printed:* {row['statement']}.",
        f"*Counterexample:* {sides}, at {place(inner)}."
        + (f" {found['counts'][0]} of {found['counts'][1]} trials." if "counts" in found else "")
        + f" `bayesmeta check --only {row['id']}` shows it.",
        f"*Where it goes wrong:* {row['remark']}",
        f"*What survives:* {row['survives']}",
    ]
    better = rows.get(f"{row['id']}-corrected")
    if better is not None:
        lines.append(
            f"*Corrected:* {better['statement']}"
            + ("" if better["statement"].endswith(".") else ".")
            + (f" {better['remark']}" if better["remark"] else "")
            + f" Checked at {better['points']:,} points: {better['verdict']}."
        )
    return "\n\n".join(lines)


def holding(rows: list[Row]) -> str:
    """Claims that hold, section by section."""
    parts = []
    for section in dict.fromkeys(row["section"] for row in rows):
        here = [row for row in rows if row["section"] == section]
        cells = [
            [f"`{row['id']}`", row["lines"], row["statement"].replace("|", "\\|"),
             f"{row['points']:,}", looseness(row), row["remark"].replace("|", "\\|")]
            for row in here
        ]  # fmt: skip
        header = ["claim", "lines", "statement", "points", "loose by a factor", "remark"]
        parts.append(f"### {section.capitalize()}\n\n{table(header, cells)}")
    return "\n\n".join(parts)


def practice() -> str:
    """What the theorems promise in the paper's own experiment."""
    regime = regime_of(paper_family(), 10_000)
    values = {line.name: line.value for line in describe_theory(regime, 20)}
    horizon, tasks = smallest_both(regime)
    return (
        "In the paper's own experiment (d = 5, T = 200, N = 10,000, `bayesmeta theory`) the "
        f"theorems say nothing: {'; '.join(vacuous(regime))}. With the other constants as they are "
        f"one would need T = {horizon:,} and N = {tasks:.2g}. There k_2 = {values['k_2']:.2g} "
        f"(at N = 10,000), and the widening constant c_w is {values['c_w']:,.0f} where Section 6 "
        "uses 10."
    )


def counts(rows: list[Row]) -> str:
    """How many hold and fail."""
    words = [row["verdict"] for row in rows]
    text = f"{words.count('holds')} hold, {words.count('violated')} are violated"
    return text + (f", {words.count('undecided')} are undecided" if "undecided" in words else "")


def readme(rows: dict[str, Row]) -> str:
    """The referee's report."""
    groups = grouped_ids(rows)
    printed, literal, ours = ([rows[name] for name in groups[g]] for g in groups)
    bad = [row for row in printed if row["verdict"] == "violated"]
    good = [row for row in printed if row["verdict"] == "holds"]
    return f"""# Referee's report

Generated by `python analyses/claims/report.py` from the recorded run of
`bayesmeta check --full` (`claims.json`); do not edit. Derivations are in the docstrings of
`bayesmeta/claims` and, as working notes, in [notes-a](notes-a.md), [notes-b](notes-b.md) and
[notes-c](notes-c.md); notebook 04 tells the story.

**Of {len(printed)} claims the paper prints, {counts(printed)}.** Read literally, where their use
asks for less, {len(literal)} more are: {", ".join(f"`{row['id']}`" for row in literal)}. Of our
{len(ours)} corrections and sharpenings, {counts(ours)}. {sum(r["points"] for r in rows.values()):,}
points were looked at; all random verdicts together are wrong with probability at most 0.001.

**Do the theorems survive?** Theorem 1 does, with 5 ln(dT/δ) for c_ξ² in M and k_1 (as printed it is
false for small noise, and changes with the units of rewards), for action laws whose density does
not grow with the norm on the whole ball. Theorem 2 does, for the same laws, with N_0 at least
10d + 4 ln(16dT) and another c_bad (1 + ln N)/√d; its rate d^(5/2)√(NT) asks for actions whose norm
grows like √d. Lemma M-QB survives with all its constants, although one of its three terms is false.

![How loose each claim is](slack.png)

## What it means for a user of the theory

{practice()}

The algorithm does not depend on any of this: its estimators are unbiased as claimed
(`covariance-unbiased`, `ols-stopping`), and widening dominates as claimed (`widening`,
`event-covariance`). What to change in it: nothing but N_0, and the widening constant, which the
figure above shows to be far too large.

## How claims are read

As printed, with their printed constants, wherever their printed conditions hold. A condition that a
statement leaves out although every use of it has it (an event, η = 1/(dnT)) is taken as meant; the
statement without it is an entry of its own (`-literal`). A condition that is left out and *not*
met where the statement is used is a fault (`empirical-covariance`).

## What does not hold

{chr(10).join(failed(row, rows) + chr(10) for row in bad)}
## Read literally

{chr(10).join(failed(row, rows) + chr(10) for row in literal)}
## What holds

Loose by a factor: how many times larger the bound is than what was found, at the point where it is
tightest (an upper bound on the true looseness where a probability was bounded, not computed).

{holding(good)}

## Ours

{holding(ours)}
"""


def main_block(rows: dict[str, Row]) -> str:
    """The block of the project's README."""
    groups = grouped_ids(rows)
    printed = [rows[name] for name in groups["printed"]]
    bad = [f"`{row['id']}`" for row in printed if row["verdict"] == "violated"]
    return (
        f"Of the {len(printed)} claims of the paper in our catalogue, {counts(printed)}: "
        f"{', '.join(bad)}. Each comes with a counterexample, the line where the proof goes wrong, "
        "and what survives; "
        f"{counts([rows[name] for name in groups['ours']]).split(',')[0]} of our "
        f"{len(groups['ours'])} corrections and sharpenings. Lemma M-QB survives as printed; "
        "Theorems 1 and 2 survive with changed constants and a stronger Assumption 1. The "
        "referee's report: [analyses/claims](analyses/claims/README.md)."
    )


def main(arguments: list[str]) -> None:
    if arguments == ["--record"]:
        record()
    rows = {row["id"]: row for row in json.loads((HERE / "claims.json").read_text())}
    figure = figure_slack(list(rows.values()))
    write_atomically(HERE / "slack.png", lambda to: figure.savefig(to, dpi=110))
    page = readme(rows)
    write_atomically(HERE / "README.md", lambda to: to.write_text(page))
    write_block(ROOT / "README.md", "claims", main_block(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
