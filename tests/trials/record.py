"""The record of a mutation run, and why survivors are harmless (``survivors.toml``)."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

RECORD = Path("analyses/hardening/mutants.json")
SURVIVORS = Path("tests/trials/survivors.toml")
MOST = 0.05
"""The share of mutants that may survive unexplained."""
FATES = ("killed", "timeout", "explained", "unexplained")


def explanations(path: Path) -> list[dict[str, str]]:
    """Each with ``file``, ``text`` (a line of it, without indentation), ``why``, and if need be
    ``kind`` and ``change``."""
    found: list[dict[str, str]] = tomllib.loads(path.read_text())["survivor"]
    return found


def explains(one: dict[str, str], row: dict[str, Any]) -> bool:
    return all(one[name] == row[name] for name in ("file", "text", "kind", "change") if name in one)


def why(known: list[dict[str, str]], row: dict[str, Any]) -> str | None:
    return next((one["why"] for one in known if explains(one, row)), None)


def summary(rows: list[dict[str, Any]], known: list[dict[str, str]]) -> dict[str, Any]:
    """Counts by target and kind, and the survivors."""
    for row in rows:
        row["fate"] = row["result"]
        if row["result"] == "survived":
            row["why"] = why(known, row)
            row["fate"] = "unexplained" if row["why"] is None else "explained"
    shown = ("id", "file", "text", "kind", "change", "why")
    return {
        "mutants": len(rows),
        **_counts(rows),
        "killed_without_compiling": sum(row.get("stage") == "plain" for row in rows),
        "by_target": _by(rows, "target"),
        "by_kind": _by(rows, "kind"),
        "timeouts": [row["id"] for row in rows if row["fate"] == "timeout"],
        "survivors": [
            {name: row[name] for name in shown}
            for row in sorted(rows, key=lambda row: row["id"])
            if row["result"] == "survived"
        ],
    }


def tidy(path: Path, rows: list[dict[str, Any]]) -> int:
    """Drop the explanations of what no longer survives; returns how many."""
    survived = [row for row in rows if row["result"] == "survived"]
    head, *blocks = path.read_text().split("[[survivor]]")
    pairs = zip(blocks, explanations(path), strict=True)
    kept = [block for block, one in pairs if any(explains(one, row) for row in survived)]
    path.write_text("[[survivor]]".join([head, *kept]))
    return len(blocks) - len(kept)


def _counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    counts = Counter(row["fate"] for row in rows)
    return {fate: counts[fate] for fate in FATES}


def _by(rows: list[dict[str, Any]], name: str) -> dict[str, dict[str, int]]:
    values = sorted({row[name] for row in rows})
    return {value: _counts([row for row in rows if row[name] == value]) for value in values}
