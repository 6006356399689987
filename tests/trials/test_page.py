"""The page of the trials, and its block of the README, are what the records give."""

from __future__ import annotations

import re

from bayesmeta.report.markdown import replace_block
from bayesmeta.report.page import faults, numbers_in
from tests.helpers import ROOT, load

FOLDER = ROOT / "analyses" / "hardening"
report = load(FOLDER / "report.py")


def test_the_page_is_generated_and_keeps_the_rules() -> None:
    """Text for text; every file it links to is there."""
    texts = report.texts(report.read())
    page = texts[FOLDER / "README.md"]
    assert {path: path.read_text() for path in texts} == texts
    assert faults(page) == []
    assert all((FOLDER / link).exists() for link in re.findall(r"\]\(([^)#]+)", page))


def test_the_block_of_the_readme_is_generated() -> None:
    """A sentence or two, with a link."""
    readme, block = (ROOT / "README.md").read_text(), report.main_block(report.read())
    assert replace_block(readme, "hardening", block) == readme
    assert block.count("|") == 0 and len(numbers_in(block)) <= 3
    assert "(analyses/hardening/README.md)" in block
