"""How kernels are compiled and kept: never older than their source, never with fast-math."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from bayesmeta.kernels.jit import kernel
from tests.helpers import ROOT

PACKAGE = ROOT / "bayesmeta"
COUNT = """
import numpy as np
from bayesmeta.estimators import moments as moment
state = moment.empty(2)
moment.observe(state, np.eye(2), np.ones(2))
print(int(state.tasks[0]), sum(moment.observe.stats.cache_hits.values()))
"""


def copied(folder: Path) -> None:
    """The package without what it has compiled."""
    shutil.copytree(PACKAGE, folder / "bayesmeta", ignore=shutil.ignore_patterns("__pycache__"))


def said(code: str, folder: Path) -> list[str]:
    """The words printed by a process that imports the copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.slow
def test_a_change_in_a_called_kernel_reaches_its_caller(tmp_path: Path) -> None:
    """Editing a kernel recompiles the kernels of other files that call it; otherwise they load."""
    copied(tmp_path)
    assert said(COUNT, tmp_path) == ["1", "0"]
    assert said(COUNT, tmp_path) == ["1", "1"]
    linalg = tmp_path / "bayesmeta" / "kernels" / "linalg.py"
    text = linalg.read_text()
    changed = text.replace("if not gram[i, i] > 0.0", "if gram[i, i] > 0.0")
    assert changed != text
    linalg.write_text(changed)
    assert said(COUNT, tmp_path) == ["0", "0"]


@pytest.mark.slow
def test_a_tuple_that_is_gone_compiles_anew(tmp_path: Path) -> None:
    """A kept kernel that takes a tuple of another name is passed over, not fatal."""
    copied(tmp_path)
    taking = """
import numpy as np
from bayesmeta.kernels import collapsed, estep
chunk = estep.{name}(np.zeros((1, 64)), np.zeros((1, 64)), np.zeros(64))
at = estep.Parameters(np.zeros(1), np.ones((1, 1)), 1.0)
sums = estep.estep(chunk, at, estep.EachTask(np.empty((0, 0)), np.empty((0, 0))))
print(int(sums.logs), sum(estep.estep.stats.cache_hits.values()))
"""
    assert said(taking.format(name="Chunk"), tmp_path) == ["0", "0"]
    assert said(taking.format(name="Chunk"), tmp_path) == ["0", "1"]
    file = tmp_path / "bayesmeta" / "kernels" / "estep.py"
    file.write_text(file.read_text().replace("class Chunk(", "class Block("))
    assert said(taking.format(name="Block"), tmp_path) == ["0", "0"]


def test_fast_math_is_not_taken_over_from_a_caller() -> None:
    """PyTensor compiles models with it; a kernel first called from one keeps the bits it has."""

    def total(values):
        out = 0.0
        for value in values:
            out += value
        return out

    def reassociates(function) -> bool:
        @numba.njit(fastmath=True)
        def caller(values):
            return function(values)

        caller(np.ones(3))
        return any("fadd fast" in text for text in function.inspect_llvm().values())

    assert not reassociates(kernel(total))
    assert reassociates(numba.njit(total))  # what would happen if it were left out
