"""What tests share: the false-alarm budget, planted problems, the command line, processes."""

from __future__ import annotations

import importlib.util
import re
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from bayesmeta.cli import main
from bayesmeta.statistics import TaskStatistics

ROOT = Path(__file__).parent.parent
"""The checkout."""
SLEEP_COLUMNS = ["--task", "Subject", "--reward", "Reaction", "--features", "Days", "--intercept"]
"""Options for the CSV of the fixture ``sleep``."""

# ---- One false-alarm budget for all stochastic tests of the suite.
#
# A stochastic test states its null hypothesis in its docstring and asks here for its size. The
# sizes add up to ``BUDGET``: with everything right, the whole suite fails once in a thousand seeds
# (and seeds are fixed). A test that makes k comparisons divides its size by k.

BUDGET = 1e-3

STOCHASTIC = (
    "actions/second-moment",
    "actions/radial-law",
    "environment/theta-law",
    "policies/thompson-law",
    "policies/shifted-law",
    "exploration/uniform",
    "moment/unbiased",
    "fit/unbiased-moment",
    "fit/unbiased-split",
    "models/quadrature",
    "models/draws",
    "models/circles",
    "models/laplace",
    "models/laplace-exact",
    "models/laplace-shared",
    "models/prior-draws",
    "calibration/size",
    "calibration/harness",
    "lab/known-coverage",
    "lab/next-task",
    "lab/bias",
    "lab/monte-carlo-error",
    "lab/explored-at-once",
    "lab/wrong-moments",
    "lab/wrong-bias",
    "lab/wrong-next",
    "lab/theta-observed",
    "lab/ranks",
    "lab/radii",
    "lab/band",
    "hyper/coverage",
    "simulation/martingale",
    "simulation/published-values",
    "simulation/concurrent",
    "rivals/arm-moments",
    "slopes/coverage",
)


def size(name: str) -> float:
    """The size of one stochastic test; every one has the same share."""
    if name not in STOCHASTIC:
        raise KeyError(f"{name} is not in the budget; add it to STOCHASTIC")
    return BUDGET / len(STOCHASTIC)


class Problem:
    """Raw data of tasks of different lengths, some too short to determine theta."""

    def __init__(self, seed: int, dim: int, tasks: int, most: int | None = None) -> None:
        rng = np.random.default_rng(seed)
        self.rows, self.rewards = [], []
        for _ in range(tasks):
            steps = int(rng.integers(1, (most or 2 * dim + 3) + 1))
            rows = rng.standard_normal((steps, dim))
            self.rows.append(rows)
            self.rewards.append(rows @ rng.standard_normal(dim) + rng.standard_normal(steps))
        self.stats = TaskStatistics(
            [a.T @ a for a in self.rows],
            [a.T @ x for a, x in zip(self.rows, self.rewards, strict=True)],
            [len(x) for x in self.rewards],
            [x @ x for x in self.rewards],
        )
        self.mean = rng.standard_normal(dim)
        self.root = np.tril(rng.standard_normal((dim, dim)))

    def log_likelihood(self, mean: np.ndarray, cov: np.ndarray, variance: float) -> float:
        """Gaussian densities of the rewards, with their full covariance."""
        total = 0.0
        for a, x in zip(self.rows, self.rewards, strict=True):
            omega = variance * np.eye(len(x)) + a @ cov @ a.T
            gap = x - a @ mean
            total -= 0.5 * (
                len(x) * np.log(2 * np.pi)
                + np.linalg.slogdet(omega)[1]
                + gap @ np.linalg.solve(omega, gap)
            )
        return total

    def information(self, cov: np.ndarray, variance: float) -> np.ndarray:
        """Of the mean."""
        return sum(
            a.T @ np.linalg.solve(variance * np.eye(len(a)) + a @ cov @ a.T, a) for a in self.rows
        )

    def best_mean(self, cov: np.ndarray, variance: float) -> np.ndarray:
        """Generalised least squares."""
        total = sum(
            a.T @ np.linalg.solve(variance * np.eye(len(a)) + a @ cov @ a.T, x)
            for a, x in zip(self.rows, self.rewards, strict=True)
        )
        return np.linalg.solve(self.information(cov, variance), total)

    def restricted(self, cov: np.ndarray, variance: float) -> float:
        """The mean integrated out."""
        best = self.log_likelihood(self.best_mean(cov, variance), cov, variance)
        info = self.information(cov, variance)
        return best + 0.5 * (len(cov) * np.log(2 * np.pi) - np.linalg.slogdet(info)[1])


def run(*arguments: str) -> int:
    """The exit code, whether returned or raised."""
    try:
        return main(list(arguments))
    except SystemExit as error:
        return int(error.code or 0)


@cache
def recipes() -> ModuleType:
    """What the code of all recipes in CONTRIBUTING.md leaves behind, as a module."""
    module = ModuleType("recipes")
    sys.modules["recipes"] = module
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "CONTRIBUTING.md", "exec"), module.__dict__)
    return module


def load(path: Path) -> ModuleType:
    """Import a script by its path."""
    spec = importlib.util.spec_from_file_location(path.parent.name + "_" + path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hear_ctrl_c() -> None:
    """For ``preexec_fn``: a process started in the background would otherwise ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def in_session(session: int) -> dict[int, str]:
    """The living processes of a session and their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] not in "ZX":
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except (OSError, IndexError):
                continue  # it ended while we looked
    return found


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true within the time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
