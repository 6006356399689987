"""Sums of products A'A and A'x: refuses those that no rows can have, and rows whose sums no longer
show what the rows do."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError, unit_diagonal
from bayesmeta.kernels.codes import SINGULAR

NEAR = 3e-6
"""Singular values of rows below this part of the largest have fewer than five digits in A'A."""
SAME = 1e-13
"""Below this part of the largest they are what rounding leaves of rows that are dependent."""
EPS = float(np.finfo(float).eps)
LEAST = 1e-290
"""Sums of squares below this have lost digits to the end of floating point."""


def in_own_lengths(gram: Array) -> tuple[Array, Array]:
    """Grams with each feature in its own length, V_ij / sqrt(V_ii V_jj), so that units do not
    matter; and the lengths."""
    squares = np.diagonal(gram, axis1=-2, axis2=-1)
    lengths = np.sqrt(np.where(squares > 0, squares, 1.0))
    return gram / lengths[..., :, None] / lengths[..., None, :], lengths


def rounding(count: Array) -> Array:
    """What additions may leave, times d, where an eigenvalue of a gram in own lengths is 0."""
    out: Array = EPS * np.maximum(count, 8.0)
    return out


def check_grams(gram: Array) -> tuple[Array, Array]:
    """Refuse what is no A'A: asymmetry and negative eigenvalues, whatever the units.

    Returns the grams with each feature in its own size, and their Cholesky factors, a little added.
    """
    scaled = unit_diagonal(gram)
    if (np.abs(scaled - np.swapaxes(scaled, -1, -2)) > 1e-8).any():
        raise InputError("gram is not symmetric; give A'A, sums of products of features")
    try:
        return scaled, np.linalg.cholesky(scaled + 1e-8 * np.eye(gram.shape[-1]))
    except np.linalg.LinAlgError:
        raise InputError(
            "gram has negative eigenvalues; give A'A, sums of products of features"
        ) from None


def check_sums(
    gram: Array,
    moment: Array,
    count: Array | None,
    energy: Array | None,
    label: Callable[[int], Hashable],
) -> None:
    """Refuse sums that no rows have together, of grams that are valid by themselves.

    A task's A'A, A'x and x'x are those of some rows only where (A'x)' (A'A)^-1 A'x <= x'x: least
    squares explains no more than there is. Rounding of A'A is added to it, so that a gram may be
    singular.
    """
    scaled, lengths = in_own_lengths(gram)
    d = gram.shape[-1]
    own = moment / lengths
    below = _singular(scaled, SINGULAR * d)
    values = np.linalg.eigvalsh(scaled[below])
    if count is not None:
        least = np.where(below, 0, d)
        least[below] = (values > SINGULAR * d).sum(axis=1)  # the rank
        if energy is not None:
            least = np.maximum(least, energy > 0)
        few = count < least
        if few.any():
            j = int(np.argmax(few))
            raise InputError(
                f"count of task {label(j)!r} is {count[j]:g}, but its sums take at least "
                f"{least[j]} steps; give the number of steps they are over"
            )
    if energy is None:
        _check_range(scaled[below], own, below, label)
        return
    spare = np.full(len(energy), SINGULAR * d) + (0.0 if count is None else d * rounding(count))
    spare[below] += 2 * np.maximum(-values[:, 0], 0.0)  # sums given to a few digits
    with np.errstate(over="ignore", invalid="ignore"):
        own = own / np.sqrt(np.maximum(energy, LEAST))[:, None]
        solved = np.linalg.solve(scaled + spare[:, None, None] * np.eye(d), own[..., None])
        explained = (solved[..., 0] * own).sum(axis=1)
    over = ~(explained <= 1.0 + 1e-6 + 2 * np.sqrt(spare))
    if over.any():
        j = int(np.argmax(over))
        raise InputError(
            f"moment of task {label(j)!r} is more than its gram and energy allow; give A'A, A'x "
            "and x'x of the same steps"
        )


def _singular(scaled: Array, bound: float) -> NDArray[np.bool_]:
    """Which grams in own lengths have an eigenvalue below a bound: those that have no Cholesky
    factor with the bound taken off the diagonal."""
    d = scaled.shape[-1]
    less = scaled - bound * np.eye(d)
    try:
        np.linalg.cholesky(less)
    except np.linalg.LinAlgError:  # of all tasks side by side: which pivots are not positive
        below = np.zeros(len(scaled), dtype=bool)
        for i in range(d):
            pivot = less[:, i, i]
            below |= ~(pivot > 0)
            column = less[:, i + 1 :, i] / np.where(below, 1.0, pivot)[:, None]
            less[:, i + 1 :, i + 1 :] -= column[:, :, None] * less[:, None, i + 1 :, i]
            less[below] = 1.0
        return below
    return np.zeros(len(scaled), dtype=bool)


def _check_range(
    singular: Array, own: Array, below: NDArray[np.bool_], label: Callable[[int], Hashable]
) -> None:
    """Refuse an A'x with a part where A'A is 0, judged by the A'x since the x'x is not known."""
    values, vectors = np.linalg.eigh(singular)
    d = own.shape[1]
    parts = np.abs(np.einsum("nji,nj->ni", vectors, own[below]))
    sizes = np.abs(own).max(axis=1)
    # sums of rewards that cancel are rounding only
    most = np.sqrt(SINGULAR * d) * sizes[below] + SINGULAR * sizes.max(initial=0.0)
    outside = ((values < 64 * EPS * d) & (parts > most[:, None])).any(axis=1)
    if outside.any():
        j = int(np.flatnonzero(below)[np.argmax(outside)])
        raise InputError(
            f"moment of task {label(j)!r} lies outside the range of its gram, which is singular; "
            "give A'A and A'x of the same steps"
        )


def check_rows(
    gram: Array,
    moment: Array,
    rows: Array,
    index: NDArray[np.intp],
    label: Callable[[int], Hashable],
    names: list[str],
) -> None:
    """Refuse a task whose rows are independent, but so nearly dependent that A'A does not show it.

    Rows that are dependent, by their number or because features are constant, are none of them.
    """
    from bayesmeta.kernels.grams import ranked

    count = np.bincount(index, minlength=len(gram))
    rank = ranked(gram, moment, count.astype(float))[0]
    suspect = rank < np.minimum(count, len(names))
    scaled, lengths = in_own_lengths(gram[suspect])
    suspect[suspect] = _singular(scaled, len(names) * NEAR**2)
    if not suspect.any():
        return
    lengths = in_own_lengths(gram)[1]
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(count)
    lost: dict[int, Array] = {}
    for size in np.unique(count[suspect]).tolist():  # tasks of as many rows at once
        tasks = np.flatnonzero(suspect & (count == size))
        places = order[ends[tasks][:, None] - size + np.arange(size)]
        own = rows[places] / lengths[tasks][:, None, :]
        values = np.linalg.svd(own, compute_uv=False)
        largest = values[:, :1]
        doubtful = (values > SAME * largest) & (values < NEAR * largest)
        lost |= {int(tasks[k]): own[k] for k in np.flatnonzero(doubtful.any(axis=1))}
    if lost:
        j = min(lost)
        raise InputError(
            f"in task {label(j)!r} the feature {_dependent(lost[j], names)!r} is so nearly a "
            "constant or made up of others that sums of products of 16 digits do not show the "
            "difference; take its mean off, measure it from a nearer origin (as each task's "
            "first value), or leave it out"
        )


def _dependent(own: Array, names: list[str]) -> str:
    """The last of the features that vary and have a part in what is nearly 0."""
    _, values, vectors = np.linalg.svd(own, full_matrices=False)
    part = np.abs(vectors[np.flatnonzero(values > SAME * values[0])[-1]])
    varies = np.ptp(own, axis=0) > 0
    return names[int(np.flatnonzero((part > 0.1 * part.max()) & varies)[-1])]
