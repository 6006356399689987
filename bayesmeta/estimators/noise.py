"""The variance of the noise, from what each task's own least squares leaves over."""

from __future__ import annotations

import numpy as np

from bayesmeta.checks import Advice, InputError
from bayesmeta.statistics import TaskStatistics

EXACT = 1e-13
"""Residuals that are this part of the rewards' sum of squares are rounding."""


def pooled_variance(stats: TaskStatistics, *, common: bool = False) -> tuple[float, float]:
    """The noise variance sigma^2 from the residuals of every task's own least squares, pooled, and
    their degrees of freedom.

    Where no task has more steps than features that is an error; with ``common`` the residuals of
    one least squares fit to all tasks together are taken instead, as a place to start from.
    """
    left, freedom = stats.residuals()
    assert stats.energy is not None and stats.count is not None
    if freedom < 1 and common:
        total, moment = stats.gram.sum(axis=0), stats.moment.sum(axis=0)
        fitted = moment @ np.linalg.pinv(total, hermitian=True) @ moment
        left, freedom = float(stats.energy.sum() - fitted), float(stats.count.sum())
    elif freedom < 1:
        raise InputError(
            Advice(
                "no task has more steps than features, so their residuals say nothing of the "
                "noise; give {noise_sd}"
            )
        )
    if left <= EXACT * stats.energy.sum():
        raise InputError(
            Advice(
                "the rewards of every task are fitted exactly, or tasks differ so much that their "
                "sums of squares do not show the noise, so it cannot be estimated; give "
                "{noise_sd}, or more rows a task"
            )
        )
    return left / freedom, freedom
