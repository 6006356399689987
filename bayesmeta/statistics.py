"""What tasks leave behind: the sufficient statistics of their rewards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bayesmeta.checks import Array, InputError, array


@dataclass(frozen=True, eq=False)
class TaskStatistics:
    """Statistics of n tasks: V = A'A, A'x, the number of steps and the sum of x^2 of each.

    Sufficient for (mu, Sigma) with known noise, and with ``count`` and ``energy`` also for unknown
    noise. A gram may be singular.
    """

    gram: Array
    moment: Array
    count: Array | None = None
    energy: Array | None = None

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

    def __len__(self) -> int:
        return int(self.moment.shape[0])

    @property
    def dim(self) -> int:
        return int(self.moment.shape[1])

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

        return TaskStatistics(
            np.concatenate([part.gram for part in parts]),
            np.concatenate([part.moment for part in parts]),
            join("count"),
            join("energy"),
        )
