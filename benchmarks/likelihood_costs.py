"""What the likelihood of many tasks costs: one evaluation, and a whole REML fit.

Run in a process of its own; prints JSON.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from timing import growth, rounds, seconds

from bayesmeta.estimators.fit import fit_prior
from bayesmeta.estimators.likelihood import evaluate, pack
from bayesmeta.statistics import TaskStatistics

Array = np.ndarray
HERE = Path(__file__).parent


def numpy_evaluate(
    gram: Array, moment: Array, energy: Array, mean: Array, root: Array, tau: float
) -> tuple[float, Array, Array]:
    """The same log-likelihood and gradients with batched NumPy, as one writes it.

    (With Cholesky factors and triangular solves instead of inverses it takes a third longer.)
    """
    inner = np.eye(len(mean)) + tau * (root.T @ gram @ root)
    inverse = np.linalg.inv(inner)
    logs = np.linalg.slogdet(inner)[1].sum()
    w = tau * (moment - gram @ mean)
    x, along = tau * (gram @ root), w @ root
    y = (inverse @ along[..., None])[..., 0]
    scores = w - (x @ y[..., None])[..., 0]
    weights = tau * gram - x @ inverse @ np.swapaxes(x, 1, 2)
    quad = tau * (energy.sum() - 2 * (moment @ mean).sum() + (gram @ mean @ mean).sum())
    gradient = 0.5 * (scores.T @ scores - weights.sum(axis=0))
    return float(-0.5 * (logs + quad - (along * y).sum())), scores.sum(axis=0), gradient


def short_tasks(tasks: int, dim: int, seed: int) -> tuple[Array, Array, Array]:
    """Task, reward and features of every step: 2 to 12 steps a task, an intercept, correlations."""
    rng = np.random.default_rng(seed)
    return _rows(rng, rng.integers(2, 13, tasks), dim, dim)


def long_tasks(
    tasks: int, dim: int, steps: int | None = None, rank: int | None = None
) -> tuple[Array, Array, Array]:
    """The same with ``steps`` (3 d) steps in each; Sigma has the rank given."""
    rng = np.random.default_rng(2)
    counts = np.full(tasks, 3 * dim if steps is None else steps)
    return _rows(rng, counts, dim, dim if rank is None else rank)


def _rows(
    rng: np.random.Generator, counts: Array, dim: int, rank: int
) -> tuple[Array, Array, Array]:
    task = np.repeat(np.arange(len(counts)), counts)
    rows = rng.standard_normal((len(task), dim))
    rows[:, 0] = 1.0
    root = (np.tril(0.4 * rng.standard_normal((dim, dim)), -1) + np.eye(dim))[:, :rank]
    theta = 1.0 + rng.standard_normal((len(counts), rank)) @ root.T
    noise = 1.5 * rng.standard_normal(len(task))
    return task, np.einsum("ij,ij->i", rows, theta[task]) + noise, rows


def one_evaluation(tasks: int = 100_000, dim: int = 5) -> dict[str, float]:
    """Microseconds a task of a likelihood with its gradients, one core."""
    stats = TaskStatistics.from_arrays(*short_tasks(tasks, dim, 0))
    packed = pack(stats, np.eye(dim))
    root = np.tril(np.random.default_rng(0).standard_normal((dim, dim))) / 2
    mean, variance = np.ones(dim), 2.25

    def ours() -> Any:
        return evaluate(packed, mean, root, variance, False)

    def numpys() -> tuple[float, Array, Array]:
        assert stats.energy is not None
        best = ours().mean  # the same work: ours finds the best mean besides
        return numpy_evaluate(stats.gram, stats.moment, stats.energy, best, root, 1 / variance)

    rows = 0.5 * packed.steps * np.log(2 * np.pi * variance)
    np.testing.assert_allclose(ours().value + rows, numpys()[0], rtol=1e-9)
    np.testing.assert_allclose(ours().gradient, numpys()[2], rtol=1e-6, atol=1e-6 * tasks)
    with threadpool_limits(1):
        times = rounds(9, ours, numpys) / tasks * 1e6
    theirs = times[:, 1] - times[:, 0]
    ratio = theirs.min() / times[:, 0].min()
    return {
        "us": float(times[:, 0].min()),
        "numpy_us": float(theirs.min()),
        "ratio": float(ratio),
    }


def whole_fits(tasks: int = 10_000, dim: int = 3) -> dict[str, Any]:
    """REML with the noise estimated, from the same rows: ours, statsmodels' and lme4's."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    table = short_tasks(tasks, dim, 1)
    task, rewards, rows = table
    stats = TaskStatistics.from_arrays(*table)
    times = rounds(
        5, lambda: fit_prior(stats), lambda: fit_prior(TaskStatistics.from_arrays(*table))
    )
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MixedLM(rewards, rows, task, exog_re=rows)
        took = seconds(lambda: results.append(model.fit(reml=True)))
    ours, mine = fit_prior(stats).log_likelihood, float(times[:, 1].min())
    assert ours is not None
    return {
        "tasks": tasks,
        "dim": dim,
        "rows": len(rewards),
        "seconds": mine,
        "seconds_from_sums": float(times[:, 0].min()),
        "statsmodels": {
            "seconds": took,
            "ratio": took / mine,
            "log_likelihood_less_theirs": float(ours - results[0].llf),
        },
        "lme4": lme4(table, mine, ours),
    }


def lme4(table: tuple[Array, Array, Array], mine: float, ours: float) -> dict[str, Any] | None:
    """The same by lme4, the best of three; None where R or lme4 is not installed."""
    import pandas as pd

    task, rewards, rows = table
    if shutil.which("Rscript") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame = pd.DataFrame({"task": task, "y": rewards})
        for i, column in enumerate(rows.T):
            frame[f"x{i}"] = column
        frame.to_csv(path, index=False)
        command = ["Rscript", str(HERE / "lme4.R"), str(path)]
        runs = [subprocess.run(command, capture_output=True, text=True) for _ in range(3)]
    if any(run.returncode for run in runs):
        return None
    found = [run.stdout.split() for run in runs]
    took = min(float(one[0]) for one in found)
    return {
        "seconds": took,
        "ratio": took / mine,
        "log_likelihood_less_theirs": ours - float(found[0][1]),
        "version": found[0][2],
    }


def many_features(tasks: int = 1_000, dim: int = 30) -> dict[str, Any]:
    """Seconds of REML with many features, Sigma of full rank and of half of it."""
    found: dict[str, Any] = {"tasks": tasks, "dim": dim}
    for name, rank in (("regular", dim), ("singular", dim // 2)):
        stats = TaskStatistics.from_arrays(*long_tasks(tasks, dim, rank=rank))
        times = rounds(3, lambda stats=stats: fit_prior(stats))  # type: ignore[misc]
        found[name] = {"seconds": float(times.min()), "status": fit_prior(stats).status.name}
    return found


def grown() -> dict[str, Any]:
    """Seconds of a fit, noise estimated: in tasks and features from sums, in steps from rows."""

    def fit(table: tuple[Array, Array, Array]) -> Callable[[], object]:
        stats = TaskStatistics.from_arrays(*table)
        return lambda: fit_prior(stats)

    def from_rows(steps: int) -> Callable[[], object]:
        table = long_tasks(1_000, 5, steps)
        return lambda: fit_prior(TaskStatistics.from_arrays(*table))

    return {
        "tasks": growth([1_000, 10_000, 100_000], lambda n: fit(short_tasks(n, 3, 2))),
        "steps": growth([10, 100, 1_000], from_rows, 3),
        "features": growth([2, 5, 10, 20, 50], lambda d: fit(long_tasks(1_000, d)), 3),
    }


def main() -> None:
    found = {
        "evaluation": one_evaluation(),
        "fits": whole_fits(),
        "many_features": many_features(),
        "growth": grown(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
