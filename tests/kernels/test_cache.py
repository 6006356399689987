"""The compiled kernels on disk never outlive the source they came from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.helpers import ROOT

PACKAGE = ROOT / "bayesmeta"
COUNT = """
import numpy as np
from bayesmeta.estimators import moments as moment
state = moment.empty(2)
moment.observe(state, np.eye(2), np.ones(2))
print(int(state.tasks[0]), sum(moment.observe.stats.cache_hits.values()))
"""


def test_a_change_in_a_called_kernel_reaches_its_caller(tmp_path: Path) -> None:
    """Editing a kernel recompiles the kernels of other files that call it; otherwise they load."""
    shutil.copytree(PACKAGE, tmp_path / "bayesmeta", ignore=shutil.ignore_patterns("__pycache__"))

    def count() -> list[str]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", COUNT],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.split()

    assert count() == ["1", "0"]
    assert count() == ["1", "1"]
    linalg = tmp_path / "bayesmeta" / "kernels" / "linalg.py"
    text = linalg.read_text()
    changed = text.replace("return trace > 0.0 and", "return trace < 0.0 and")
    assert changed != text
    linalg.write_text(changed)
    assert count() == ["0", "0"]
