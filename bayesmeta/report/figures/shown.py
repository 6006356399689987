"""Whatever holds a prior, as what a picture of it needs: mean, covariance, labels and draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import Array, InputError, one_of
from bayesmeta.environment import TaskFamily
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.estimators.moments import least_squares
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.report.figures.style import shortened
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import xarray as xr

    from bayesmeta.fitted.posterior import FittedPosterior
    from bayesmeta.fitted.prior import FittedPrior

    type Source = (
        GaussianPrior | PriorEstimate | FittedPrior | FittedPosterior | TaskFamily | xr.DataTree
    )
MOST = 6
"""Features at most, in pairs."""


class Shown(NamedTuple):
    """One prior, in the features that are shown; ``mus`` and ``covs`` are draws of it."""

    mean: Array
    cov: Array
    labels: tuple[str, ...] | None
    mus: Array | None = None
    covs: Array | None = None


def by_name(priors: Any) -> dict[str, Any]:
    """Priors by name; one that was given without gets the name of its method, or of what it is."""
    import xarray as xr

    if isinstance(priors, Mapping) and not isinstance(priors, xr.DataTree):
        return {str(name): one for name, one in priors.items()}
    if isinstance(priors, GaussianPrior | TaskFamily):
        return {"prior": priors}
    if isinstance(priors, PriorEstimate):
        return {"estimate": priors}
    return {str(getattr(priors, "method", "posterior")): priors}


def shown_of(one: Any) -> Shown:
    """Mean, covariance and draws of whatever holds a prior."""
    import xarray as xr

    from bayesmeta.fitted.posterior import FittedPosterior
    from bayesmeta.fitted.prior import FittedPrior

    if isinstance(one, TaskFamily):
        one = one.prior
    if isinstance(one, GaussianPrior):
        return Shown(one.mean, one.cov, None)
    if isinstance(one, PriorEstimate):
        return Shown(one.prior.mean, one.prior.cov, one.features)
    if isinstance(one, FittedPrior):
        labels = tuple(map(str, one.stats.feature_labels))
        return Shown(one.estimate.prior.mean, one.estimate.prior.cov, labels)
    if isinstance(one, FittedPosterior):
        one = one.tree
    if isinstance(one, xr.DataTree) and "posterior" in one:
        return _of_draws(one["posterior"].to_dataset())
    raise InputError(
        f"a prior must be a GaussianPrior, or what fit_prior, fit or sample_posterior returned, "
        f"got {type(one).__name__}"
    )


def _of_draws(posterior: xr.Dataset) -> Shown:
    """Draws, with zeros in Sigma for features that are the same in all tasks."""
    labels = tuple(str(name) for name in posterior["feature"].values)
    dim = str(posterior["sd"].dims[-1])
    own = [labels.index(str(name)) for name in posterior[dim].values]
    mus = posterior["mu"].transpose("chain", "draw", ...).values.reshape(-1, len(labels))
    inner = posterior["Sigma"].transpose("chain", "draw", ...).values
    covs = np.zeros((len(mus), len(labels), len(labels)))
    if inner.shape[-1] == len(labels):
        covs[:] = inner.reshape(covs.shape)
    else:
        covs[np.ix_(range(len(mus)), own, own)] = inner.reshape(-1, len(own), len(own))
    return Shown(mus.mean(axis=0), covs.mean(axis=0), labels, mus, covs)


def points_of(tasks: TaskStatistics | Array | None) -> Array | None:
    """The tasks to show, one a row, without those that have no estimate."""
    if tasks is None:
        return None
    if isinstance(tasks, TaskStatistics):
        tasks = least_squares(tasks, undetermined="nan")
    points = np.asarray(tasks, dtype=float)
    if points.ndim != 2:
        raise InputError(f"tasks must have shape (n, d), got {points.shape}")
    return points[np.isfinite(points).all(axis=1)]


def chosen_features(
    every: Mapping[str, Shown], points: Array | None, asked: Sequence[str] | None
) -> tuple[list[int], list[str]]:
    """Places and labels of the features to show."""
    dims = {name: len(one.mean) for name, one in every.items()}
    if points is not None:
        dims["tasks"] = points.shape[1]
    if len(set(dims.values())) > 1:
        found = ", ".join(f"{name}: {d}" for name, d in dims.items())
        raise InputError(f"priors differ in their number of features ({found})")
    d = next(iter(dims.values()))
    named = (one.labels for one in every.values() if one.labels is not None)
    labels = list(next(named, tuple(f"x{i + 1}" for i in range(d))))
    if asked is None:
        chosen = list(range(min(d, MOST)))
    else:
        wanted = [asked] if isinstance(asked, str) else list(asked)
        if not 1 <= len(wanted) <= MOST:
            raise InputError(f"features must name one to {MOST} features, got {len(wanted)}")
        chosen = [labels.index(one_of("features", name, labels)) for name in wanted]
    return chosen, [shortened(labels[i], 30) for i in chosen]


def among(one: Shown, chosen: Sequence[int], draws: int) -> Shown:
    """The same in some features, with some of the draws."""
    part = np.ix_(chosen, chosen)
    mus = covs = None
    if one.mus is not None and one.covs is not None and draws:
        some = np.linspace(0, len(one.mus) - 1, min(draws, len(one.mus))).round().astype(int)
        mus, covs = one.mus[some][:, chosen], one.covs[some][:, part[0], part[1]]
    return Shown(one.mean[list(chosen)], one.cov[part], None, mus, covs)
