"""The block *verdicts* of docs/theory.md: what the record says of the paper's three results.

python docs/site/verdicts.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayesmeta.claims.faults import FAULTS, USES, Fault, faults_of
from bayesmeta.report.markdown import replace_block, table, write_block

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "theory.md"
NAME = "verdicts"
RESULTS = {"theorem-1": "Theorem 1", "lemma-mqb": "Lemma 1", "theorem-2": "Theorem 2"}
"""Claims and what the page calls them."""
Row = dict[str, Any]


def in_proof(claim: str) -> list[Fault]:
    """The faults of what its proof cites, directly or not, that do not break the claim itself."""
    below, waiting = set(), list(USES.get(claim, ()))
    while waiting:
        one = waiting.pop()
        if one not in below:
            below.add(one)
            waiting += USES.get(one, ())
    own = faults_of(claim)
    return [fault for fault in FAULTS if fault not in own and below & set(fault.breaks)]


def repaired(rows: Mapping[str, Row], claim: str) -> str:
    """The verdict on the corrected version, where there is one."""
    better = [row for row in rows.values() if row["corrects"] == claim]
    return "; ".join(f"**{row['verdict']}** (`{row['id']}`)" for row in better)


def named(faults: list[Fault] | tuple[Fault, ...]) -> str:
    """Faults by name."""
    return ", ".join(fault.name for fault in faults)


def block(record: list[Row]) -> str:
    """The table of verdicts, and below it the faults that are named in it, with their repairs."""
    rows = {row["id"]: row for row in record}
    lines = [
        [
            f"{title} (`{claim}`)",
            f"**{rows[claim]['verdict']}**",
            named(faults_of(claim)),
            named(in_proof(claim)),
            repaired(rows, claim),
        ]
        for claim, title in RESULTS.items()
    ]
    head = ["result", "as printed", "broken by", "slips in its proof", "repaired"]
    met = [
        fault
        for fault in FAULTS
        if any(fault in (*faults_of(claim), *in_proof(claim)) for claim in RESULTS)
    ]
    bullets = [
        f"- **{one.name}**: {one.what}. What survives: {one.survives}. Repair: {one.repair}."
        for one in met
    ]
    fold = ["<details><summary>The slips, one by one</summary>", "\n".join(bullets), "</details>"]
    return "\n\n".join([table(head, lines), *fold])


def recorded() -> list[Row]:
    """All claims, as they were recorded."""
    rows: list[Row] = json.loads((ROOT / "analyses" / "claims" / "claims.json").read_text())
    return rows


def page() -> str:
    """The page with the block of today's record."""
    return replace_block(PAGE.read_text(), NAME, block(recorded()))


if __name__ == "__main__":
    write_block(PAGE, NAME, block(recorded()))
