"""What tasks leave behind: the sufficient statistics of their rewards."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesmeta.checks import Array, InputError, array

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class TaskStatistics:
    """Statistics of n tasks: V = A'A, A'x, the number of steps and the sum of x^2 of each.

    Sufficient for (mu, Sigma) with known noise, and with ``count`` and ``energy`` also for unknown
    noise. A gram may be singular. ``tasks`` and ``features`` are labels, kept for tables and plots.
    """

    gram: Array
    moment: Array
    count: Array | None = None
    energy: Array | None = None
    tasks: tuple[Hashable, ...] | None = None
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        moment = array("moment", self.moment, (None, None))
        n, d = moment.shape
        gram = array("gram", self.gram, (n, d, d))
        if np.abs(gram - np.swapaxes(gram, -1, -2)).max(initial=0.0) > 1e-8 * np.abs(gram).max(
            initial=0.0
        ):
            raise InputError("gram must be symmetric in its last two axes")
        object.__setattr__(self, "moment", moment)
        object.__setattr__(self, "gram", gram)
        for name in ("count", "energy"):
            value = getattr(self, name)
            if value is not None:
                value = array(name, value, (n,))
                if (value < 0).any():
                    raise InputError(f"{name} must not be negative")
                object.__setattr__(self, name, value)
        for name, size in (("tasks", n), ("features", d)):
            labels = getattr(self, name)
            if labels is not None:
                labels = tuple(labels)
                if len(labels) != size or len(set(labels)) < size:
                    raise InputError(f"{name} must be {size} different labels, got {labels!r:.80}")
                object.__setattr__(self, name, labels)

    @classmethod
    def trusted(cls, gram: Array, moment: Array) -> TaskStatistics:
        """Wrap arrays known to be valid (a learner's own memory) without checking them."""
        stats = object.__new__(cls)
        stats.__dict__.update(
            gram=gram, moment=moment, count=None, energy=None, tasks=None, features=None
        )
        return stats

    def __len__(self) -> int:
        return int(self.moment.shape[0])

    @property
    def dim(self) -> int:
        return int(self.moment.shape[1])

    @classmethod
    def from_arrays(
        cls, task: ArrayLike, reward: ArrayLike, features: ArrayLike,
        names: Sequence[str] | None = None,
    ) -> TaskStatistics:  # fmt: skip
        """From long format: the task, the reward and the (rows, d) features of every step."""
        labels = np.asarray(task)
        rewards = array("reward", reward, (None,))
        rows = array("features", features, (len(rewards), None))
        if labels.shape != rewards.shape:
            raise InputError(f"task must have one label a row, {len(rewards)}, got {labels.shape}")
        if not len(rewards):
            raise InputError("there are no rows")
        found = list(dict.fromkeys(labels.tolist()))
        place = {label: i for i, label in enumerate(found)}
        index = np.array([place[label] for label in labels.tolist()])
        n, d = len(found), rows.shape[1]
        gram, moment = np.zeros((n, d, d)), np.zeros((n, d))
        np.add.at(gram, index, rows[:, :, None] * rows[:, None, :])
        np.add.at(moment, index, rows * rewards[:, None])
        count = np.bincount(index, minlength=n).astype(float)
        energy = np.bincount(index, rewards**2, minlength=n)
        named = None if names is None else tuple(names)
        return cls(gram, moment, count, energy, tuple(found), named)

    @classmethod
    def from_frame(
        cls, frame: DataFrame, task: str, reward: str, features: Sequence[str],
        intercept: bool = False,
    ) -> TaskStatistics:  # fmt: skip
        """From a long-format table: a task column, a reward column, feature columns.

        ``intercept`` adds a first feature that is always 1.
        """
        names = [features] if isinstance(features, str) else list(features)
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InputError(f"feature {min(twice)!r} is named twice")
        if not names and not intercept:
            raise InputError("features is empty; name at least one column, or ask for an intercept")
        for name in (task, reward, *names):
            if name not in frame.columns:
                known = ", ".join(map(str, frame.columns))
                raise InputError(f"there is no column {name!r}; the columns are {known}")
        if frame[task].isna().any():
            row = int(np.argmax(frame[task].isna().to_numpy()))
            raise InputError(f"column {task!r} has no value in row {row + 1}")
        values = {name: _numbers(frame, name) for name in (reward, *names)}
        columns = [values[name] for name in names]
        if intercept:
            if "intercept" in names:
                raise InputError("there is a feature called 'intercept' already; rename it")
            columns, names = [np.ones(len(frame)), *columns], ["intercept", *names]
        return cls.from_arrays(
            frame[task].to_numpy(), values[reward], np.column_stack(columns), names
        )

    def residuals(self) -> tuple[float, float]:
        """Squares left over by every task's own least squares, summed, and how many are free."""
        if self.count is None or self.energy is None:
            raise InputError(
                "estimating the noise needs count and energy (steps and sum of squared rewards of "
                "each task); give them, or noise_sd"
            )
        values, vectors = np.linalg.eigh(self.gram)
        kept = values > values[:, -1:] * self.dim * np.finfo(float).eps
        along = np.einsum("nji,nj->ni", vectors, self.moment)
        fitted = np.divide(along**2, values, out=np.zeros_like(along), where=kept).sum(axis=1)
        return float((self.energy - fitted).sum()), float((self.count - kept.sum(axis=1)).sum())

    def ols(self) -> Array:
        """Ordinary least squares of every task, eq. (9); needs invertible grams."""
        rank = np.linalg.matrix_rank(self.gram, hermitian=True)
        if (rank < self.dim).any():
            task = int(np.argmax(rank < self.dim))
            raise InputError(
                f"gram of task {task} is singular (rank {rank[task]} of {self.dim}); "
                "least squares needs at least as many independent steps as dimensions"
            )
        return np.linalg.solve(self.gram, self.moment[..., None])[..., 0]

    @staticmethod
    def concatenate(parts: Iterable[TaskStatistics]) -> TaskStatistics:
        """The statistics of all tasks of all parts; optional fields survive where all have them."""
        parts = list(parts)
        if not parts:
            raise InputError("concatenate needs at least one TaskStatistics")

        def join(name: str) -> Array | None:
            values = [getattr(part, name) for part in parts]
            return None if any(v is None for v in values) else np.concatenate(values)

        labels = [part.tasks for part in parts]
        together = None if None in labels else tuple(t for part in labels for t in part or ())
        return TaskStatistics(
            np.concatenate([part.gram for part in parts]),
            np.concatenate([part.moment for part in parts]),
            join("count"),
            join("energy"),
            together,
            parts[0].features,
        )


def _numbers(frame: Any, name: str) -> Array:
    """A column as numbers; the first cell that is none is named by its row."""
    import pandas as pd

    numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float)
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        value = frame[name].iloc[row]
        what = "no value" if pd.isna(value) else f"{value!r}, which is not a finite number,"
        raise InputError(f"column {name!r} has {what} in row {row + 1} (not counting the header)")
    out: Array = numbers
    return out
