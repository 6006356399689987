"""Profile intervals: where the likelihood, all else at its best, has fallen by so much.

As lme4's ``confint``, they are of the likelihood, also where the fit is by REML: restricted
likelihoods say nothing of the mean. Coordinates are a root of Sigma with the features in question
first, so that the quantity that is held is one of them and the others are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Advice, Array, InputError
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.fitted.deviance import Held, height
from bayesmeta.fitted.quantities import Quantities
from bayesmeta.gaussian import lower_root
from bayesmeta.statistics import TaskStatistics

NEAR = 1e-5
"""Relative error of an end."""
FAR = 14.0
"""The largest logarithm of a noise variance or a root of Sigma, in units of the estimate."""
NOTHING = 1e12
"""Minus the log-likelihood of a place beyond."""
FEATURES = 10
"""Varying features up to which there are profiles: an end takes several searches."""


class Model(NamedTuple):
    """Centred tasks in units in which rewards and coefficients are near 1."""

    stats: TaskStatistics
    vary: tuple[int, ...]
    noise: float | None
    """log sigma^2 where it is known"""


class Place(NamedTuple):
    """Where a quantity is held: its kind, the order of the varying features, and free numbers."""

    kind: str
    order: tuple[int, ...]
    feature: int


def profile_intervals(
    stats: TaskStatistics, estimate: PriorEstimate, quantities: Quantities, level: float
) -> tuple[Array, Array]:
    """Lower and upper ends of all quantities: 0 of an sd and -1 or 1 of a correlation where the
    likelihood does not fall enough on the way there. Of a variance they are those of its sd
    squared; a covariance has none (NaN): no coordinate here is one."""
    from scipy.stats import norm

    if stats.count is None or stats.energy is None:
        raise InputError(
            "profile intervals need count and energy (steps and sum of squared rewards of each "
            "task); make the TaskStatistics with them"
        )
    if len(quantities.vary) > FEATURES or estimate.noise_sd is None:
        raise InputError(
            f"profile intervals are for at most {FEATURES} features that vary and an estimate "
            "with its noise; use bootstrap"
        )
    drop = float(norm.isf((1 - level) / 2))
    model, centre, units, unit = _in_units(stats, estimate, quantities)
    cov = estimate.prior.cov / np.outer(units, units)
    noise = 2 * math.log(estimate.noise_sd / unit) if quantities.noisy else None
    lows: list[float] = []
    highs: list[float] = []
    for kind, at in quantities.places:
        if kind == "cov":
            first = quantities.places.index(("sd", at[:1]))
            lows.append(lows[first] ** 2 if at[0] == at[1] else math.nan)
            highs.append(highs[first] ** 2 if at[0] == at[1] else math.nan)
            continue
        order = tuple(dict.fromkeys([*(i for i in at if i in quantities.vary), *quantities.vary]))
        place = Place(kind, order, at[0] if at else -1)
        low, high = _ends(model, place, cov, noise, drop)
        scale = {"corr": 1.0, "sigma": unit}.get(kind, units[at[0]] if at else 1.0)
        shift = centre[at[0]] if kind == "mu" else 0.0
        lows.append(shift + scale * low)
        highs.append(shift + scale * high)
    return np.array(lows), np.array(highs)


def _in_units(
    stats: TaskStatistics, estimate: PriorEstimate, quantities: Quantities
) -> tuple[Model, Array, Array, float]:
    """The model in units of the noise and of each coefficient's size; these, and the centre."""
    centred, centre = stats.centred()
    unit = float(estimate.noise_sd or 1.0)
    gram = stats.gram.sum(axis=0)
    least = unit / np.sqrt(np.diag(gram) / len(stats))
    units = np.maximum(np.sqrt(np.maximum(np.diag(estimate.prior.cov), 0.0)), least)
    assert centred.energy is not None
    inside = TaskStatistics.trusted(
        stats.gram * np.outer(units, units) / unit**2,
        centred.moment * units / unit**2,
        stats.count,
        centred.energy / unit**2,
    )
    return Model(inside, quantities.vary, None if quantities.noisy else 0.0), centre, units, unit


def _ends(
    model: Model, place: Place, cov: Array, noise: float | None, drop: float
) -> tuple[float, float]:
    """Both ends of a quantity."""
    start = _coordinates(model, place, cov, noise)
    best, value, at = _climb(model, place, start, None)
    here = _held(model, place, best, at)
    if place.kind == "corr" and 2 * (value - _without_spread(model, place, best)) < drop**2:
        return -1.0, 1.0
    least, most = {
        "mu": (-math.inf, math.inf),
        "sd": (0.0, math.inf),
        "corr": (-1.0, 1.0),
        "sigma": (1e-6, math.inf),
    }[place.kind]
    low, high = (
        _end(model, place, best, value, here, way, bound, drop)
        for way, bound in ((-1.0, least), (1.0, most))
    )
    return low, high


def _without_spread(model: Model, place: Place, best: Array) -> float:
    """The highest likelihood where one of a correlation's features does not vary: then the
    correlation may be anything."""
    first, second, *others = place.order
    values = []
    for order in ((first, second, *others), (second, first, *others)):
        one = Place("sd", order, order[0])
        root = _root_of(place, best, model.stats.dim)
        noise = None if model.noise is not None else float(best[-1])
        start = _coordinates(model, one, root @ root.T, noise)
        values.append(_climb(model, one, _without(model, one, start), 0.0)[1])
    return max(values)


def _end(
    model: Model,
    place: Place,
    best: Array,
    value: float,
    here: float,
    way: float,
    bound: float,
    drop: float,
) -> float:
    """Where the root of twice the fall is ``drop``, on one side; the bound where it is less."""
    if (bound - here) * way <= 1e-9:
        return bound
    warm = {here: best}

    def fall(at: float) -> float:
        """The root of twice the fall, less ``drop``; from the nearest place that was searched."""
        near = warm[min(warm, key=lambda one: abs(one - at))]
        found, height_there, _ = _climb(model, place, _without(model, place, near), at)
        warm[at] = found
        return math.sqrt(max(2 * (value - height_there), 0.0)) - drop

    step = {"mu": 0.5, "sd": 0.3 * max(here, 0.3), "corr": 0.3, "sigma": 0.1 * here}[place.kind]
    inside, outside, low = here, here, -drop
    for _ in range(60):
        outside = inside + way * step
        if (bound - outside) * way <= 0:
            outside = bound
        high = fall(outside)
        if high >= 0:
            return _root(fall, inside, outside, low, high)
        if outside == bound:
            return bound
        # the root of the fall is nearly a line: go where it would reach the drop
        slope = (high - low) / abs(outside - inside)
        ahead = 1.1 * -high / slope if slope > 0 else 2 * step
        step, inside, low = min(max(ahead, 0.1 * step), 4 * step), outside, high
    raise InputError(
        Advice(
            "the likelihood does not fall far enough for a profile interval: the data do not "
            "determine this quantity; use another method, or collect more tasks or rows a task"
        )
    )


def _root(
    fall: Callable[[float], float], inside: float, outside: float, low: float, high: float
) -> float:
    """Between two places of different sign, without searching again where they are."""
    from scipy.optimize import brentq

    known = {inside: low, outside: high}
    first, last = min(inside, outside), max(inside, outside)
    size = max(abs(first), abs(last), last - first)
    return float(
        brentq(lambda x: known[x] if x in known else fall(x), first, last, xtol=NEAR * size / 4)
    )


def _coordinates(model: Model, place: Place, cov: Array, noise: float | None) -> Array:
    """The free numbers of an estimate: the lower triangle of its root, in order, and log sigma^2.
    Off the boundary, where slopes vanish."""
    order = list(place.order)
    part = cov[np.ix_(order, order)]
    root = lower_root(part + 1e-3 * np.diag(np.maximum(np.diag(part), 1e-2)))
    found = root[np.tril_indices(len(order))]
    return found if noise is None else np.append(found, noise)


def _root_of(place: Place, x: Array, d: int) -> Array:
    """The (d, q) root of the numbers of a triangle."""
    q = len(place.order)
    root = np.zeros((q, q))
    root[np.tril_indices(q)] = x[: q * (q + 1) // 2]
    out = np.zeros((d, q))
    out[list(place.order)] = root
    return out


def _held(model: Model, place: Place, x: Array, mean: Array) -> float:
    """The value of the quantity."""
    if place.kind == "mu":
        return float(mean[place.feature])
    if place.kind == "sd":
        return abs(float(x[0]))
    if place.kind == "corr":
        size = math.hypot(x[1], x[2])
        return float(math.copysign(1.0, x[0]) * x[1] / size) if size > 0 else 0.0
    return math.exp(x[-1] / 2)


def _without(model: Model, place: Place, x: Array) -> Array:
    """The numbers that stay free where the quantity is held."""
    if place.kind == "sd":
        return x[1:]
    if place.kind == "corr":
        _, columns = np.tril_indices(len(place.order))
        first = np.zeros(len(x), dtype=bool)
        first[: len(columns)] = columns == 0
        x = np.where(first & (x[0] < 0), -x, x)
        return np.concatenate([[x[0], max(math.hypot(x[1], x[2]), 1e-3)], x[3:]])
    return x[:-1] if place.kind == "sigma" else x


def _with(place: Place, free: Array, at: float | None) -> tuple[Array, Array]:
    """All numbers, given the free ones and the held value; and their slopes by the free ones."""
    if at is None or place.kind == "mu":
        return free, np.eye(len(free))
    if place.kind == "sd":
        return np.concatenate([[at], free]), np.eye(len(free) + 1)[:, 1:]
    if place.kind == "sigma":
        return np.append(free, 2 * math.log(at)), np.eye(len(free) + 1)[:, :-1]
    rest = math.sqrt(max(1 - at * at, 0.0))
    slopes = np.eye(len(free) + 1)[:, [0, 1, *range(3, len(free) + 1)]]
    signs = np.where(free[:2] < 0, -1.0, 1.0)  # sizes: with other signs the correlation had one
    slopes[0, 0] = signs[0]
    slopes[1:3, 1] = signs[1] * at, signs[1] * rest
    return slopes @ free, slopes


def _climb(
    model: Model, place: Place, start: Array, at: float | None
) -> tuple[Array, float, Array]:
    """The highest place with the quantity held, or free (None): all numbers, value and mean."""
    from scipy.optimize import minimize

    d, count = model.stats.dim, len(place.order) * (len(place.order) + 1) // 2
    held = Held(place.feature, at) if place.kind == "mu" and at is not None else None
    rows, columns = np.tril_indices(len(place.order))
    chosen = np.array(place.order)[rows]

    def loss(free: Array) -> tuple[float, Array]:
        x, slopes = _with(place, free, at)
        log_variance = float(x[-1]) if len(x) > count else float(model.noise or 0.0)
        if max(abs(log_variance), math.log1p(np.abs(x[:count]).max())) > FAR:
            return NOTHING, np.zeros_like(free)  # a step of the search that digits do not bear
        found = height(model.stats, _root_of(place, x, d), log_variance, held)
        slope = found.root[chosen, columns]
        if len(x) > count:
            slope = np.append(slope, found.noise)
        return -found.value, -slope @ slopes

    if not len(start):
        x, _ = _with(place, start, at)
        value = -loss(start)[0]
    else:
        ended = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-4})
        x, _ = _with(place, ended.x, at)
        value = -float(ended.fun)
    log_variance = float(x[-1]) if len(x) > count else float(model.noise or 0.0)
    return x, value, height(model.stats, _root_of(place, x, d), log_variance, held).mean
