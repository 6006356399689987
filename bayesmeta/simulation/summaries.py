"""Statistics of records: means over runs with intervals, paired differences, orderings.

The unit of replication is the run: tasks inside a run share a learned prior. Differences are taken
within runs, since all agents of a run meet the same tasks, actions and noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesmeta.checks import Array, InputError
from bayesmeta.simulation.records import cumulative

if TYPE_CHECKING:
    import xarray as xr

NORMALISER = "KTS"
"""The agent whose mean final regret is 1 (Figure 1)."""


class Interval(NamedTuple):
    """A mean over runs with its two-sided t interval; open ends (NaN) for a single run."""

    mean: float
    low: float
    high: float


def interval(values: Array, level: float = 0.95) -> Interval:
    """The t interval of the mean of independent runs."""
    values = np.asarray(values, dtype=float)
    mean = float(values.mean())
    if values.size < 2:
        return Interval(mean, float("nan"), float("nan"))
    from scipy.stats import t

    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    half = float(t.ppf((1 + level) / 2, values.size - 1)) * error
    return Interval(mean, mean - half, mean + half)


def normaliser(record: xr.Dataset) -> float:
    """The mean final regret of KTS, which Figure 1 sets to 1."""
    if NORMALISER not in record.agent:
        raise InputError(
            f"regret is normalised by {NORMALISER}, which this record does not hold; "
            f"give {NORMALISER} to simulate, too"
        )
    regret = cumulative(record).cumulative_regret
    unit = float(regret.sel(agent=NORMALISER).isel(task=-1).mean())
    if not unit > 0:
        raise InputError(
            f"regret is normalised by that of {NORMALISER}, which is {unit:g} in this record; play "
            "more tasks, or offer more than one action"
        )
    return unit


def summarise(record: xr.Dataset) -> dict[str, dict[str, object]]:
    """Final figures of every agent; intervals are 95% t intervals over runs.

    Parameters
    ----------
    record : xarray.Dataset
        What ``simulate`` returned, or ``thin`` of it; KTS must be among its agents.

    Returns
    -------
    dict of str to dict
        For every agent: ``normalised_regret``, over all tasks in units of KTS's;
        ``difference_to_KTS``, the same less KTS's in the same run; ``relative_regret``, less that
        of the agent's reference, eq. (2); errors and ``smallest_eigenvalue`` of the prior used in
        the last task; and totals per run of ``not_positive_definite`` (tasks whose widened
        covariance had to be raised), ``singular`` (tasks played with a singular covariance of
        largest likelihood), ``exploration_steps`` and ``untrusted`` (tasks played with a prior
        from draws that diverged or did not move; older records lack it). All are means over runs.

    Examples
    --------
    >>> record = bm.simulate(bm.paper_family(dim=2, horizon=10), ["KTS", "UKTS"], tasks=5, runs=2)
    >>> bm.summarise(record)["KTS"]["normalised_regret"]
    1.0
    """
    unit = normaliser(record)
    final = cumulative(record).isel(task=-1)
    regret = final.cumulative_regret / unit
    kts = regret.sel(agent=NORMALISER).values
    return {
        name: _figures(final.sel(agent=name), regret.sel(agent=name).values, kts, unit)
        for name in record.agent.values.tolist()
    }


def _figures(here: xr.Dataset, own: Array, kts: Array, unit: float) -> dict[str, object]:
    """The figures of one agent from its values at the last task."""
    total, to_kts = interval(own), interval(own - kts)
    relative = interval(here.cumulative_relative_regret.values / unit)
    singular = float(here.cumulative_singular.mean()) if "cumulative_singular" in here else None
    out: dict[str, object] = {
        "normalised_regret": total.mean,
        "interval": _ends(total),
        "difference_to_KTS": to_kts.mean,
        "difference_interval": _ends(to_kts),
        "reference": str(here.reference.values),
        "relative_regret": relative.mean,
        "relative_interval": _ends(relative),
        "mean_error": float(here.mean_error.mean()),
        "covariance_error": float(here.covariance_error.mean()),
        "raw_covariance_error": float(here.raw_covariance_error.mean()),
        "smallest_eigenvalue": float(here.smallest_eigenvalue.mean()),
        "not_positive_definite": float(here.cumulative_not_positive_definite.mean()),
        "singular": singular,
        "exploration_steps": float(here.cumulative_exploration_steps.mean()),
        "recorded": bool(here.recorded) if "recorded" in here.coords else False,
    }
    if "untrusted" in here:
        out["untrusted"] = float(here.untrusted.mean())
    return out


def _ends(value: Interval) -> list[float] | None:
    return None if np.isnan(value.low) else [value.low, value.high]


class Comparison(NamedTuple):
    """One statement about a record: a number that must be negative, with its interval."""

    statement: str
    span: str
    measure: str
    value: Interval
    verdict: str


def judge(statement: str, span: str, measure: str, values: Array, level: float) -> Comparison:
    """ "holds" where the interval lies below 0, "fails" where above, else "undecided"."""
    value = interval(values, level)
    verdict = "holds" if value.high < 0 else "fails" if value.low > 0 else "undecided"
    return Comparison(statement, span, measure, value, verdict)


ORDERED = (
    ("Th-MTS_tau", "UKTS", "Th-MTS_tau is better than UKTS"),
    ("All-MTS_tau", "UKTS", "All-MTS_tau is better than UKTS"),
    ("All-MTS", "UKTS", "All-MTS is better than UKTS"),
    ("All-MTS", "All-MTS_tau", "All-MTS is better than All-MTS_tau"),
    ("All-MTS_tau", "Th-MTS_tau", "All-MTS_tau is better than Th-MTS_tau"),
    ("Th-MTS_tau", "KMTS", "Th-MTS_tau reaches KMTS"),
    ("All-MTS_tau", "KMTS", "All-MTS_tau outperforms KMTS"),
    ("All-MTS", "KMTS", "All-MTS outperforms KMTS"),
)
"""Whose regret is lower than whose, as the text of Section 6 says it."""
LEARNED = ("Th-MTS_tau", "All-MTS_tau", "All-MTS")
"""The learners whose errors Section 6 speaks of."""


def orderings(record: xr.Dataset) -> list[Comparison]:
    """The orderings the text of Section 6 states, over all tasks and over their last half, and
    how the errors of the mean go on over the last decade of tasks (from a tenth of them to all).

    Every interval has the level that makes them all hold together with probability 95%
    (Bonferroni).
    """
    total, unit = cumulative(record), normaliser(record)
    level = 1 - 0.05 / (2 * len(ORDERED) + 2 * len(LEARNED) - 1)
    end = total.cumulative_regret.isel(task=-1)
    half = total.cumulative_regret.sel(task=int(total.task[-1]) // 2)
    spans = {"all tasks": end / unit, "the last half": (end - half) / unit}
    found = [
        judge(
            text,
            span,
            f"regret of {first} less that of {second}, in units of KTS's total",
            (regret.sel(agent=first) - regret.sel(agent=second)).values,
            level,
        )
        for first, second, text in ORDERED
        for span, regret in spans.items()
    ]
    return found + _errors_go_on(total, level)


def _errors_go_on(total: xr.Dataset, level: float) -> list[Comparison]:
    """What Section 6 says of the errors of the mean over the last decade of tasks."""
    slopes = {name: error_slopes(total, name) for name in LEARNED}
    first, *others = LEARNED
    said = [
        (
            f"the mean error of {first} keeps falling",
            "slope of log mean error on log tasks",
            slopes[first],
        )
    ]
    said += [
        (
            f"the mean error of {name} falls more slowly than that of {first}",
            f"slope of {first} less that of {name}",
            slopes[first] - slopes[name],
        )
        for name in others
    ]
    said += [
        (
            f"the mean error of {name} has levelled off: it no longer falls",
            f"slope of log mean error on log tasks of {name}, its sign changed",
            -slopes[name],
        )
        for name in others
    ]
    return [judge(text, "the last decade", what, values, level) for text, what, values in said]


def run_by_run(
    record: xr.Dataset, agents: Sequence[str], learners: Sequence[str], unit: float
) -> dict[str, dict[str, list[float]]]:
    """What Section 6 speaks of, by measure and agent, a number for every run: ``total`` and
    ``last_half`` regret over ``unit``; of learners the last ``mean_error``, ``covariance_error``
    and ``raw_covariance_error``, and the ``slope`` of ``error_slopes``."""
    total = cumulative(record)
    last = int(total.task[-1])
    regret = total.cumulative_regret / unit
    end, half = regret.isel(task=-1), regret.sel(task=last // 2)
    found = {
        "total": {name: end.sel(agent=name).values for name in agents},
        "last_half": {name: (end - half).sel(agent=name).values for name in agents},
        "slope": {name: error_slopes(total, name) for name in learners},
    }
    for measure in ("mean_error", "covariance_error", "raw_covariance_error"):
        values = total[measure].isel(task=-1)
        found[measure] = {name: values.sel(agent=name).values for name in learners}
    return {
        measure: {name: [float(f"{value:.10g}") for value in values] for name, values in by.items()}
        for measure, by in found.items()
    }


def error_slopes(record: xr.Dataset, agent: str) -> Array:
    """Slope of log mean error on log task number over the last decade of tasks, run by run."""
    last = int(record.task[-1])
    error = record.mean_error.sel(agent=agent)
    error = error.sel(task=error.task >= last // 10)
    return np.array([np.polyfit(np.log(error.task), np.log(row), 1)[0] for row in error.values])
