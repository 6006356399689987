"""What the likelihood of many tasks costs: one E-step, and a whole REML fit."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from timing import rounds, seconds

from bayesmeta.estimators.fit import fit_prior
from bayesmeta.estimators.likelihood import CHUNK, evaluate, pack
from bayesmeta.kernels.estep import estep
from bayesmeta.kernels.layout import Chunk, EachTask, Parameters, Sums
from bayesmeta.statistics import TaskStatistics

Array = np.ndarray


def numpy_estep(
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


def random_tasks(rng: np.random.Generator, tasks: int, dim: int) -> TaskStatistics:
    """Unbalanced tasks of 2 to 12 steps, with an intercept; the prior has correlations."""
    task, rows, rewards = raw_tasks(rng, tasks, dim)
    return TaskStatistics.from_arrays(task, rewards, rows)


def raw_tasks(rng: np.random.Generator, tasks: int, dim: int) -> tuple[Array, Array, Array]:
    """The task, the features and the reward of every step."""
    counts = rng.integers(2, 13, tasks)
    task = np.repeat(np.arange(tasks), counts)
    rows = rng.standard_normal((len(task), dim))
    rows[:, 0] = 1.0
    root = np.tril(0.4 * rng.standard_normal((dim, dim)), -1) + np.eye(dim)
    theta = 1.0 + rng.standard_normal((tasks, dim)) @ root.T
    rewards = (rows * theta[task]).sum(axis=1) + 1.5 * rng.standard_normal(len(task))
    return task, rows, rewards


def one_estep(tasks: int = 32 * CHUNK, dim: int = 5) -> dict[str, float]:
    """Microseconds a task: kernel on one core, on two, and batched NumPy on one."""
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    stats = random_tasks(rng, tasks, dim)
    assert stats.energy is not None
    packed = pack(stats, np.eye(dim))
    mean, tau = np.ones(dim), 1 / 2.25
    root = np.tril(rng.standard_normal((dim, dim))) / 2
    at, none = Parameters(mean, root, tau), np.empty((0, 0))

    def chunk(part: Chunk) -> Sums:
        return estep(part, at, EachTask(none, none))

    def kernel() -> list[Sums]:
        return [chunk(part) for part in packed.chunks]

    pool = ThreadPoolExecutor(2)

    def two_threads() -> list[Sums]:
        return list(pool.map(chunk, packed.chunks))

    def numpys() -> tuple[float, Array, Array]:
        return numpy_estep(stats.gram, stats.moment, stats.energy, mean, root, tau)

    found = kernel()
    value = -0.5 * sum(part.logs + part.quad for part in found)
    np.testing.assert_allclose(value, numpys()[0], rtol=1e-9)  # the same work
    np.testing.assert_allclose(sum(part.scores for part in found), numpys()[1], rtol=1e-6)

    def whole() -> object:
        return evaluate(packed, mean, root, 2.25, True)

    with threadpool_limits(1):
        times = rounds(9, kernel, two_threads, numpys, whole)
    pool.shutdown()
    micro = times / tasks * 1e6
    fastest = micro.min(axis=0)
    return {
        "tasks": tasks,
        "kernel_us": float(fastest[0]),
        "two_cores_us": float(fastest[1]),
        "numpy_us": float(fastest[2]),
        "evaluate_us": float(fastest[3]),
        "ratio": float(fastest[2] / fastest[0]),
        "ratio_two_cores": float(fastest[2] / fastest[1]),
        "median_ratio": float(np.median(micro[:, 2] / micro[:, 0])),
        "median_kernel_us": float(np.median(micro[:, 0])),
    }


def against_statsmodels(tasks: int = 10_000, dim: int = 3) -> dict[str, float]:
    """REML with the noise estimated, to convergence, from the same unbalanced raw data."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    task, rows, rewards = raw_tasks(np.random.default_rng(1), tasks, dim)
    stats = TaskStatistics.from_arrays(task, rewards, rows)
    ours = rounds(5, lambda: fit_prior(stats), lambda: fit_prior(stats, threads=2))
    whole = rounds(3, lambda: fit_prior(TaskStatistics.from_arrays(task, rewards, rows)))
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MixedLM(rewards, rows, task, exog_re=rows)
        took = seconds(lambda: results.append(model.fit(reml=True)))
    (theirs,), fit = results, fit_prior(stats)
    assert fit.log_likelihood is not None
    return {
        "tasks": tasks,
        "dim": dim,
        "rows": len(rewards),
        "seconds": float(ours[:, 0].min()),
        "seconds_two_threads": float(ours[:, 1].min()),
        "seconds_from_rows": float(whole.min()),
        "statsmodels_seconds": took,
        "statsmodels_converged": bool(theirs.converged),
        "log_likelihood_less_theirs": float(fit.log_likelihood - theirs.llf),
        "iterations": int(fit.iterations or 0),
        "ratio": took / float(whole.min()),
    }


def growth(dim: int = 3) -> dict[str, list[float]]:
    """Seconds of a REML fit, noise estimated, in the number of tasks."""
    rng = np.random.default_rng(2)
    sizes = [1_000, 3_000, 10_000, 30_000, 100_000]
    found, steps = [], []
    for tasks in sizes:
        stats = random_tasks(rng, tasks, dim)
        times = rounds(5, lambda stats=stats: fit_prior(stats))  # type: ignore[misc]
        found.append(float(times.min()))
        steps.append(float(fit_prior(stats).iterations or 0))
    return {"sizes": [float(n) for n in sizes], "seconds": found, "iterations": steps}
