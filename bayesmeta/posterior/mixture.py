"""What many drawn priors say together of a task: mixtures of normals, without draws of theta.

Given one prior and the data, a coefficient of a task is normal; over draws of (mu, Sigma, sigma)
its distribution is the mixture of these normals, in which the uncertainty about the prior is
included. Mean, standard deviation and quantiles are exact given the draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array
from bayesmeta.kernels.collapsed import Priors, thetas_given_priors
from bayesmeta.posterior.tree import Read, read

if TYPE_CHECKING:
    import xarray as xr

STEPS = 100
"""Of a search by Newton's steps, each followed by one that halves the bracket where it did not."""
NEAR = 1e-9
"""Error of the distribution function at a quantile."""
BLOCK = 2**22
"""Coefficients that are computed, or drawn, at a time."""
MIXED = 1_000_000
"""Rows times drawn priors that are computed at a time."""
SOLVED = 20_000_000
"""Tasks times drawn priors up to which ``of_tasks`` takes all of them."""


class Mixed(NamedTuple):
    """Of every row: mean and standard deviation, and the ends of an interval of equal tails where
    its level is given."""

    mean: Array
    sd: Array
    low: Array | None = None
    high: Array | None = None


class TaskMixtures(NamedTuple):
    """Every task's coefficients given the data, all (n, d)."""

    mixed: Mixed
    draws: int
    """drawn priors that were mixed"""
    of: int
    """drawn priors that there are"""

    @property
    def thinned(self) -> str:
        """What to say where not all priors were mixed; nothing where they were."""
        if self.draws == self.of:
            return ""
        return f"as tasks are many, by {self.draws} of the {self.of} draws, evenly spaced"


def of_tasks(tree: xr.DataTree, level: float | None = None) -> TaskMixtures:
    """Mean and standard deviation of every theta_j given the data, and the ends of intervals where
    ``level`` is given.

    The one home of what ``FittedPosterior.tasks``, ``bayesmeta sample`` and its picture show. Of
    more than ``SOLVED`` tasks times drawn priors, as many priors are mixed as that makes, evenly
    spaced; ``draws`` says how many.
    """
    found = read(tree)
    n, d = found.tasks.moment.shape
    some = _spaced(found, SOLVED // n)
    rows = mixed(some, np.arange(n).repeat(d), np.tile(np.eye(d), (n, 1)), level)
    made = Mixed(*(None if one is None else one.reshape(n, d) for one in rows))  # type: ignore[arg-type]
    return TaskMixtures(made, len(some.means), len(found.means))


def mixed(
    found: Read,
    task: NDArray[np.intp],
    features: Array,
    level: float | None = None,
    weights: Array | None = None,
    parts: Array | None = None,
) -> Mixed:
    """Of the mean rewards features'theta_j of rows of tasks, or with ``weights`` of rewards that
    have them; ``parts`` are those of the drawn priors in the mixture, equal where None.

    In blocks of rows, each with the tasks that it has and no others.
    """
    order = np.argsort(task, kind="stable")
    shares = () if level is None else ((1 - level) / 2, (1 + level) / 2)
    out = np.empty((2 + len(shares), len(task)))
    step = max(1, MIXED // len(found.means))
    for first in range(0, len(order), step):
        here = order[first : first + step]
        used, local = np.unique(task[here], return_inverse=True)
        some = found._replace(tasks=found.tasks._replace(**_chosen(found, used)))
        mean, sd = normals_of(some, local, features[here])
        if weights is not None:
            sd = np.sqrt(sd**2 + found.noise_sds[:, None] ** 2 / weights[here])
        ends = [mixture_quantile(mean, sd, one, parts) for one in shares]
        out[:, here] = [*_moments(mean, sd, parts), *ends]
    return Mixed(*out)


def _average(values: Array, parts: Array | None) -> Array:
    """Over the first axis."""
    out: Array = values.mean(axis=0) if parts is None else np.einsum("s,s...", parts, values)
    return out


def _moments(mean: Array, sd: Array, parts: Array | None) -> tuple[Array, Array]:
    """Mean and standard deviation of mixtures."""
    centre = _average(mean, parts)
    return centre, np.sqrt(_average(sd**2, parts) + _average((mean - centre) ** 2, parts))


def _chosen(found: Read, used: NDArray[np.intp]) -> dict[str, Array]:
    """The sums of some tasks."""
    return {"gram": found.tasks.gram[used], "moment": found.tasks.moment[used]}


def _spaced(found: Read, most: int) -> Read:
    """At most so many of the drawn priors, evenly spaced."""
    if most >= len(found.means):
        return found
    kept = np.linspace(0, len(found.means) - 1, max(most, 1)).round().astype(int)
    return found._replace(
        means=found.means[kept], roots=found.roots[kept], noise_sds=found.noise_sds[kept]
    )


def normals_of(found: Read, task: NDArray[np.intp], features: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (s, r) of features'theta_j under every drawn prior, for rows of
    ``features`` (r, d) of the tasks ``task`` (r,): theta_j is normal given a prior and the data."""
    n, d = found.tasks.moment.shape
    middle = found.means.mean(axis=0)  # relative to it: a large level costs no digits
    moved = found.tasks._replace(moment=found.tasks.moment - found.tasks.gram @ middle)
    level = features @ found.outside(middle)
    mean, variance = np.empty((2, len(found.means), len(features)))
    step = max(1, BLOCK // (n * d))

    def along(thetas: Array) -> Array:
        out: Array = np.einsum("ri,sri->sr", features, found.outside(thetas)[:, task])
        return out

    for first in range(0, len(mean), step):
        here = slice(first, first + step)
        priors = Priors(found.means[here] - middle, found.roots[here], found.noise_sds[here])
        thetas, ways = np.empty((2, len(priors.means), n, d)), np.zeros((len(priors.means), n, d))
        thetas_given_priors(moved, priors, ways, thetas[0])
        mean[here], variance[here] = level + along(thetas[0]), 0.0
        for k in range(d):  # the columns of a root of the covariance given a prior
            ways[..., k] = 1.0
            thetas_given_priors(moved, priors, ways, thetas[1])
            ways[..., k] = 0.0
            variance[here] += along(thetas[1] - thetas[0]) ** 2
    return mean, np.sqrt(variance)


def mixture_quantile(mean: Array, sd: Array, share: float, parts: Array | None = None) -> Array:
    """Where the distribution function, the average of those of N(mean_s, sd_s^2) over s, is
    ``share``, for columns of (s, r) means and standard deviations; without draws. ``parts`` (s,)
    are the weights of the average, which add up to 1; equal where None."""
    from scipy.special import ndtr, ndtri

    spread = sd.max(axis=0) > 0
    out = _of_points(mean, share, parts)  # where nothing spreads
    if not spread.any():
        return out
    if parts is not None:  # those that underflow would widen the bracket
        mean, sd, parts = mean[parts > 0], sd[parts > 0], parts[parts > 0]
    mean, sd = mean[:, spread], sd[:, spread]
    centre, wide = _moments(mean, sd, parts)
    narrow = np.maximum(sd, 1e-12 * wide)
    own = mean + narrow * ndtri(share)
    low, high = own.min(axis=0), own.max(axis=0)  # the mixture's lies between those of its parts
    at = np.clip(centre + wide * ndtri(share), low, high)
    width = high - low
    for _ in range(STEPS):
        z = (at - mean) / narrow
        above = _average(ndtr(z), parts) - share
        low, high = np.where(above < 0, at, low), np.where(above < 0, high, at)
        if (np.abs(above) <= NEAR).all():
            break
        with np.errstate(all="ignore"):
            slope = _average(np.exp(-0.5 * z**2) / narrow, parts) / np.sqrt(2 * np.pi)
            step = at - above / slope
        # by Newton while that halves the bracket, otherwise by halving it
        newton = (step > low) & (step < high) & (high - low <= width / 2)
        width = high - low
        at = np.where(np.abs(above) <= NEAR, at, np.where(newton, step, (low + high) / 2))
    out[spread] = at
    return out


def _of_points(values: Array, share: float, parts: Array | None) -> Array:
    """A quantile of every column."""
    if parts is None:
        found: Array = np.quantile(values, share, axis=0)
    else:
        found = np.quantile(values, share, axis=0, weights=parts, method="inverted_cdf")
    return found
