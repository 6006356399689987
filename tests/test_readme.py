"""The README's own code runs."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

import bayesmeta as bm
from bayesmeta.cli import _parser, main
from tests.helpers import ROOT

README = (ROOT / "README.md").read_text()


def test_the_two_commands_stand_first() -> None:
    """A reader meets ``make reproduce`` and ``make test`` before anything else."""
    first = README.split("```")[1]
    assert first.split("\n")[1].startswith("make reproduce")
    assert first.split("\n")[2].startswith("make test")


def test_the_readmes_own_study_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a reader would: the block in a file, the commands below it, the file they promise."""
    (block,) = re.findall(r"```python\n(# my_study\.py\n.*?)```", README, flags=re.DOTALL)
    (tmp_path / "my_study.py").write_text(block.replace("range(20)", "range(2)"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    commands = re.findall(r"^bayesmeta (study \w+ my_study:study)", README, flags=re.MULTILINE)
    assert [line.split()[1] for line in commands] == ["run", "status", "collect"]
    for line in commands:
        assert main([*line.split(), *(["--jobs", "1"] if "run" in line.split() else [])]) == 0
    record = bm.read_record("results/regret-by-dimension.nc")
    assert dict(record.sizes) == {"dim": 3, "run": 2, "agent": 2}
    monkeypatch.delitem(sys.modules, "my_study")


def test_the_commands_of_the_readme_are_commands() -> None:
    """Every line with bayesmeta on it parses."""
    lines = re.findall(r"^bayesmeta (.*?)(?:  +#.*)?$", README, flags=re.MULTILINE)
    assert len(lines) >= 7
    for line in lines:
        assert callable(_parser().parse_args(shlex.split(line)).command)


def test_the_python_blocks_run() -> None:
    """Every Python block, in order, in one namespace, and what it leaves behind."""
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(block.replace("tasks=500, runs=4", "tasks=20, runs=2"), names)
    player, cautious = names["player"], names["cautious"]
    assert isinstance(player, bm.Player)
    assert player.tasks_seen == 1
    assert isinstance(cautious, bm.Agent)
    assert cautious.learner == bm.agents.Moments(widening=30.0)


def test_the_places_it_names_are_there() -> None:
    """Every path in code style, in the table of where to look and elsewhere."""
    named = set(re.findall(r"`((?:bayesmeta|analyses|notebooks|tests)/[\w./-]*)`", README))
    assert len(named) > 15
    assert not [path for path in named if not (ROOT / path).exists()]
    linked = re.findall(r"\]\(((?!http|#)[^)]+)\)", README)
    assert not [path for path in linked if not (ROOT / path).exists()]
