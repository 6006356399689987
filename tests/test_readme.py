"""The code of the README and of the pages in docs/ runs."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.cli import _parser, main
from tests.helpers import ROOT

README = (ROOT / "README.md").read_text()
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
EVERYTHING = {"README.md": README, **PAGES}
LINES = 150
"""Of the README, at most: one can skim it."""


def test_the_two_commands_stand_first() -> None:
    """A reader meets ``make reproduce`` and ``make test`` before anything else."""
    first = README.split("```")[1]
    assert first.split("\n")[1].startswith("make reproduce")
    assert first.split("\n")[2].startswith("make test")


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= LINES


def test_the_study_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a reader would: the block in a file, the commands below it, the file they promise."""
    (block,) = re.findall(
        r"```python\n(# my_study\.py\n.*?)```", PAGES["cluster.md"], flags=re.DOTALL
    )
    (tmp_path / "my_study.py").write_text(block.replace("range(20)", "range(2)"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    commands = re.findall(
        r"^bayesmeta (study \w+ my_study:study)", PAGES["cluster.md"], flags=re.MULTILINE
    )
    assert [line.split()[1] for line in commands] == ["run", "status", "collect"]
    for line in commands:
        assert main([*line.split(), *(["--jobs", "1"] if "run" in line.split() else [])]) == 0
    record = bm.read_record("results/regret-by-dimension.nc")
    assert dict(record.sizes) == {"dim": 3, "run": 2, "agent": 2}
    monkeypatch.delitem(sys.modules, "my_study")


@pytest.mark.parametrize("name", EVERYTHING)
def test_commands_are_commands(name: str) -> None:
    """Every line with bayesmeta on it parses."""
    lines = re.findall(r"^bayesmeta (.*?)(?:  +#.*)?$", EVERYTHING[name], flags=re.MULTILINE)
    assert len(lines) >= {"README.md": 6, "own-data.md": 3, "cluster.md": 7}.get(name, 0)
    for line in lines:
        assert callable(_parser().parse_args(shlex.split(line)).command)


def run_blocks(text: str) -> dict[str, object]:
    """Every Python block, in order, in one namespace, and what it leaves behind."""
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block.replace("tasks=500, runs=4", "tasks=20, runs=2"), names)
    return names


@pytest.mark.parametrize("name", [name for name in EVERYTHING if name != "cluster.md"])
def test_the_python_blocks_run(name: str) -> None:
    names = run_blocks(EVERYTHING[name])
    assert names or "```python" not in EVERYTHING[name]
    if name == "simulate.md":
        player, cautious = names["player"], names["cautious"]
        assert isinstance(player, bm.Player)
        assert player.tasks_seen == 1
        assert isinstance(cautious, bm.Agent)
        assert cautious.learner == bm.agents.Moments(widening=30.0)
    if name == "cold-start.md":  # the arm without data is at the prior in mabwiser
        mab, sigma, prior = (names[one] for one in ("mab", "sigma", "prior"))
        model = mab._imp.arm_to_model["new"]  # type: ignore[attr-defined]
        np.testing.assert_allclose(model.beta, prior.mean, rtol=1e-9)  # type: ignore[attr-defined]
        np.testing.assert_allclose(sigma**2 * model.A_inv, prior.cov, rtol=1e-8)  # type: ignore
        assert not np.allclose(names["learner"].coef_, prior.mean)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", EVERYTHING)
def test_places_are_there(name: str) -> None:
    """Every path in code style, in tables of where to look and elsewhere, and every link."""
    folder = ROOT if name == "README.md" else ROOT / "docs"
    text = EVERYTHING[name]
    named = set(re.findall(r"`((?:bayesmeta|analyses|notebooks|tests)/[\w./-]*)`", text))
    assert len(named) > {"where-to-look.md": 15}.get(name, -1)
    assert not [path for path in named if not (ROOT / path).exists()]
    linked = re.findall(r"\]\(((?!http|#)[^)]+)\)", text)
    assert not [path for path in linked if not (folder / path).exists()]


def test_every_page_is_linked() -> None:
    """From the README, or from a page that is; the index has all of them."""
    found = set(re.findall(r"\(docs/([\w-]+\.md)\)", README))
    while more := {link for name in found for link in _linked(PAGES[name])} - found:
        found |= more
    assert found == set(PAGES)
    assert set(_linked(PAGES["index.md"])) >= set(PAGES) - {"index.md"}


def _linked(text: str) -> list[str]:
    """Pages of the same folder."""
    return re.findall(r"\]\(([\w-]+\.md)\)", text)
