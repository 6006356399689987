"""A fitted prior as plain data and as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import InputError
from bayesmeta.display import correlation, visible
from bayesmeta.estimators.origin import origin_note
from bayesmeta.fitted.prior import FittedPrior
from bayesmeta.fitted.tables import percent
from bayesmeta.report.console import (
    features_of,
    label,
    noise_in_words,
    number,
    print_blocks,
    print_tasks,
    quantity_rows,
    same_in_json,
    table,
    task_estimates,
)
from bayesmeta.runner.plain import without_nan

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Console
    from rich.text import Text


def as_json(
    fitted: FittedPrior, wording: Callable[[str], str] = str, ends: DataFrame | None = None
) -> dict[str, Any]:
    """All of a fit as plain data; what a method does not have is null. Estimates of tasks are of
    the features in ``varying``: the others are the same in all tasks.

    ``wording`` turns advice into text: that of Python, or of a command. ``ends`` are those of
    ``confint``, Wald's where None.
    """
    stats, estimate = fitted.stats, fitted.estimate
    tasks = _task_estimates(fitted)
    _refuse_overflow(fitted, tasks)

    def listed(value: np.ndarray | None) -> Any:
        return None if value is None else value.tolist()

    found: dict[str, Any] = without_nan(
        {
            "method": fitted.method,
            "status": estimate.status.name.lower(),
            "advice": wording(estimate.status.advice),
            "tasks": len(stats),
            "rows": fitted.nobs,
            "features": stats.feature_labels,
            "varying": features_of(stats, True),
            "mean": listed(estimate.prior.mean),
            "mean_sd": listed(estimate.mean_sd),
            "cov": listed(estimate.prior.cov),
            "cov_sd": listed(estimate.cov_sd),
            "noise_sd": None if fitted.known_rows else estimate.noise_sd,
            "log_likelihood": estimate.log_likelihood,
            "aic": fitted.aic,
            "bic": fitted.bic,
            "df": fitted.df,
            "iterations": estimate.iterations,
            "passed_over": estimate.passed_over,
            "negative_eigenvalues": estimate.negative,
            "intervals": _intervals(fitted, wording, ends),
            "conditional": fitted.conditional,
            "notes": [
                *(wording(note) for note in fitted.notes[1:]),
                *same_in_json(features_of(stats, False)),
            ],
            "task_estimates": tasks,
        }
    )
    return found


def _intervals(
    fitted: FittedPrior, wording: Callable[[str], str], ends: DataFrame | None
) -> list[dict[str, Any]]:
    """Estimate, standard error, low and high of every quantity; null where there is no end, with a
    note where there is no Wald interval."""
    found = fitted.confint() if ends is None else ends
    said = {"method": found.attrs["method"], "level": found.attrs["level"]}
    rows = fitted.summary().assign(low=found["low"], high=found["high"]).reset_index()
    none = fitted.without_wald if said["method"] == "wald" else []
    note = wording(fitted.no_wald)
    return [
        {**row, **said} | ({"note": note} if row["quantity"] in none else {})
        for row in rows.to_dict("records")
    ]


def _refuse_overflow(fitted: FittedPrior, tasks: list[dict[str, Any]]) -> None:
    """Numbers that are not finite would be shown as missing."""
    estimate = fitted.estimate
    parts: list[Any] = [estimate.prior.mean, estimate.prior.cov, estimate.noise_sd or 0.0]
    for task in tasks:
        parts += [task["mean"], task["sd"]]
    if not all(np.isfinite(part).all() for part in parts):
        raise InputError(
            "numbers of this fit are too large to be computed with; measure rewards and features "
            "in other units, or widen less"
        )


def _task_estimates(fitted: FittedPrior) -> list[dict[str, Any]]:
    """Mean and standard deviation of every theta given its data, in the features that differ, where
    the estimate is a prior; the uncertainty of mu is included."""
    if not fitted.estimate.usable or fitted.estimate.noise_sd is None:
        return []
    mean, cov = fitted.moments(fitted.stats.gram, fitted.stats.moment)
    sd = np.sqrt(np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0))
    return task_estimates(fitted.stats, mean, sd, fitted.conditional)


def print_fit(
    console: Console,
    fitted: FittedPrior,
    wording: Callable[[str], str] = str,
    ends: DataFrame | None = None,
) -> None:
    """Tables of the estimate with errors and intervals, the tasks shrunken towards it, the status;
    ``ends`` are those of ``confint``, Wald's where None."""
    stats, estimate = fitted.stats, fitted.estimate
    _print_summary(console, fitted, wording, ends)
    vary, own = stats.differs, features_of(stats, True)
    if len(own) > 1:
        _print_covariances(console, own, estimate.prior.cov[np.ix_(vary, vary)])
    if fitted.known_rows or estimate.noise_sd is not None:
        console.print(noise_in_words(None if fitted.known_rows else estimate.noise_sd))
    if fitted.loglik is not None:
        console.print(fitted.likelihood_line)
    tasks = _task_estimates(fitted)
    if tasks:
        title = "Tasks, shrunken towards the prior"
        doubt = "the mean's uncertainty is included, the covariance's is not"
        note = "as if the prior were known" if estimate.mean_cov is None else doubt
        print_tasks(console, title, own, tasks, note, same=features_of(stats, False))
    if estimate.passed_over:
        console.print(
            "tasks passed over, since they do not determine all features by themselves "
            f"(ml and reml use them): {estimate.passed_over}"
        )
    if estimate.negative:
        console.print(f"negative eigenvalues of the bias-corrected covariance: {estimate.negative}")
    console.print(f"status: {wording(estimate.status.advice)}")
    note = origin_note(stats, estimate) if estimate.usable else ""
    if note:
        console.print(f"note: {note}")


def _print_summary(
    console: Console, fitted: FittedPrior, wording: Callable[[str], str], ends: DataFrame | None
) -> None:
    """Means, standard deviations, correlations and noise with errors and intervals."""
    shown = fitted.summary()
    method, level, failed = "wald", fitted.level, 0
    if ends is not None:
        shown = shown.assign(low=ends["low"], high=ends["high"])
        method, level, failed = (ends.attrs[name] for name in ("method", "level", "failed"))
    numbers = [[number(one) for one in row] for row in shown.to_numpy(dtype=float).tolist()]
    rows = quantity_rows(console, list(map(str, shown.index)), numbers)
    heads = ["quantity", "estimate", "s.e.", percent((1 - level) / 2), percent((1 + level) / 2)]
    console.print(table(fitted.title, heads, rows))
    lost = f" ({failed} replications had no estimate)" if failed else ""
    console.print(f"intervals: {method}{lost}")
    if method == "wald" and fitted.no_wald:
        console.print(visible(wording(fitted.no_wald)), markup=False, highlight=False)


def _print_covariances(console: Console, features: list[str], cov: np.ndarray) -> None:
    names, between = [label(name) for name in features], correlation(cov)
    groups: list[list[list[str | Text]]] = []
    for j, name in enumerate(names):
        above = [number(value.round(2)) for value in between[:j, j]]
        below = [number(value) for value in cov[j:, j]]
        groups.append([[name, *above, *below]])
    title = "Variances and covariances, correlations above the diagonal"
    print_blocks(console, title, ["", *names], groups)
