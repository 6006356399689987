"""What a command says when Ctrl-C stops it: what is kept, and whether it would go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bayesmeta.calibration import cell, lab
from bayesmeta.claims import run as claims
from bayesmeta.runner.report import Interrupted, Report
from bayesmeta.runner.store import Memory
from tests.helpers import run

LAB = ["calibrate", "--dim", "1", "--horizon", "5", "--tasks", "4", "--estimators", "moment"]
LAB += ["--replications", "5", "--jobs", "1", "--json"]


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ctrl-C in the third replication of every command; the seeds of those that were begun."""
    begun: list[int] = []

    def stop(settings: dict[str, Any], seed: int, **shared: Any) -> Any:
        begun.append(seed)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return cell.replicate(settings, seed, **shared)

    monkeypatch.setattr(lab, "replicate", stop)
    return begun


def test_a_lab_without_a_folder(
    stopped: list[int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nothing is kept, nothing is left, and it says what would keep it: the same command does it
    all again."""
    out = tmp_path / "new"
    assert run(*LAB, "--out", str(out)) == 130
    said = capsys.readouterr()
    assert said.out == "" and said.err.endswith(
        "bayesmeta: interrupted; calibrate: 2 of 5 cells done, 0 failed, 3 remaining; nothing is "
        "kept: give --folder FOLDER, and the same command can go on\n"
    )
    assert "goes on" not in said.err and not out.exists()
    assert run(*LAB) == 0
    assert stopped[3:5] == stopped[:2] and len(stopped) == 3 + 5


def test_a_lab_with_a_folder(
    stopped: list[int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It goes on from there, as it says."""
    command = [*LAB, "--folder", str(tmp_path / "cells")]
    assert run(*command) == 130
    assert capsys.readouterr().err.endswith(
        "bayesmeta: interrupted; calibrate: 2 of 5 cells done, 0 failed, 3 remaining; the same "
        "command goes on from there\n"
    )
    assert run(*command) == 0
    assert stopped[2] == stopped[3] and len(stopped) == 3 + 3


def test_a_simulation_inside_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts of what a command runs on the way are no news, and nothing goes on from there."""

    def stop(*_: object, **__: object) -> None:
        raise Interrupted(Report("simulation", Memory(), 3, 1, []))

    monkeypatch.setattr(claims, "check_claims", stop)
    assert run("check") == 130
    assert capsys.readouterr().err.splitlines()[-1] == "bayesmeta: interrupted"
