"""Drawn priors once rows of new tasks are known, too: the same draws with other shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesmeta.checks import Array, warn
from bayesmeta.posterior.taskdata import likelihood_of_each
from bayesmeta.posterior.tree import Read, read
from bayesmeta.runner.executors import usable_cores
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import xarray as xr

ENOUGH = 100
"""Equal draws that unequal ones must be worth."""


class FewDrawsWarning(UserWarning):
    """New rows move the prior so far that few of its draws count."""


def log_likelihoods(found: Read) -> Array:
    """Of every task under every drawn prior, (s, n), its theta integrated out."""
    gram, moment, energy, count = found.tasks
    stats = TaskStatistics.trusted(gram, moment, count, energy)
    return likelihood_of_each(
        stats, found.means, found.roots, found.noise_sds, cores=usable_cores()
    )


def shares_given(tree: xr.DataTree, stats: TaskStatistics) -> Array:
    """The share (s,) of every drawn prior given new tasks, in proportion to their likelihood.

    Draws of p(mu, Sigma, sigma | data) with these shares are of the posterior given the new tasks,
    too (importance sampling). Warns where they are worth fewer than ``ENOUGH`` equal draws.

    Parameters
    ----------
    tree : xarray.DataTree
        As ``sample_posterior`` returns it.
    stats : TaskStatistics
        Of the new tasks, with count and energy.
    """
    logs = log_likelihoods(read(tree, stats=stats)).sum(axis=1)
    shares: Array = np.exp(logs - logs.max())
    shares /= shares.sum()
    worth = 1 / float((shares**2).sum())
    if worth < min(ENOUGH, len(shares) / 2):
        warn(
            f"the rows that are given move the prior far from its draws, of which {len(shares)} "
            f"are worth {worth:.0f}: fit all rows together",
            FewDrawsWarning,
        )
    return shares
