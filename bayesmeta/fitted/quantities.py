"""The quantities that a summary lists: means, standard deviations, correlations, the noise; and,
where they are asked for, the entries of Sigma."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError, real
from bayesmeta.statistics import TaskStatistics


class Quantities(NamedTuple):
    """Which of them a model has, in the order of its tables."""

    labels: list[str]
    """of the features"""
    vary: tuple[int, ...]
    """features whose coefficients differ between tasks"""
    noisy: bool
    """whether the noise is estimated"""
    entries: bool = False
    """whether variances and covariances are listed, too"""

    @classmethod
    def of(cls, stats: TaskStatistics, noisy: bool, entries: bool = False) -> Quantities:
        """Those of a model of these tasks."""
        vary = tuple(int(i) for i in np.flatnonzero(stats.differs))
        return cls([str(one) for one in stats.feature_labels], vary, noisy, entries)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The features of every correlation, the later one first."""
        return [(i, j) for i in self.vary for j in self.vary if j < i]

    @property
    def triangle(self) -> list[tuple[int, int]]:
        """The features of every entry of Sigma that is listed, row by row."""
        return [(i, j) for i in self.vary for j in self.vary if j <= i] if self.entries else []

    @property
    def places(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Kind and features of every quantity."""
        return _places(len(self.labels), self.vary, self.noisy, self.entries)

    @property
    def names(self) -> list[str]:
        """``mu[x]``, ``sd[x]``, ``corr[y, x]``, ``cov[y, x]``, ``sigma``."""
        return list(_names(tuple(self.labels), self.places))

    def values(self, mean: Array, cov: Array, noise: float | Array) -> Array:
        """Of one prior, or along leading axes of many; a correlation is NaN where a standard
        deviation is 0."""
        variances = np.diagonal(cov, axis1=-2, axis2=-1)
        sd = np.sqrt(np.where(variances >= 0, variances, np.nan))
        (a, b), (c, d) = _rows_and_columns(self.vary)
        sizes = sd[..., a] * sd[..., b]
        between = np.full(sizes.shape, np.nan)
        np.divide(cov[..., a, b], sizes, out=between, where=sizes > 0)
        parts = [mean, sd[..., list(self.vary)], np.clip(between, -1, 1)]
        if self.entries:
            parts.append(cov[..., c, d])
        if self.noisy:
            parts.append(np.broadcast_to(np.asarray(noise), sd.shape[:-1])[..., None])
        out: Array = np.concatenate(parts, axis=-1)
        return out


type _Indices = tuple[NDArray[np.intp], NDArray[np.intp]]


@lru_cache(maxsize=8)
def _places(
    dim: int, vary: tuple[int, ...], noisy: bool, entries: bool
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """``Quantities.places``, which is asked for often."""
    found: list[tuple[str, tuple[int, ...]]] = [("mu", (i,)) for i in range(dim)]
    found += [("sd", (i,)) for i in vary]
    found += [("corr", (i, j)) for i in vary for j in vary if j < i]
    found += [("cov", (i, j)) for i in vary for j in vary if j <= i and entries]
    return (*found, *([("sigma", ())] if noisy else []))


@lru_cache(maxsize=8)
def _names(
    labels: tuple[str, ...], places: tuple[tuple[str, tuple[int, ...]], ...]
) -> tuple[str, ...]:
    return tuple(
        kind + (f"[{', '.join(labels[i] for i in at)}]" if at else "") for kind, at in places
    )


@lru_cache(maxsize=8)
def _rows_and_columns(vary: tuple[int, ...]) -> tuple[_Indices, _Indices]:
    """Of correlations, and of the entries of Sigma."""
    rows, columns = np.tril_indices(len(vary))
    some, below = np.array(vary, dtype=np.intp), rows > columns
    every = some[rows], some[columns]
    return (every[0][below], every[1][below]), every


def checked_level(level: float) -> float:
    """A probability of intervals."""
    found = real("level", level, above=0.0)
    if found >= 1:
        raise InputError(f"level must be below 1, as 0.95 is, got {level!r}")
    return found
