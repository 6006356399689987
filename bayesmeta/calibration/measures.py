"""Performance measures over replications, each with its Monte-Carlo error.

Formulas and names as in Morris, White and Crowther (2019), "Using simulation studies to evaluate
statistical methods", Table 6; the scores are those of ``scores``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.calibration.scores import interval_score
from bayesmeta.calibration.shares import counted, exact_interval
from bayesmeta.checks import InputError, of_type

if TYPE_CHECKING:
    import xarray as xr

OVER = "replication"
SURE = 0.95
"""Probability of the exact binomial intervals of coverages."""
SHARES = ("failed", "not_positive_definite", "singular", "dominates")
MEANS = ("mean_error", "cov_error", "log_score", "energy_score", "next_width", "divergent")
ASKED = ("relative_regret", "known_regret", "mean_radius", "cov_radius")
"""Means of what there is only where it was asked for."""


def measures(lab: xr.Dataset) -> xr.Dataset:
    """How good every estimator is: what ``calibrate`` returned, summed up over replications.

    Parameters
    ----------
    lab : xarray.Dataset
        What ``calibrate`` returned.

    Returns
    -------
    xarray.Dataset
        By tasks and estimator (and ``data`` and ``wrong``, where there are several), each with a
        Monte-Carlo standard error of the same name and ``_error``:

        bias, rmse
            of the estimates of every quantity
        empirical_se, claimed_se, se_ratio
            the spread of the estimates, the root of the mean squared standard error that was
            claimed, and the second by the first: 1 is right, less is too sure
        coverage, width, interval_score
            by level, of the intervals there are (their share is ``available``); ``coverage_low``
            and ``coverage_high`` are an exact 95% binomial interval of the coverage
        next_coverage, next_width, log_score, energy_score
            of the next task's theta, where the estimate is a prior (``next_available`` is the
            share where it is); the coverage is of ellipsoids, by level
        mean_error, cov_error
            the norm of the error of mu, and the operator norm of that of Sigma
        mean_within, cov_within, mean_radius, cov_radius
            by level, how often these are within the paper's radii (events E_m and E_s, the latter
            with ``dominates``), of replications in which E_v holds; where intervals have radii
        relative_regret, known_regret
            of next tasks: with the estimated prior less that with the true one, and the latter;
            where ``regret`` was asked for
        failed, not_positive_definite, singular, dominates
            shares: of all replications, and of those with an estimate
        divergent
            the share of a posterior's draws that diverged
        replications
            how many had an estimate, of ``drawn``

    Examples
    --------
    >>> family = bm.paper_family(dim=2, horizon=50)
    >>> found = bm.measures(bm.calibrate(family, tasks=30, replications=30, jobs=1))
    >>> bool((abs(found.bias.sel(quantity="mu[x1]")) < 5 * found.bias_error.max()).all())
    True
    """
    import xarray as xr

    of_type("lab", lab, xr.Dataset, "give what calibrate returned")
    for name in ("estimate", "low", "truth"):
        if name not in lab or OVER not in lab[name].dims:
            raise InputError(f"there is no {name!r} of replications; give what calibrate returned")
    content = _of_estimates(lab) | _of_intervals(lab) | _of_next(lab)
    for name in SHARES:
        content |= _mean(name, lab[name])
    for name in (*MEANS, *(name for name in ASKED if name in lab)):
        content |= _mean(name, lab[name])
    content |= _of_radii(lab)
    content["replications"] = (lab.failed == 0).sum(OVER)
    content["drawn"] = xr.DataArray(lab.sizes[OVER])
    return xr.Dataset(content).assign_attrs(problems=lab.attrs.get("problems", "{}"))


def _of_estimates(lab: xr.Dataset) -> dict[str, xr.DataArray]:
    gap = lab.estimate - lab.truth
    n = gap.notnull().sum(OVER)
    found = _mean("bias", gap)
    square = _mean("square", gap**2)
    rmse = np.sqrt(square["square"])
    # about the truth where it is drawn anew, as estimates follow it
    empirical = gap.where(n > 1).std(OVER, ddof=1)
    variance = lab.error**2
    claimed = np.sqrt(variance.mean(OVER))
    # of the same replications: those that claim an error
    ratio = claimed / gap.where(lab.error.notnull()).std(OVER, ddof=1)
    m = lab.error.notnull().sum(OVER)
    claimed_error = variance.std(OVER) / np.sqrt(m) / (2 * claimed)
    with np.errstate(divide="ignore", invalid="ignore"):
        empirical_error = empirical / np.sqrt(2 * (n - 1.0))
        relative = (claimed_error / claimed) ** 2 + 1 / (2 * (n - 1.0))
    return found | {
        "rmse": rmse,
        "rmse_error": square["square_error"] / (2 * rmse),
        "empirical_se": empirical,
        "empirical_se_error": empirical_error,
        "claimed_se": claimed,
        "claimed_se_error": claimed_error,
        "se_ratio": ratio,
        "se_ratio_error": ratio * np.sqrt(relative),
    }


def _of_intervals(lab: xr.Dataset) -> dict[str, xr.DataArray]:
    import xarray as xr

    covered, n = counted(lab.low, lab.high, lab.truth, OVER)
    share = covered / n.where(n > 0)
    low, high = (covered.copy(data=end) for end in exact_interval(covered.values, n.values, SURE))
    width = lab.high - lab.low
    score = xr.apply_ufunc(interval_score, lab.low, lab.high, lab.truth, lab.level)
    found: dict[str, xr.DataArray] = {
        "coverage": share,
        "coverage_error": (share * (1 - share) / n.where(n > 0)) ** 0.5,
        "coverage_low": low.where(n > 0),
        "coverage_high": high.where(n > 0),
        "available": n / lab.sizes[OVER],
    }
    return found | _mean("width", width) | _mean("interval_score", score)


def _of_next(lab: xr.Dataset) -> dict[str, xr.DataArray]:
    """Shares of several next tasks in one replication go together, so no binomial interval."""
    there = lab.log_score.notnull().sum(OVER) / lab.sizes[OVER]
    return _mean("next_coverage", lab.inside) | {"next_available": there}


def _of_radii(lab: xr.Dataset) -> dict[str, xr.DataArray]:
    """Of the events E_m and E_s."""
    found: dict[str, xr.DataArray] = {}
    for part in ("mean", "cov"):
        if f"{part}_radius" in lab:
            radius = lab[f"{part}_radius"]
            within = (lab[f"{part}_error"] <= radius).where(radius.notnull())
            found |= _mean(f"{part}_within", within)
    return found


def _mean(name: str, values: xr.DataArray) -> dict[str, xr.DataArray]:
    """Over replications that have a value, and its standard error."""
    n = values.notnull().sum(OVER)
    with np.errstate(invalid="ignore"):  # infinite scores have no error
        error = values.where(n > 1).std(OVER, ddof=1) / np.sqrt(n.where(n > 0))
    return {name: values.mean(OVER), f"{name}_error": error}
