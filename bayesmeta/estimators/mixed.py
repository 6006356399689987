"""Features whose coefficients are the same in all tasks: the fixed effects of a mixed model.

They have a mean, and zeros in their rows and columns of Sigma. The search for the largest
likelihood takes the features that differ between tasks first. Its coordinates theta = C theta' have
an upper triangular C, so that a Sigma that is zero outside its first rows and columns is so in
them, too, and whatever is scaled there stays free of units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import InputError
from bayesmeta.statistics import TaskStatistics


def varying_first(stats: TaskStatistics) -> NDArray[np.intp]:
    """The features that differ between tasks, then the others, each in their order."""
    return np.argsort(~stats.differs, kind="stable")


def ordered(stats: TaskStatistics, order: NDArray[np.intp]) -> TaskStatistics:
    """The same tasks with the features in another order."""
    return TaskStatistics.trusted(
        stats.gram[:, order[:, None], order],
        stats.moment[:, order],
        stats.count,
        stats.energy,
        varying=tuple(bool(one) for one in stats.differs[order]),
        log_weights=stats.log_weights,
    )


def leading(stats: TaskStatistics, own: int) -> TaskStatistics:
    """The same tasks with the first ``own`` features alone; the statistics as they are where that
    is all of them."""
    if own == stats.dim:
        return stats
    return TaskStatistics.trusted(
        stats.gram[:, :own, :own],
        stats.moment[:, :own],
        stats.count,
        stats.energy,
        log_weights=stats.log_weights,
    )


def require_all_varying(method: str, *parts: TaskStatistics) -> None:
    """Refuse features that do not differ between tasks, for methods that know none."""
    for stats in parts:
        if stats.varying is not None:
            same = _listed(
                [
                    name
                    for name, one in zip(stats.feature_labels, stats.varying, strict=True)
                    if not one
                ]
            )
            raise InputError(
                f"method {method!r} takes every coefficient to differ between tasks, and those of "
                f"{same} do not; use ml or reml, or let them differ"
            )


def _listed(names: Sequence[str]) -> str:
    """A few names, and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
