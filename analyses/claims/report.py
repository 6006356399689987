"""Write the referee's report of this folder, its figure, its table and the README's block.

python analyses/claims/report.py            # from the recorded run, claims.json
python analyses/claims/report.py --record   # check everything anew first, and record the verdicts
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesmeta.claims.run import BUDGET, POINTS, as_json, check_claims
from bayesmeta.environment import paper_family
from bayesmeta.report.figures.claims import figure_slack
from bayesmeta.report.figures.style import DPI
from bayesmeta.report.markdown import write_block
from bayesmeta.report.page import render
from bayesmeta.runner.files import write_atomically
from bayesmeta.runner.progress import progress_bar
from bayesmeta.theory.bounds import describe_theory, regime_of, smallest_both, vacuous

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
Row = dict[str, Any]
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
GROUPS = ("printed", "read literally", "ours")


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
    path = ROOT / "bayesmeta" / "data" / "verdicts.json"
    write_atomically(path, lambda to: to.write_text(kept))


def number(value: object) -> str:
    """A number for reading."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}"


def scientific(value: float) -> str:
    """A large number as a multiple of a power of ten."""
    digits, power = f"{value:.1e}".split("e+")
    return f"{digits.removesuffix('.0')}·10" + str(int(power)).translate(RAISED)


def where(row: Row) -> str:
    """Where the paper states a claim: section, lemma or equation, or the lines of its source."""
    return str(row.get("where") or f"lines {row['lines']}")


def looseness(row: Row) -> str:
    """How many times larger the bound is than what was found, where it is tightest; nothing for
    equalities and orderings."""
    loose = row["loose_by"]
    if loose is None or row["kind"] == "S" or row["section"] == "experiment":
        return ""
    if loose > 1e15:
        return "beyond 1e15"
    return "1 (sharp)" if loose < 1 + 1e-6 else f"{loose:,.3g}"


def example(found: Row | None) -> str:
    """The two sides of a counterexample, and where it lies."""
    if found is None:
        return ""
    left = "infinite" if found["left"] is None else number(found["left"])
    sides = f"{left} > {number(found['right'])}"
    sides += " in logarithms" if found.get("logarithms") else ""
    if "interval" in found and found["interval"][0] != found["interval"][1]:
        sides += f" (interval {number(found['interval'][0])} to {number(found['interval'][1])})"
    apart = ("left", "right", "counts", "interval", "logarithms")
    place = ", ".join(f"{key} = {number(of)}" for key, of in found.items() if key not in apart)
    trials = f" {found['counts'][0]} of {found['counts'][1]} trials." if "counts" in found else ""
    return f"{sides}, at {place}.{trials}"


def corrections(rows: Sequence[Row]) -> dict[str, Row]:
    """Our corrected versions, by the id of what they correct."""
    return {row["corrects"]: row for row in rows if row.get("corrects")}


def as_csv(rows: Sequence[Row]) -> str:
    """Every claim with all that is recorded of it, one a row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    plain = ("id", "group", "section", "kind")
    after = ("statement", "verdict", "points", "remark", "survives", "sides")
    writer.writerow([*plain, "where", "quote", *after, "counterexample", "others", "loose by"])
    for row in rows:
        others = " / ".join(example(other) for other in row["others"])
        cells = [example(row["counterexample"]), others, looseness(row)]
        stands = [where(row), row.get("quote", "")]
        writer.writerow([*(row[k] for k in plain), *stands, *(row[k] for k in after), *cells])
    return text.getvalue()


def theory() -> dict[str, Any]:
    """What the theorems promise in the paper's own experiment."""
    regime = regime_of(paper_family(), 10_000)
    horizon, tasks = smallest_both(regime)
    return {
        "constants": {line.name: line.value for line in describe_theory(regime, 20)},
        "vacuous": vacuous(regime),
        "horizon": horizon,
        "tasks": tasks,
    }


def values(rows: Sequence[Row]) -> dict[str, Any]:
    """What the templates are filled with."""
    groups = {name: [row for row in rows if row["group"] == name] for name in GROUPS}
    verdicts = ("holds", "violated", "undecided")
    better = corrections(rows)
    bad = [row["id"] for row in groups["printed"] if row["verdict"] == "violated"]
    repairs = [better[name] for name in bad if name in better]
    return {
        "groups": groups,
        "counts": {
            name: {verdict: sum(row["verdict"] == verdict for row in here) for verdict in verdicts}
            for name, here in groups.items()
        },
        "points": sum(row["points"] for row in rows),
        "budget": BUDGET,
        "a_point": BUDGET / POINTS,
        "theory": theory(),
        "corrected": better,
        "sharpened": [row for row in groups["ours"] if row not in repairs],
        "scientific": scientific,
        "where": where,
        "looseness": looseness,
        "example": example,
        "command": "python analyses/claims/report.py",
    }


def readme(rows: Sequence[Row]) -> str:
    """The referee's report."""
    return render(HERE / "README.md.j2", **values(rows))


def main_block(rows: Sequence[Row]) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(rows))


def main(arguments: list[str]) -> None:
    if arguments == ["--record"]:
        record()
    rows = json.loads((HERE / "claims.json").read_text())
    figure = figure_slack(rows)
    write_atomically(HERE / "slack.png", lambda to: figure.savefig(to, dpi=DPI))
    page, everything = readme(rows), as_csv(rows)
    write_atomically(HERE / "README.md", lambda to: to.write_text(page))
    write_atomically(HERE / "claims.csv", lambda to: to.write_text(everything))
    write_block(ROOT / "README.md", "claims", main_block(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
