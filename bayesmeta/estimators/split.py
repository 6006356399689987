"""Split halves: the cross-covariance of two independent estimates of every theta."""

from __future__ import annotations

import math

from bayesmeta.checks import Array, InputError
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.estimators.mixed import require_all_varying
from bayesmeta.estimators.moments import as_it_is, least_squares, negative_eigenvalues
from bayesmeta.estimators.restated import FeatureUnits
from bayesmeta.statistics import TaskStatistics


def fit_split(pair: object) -> PriorEstimate:
    """Means and cross-covariance of least squares, eq. (9), from two halves of each task's steps.

    The noise of the halves is independent, so their cross-covariance needs no correction for it.
    """
    first, second = _halves(pair)
    require_all_varying("split", first, second)
    units = FeatureUnits.of(first, second)
    if units is None:
        return _crossed(first, second)
    return units.outside(_crossed(units.inside(first), units.inside(second)), None)


def _crossed(first: TaskStatistics, second: TaskStatistics) -> PriorEstimate:
    one, two = least_squares(first), least_squares(second)[_matching(first, second)]
    n = len(one)
    mean = (one + two).mean(axis=0) / 2
    gap_one, gap_two = one - one.mean(axis=0), two - two.mean(axis=0)
    each = n / (n - 1) * gap_one[:, :, None] * gap_two[:, None, :]
    each = (each + each.transpose(0, 2, 1)) / 2
    raw: Array = each.mean(axis=0)
    gap = (gap_one + gap_two) / 2
    return PriorEstimate(
        *as_it_is(mean, raw),
        raw_cov=raw,
        negative=negative_eigenvalues(raw),
        mean_cov=gap.T @ gap / (n * (n - 1)),
        cov_sd=each.std(axis=0, ddof=1) / math.sqrt(n) if n > 2 else None,
        features=first.features,
    )


def _halves(pair: object) -> tuple[TaskStatistics, TaskStatistics]:
    """The two halves, checked to hold the same features and as many tasks."""
    if (
        not isinstance(pair, tuple)
        or len(pair) != 2
        or not all(isinstance(half, TaskStatistics) for half in pair)
    ):
        raise InputError(
            "split takes a pair of TaskStatistics as stats, from two halves of each task's steps"
        )
    first, second = pair
    if len(first) != len(second) or first.dim != second.dim or len(first) < 2:
        raise InputError(
            "split needs the same two or more tasks in both halves, got "
            f"{len(first)} of dimension {first.dim} and {len(second)} of dimension {second.dim}"
        )
    if first.features != second.features:
        raise InputError("split needs the same features in both halves, in the same order")
    return first, second


def _matching(first: TaskStatistics, second: TaskStatistics) -> list[int]:
    """Where each task of the first half is in the second: by label, or by position without."""
    if first.tasks is None or second.tasks is None:
        return list(range(len(first)))
    place = {label: k for k, label in enumerate(second.tasks)}
    alone = [label for label in first.tasks if label not in place]
    if alone:
        raise InputError(f"split needs the same tasks in both halves; {alone[0]!r} is in one")
    return [place[label] for label in first.tasks]
