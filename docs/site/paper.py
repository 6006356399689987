"""The page *From the paper to the code*: where every numbered thing of the paper lives.

``docs/paper.csv`` lists the numbered equations and named statements with their places, in the
paper's numbering, and for steps of proofs the claims that check them. Everything else is found:
code and tests by their docstrings, which name equations, claims by their own place in the paper,
verdicts in the record of the last full check.
"""

from __future__ import annotations

import ast
import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bayesmeta.claims import all_claims
from bayesmeta.claims.claim import Claim
from bayesmeta.claims.run import recorded

SHOWN = 3
"""Places of code, and tests, of an item at most."""
UNRECORDED = "not recorded"
"""In place of the verdict on a claim that is newer than the record."""
SECTIONS = (
    ("equation", "Equations"),
    ("theorem", "Theorems"),
    ("lemma", "Lemmas"),
    ("algorithm", "Algorithms"),
    ("assumption", "Assumptions"),
    ("figure", "The figure"),
)


class Item(NamedTuple):
    """A numbered thing of the paper; ``claims`` are named where no claim says that it is of it."""

    kind: str
    number: str
    title: str
    place: str
    claims: str

    @property
    def key(self) -> str:
        """``equation 11``; lemmas of the appendix have none."""
        return f"{self.kind} {self.number}" if self.number else ""


class Place(NamedTuple):
    """A docstring that names something; ``first``: in its first line."""

    path: str
    name: str
    first: bool


def items() -> list[Item]:
    """The list, in the order of the paper."""
    with (Path(__file__).parents[1] / "paper.csv").open() as file:
        return [Item(**row) for row in csv.DictReader(file)]


def named_in(text: str) -> set[str]:
    """What a text names: ``equation 11``, ``theorem 1``, ``assumption 2``."""
    found = set()
    text = re.sub(r"\s+", " ", text)
    for run in re.findall(r"\beqs?\. ((?:\(\d+\)(?:-|, and |, | and )?)+)", text, re.IGNORECASE):
        found |= {f"equation {n}" for n in _numbers(run.replace("(", "").replace(")", ""))}
    for kind, run in re.findall(
        r"\b(Theorem|Lemma|Algorithm|Assumption|Figure)s? ((?:\d+(?:-|, | and )?)+)", text
    ):
        found |= {f"{kind.lower()} {n}" for n in _numbers(run)}
    if "Lemma M-QB" in text:
        found.add("lemma 1")
    return found


def _numbers(run: str) -> Iterator[int]:
    """9, 10, 11, 14 of ``9-11 and 14``."""
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", run):
        yield from range(int(first), int(last or first) + 1)


@cache
def places(root: Path, folder: str) -> dict[str, list[Place]]:
    """Docstrings of a folder by what they name; those whose first line does stand first."""
    found: dict[str, list[Place]] = defaultdict(list)
    for path in sorted((root / folder).rglob("*.py")):
        short = path.relative_to(root).as_posix()
        if short.startswith("bayesmeta/claims/"):
            continue  # claims speak for themselves
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            text = ast.get_docstring(node) or ""
            name = "" if isinstance(node, ast.Module) else node.name
            for key in named_in(text):
                first = key in named_in(text.split("\n\n")[0])
                found[key].append(Place(short, name, first))
    return {key: sorted(some, key=lambda one: not one.first) for key, some in found.items()}


def claims_of(item: Item, claims: dict[str, Claim]) -> list[str]:
    """Those named for it, and those that say they stand there; printed ones and their versions."""
    own = set(item.claims.split())
    if item.key:
        own |= {name for name, one in claims.items() if item.key in named_in(one.where)}
    about = {claims[name].about for name in own}
    return [name for name, one in claims.items() if one.about in about]


def page(root: Path) -> str:
    """The page in Markdown."""
    claims, verdicts = all_claims(), recorded(quick=False)
    code, tests = places(root, "bayesmeta"), places(root, "tests")
    out = [
        "---\nhide-toc: true\n---",
        "# From the paper to the code",
        "Where every numbered equation, theorem, algorithm and assumption, every lemma and the "
        "figure of the paper lives, what became of it, and what tests it. Steps of proofs are "
        "checked by the claim that they lead to.",
        "- **Code**: functions whose docstring names it; the page is made of them.\n"
        "- **Claims**: `bayesmeta check --only ID` checks one; "
        "[the referee's report](../analyses/claims/README.md) explains the violated ones.\n"
        "- **Tests**: those whose docstring names it; each claim is also tested, with wrong "
        "versions of it, by `tests/claims/test_claims.py`.",
    ]
    for kind, title in SECTIONS:
        rows = ["| in the paper | what | code | claims | tests |", "|---|---|---|---|---|"]
        for item in items():
            if item.kind == kind:
                rows.append(_row(item, code, tests, claims, verdicts))
        out += [f"## {title}", "\n".join(rows)]
    out += ["## Every claim", _all(claims, verdicts)]
    return "\n\n".join(out) + "\n"


def _row(
    item: Item,
    code: dict[str, list[Place]],
    tests: dict[str, list[Place]],
    claims: dict[str, Claim],
    verdicts: dict[str, str],
) -> str:
    own = claims_of(item, claims)
    words = {"equation": f"({item.number})"}.get(item.kind, f"{item.kind} {item.number}".strip())
    said = {name: f"`{name}`: {verdicts.get(name, UNRECORDED)}" for name in own}
    known = [said[name] for name in own if claims[name].group.value == "printed"]
    more = [said[name] for name in own if claims[name].group.value != "printed"]
    if more:
        known.append(f"also {', '.join(more)}")
    tested = list(_said(tests.get(item.key, [])))
    if own and not tested:
        tested = ["`tests/claims/test_claims.py`"]
    cells = (
        f"{words}, {item.place}",
        item.title,
        "<br>".join(_said(code.get(item.key, []))),
        "<br>".join(known),
        "<br>".join(tested),
    )
    return "| " + " | ".join(cells) + " |"


def _said(some: Iterable[Place]) -> Iterator[str]:
    """At most a few, functions before whole modules, no file twice."""
    seen: set[str] = set()
    for one in sorted(some, key=lambda one: (not one.first, not one.name)):
        if one.path not in seen and len(seen) < SHOWN:
            seen.add(one.path)
            yield f"`{one.path}`" + (f" `{one.name}`" if one.name else "")


def _all(claims: dict[str, Claim], verdicts: dict[str, str]) -> str:
    rows = ["| claim | where | verdict | proof | checked by |", "|---|---|---|---|---|"]
    for name, one in claims.items():
        check = getattr(one.check, "func", one.check)
        home = f"`{check.__module__.replace('.', '/')}.py` `{check.__name__}`"
        where = one.where.replace("|", r"\|").replace("_*", r"\_\*").replace("E_", r"E\_")
        verdict = verdicts.get(name, UNRECORDED)
        rows.append(f"| `{name}` | {where} | {verdict} | {one.proof} | {home} |")
    return "\n".join(rows)
