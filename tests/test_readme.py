"""The README's own code runs."""

from __future__ import annotations

import re
from pathlib import Path

import bayesmeta as bm

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_two_commands_stand_first() -> None:
    """A reader meets ``make reproduce`` and ``make test`` before anything else."""
    first = README.split("```")[1]
    assert first.split("\n")[1].startswith("make reproduce")
    assert first.split("\n")[2].startswith("make test")


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
    assert cautious.learner == bm.Moments(widening=30.0)
