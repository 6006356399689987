"""Intervals by name, at several levels at once; the formulas are those of ``bayesmeta.fitted``, and
the paper's, of ``radii``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bayesmeta.calibration.answers import Answer, Asked, Estimator, is_posterior
from bayesmeta.calibration.radii import radii_ends
from bayesmeta.checks import Array, InputError, one_of
from bayesmeta.fitted import wald
from bayesmeta.fitted.bootstrap import bootstrap, percentiles
from bayesmeta.fitted.profile import profile_intervals

RADII = "radii"
"""The paper's own."""
KINDS = ("wald", "wald-natural", "profile", "bootstrap", RADII, "central", "hdi")
"""What ``calibrate`` knows."""
OWN = "own"
"""Those that a user's function returns."""
BOOTSTRAPS = 200
"""Replications of a bootstrap."""


def checked_kinds(given: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Names of intervals; None: for every estimator its usual ones."""
    if given is None:
        return None
    names = [given] if isinstance(given, str) else list(given)
    if not names:
        raise InputError("intervals is empty; name at least one, such as 'wald'")
    return tuple(dict.fromkeys(one_of("intervals", name, KINDS) for name in names))


def kinds_of(estimator: Estimator, wanted: tuple[str, ...] | None) -> list[str]:
    """The intervals that an estimator is judged by: those wanted that it has, or its usual one."""
    if is_posterior(estimator):
        has: tuple[str, ...] = ("central", "hdi")
    elif not isinstance(estimator, str):
        has = (OWN,)
    elif estimator in ("ml", "reml"):
        has = ("wald", "wald-natural", "profile", "bootstrap")
    elif estimator == "moment-clipped":
        has = ("wald", "wald-natural", "bootstrap")
    elif estimator == "moment":
        has = ("wald", "wald-natural", "bootstrap", RADII)
    elif estimator.startswith("moment-widened"):
        has = ("wald", "wald-natural", RADII)
    else:
        has = ("wald", "wald-natural")
    return [one for one in wanted or () if one in has] or [has[0]]


def judges_of(
    estimators: dict[str, Estimator], wanted: tuple[str, ...] | None
) -> dict[str, tuple[str, str]]:
    """Label of every estimator with every kind of its intervals -> (estimator, kind)."""
    found: dict[str, tuple[str, str]] = {}
    for name, one in estimators.items():
        kinds = kinds_of(one, wanted)
        for kind in kinds:
            found[name if len(kinds) == 1 else f"{name}, {kind}"] = (name, kind)
    used = {kind for _, kind in found.values()}
    for kind in wanted or ():
        if kind not in used:
            raise InputError(
                f"none of the estimators ({', '.join(estimators)}) has {kind} intervals"
            )
    return found


def ends(kind: str, answer: Answer, asked: Asked, method: Any, levels: Array) -> Array:
    """Low and high ends, (2, levels, quantities); NaN where there is no interval."""
    if kind == OWN and answer.own is not None:
        return _users(answer, asked, levels)
    if kind == RADII:
        return radii_ends(answer, asked, levels)
    if kind in ("central", "hdi"):
        assert answer.draws is not None
        by = _shortest if kind == "hdi" else percentiles
        pairs = [by(answer.draws, float(level)) for level in levels]
    elif kind == "profile":
        assert answer.estimate is not None
        stats = asked.data.stats
        pairs = [
            profile_intervals(stats, answer.estimate, asked.quantities, float(level))
            for level in levels
        ]
    elif kind == "bootstrap":
        assert answer.estimate is not None
        drawn = bootstrap(
            asked.data.stats, answer.estimate, method, asked.told, BOOTSTRAPS, asked.seed % 2**31
        )
        values = asked.quantities.values(drawn.mean, drawn.cov, drawn.noise)
        pairs = [percentiles(values, float(level)) for level in levels]
    elif kind == "wald-natural":
        pairs = [_natural(answer, float(level)) for level in levels]
    else:
        return np.array(wald.interval(answer.values, answer.errors, asked.quantities, levels))
    return np.array(pairs).transpose(1, 0, 2)


def _natural(answer: Answer, level: float) -> tuple[Array, Array]:
    """The estimate and so many standard errors, whatever the quantity."""
    from scipy.stats import norm

    half = float(norm.isf((1 - level) / 2)) * answer.errors
    return answer.values - half, answer.values + half


def _shortest(draws: Array, level: float) -> tuple[Array, Array]:
    """The shortest interval that holds ``level`` of the draws, of every quantity."""
    import arviz_stats as azs
    import xarray as xr

    named = xr.DataArray(draws[None], dims=("chain", "draw", "quantity"))
    low, high = azs.hdi(named, prob=level).transpose("ci_bound", "quantity").values
    return low, high


def _users(answer: Answer, asked: Asked, levels: Array) -> Array:
    """Those that a user's function gives, by the names of quantities."""
    assert answer.own is not None
    names = asked.quantities.names
    out = np.full((2, len(levels), len(names)), np.nan)
    for i, level in enumerate(levels):
        found = answer.own(float(level))
        for name, pair in dict(found).items():
            one_of("quantity", name, names)
            low, high = (float(end) for end in pair)
            if low > high:
                raise ValueError(f"the interval of {name} ends before it begins")
            out[:, i, names.index(name)] = low, high
    return out
