"""The site: every public name and everything numbered in the paper has a place, and it builds."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import bayesmeta as bm
from bayesmeta.claims import all_claims
from bayesmeta.claims.verdict import Outcome
from tests.helpers import ROOT

FOLDER = ROOT / "docs" / "site"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the site, which is no package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    module = __import__(name)
    monkeypatch.delitem(sys.modules, name)
    return module


def test_every_public_name_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; what is not public has none. Those of the folders are on theirs, with a text."""
    reference = load("reference", monkeypatch)
    listed = [name for _, names in reference.GROUPS.values() for name in names]
    assert sorted(listed) == bm.__all__
    pages = reference.pages()
    assert set(pages) == {*reference.GROUPS, *reference.FOLDERS}
    for folder in (bm.agents, bm.simulation):
        own = {name for name in folder.__all__ if not hasattr(bm, name)}
        page = pages[f"reference-{folder.__name__.split('.')[1]}"]
        assert own <= set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert "A `dict`." not in "".join(pages.values())  # constants say what they are


def test_everything_numbered_has_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that names it or a claim that checks it, and a test of either."""
    paper = load("paper", monkeypatch)
    code, tests, claims = (
        paper.places(ROOT, "bayesmeta"),
        paper.places(ROOT, "tests"),
        all_claims(),
    )
    items = paper.items()
    numbers = {
        kind: [one.number for one in items if one.kind == kind] for kind, _ in paper.SECTIONS
    }
    assert numbers["equation"] == [str(n) for n in range(1, 86)]
    assert sum(map(len, numbers.values())) == len(items)
    for item in items:
        own = paper.claims_of(item, claims)
        assert own or code.get(item.key), item
        assert own or tests.get(item.key), item
        assert set(item.claims.split()) <= set(claims), item
    page = paper.page(ROOT)
    assert all(f"`{name}`" in page for name in claims)


def test_what_the_table_names_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read from the page as a reader would: each file, each function in it, and verdicts as they
    were recorded; every row of the paper has code or a claim, and a test."""
    text = load("paper", monkeypatch).page(ROOT)
    named = set(re.findall(r"`((?:bayesmeta|tests)/[\w/]+\.py)`(?: `(\w+)`)?", text))
    assert len(named) > 100
    for path, name in named:
        source = (ROOT / path).read_text()
        assert not name or re.search(rf"^\s*(?:def|class) {name}\b", source, re.MULTILINE), name
    full = json.loads((ROOT / "bayesmeta" / "data" / "verdicts.json").read_text())["full"]
    said = re.findall(r"`([a-z][\w-]+)`: ([a-z]+(?:, [a-z ]+)?)(?=<br>| \||, `)", text)
    assert {name for name, _ in said} <= set(full) and len(said) > 80
    assert [(name, word) for name, word in said if full[name] != word] == []
    rows = re.findall(
        r"^\| (?:\(|[A-Za-z]+[ ,]).*\|$", text.split("## Every claim")[0], re.MULTILINE
    )
    rows = [row for row in rows if not row.startswith("| in the paper")]
    with (ROOT / "docs" / "paper.csv").open() as file:
        assert len(rows) == len(list(csv.DictReader(file)))
    for row in rows:
        _, _, code, known, tested, _ = row.split(" |")
        assert (code.strip() or known.strip()) and tested.strip(), row


def test_claims_without_a_record_are_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that is newer than the record stops no site, and has no verdict on it."""
    paper = load("paper", monkeypatch)
    without = {name: word for name, word in paper.recorded(quick=False).items() if name != "term-b"}
    monkeypatch.setattr(paper, "recorded", lambda quick: without)
    text = paper.page(ROOT)
    assert f"`term-b`: {paper.UNRECORDED}" in text
    assert re.search(rf"^\| `term-b` \|.*\| {paper.UNRECORDED} \|", text, re.MULTILINE)


def typed_verdicts(page: str, ids: Iterable[str]) -> list[str]:
    """Ids of claims, and verdicts in bold, outside the block of a page; plain prose is free."""
    elsewhere = re.sub(r"<!-- verdicts -->.*<!-- /verdicts -->", "", page, flags=re.DOTALL)
    words = "|".join(sorted({word.split(",")[0] for word in get_args(Outcome)} | {"false", "true"}))
    bold = re.findall(r"\*\*(.+?)\*\*", elsewhere, re.DOTALL)
    said = [text for text in bold if re.search(rf"\b({words})\b", text, re.IGNORECASE)]
    return [name for name in ids if f"`{name}`" in elsewhere] + said


def test_the_page_on_the_theory_says_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its block is that of today's record, and no verdict is typed elsewhere on the page."""
    verdicts = load("verdicts", monkeypatch)
    page = (ROOT / "docs" / "theory.md").read_text()
    assert page == verdicts.page(), "python docs/site/verdicts.py"
    rows = {row["id"]: row["verdict"] for row in verdicts.recorded()}
    for claim, title in verdicts.RESULTS.items():
        assert f"| {title} (`{claim}`) | **{rows[claim]}** |" in page
    assert typed_verdicts(page, rows) == []
    for line in ("`theorem-1` is fine", "Theorem 2 **is\nviolated**", "**Holds**: Lemma 1"):
        assert len(typed_verdicts(f"{page}\n{line}\n", rows)) == 1, line
    changed = [row | {"verdict": "undecided"} for row in verdicts.recorded()]
    assert verdicts.block(changed).count("**undecided**") >= 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("eqs. (9)-(12), widened", {9, 10, 11, 12}),
        ("eqs. (25), (26) and (28), Appendix C.2.1", {25, 26, 28}),
        ("Eq. (43); again in eqs. (46) and\n    (51)", {43, 46, 51}),
        ("equation of (7)", set()),
    ],
)
def test_equations_are_found_in_texts(
    text: str, found: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load("paper", monkeypatch).named_in(text) == {f"equation {n}" for n in found}


def pages() -> list[Path]:
    """All that the site shows."""
    patterns = ("docs/*.md", "analyses/*/*.md", "benchmarks/*.md", "notebooks/*.ipynb", "*.md")
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def test_links_resolve() -> None:
    """Of pages and notebooks, to files of the repository."""
    assert len(pages()) > 30
    for path in pages():
        text = path.read_text()
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        for link in re.findall(r"\]\(((?!https?:|#)[^)\s]+)\)", text):
            target = path.parent / link.split("#")[0]
            assert target.exists(), f"{path.relative_to(ROOT)} links to {link}"


def without_code_and_formulas(page: str) -> str:
    """What a page says beside code, and formulas that MathJax will draw."""
    (article,) = re.findall(r"<article\b.*?</article>", page, re.DOTALL)
    for part in (r"<(pre|code)\b.*?</\1>", r"<(span|div) class=\"math\b.*?</\1>"):
        article = re.sub(part, "", article, flags=re.DOTALL)
    return article


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    """Without a warning, in a process of its own; nothing on it comes from a network."""
    command = [sys.executable, str(FOLDER / "build.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    html = tmp_path / "html"
    made = {path.relative_to(html).with_suffix("").as_posix() for path in html.rglob("*.html")}
    shown = [path.relative_to(ROOT).with_suffix("").as_posix() for path in pages()]
    assert set(shown) <= made and {"index", "docs/paper-to-code"} <= made
    for path in (html / "notebooks").glob("*.html"):
        text = without_code_and_formulas(path.read_text())
        assert "$" not in text and "|—" not in text, f"{path.name} shows its source"
        assert "<details>" in text and "<img" in text
    for path in html.rglob("*.html"):
        asked = re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)", path.read_text()
        )
        assert not asked, f"{path.name} asks for {asked}"
        for image in re.findall(r"<img[^>]+>", path.read_text()):
            said = re.search(r'alt="([^"]*)"', image)
            assert said and len(said[1]) > 8 and not said[1].endswith(".png"), f"{path}: {image}"
    assert list((html / "_static").rglob("tex-mml-chtml.js"))
