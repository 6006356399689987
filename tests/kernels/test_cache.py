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

pytestmark = pytest.mark.slow

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


def test_a_change_in_a_called_kernel_reaches_its_caller(tmp_path: Path) -> None:
    """Kernels load from disk; where a tuple is renamed or a file edited, they compile anew."""
    copied(tmp_path)
    assert said(COUNT, tmp_path) == ["1", "0"]
    assert said(COUNT, tmp_path) == ["1", "1"]
    moments = tmp_path / "bayesmeta" / "estimators" / "moments.py"
    moments.write_text(moments.read_text().replace("MomentState", "Renamed"))
    assert said(COUNT, tmp_path) == ["1", "0"]  # what names a tuple that is gone is no obstacle
    codes = tmp_path / "bayesmeta" / "kernels" / "codes.py"
    codes.write_text(codes.read_text() + "\n")
    assert said(COUNT, tmp_path) == ["1", "0"]  # its numbers are frozen into what is compiled
    linalg = tmp_path / "bayesmeta" / "kernels" / "linalg.py"
    text = linalg.read_text()
    changed = text.replace("if not gram[i, i] > 0.0", "if gram[i, i] > 0.0")
    assert changed != text
    linalg.write_text(changed)
    assert said(COUNT, tmp_path) == ["0", "0"]


def test_fast_math_is_not_taken_over_from_a_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTensor compiles models with it; a kernel first called from one keeps the bits it has."""
    monkeypatch.setattr(numba.core.caching.FunctionCache, "load_overload", lambda *_: None)

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
