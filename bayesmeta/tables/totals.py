"""Sums of tasks over batches of rows, which may be anywhere in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError
from bayesmeta.statistics import TaskStatistics
from bayesmeta.units import check_sizes


def entries(d: int) -> list[tuple[int, int]]:
    """The lower triangle of a gram, row by row."""
    return [(i, j) for i in range(d) for j in range(i + 1)]


class Totals:
    """What the tasks seen so far leave behind.

    ``sums`` has a row for every sum: count, energy, logarithms of weights, the moment, the lower
    triangle of the gram; and a column for every task, with some to spare.
    """

    def __init__(self, d: int) -> None:
        self.d = d
        self.labels: Any = None
        """of the tasks: a pandas Index, whose hash table lasts until there is a new one"""
        self.sums = np.zeros((3 + d + len(entries(d)), 1024))

    def add(
        self,
        labels: Any,
        index: NDArray[np.intp],
        reward: Array,
        features: Sequence[Array | None],
        weights: Array | None = None,
    ) -> None:
        """Rows: ``index`` says which of the ``labels``, which may be repeated, one belongs to; a
        feature None is 1."""
        import pandas as pd

        index = self._places(labels)[index]
        check_sizes("reward", reward)
        for one in features:
            if one is not None:
                check_sizes("features", one)
        where: Any = slice(len(self.labels))
        n = len(self.labels)
        if n > 2 * len(index):  # otherwise, to add up rows of sums is faster than to scatter
            index, where = pd.factorize(index)
            n = len(where)
        count = np.bincount(index, minlength=n).astype(float)
        logs = np.zeros(n)
        roots: Array | None = None
        if weights is not None:
            logs, roots = np.bincount(index, np.log(weights), minlength=n), np.sqrt(weights)
            reward = reward * roots
        own = [_weighted(one, roots) for one in features]

        def total(one: Array | None, two: Array | None) -> Array:
            """Sums of products, without multiplying by 1."""
            if one is None or two is None:
                factor = two if one is None else one
                return count if factor is None else np.bincount(index, factor, minlength=n)
            return np.bincount(index, one * two, minlength=n)

        parts = [count, total(reward, reward), logs, *(total(one, reward) for one in own)]
        parts += [total(own[i], own[j]) for i, j in entries(self.d)]
        for row, part in zip(self.sums, parts, strict=True):
            row[where] += part

    def _places(self, labels: Any) -> NDArray[np.intp]:
        """Which tasks these are; those that are new come after the others, as they come."""
        import pandas as pd

        given = pd.Index(labels)
        if self.labels is None:
            self.labels = given[:0]
        if given.dtype != self.labels.dtype:
            given, self.labels = given.astype(object), self.labels.astype(object)
        where: NDArray[np.intp] = self.labels.get_indexer(given)
        new = where < 0
        if new.any():
            late = given[new]
            self.labels = self.labels.append(late.unique())
            where[new] = self.labels.get_indexer(late)
        while self.sums.shape[1] < len(self.labels):
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)], axis=1)
        return where

    def statistics(
        self, names: Sequence[str], varying: Sequence[bool], weighted: bool
    ) -> TaskStatistics:
        """Of all rows."""
        n, d = 0 if self.labels is None else len(self.labels), self.d
        if not n:
            raise InputError("there are no rows")
        count, energy, logs, *rest = self.sums[:, :n]
        gram, moment = np.empty((n, d, d)), np.stack(rest[:d], axis=1)
        for (i, j), part in zip(entries(d), rest[d:], strict=True):
            gram[:, i, j] = gram[:, j, i] = part
        return TaskStatistics(
            gram,
            moment,
            count,
            energy,
            tuple(self.labels.tolist()),
            tuple(names),
            tuple(varying),
            logs if weighted else None,
        )


def _weighted(feature: Array | None, roots: Array | None) -> Array | None:
    """A feature times the roots of weights."""
    if roots is None:
        return feature
    return roots if feature is None else feature * roots
