"""What a column says about the noise of its rows: weights, known variances or standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Advice, Array, InputError
from bayesmeta.columns import numbers

if TYPE_CHECKING:
    from pandas import DataFrame


class Noise(NamedTuple):
    """A column, and what it holds: weights, variances or standard errors."""

    column: str
    kind: str

    @property
    def known(self) -> bool:
        """Whether there is nothing about the noise left to estimate."""
        return self.kind != "weights"

    def weights(self, frame: DataFrame, rows: NDArray[np.int64] | None = None) -> Array:
        """Of each row: the variance of its noise is sigma^2 / weight, with sigma = 1 if known."""
        if self.column not in frame.columns:
            raise InputError(f"there is no column {self.column!r}, which holds the {self.kind}")
        values = numbers(frame, self.column, rows)
        # squares of smaller ones, and one over them, leave the range of numbers
        bad = ~((values >= 1e-100) & (values <= 1e100))
        if bad.any():
            at = int(np.argmax(bad))
            row = at + 1 if rows is None else int(rows[at])
            must = "must be positive" if values[at] <= 0 else "must be within 1e-100 to 1e100"
            raise InputError(
                f"column {self.column!r} has {values[at]:g} in row {row} (not counting the "
                f"header); {self.kind} {must}"
            )
        if self.kind == "weights":
            return values
        out: Array = 1.0 / (values if self.kind == "variances" else values**2)
        return out


def noise_of(weights: str | None, noise_var: str | None, noise_se: str | None) -> Noise | None:
    """At most one of them is given."""
    kinds = {"weights": weights, "variances": noise_var, "standard errors": noise_se}
    found = [Noise(column, kind) for kind, column in kinds.items() if column is not None]
    if len(found) > 1:
        raise InputError(
            Advice(
                "give one of {weights}, {noise_var} and {noise_se}; each says how noisy rows are"
            )
        )
    return found[0] if found else None
