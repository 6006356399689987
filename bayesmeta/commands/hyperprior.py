"""The prior of ``bayesmeta sample``: its options, and what to say of it and the data."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from bayesmeta.checks import InputError, real
from bayesmeta.commands.table import in_options

if TYPE_CHECKING:
    from bayesmeta.posterior.priors import LKJ
    from bayesmeta.statistics import TaskStatistics

FEW = 3
"""Tasks up to which the prior decides."""
_EACH = ("mean_sd", "scale")
"""Parts of the prior with a number for every feature."""
_PRIOR = {
    "mean_sd": "mu_i ~ N(m_i, S^2) about the pooled estimate m; one S, or S,S,… for the intercept "
    "and the features in their order",
    "scale": "standard deviations of Sigma ~ half-normal(S); one S, or S,S,… for those that differ "
    "between tasks",
    "eta": "its correlations ~ LKJ(S)",
    "noise_scale": "the noise's standard deviation ~ half-normal(S)",
}
"""Parts of the prior that an option changes."""


def add_prior_options(sample: argparse.ArgumentParser) -> None:
    """Its parts, and whether features are centred."""
    prior = sample.add_argument_group("the prior, in the units of the data")
    for name, text in _PRIOR.items():
        told = "2" if name == "eta" else "from the data"
        kind = str if name in _EACH else float
        prior.add_argument(_option(name), type=kind, metavar="S", help=f"{text} (default: {told})")
    prior.add_argument(
        "--no-centre",
        dest="centre",
        action="store_const",
        const=False,
        help="do not take features about their means; with an intercept they are, so that their "
        "origin does not matter, and the prior of the intercept is of the level there",
    )


def _option(field: str) -> str:
    return f"--prior-{field.replace('_', '-')}"


class Notes(NamedTuple):
    """What else to say of a fit; empty text where there is nothing."""

    conflict: str
    few: str
    undetermined: str


def prior_of(stats: TaskStatistics, noise: float | None, options: argparse.Namespace) -> LKJ | None:
    """The default prior with the parts that are given; None where none is."""
    import numpy as np

    from bayesmeta.posterior.defaults import default_prior

    given: dict[str, Any] = {}
    for field in _PRIOR:
        option, value = _option(field), getattr(options, f"prior_{field}")
        if value is None:
            continue
        parts = value.split(",") if field in _EACH else [value]
        numbers = [real(option, part, above=0.0) for part in parts]
        own = stats.differs if field == "scale" else np.ones(stats.dim, dtype=bool)
        if len(numbers) not in (1, own.sum(), stats.dim):
            names = np.array(stats.feature_labels, dtype=object)[own]
            raise InputError(
                f"{option} has {len(numbers)} numbers; give one, or {len(names)}, for "
                f"{', '.join(map(repr, map(str, names)))}"
            )
        if 1 < len(numbers) < stats.dim:  # the others' is not used
            every = np.ones(stats.dim)
            every[own] = numbers
            numbers = every.tolist()
        given[field] = numbers[0] if len(numbers) == 1 else numbers
    if noise is not None and "noise_scale" in given:
        raise InputError("--prior-noise-scale is for an unknown noise; --noise-sd says it")
    return replace(default_prior(stats, noise, options.centre), **given) if given else None


def notes_on(
    stats: TaskStatistics, noise: float | None, prior: LKJ | None, centre: bool | None
) -> Notes:
    """A prior that contradicts the data, few tasks, data that more draws would not help."""
    from bayesmeta.posterior.centring import centring_of
    from bayesmeta.posterior.conflict import at_odds

    centring = centring_of(stats, centre)
    inside = stats if centring is None else centring.inside(stats)
    found = at_odds(inside, noise, prior.settled(stats.dim)) if prior else ()
    conflict = few = ""
    if found:
        conflict = (
            f"the prior does not suit the data: {'; '.join(map(in_options, found))}; are its "
            "numbers in their units?"
        )
    if len(stats) <= FEW:
        few = (
            f"{len(stats)} tasks say little about how tasks differ, so the answer depends on the "
            "prior: give your own (--prior-scale, --prior-mean-sd)"
        )
    return Notes(conflict, few, _undetermined(stats, noise))


def _undetermined(stats: TaskStatistics, noise: float | None) -> str:
    """REML's advice where the data do not determine the prior; nothing where they do."""
    from bayesmeta.estimators.estimate import Status
    from bayesmeta.estimators.fit import fit_prior

    try:
        status = fit_prior(stats, noise).status
    except InputError:  # it cannot tell
        return ""
    if status not in (Status.NOT_IDENTIFIED, Status.NO_NOISE):
        return ""
    return f"{in_options(status.advice)}; more draws will not help"
