"""The compiled kernels on disk never outlive the source they came from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

PACKAGE = ROOT / "bayesmeta"
COUNT = """
import numpy as np
from bayesmeta.estimators import moments as moment
state = moment.empty(2)
moment.observe(state, np.eye(2), np.ones(2))
print(int(state.tasks[0]), sum(moment.observe.stats.cache_hits.values()))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package with nothing compiled."""
    shutil.copytree(PACKAGE, tmp_path / "bayesmeta", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def count(folder: Path) -> list[str]:
    """Tasks observed and kernels loaded from disk, by a process that uses the copy in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", COUNT]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.slow
def test_a_change_in_a_called_kernel_reaches_its_caller(copy: Path) -> None:
    """Editing a kernel recompiles the kernels of other files that call it; otherwise they load."""
    assert count(copy) == ["1", "0"]
    assert count(copy) == ["1", "1"]
    linalg = copy / "bayesmeta" / "kernels" / "linalg.py"
    text = linalg.read_text()
    changed = text.replace("if not gram[i, i] > 0.0", "if gram[i, i] > 0.0")
    assert changed != text
    linalg.write_text(changed)
    assert count(copy) == ["0", "0"]


@pytest.mark.slow
def test_what_an_earlier_version_compiled_does_no_harm(copy: Path) -> None:
    """Kernels on disk that name a class which has another name now are compiled anew."""
    assert count(copy) == ["1", "0"]
    moments = copy / "bayesmeta" / "estimators" / "moments.py"
    moments.write_text(moments.read_text().replace("MomentState", "Renamed"))
    assert count(copy) == ["1", "0"]
