"""An estimated prior as plain data and as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Advice, InputError
from bayesmeta.display import correlation
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.estimators.fit import task_posteriors
from bayesmeta.report.console import label, number, print_tasks, table
from bayesmeta.runner.plain import without_nan
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


def as_json(
    stats: TaskStatistics,
    estimate: PriorEstimate,
    method: str,
    wording: Callable[[Advice], str] = str,
) -> dict[str, Any]:
    """All of a fit as plain data; what a method does not have is null.

    ``wording`` turns advice into text: that of Python, or of a command.
    """

    _refuse_overflow(stats, estimate)

    def listed(value: np.ndarray | None) -> Any:
        return None if value is None else value.tolist()

    found: dict[str, Any] = without_nan(
        {
            "method": method,
            "status": estimate.status.name.lower(),
            "advice": wording(estimate.status.advice),
            "tasks": len(stats),
            "rows": None if stats.count is None else int(stats.count.sum()),
            "features": stats.feature_labels,
            "mean": listed(estimate.prior.mean),
            "mean_sd": listed(estimate.mean_sd),
            "cov": listed(estimate.prior.cov),
            "cov_sd": listed(estimate.cov_sd),
            "noise_sd": estimate.noise_sd,
            "log_likelihood": estimate.log_likelihood,
            "iterations": estimate.iterations,
            "passed_over": estimate.passed_over,
            "negative_eigenvalues": estimate.negative,
            "task_estimates": _task_estimates(stats, estimate),
        }
    )
    return found


def _refuse_overflow(stats: TaskStatistics, estimate: PriorEstimate) -> None:
    """Numbers that are not finite would be shown as missing."""
    parts: list[Any] = [estimate.prior.mean, estimate.prior.cov, estimate.noise_sd or 0.0]
    for task in _task_estimates(stats, estimate):
        parts += [task["mean"], task["sd"]]
    if not all(np.isfinite(part).all() for part in parts):
        raise InputError(
            "numbers of this fit are too large to be computed with; measure rewards and features "
            "in other units, or widen less"
        )


def _task_estimates(stats: TaskStatistics, estimate: PriorEstimate) -> list[dict[str, Any]]:
    """Mean and standard deviation of every theta given the estimated prior, where it is one."""
    if not estimate.usable or estimate.noise_sd is None:
        return []
    mean, cov = task_posteriors(stats, estimate)
    sd = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
    return [
        {"task": name, "mean": one.tolist(), "sd": spread.tolist()}
        for name, one, spread in zip(map(str, stats.task_labels), mean, sd, strict=True)
    ]


def print_fit(
    console: Console,
    stats: TaskStatistics,
    estimate: PriorEstimate,
    method: str,
    wording: Callable[[Advice], str] = str,
) -> None:
    """Tables of the estimate with standard errors, the tasks shrunken towards it, the status."""
    console.print(_prior_table(stats, estimate, method))
    if stats.dim > 1:
        console.print(_covariance_table(stats, estimate.prior.cov))
    if estimate.noise_sd is not None:
        variance, sd = number(estimate.noise_sd**2), number(estimate.noise_sd)
        console.print(f"noise: variance {variance}, sd {sd}")
    if estimate.log_likelihood is not None:
        steps = f", {estimate.iterations} iterations" if estimate.iterations else ""
        console.print(f"log-likelihood {estimate.log_likelihood:.3f}{steps}")
    tasks = _task_estimates(stats, estimate)
    if tasks:
        title = "Tasks, shrunken towards the prior"
        note = "as if the estimated prior were known"
        print_tasks(console, title, stats.feature_labels, tasks, note)
    if estimate.passed_over:
        console.print(
            "tasks passed over, since they do not determine all features by themselves "
            f"(ml and reml use them): {estimate.passed_over}"
        )
    if estimate.negative:
        console.print(f"negative eigenvalues of the bias-corrected covariance: {estimate.negative}")
    console.print(f"status: {wording(estimate.status.advice)}")


def _prior_table(stats: TaskStatistics, estimate: PriorEstimate, method: str) -> Table:
    """Means and variances with their standard errors."""
    mean, cov = estimate.prior.mean, estimate.prior.cov
    rows: list[list[str | Text]] = []
    for i, name in enumerate(stats.feature_labels):
        variance = float(cov[i, i])
        rows.append(
            [
                label(name),
                number(mean[i]),
                number(None if estimate.mean_sd is None else estimate.mean_sd[i]),
                number(variance),
                number(None if estimate.cov_sd is None else estimate.cov_sd[i, i]),
                number(variance**0.5 if variance >= 0 else None),
            ]
        )
    steps = "" if stats.count is None else f", {int(stats.count.sum())} rows"
    title = f"The prior by {method} ({len(stats)} tasks{steps})"
    return table(title, ["feature", "mean", "s.e.", "variance", "s.e.", "sd"], rows)


def _covariance_table(stats: TaskStatistics, cov: np.ndarray) -> Table:
    names, between = [label(name) for name in stats.feature_labels], correlation(cov)
    rows: list[list[str | Text]] = []
    for i, name in enumerate(names):
        below = [number(value) for value in cov[i, :i]]
        above = [number(value.round(2)) for value in between[i, i + 1 :]]
        rows.append([name, *below, "", *above])
    return table("Covariances below the diagonal, correlations above", ["", *names], rows)
