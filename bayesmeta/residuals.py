"""What is left of rewards when least squares is taken off: of all tasks together, and of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Advice, Array, InputError
from bayesmeta.kernels.codes import SINGULAR
from bayesmeta.sums import in_own_lengths, rounding

LOST = 1e-11
"""What of a sum of squares may be left when the rewards' level is taken off it."""


class Sums(NamedTuple):
    """Of tasks, as ``TaskStatistics`` has them."""

    gram: Array
    moment: Array
    steps: Array | None
    energy: Array | None


def centred_sums(sums: Sums, units: Array) -> tuple[Sums, Array]:
    """The same tasks with a common theta taken off, that of least squares over all of them; and
    that theta. ``units`` are the features'."""
    gram, moment = sums.gram.sum(axis=0) / np.outer(units, units), sums.moment.sum(axis=0)
    centre = np.linalg.lstsq(gram, moment / units)[0] / units
    fitted = (sums.gram.reshape(-1, sums.moment.shape[1]) @ centre).reshape(sums.moment.shape)
    energy = sums.energy
    if energy is not None:
        energy = energy - (2 * sums.moment - fitted) @ centre
        if energy.sum() <= LOST * sums.energy.sum():  # type: ignore[union-attr]
            raise InputError(
                "the features fit all rewards exactly, or the rewards vary so little beside "
                "how far they lie from 0 that their sums of squares do not show it; take a "
                "constant off them"
            )
        energy = np.maximum(energy, 0.0)
    return Sums(sums.gram, sums.moment - fitted, sums.steps, energy), centre


def residual_squares(sums: Sums, units: Array) -> tuple[float, float]:
    """Squares left over by every task's own least squares, summed, and how many are free."""
    from bayesmeta.kernels.grams import ranked

    if sums.steps is None or sums.energy is None:
        raise InputError(
            Advice(
                "estimating the noise needs count and energy (steps and sum of squared rewards "
                "of each task); give them, or {noise_sd}"
            )
        )
    middle, _ = centred_sums(sums, units)
    assert middle.energy is not None
    rank, fitted = ranked(sums.gram, middle.moment, sums.steps)
    rest = rank < 0
    gram, lengths = in_own_lengths(sums.gram[rest])
    values, vectors = np.linalg.eigh(gram)
    kept = values > SINGULAR * sums.moment.shape[1]  # the rank test of ``determined``
    along = np.einsum("nji,nj->ni", vectors, middle.moment[rest] / lengths)
    squares = np.divide(along**2, values, out=np.zeros_like(along), where=kept)
    fitted[rest], rank[rest] = squares.sum(axis=1), kept.sum(axis=1)
    zero = values <= (rounding(sums.steps[rest]) * sums.moment.shape[1])[:, None]
    known = np.ones(len(sums.moment), dtype=bool)
    known[rest] = (kept | zero).all(axis=1)
    left, free = middle.energy - fitted, sums.steps - rank
    if not known.all() and free[known].sum() < 1 <= free.sum():
        raise InputError(
            "the features of tasks are so nearly dependent that their sums of products do not "
            "show how many parameters a task has; take the mean off a feature that hardly "
            "varies about it (a date), or leave out one that others make up"
        )
    return float(left[known].sum()), float(free[known].sum())
