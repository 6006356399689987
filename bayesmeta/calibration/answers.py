"""What an estimator answers about one data set, whichever kind of estimator it is."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from bayesmeta.calibration.scores import Forecast
from bayesmeta.calibration.worlds import PRIORS, Data
from bayesmeta.checks import Array, InputError, one_of, real
from bayesmeta.environment import Bounds
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.fit import METHODS, fit_prior
from bayesmeta.fitted import wald
from bayesmeta.fitted.quantities import Quantities
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.posterior.priors import Prior, PriorWarning
from bayesmeta.statistics import TaskStatistics

POSTERIOR = "posterior"
WIDENED = re.compile(r"moment-widened\((?P<constant>[^()]+)\)")
"""moment-widened with a c_w, as in ``moment-widened(10)``."""
DRAWS, THIN, TUNE = 990, 10, 400
"""Of a posterior; ranks are among every tenth draw, so among 99."""


class EstimateWithIntervals(NamedTuple):
    """What a function of one's own may return to ``calibrate``: an estimate with its intervals.

    Parameters
    ----------
    estimate : PriorEstimate or GaussianPrior
        The prior.
    intervals : callable
        ``intervals(level)`` is a dict from names of quantities (``mu[x1]``, ``sd[x1]``,
        ``corr[x2, x1]``, ``cov[x2, x1]``, ``sigma``) to pairs (low, high); a quantity that is not
        there has none.

    Examples
    --------
    >>> def always(stats, noise_sd):
    ...     prior = bm.GaussianPrior([0.0], [[1.0]])
    ...     return bm.EstimateWithIntervals(prior, lambda level: {"mu[x1]": (-level, level)})
    """

    estimate: PriorEstimate | GaussianPrior
    intervals: Callable[[float], Mapping[str, tuple[float, float]]]


type Estimator = str | Prior | Callable[[TaskStatistics, float | None], Any]
"""A method of ``fit_prior``, "posterior", a prior over priors (the posterior under it), or a
function of (stats, noise_sd)."""


class Answer(NamedTuple):
    """Estimates and standard errors of all quantities, and what intervals are made of."""

    prior: GaussianPrior
    values: Array
    errors: Array
    forecast: Forecast | None
    """of the next task's theta; None where the estimate is no covariance"""
    estimate: PriorEstimate | None = None
    own: Callable[[float], Mapping[str, tuple[float, float]]] | None = None
    """intervals of a user's function"""
    draws: Array | None = None
    """of all quantities, where they come from a posterior"""
    divergent: float = np.nan
    """share of them that diverged"""


class Asked(NamedTuple):
    """What an estimator is asked about, the same for all of a cell."""

    data: Data
    told: float | None
    """the noise, None: to be estimated"""
    quantities: Quantities
    horizon: int | None
    bounds: Bounds | None
    drawn_truth: bool
    seed: int


def checked_estimators(given: object) -> dict[str, Estimator]:
    """Estimators by the names they are listed under."""
    named: dict[str, Any] = {}
    if isinstance(given, str) or callable(given) or isinstance(given, PRIORS):
        given = [given]
    if isinstance(given, Mapping):
        named = {str(name): one for name, one in given.items()}
    elif isinstance(given, Iterable):
        for one in given:
            name = _name(one)
            if name in named:
                raise InputError(
                    f"two estimators are called {name!r}; give a dict of names and estimators"
                )
            named[name] = one
    if not named:
        raise InputError("there are no estimators; name at least one, such as 'reml'")
    if not all(name.strip() for name in named):
        raise InputError("an estimator has no name; give a dict of names and estimators")
    for one in named.values():
        if isinstance(one, str):
            match = WIDENED.fullmatch(one)
            if match:
                real("c_w of moment-widened", match["constant"], least=0.0)
            else:
                one_of("estimator", one, (*METHODS, POSTERIOR))
        elif not (callable(one) and not isinstance(one, type)) and not isinstance(one, PRIORS):
            raise InputError(
                f"an estimator must be a name, a prior over priors or a function of (stats, "
                f"noise_sd), got {one!r:.80}"
            )
    return named


def _name(one: object) -> str:
    if isinstance(one, str):
        return one
    if isinstance(one, PRIORS):
        return f"{POSTERIOR} ({type(one).__name__})"
    return str(getattr(one, "__name__", type(one).__name__))


def is_posterior(estimator: Estimator) -> bool:
    """Whether it draws from a posterior."""
    return estimator == POSTERIOR or isinstance(estimator, PRIORS)


def answer_of(estimator: Estimator, asked: Asked) -> Answer:
    """What the estimator says; raises where it fails, or returns what is no answer."""
    if is_posterior(estimator):
        return _by_posterior(None if isinstance(estimator, str) else estimator, asked)  # type: ignore[arg-type]
    if isinstance(estimator, str):
        estimate = _by_name(estimator, asked)
        return _of_estimate(estimate, asked, {"reml": True, "ml": False}.get(estimator))
    assert not isinstance(estimator, PRIORS)
    # of its own: what it does to it is not seen by the estimators after it
    return _of_users(estimator(deepcopy(asked.data.stats), asked.told), asked)


def _by_name(name: str, asked: Asked) -> PriorEstimate:
    stats, told = asked.data.stats, asked.told
    match = WIDENED.fullmatch(name)
    if match:
        widening = float(match["constant"])
        return fit_prior(stats, told, "moment-widened", widening=widening, horizon=_steps(asked))
    if name == "moment-widened":
        if asked.bounds is None:
            raise InputError("a table has no bounds for c_w; ask for 'moment-widened(10)'")
        return fit_prior(stats, told, name, bounds=asked.bounds, horizon=_steps(asked))
    if name == "split":
        assert asked.data.halves is not None
        return fit_prior(asked.data.halves, method="split")
    return fit_prior(stats, told, name)


def _steps(asked: Asked) -> int:
    """T: that of the family, or the longest task of a table."""
    if asked.horizon is not None:
        return asked.horizon
    count = asked.data.stats.count
    if count is None:
        raise InputError("moment-widened needs the steps of tasks; give count in TaskStatistics")
    return int(count.max())


def _of_estimate(estimate: PriorEstimate, asked: Asked, restricted: bool | None) -> Answer:
    """With standard errors as ``FittedPrior`` has them."""
    quantities, stats = asked.quantities, asked.data.stats
    prior = estimate.prior
    noise = np.nan if estimate.noise_sd is None else estimate.noise_sd
    values = quantities.values(prior.mean, prior.cov, noise)
    errors = wald.errors(stats, estimate, quantities, restricted)
    return Answer(prior, values, errors, _forecast(estimate, quantities), estimate)


def _forecast(estimate: PriorEstimate, quantities: Quantities) -> Forecast | None:
    """N(mean, Sigma), with the covariance of the mean added where the estimate states it."""
    if not estimate.usable:
        return None
    cov = estimate.prior.cov
    if estimate.mean_cov is not None:
        cov = cov + estimate.mean_cov
    vary = list(quantities.vary)
    return Forecast(estimate.prior.mean[None, vary], cov[np.ix_(vary, vary)][None])


def _of_users(found: object, asked: Asked) -> Answer:
    """What a user's function returned."""
    own = None
    if isinstance(found, EstimateWithIntervals):
        own = found.intervals
        found = found.estimate
        if not callable(own):
            raise TypeError("intervals must be a function of a level")
    if isinstance(found, GaussianPrior):
        found = PriorEstimate(found, Status.OK, noise_sd=asked.told)
    if not isinstance(found, PriorEstimate):
        kind = "None" if found is None else f"a {type(found).__name__}"
        raise TypeError(
            f"an estimator must return PriorEstimate, GaussianPrior or EstimateWithIntervals, "
            f"not {kind}"
        )
    if found.prior.dim != asked.data.stats.dim:
        raise ValueError(
            f"the estimate has dimension {found.prior.dim}, the tasks {asked.data.stats.dim}"
        )
    return _of_estimate(found, asked, None)._replace(own=own)


def _by_posterior(prior: Prior | None, asked: Asked) -> Answer:
    """Draws of ``draw_quickly``, in the coordinates of the features as given; means of draws.

    As ``sample_posterior`` has it, features are centred where there is an intercept, unless the
    truth is drawn from a prior: that is one of the features as given.
    """
    from bayesmeta.posterior.centring import centring_of
    from bayesmeta.posterior.model import check_problem
    from bayesmeta.posterior.quick import draw_quickly
    from bayesmeta.posterior.tree import variables

    stats, quantities = asked.data.stats, asked.quantities
    centring = centring_of(stats, False if asked.drawn_truth else None)
    inside = stats if centring is None else centring.inside(stats)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        problem = check_problem(inside, asked.told, prior, "fused")
    found = draw_quickly(problem, draws=DRAWS, tune=TUNE, seed=asked.seed % 2**31)
    if found.stuck:
        raise RuntimeError("the chain did not move")
    raw = found.draws
    draws = variables(problem, raw["mu"], raw["Sigma"], raw.get("sigma"), centring)
    vary = np.array(quantities.vary)
    cov = np.zeros((len(draws["mu"]), stats.dim, stats.dim))
    cov[:, vary[:, None], vary] = draws["Sigma"]
    noise: float | Array = draws.get("sigma", np.array(asked.told or np.nan))
    all_draws = quantities.values(draws["mu"], cov, noise)
    middle = cov.mean(axis=0)
    return Answer(
        GaussianPrior(draws["mu"].mean(axis=0), (middle + middle.T) / 2),
        all_draws.mean(axis=0),
        all_draws.std(axis=0, ddof=1),
        Forecast(draws["mu"][:, vary], draws["Sigma"]),
        draws=all_draws,
        divergent=found.divergent / DRAWS,
    )
