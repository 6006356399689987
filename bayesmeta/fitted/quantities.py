"""The quantities that a summary lists: means, standard deviations, correlations, the noise; and,
where they are asked for, the entries of Sigma."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
    def places(self) -> list[tuple[str, tuple[int, ...]]]:
        """Kind and features of every quantity."""
        found: list[tuple[str, tuple[int, ...]]] = [("mu", (i,)) for i in range(len(self.labels))]
        found += [("sd", (i,)) for i in self.vary]
        found += [("corr", pair) for pair in self.pairs]
        found += [("cov", pair) for pair in self.triangle]
        return found + ([("sigma", ())] if self.noisy else [])

    @property
    def names(self) -> list[str]:
        """``mu[x]``, ``sd[x]``, ``corr[y, x]``, ``cov[y, x]``, ``sigma``."""
        return [
            kind + (f"[{', '.join(self.labels[i] for i in at)}]" if at else "")
            for kind, at in self.places
        ]

    def values(self, mean: Array, cov: Array, noise: float | Array) -> Array:
        """Of one prior, or along leading axes of many; a correlation is NaN where a standard
        deviation is 0."""
        variances = np.diagonal(cov, axis1=-2, axis2=-1)
        sd = np.sqrt(np.where(variances >= 0, variances, np.nan))
        between = [
            np.divide(
                cov[..., i, j],
                sd[..., i] * sd[..., j],
                out=np.full(sd.shape[:-1], np.nan),
                where=sd[..., i] * sd[..., j] > 0,
            )
            for i, j in self.pairs
        ]
        parts = [mean, sd[..., list(self.vary)], *(np.clip(r, -1, 1)[..., None] for r in between)]
        parts += [cov[..., i, j, None] for i, j in self.triangle]
        if self.noisy:
            parts.append(np.broadcast_to(np.asarray(noise), sd.shape[:-1])[..., None])
        out: Array = np.concatenate(parts, axis=-1)
        return out


def checked_level(level: float) -> float:
    """A probability of intervals."""
    found = real("level", level, above=0.0)
    if found >= 1:
        raise InputError(f"level must be below 1, as 0.95 is, got {level!r}")
    return found
