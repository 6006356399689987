"""Designs Phi_n of tasks with theta_n ~ N(Phi_n gamma, Sigma): what of gamma they determine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesmeta.checks import Array, InputError, array
from bayesmeta.units import check_sizes

SAME = 1e-10
"""Share of a column of all Phi_n that, left over by the others, counts as rounding."""
AGREES = 1e-8
"""How exactly, in units of the columns, a new design must keep what all others keep."""


def checked_designs(designs: ArrayLike) -> Array:
    """A matrix Phi_n for every task."""
    found = array("designs", designs, (None, None, None))
    if found.size == 0:
        raise InputError(
            f"designs have shape {found.shape}; give a (d, p) matrix for every task, with at "
            "least one column"
        )
    check_sizes("designs", found)
    return found


def gamma_names(p: int) -> tuple[str, ...]:
    """What p columns without names are called."""
    return tuple(f"gamma{j + 1}" for j in range(p))


class Coordinates(NamedTuple):
    """How gamma becomes the coefficients (m, b) of the mixed model, and back.

    The mean of theta is m + (Phi - M) b, where M is the mean of all designs. Where columns are
    collinear, in all tasks together, later ones get coefficient 0; the others are estimated as if
    these columns were not there.

    Attributes
    ----------
    middle : array, shape (d, p)
        M.
    kept : array of int
        The columns whose entries of gamma are b: those that differ between tasks, and are not made
        up by earlier ones and a constant.
    lift : array, shape (p, d + q)
        gamma = lift (m, b).
    rest : array, shape (d, d + q)
        The offset, rest (m, b): what of m no Phi gamma can be.
    null : array, shape (p, k)
        Directions of gamma that no task says anything of, Phi_n null = 0 for all n. There is one
        for each column with coefficient 0, whose entry is 1.
    zeroed : array of int, shape (k,)
        These columns.
    sizes : array, shape (p,)
        The root mean square of each column.
    """

    middle: Array
    kept: NDArray[np.intp]
    lift: Array
    rest: Array
    null: Array
    zeroed: NDArray[np.intp]
    sizes: Array

    @classmethod
    def of(cls, designs: Array, names: tuple[str, ...] | None = None) -> Coordinates:
        """Those of checked designs (n, d, p); columns are refused that are nearly collinear."""
        n, d, p = designs.shape
        middle = designs.mean(axis=0)
        sizes = np.sqrt(np.mean(designs**2, axis=(0, 1)))
        units = np.where(sizes > 0, sizes, 1.0)
        flat = ((designs - middle) / units).reshape(n * d, p)
        triangle = np.linalg.qr(flat, mode="r")
        kept, others, still = _independent(triangle, SAME * np.sqrt(n * d))
        _require_apart(triangle[:, kept], [(names or gamma_names(p))[j] for j in kept])
        # the vectors that still directions of gamma add in all tasks alike
        vectors = (middle / units) @ still
        used, unused, nothing = _independent(vectors, SAME * np.sqrt(d))
        null = still @ nothing / units[:, None]
        null *= units[others[unused]]  # 1 for the column itself
        spanning = vectors[:, used]
        back = np.linalg.pinv(spanning)
        level = still[:, used] @ back / units[:, None]
        own = np.zeros((p, len(kept)))
        own[kept, np.arange(len(kept))] = 1.0
        lift = np.concatenate([level, own - level @ middle @ own], axis=1)
        free = np.eye(d) - spanning @ back if len(used) < d else np.zeros((d, d))
        rest = np.concatenate([free, -free @ middle @ own], axis=1)
        return cls(middle, kept, lift, rest, null, others[unused], sizes)

    @property
    def coefficients(self) -> int:
        """How many the mean has, those of m included."""
        return int(self.lift.shape[1])

    @property
    def parts(self) -> NDArray[np.bool_]:
        """For each direction of ``null``, (p, k), the columns that are part of it."""
        units = np.where(self.sizes > 0, self.sizes, 1.0)
        found: NDArray[np.bool_] = np.abs(self.null) * units[:, None] > AGREES * units[self.zeroed]
        return found

    @property
    def determined(self) -> NDArray[np.bool_]:
        """The entries of gamma, (p,), that tasks can determine."""
        found: NDArray[np.bool_] = ~self.parts.any(axis=1)
        return found

    def features(self, designs: Array) -> Array:
        """F of the designs themselves, (..., d, d + q): the mean of theta is F (m, b)."""
        d = len(self.middle)
        eye = np.broadcast_to(np.eye(d), (*designs.shape[:-2], d, d))
        return np.concatenate([eye, (designs - self.middle)[..., self.kept]], axis=-1)

    def features_of_new(self, design: Array) -> Array:
        """F of any other design: what gamma says of it, and what is beside Phi gamma."""
        found: Array = design @ self.lift + self.rest
        return found

    def require_determined(self, design: Array, names: tuple[str, ...]) -> None:
        """Refuse a design whose mean depends on a direction of gamma that no task says anything
        of."""
        allowed = np.maximum(np.abs(design), self.sizes) @ np.abs(self.null)
        open_ones = (np.abs(design @ self.null) > AGREES * allowed).any(axis=0)
        if not open_ones.any():
            return
        reasons = []
        for j, parts in zip(self.zeroed[open_ones], self.parts[:, open_ones].T, strict=True):
            others = [names[i] for i in np.flatnonzero(parts) if i != j]
            what = f"a combination of {', '.join(others)}" if others else "0"
            reasons.append(f"{names[j]} is {what} in all tasks, and not in design")
        raise InputError(
            f"{'; '.join(reasons)}: the tasks do not say what that adds to theta. Collect tasks "
            "that have it, drop the column, or give a prior of gamma (bm.agents.Metadata)"
        )


def _independent(columns: Array, least: float) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """The columns that earlier ones do not make up, and the others. For each of the others a
    combination of all columns that is 0: 1 of itself, and some of each independent one."""
    p = columns.shape[1]
    basis = np.zeros((len(columns), 0))
    kept: list[int] = []
    for j, column in enumerate(columns.T):
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)  # once more, of what rounding left
        length = float(np.linalg.norm(rest))
        if length > least:
            kept.append(j)
            basis = np.column_stack([basis, rest / length])
    others = [j for j in range(p) if j not in kept]
    nothing = np.zeros((p, len(others)))
    nothing[others, np.arange(len(others))] = 1.0
    if kept:
        nothing[kept] = -np.linalg.lstsq(columns[:, kept], columns[:, others])[0]
    return np.array(kept, dtype=np.intp), np.array(others, dtype=np.intp), nothing


def _require_apart(columns: Array, names: list[str]) -> None:
    """Refuse columns that are more than rounding apart, and yet too close for a fit to tell them
    from collinear ones, by the rank test that fits use."""
    from bayesmeta.kernels.linalg import have_full_rank

    unit = columns / np.linalg.norm(columns, axis=0)
    gram = unit.T @ unit
    if have_full_rank(gram[None])[0]:
        return
    j = next(
        j
        for j in range(1, len(names))
        if not have_full_rank(np.ascontiguousarray(gram[: j + 1, : j + 1])[None])[0]
    )
    shares = np.abs(np.linalg.lstsq(unit[:, :j], unit[:, j])[0])
    others = ", ".join(names[i] for i in np.flatnonzero(shares > 1e-3 * shares.max()))
    raise InputError(
        f"the columns {others} and {names[j]} of designs are so nearly collinear, once their means "
        "are taken off, that a fit cannot tell them apart; leave one out, or take the mean off a "
        "covariate before you square or multiply it"
    )
