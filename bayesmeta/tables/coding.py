"""Features of rows: columns of numbers as they are, categories and formulas coded by formulaic.

Categories are coded as R does: by treatment, the first one being the reference where there is an
intercept; ``categories`` says which is the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Array, InputError
from bayesmeta.columns import numbers
from bayesmeta.tables.categories import Categories, label
from bayesmeta.tables.terms import ALSO, parsed, plain_columns, quiet
from bayesmeta.units import MOST

if TYPE_CHECKING:
    from pandas import DataFrame

INTERCEPT = "intercept"


class Coder(NamedTuple):
    """Makes features of the rows of a table."""

    columns: dict[str, Categories]
    """those that are read"""
    names: tuple[str, ...]
    """of the features"""
    varying: tuple[bool, ...]
    plain: tuple[str | None, ...] = ()
    """the columns that are the features, None for the intercept; nothing where formulaic codes"""
    spec: Any = None
    """formulaic's"""

    def matrix(self, frame: DataFrame, rows: NDArray[np.int64] | None = None) -> Array:
        """The (rows, d) features of a table; ``rows`` are its rows' numbers in messages."""
        read = {name: one_column(frame, name, kind, rows) for name, kind in self.columns.items()}
        return self.made(read, len(frame), rows)

    def made(self, read: dict[str, Any], size: int, rows: NDArray[np.int64] | None) -> Array:
        """The same of columns that are read already."""
        if self.plain:
            ones = np.ones(size)
            return np.column_stack([ones if one is None else read[one] for one in self.plain])
        return self.coded(read, rows)

    def coded(self, read: dict[str, Any], rows: NDArray[np.int64] | None) -> Array:
        """By formulaic."""
        import pandas as pd

        with quiet():
            made = np.asarray(
                self.spec.get_model_matrix(pd.DataFrame(read), context=ALSO), dtype=float
            )
        check_finite(made, self.names, rows)
        return made


def one_column(
    frame: DataFrame, name: str, kind: Categories, rows: NDArray[np.int64] | None = None
) -> Any:
    """A column as numbers, or as a categorical of known categories."""
    import pandas as pd

    if name not in frame.columns:
        known = ", ".join(repr(str(one)) for one in frame.columns)
        raise InputError(f"there is no column {name!r}; the columns are {known:.200}")
    if kind is None:
        try:
            return numbers(frame, name, rows)
        except InputError as error:
            if not frame[name].map(lambda one: isinstance(one, str)).any():
                raise
            raise InputError(
                f"{error}; if these are categories, write C({name}) in a formula"
            ) from None
    try:
        codes, found = pd.factorize(frame[name])
    except TypeError:
        raise InputError(f"column {name!r} holds lists or the like, not categories") from None
    texts, place = [label(one) for one in found], {one: i for i, one in enumerate(kind)}
    coded = np.array([*(place.get(one, -1) for one in texts), -1])[codes]  # -1: no value
    bad = coded < 0
    if bad.any():
        at = int(np.argmax(bad))
        row = at + 1 if rows is None else int(rows[at])
        what = "no value" if codes[at] < 0 else f"the category {texts[codes[at]]!r:.60}"
        raise InputError(
            f"column {name!r} has {what} in row {row} (not counting the header); its categories "
            f"are {', '.join(map(repr, kind)):.200}"
        )
    return pd.Categorical.from_codes(coded, categories=list(kind))


def check_finite(made: Array, names: Sequence[str], rows: NDArray[np.int64] | None) -> None:
    """Refuse a feature that a formula makes NaN, infinite or too large."""
    bad = ~(np.abs(made) <= MOST)
    if bad.any():
        at, j = (int(one) for one in np.argwhere(bad)[0])
        row = at + 1 if rows is None else int(rows[at])
        large = np.isfinite(made[at, j])
        what = f"{made[at, j]:.6g}, which is too large," if large else "not a finite number"
        raise InputError(
            f"formula: {names[j]!r:.80} is {what} in row {row} (not counting the header)"
        )


def fit_coder(
    fixed: str, random: str, read: dict[str, Any], columns: dict[str, Categories]
) -> Coder:
    """How to code ``fixed``, and which of its features are those of ``random``.

    ``read`` holds the columns as ``one_column`` makes them.
    """
    import pandas as pd

    terms, among = parsed(fixed), parsed(random)
    straight, theirs = plain_columns(terms), plain_columns(among)
    if straight and theirs and not any(columns.values()):
        names = tuple(INTERCEPT if one is None else one for one in straight)
        _refuse_others([str(one or "1") for one in theirs if one not in straight], fixed)
        return Coder(columns, names, tuple(one in theirs for one in straight), straight)
    frame = pd.DataFrame(read)
    with quiet():
        made, own = (
            one.get_model_matrix(frame, context=ALSO, na_action="ignore", output="numpy")
            for one in (terms, among)
        )
    spec, labels = made.model_spec, made.model_spec.column_names
    names = tuple(_plain_levels(str(one), columns) for one in labels)
    if not own.model_spec.column_names:
        raise InputError("formula: the term with the bar has no features; write '(1 | task)'")
    places = [_place(str(name), labels) for name in own.model_spec.column_names]
    lacking = [
        str(name)
        for name, at in zip(own.model_spec.column_names, places, strict=True)
        if at is None
    ]
    if lacking and "[" in lacking[0] and "Intercept" not in own.model_spec.column_names:
        raise InputError(
            f"formula: without an intercept {random!r:.80} has a feature for every category, "
            f"{lacking[0]!r:.80} among them, which the fixed part lacks; write '0 + {fixed:.80}' "
            "there, too"
        )
    _refuse_others(["1" if name == "Intercept" else name for name in lacking], fixed)
    return Coder(columns, names, tuple(j in places for j in range(len(names))), (), spec)


def _plain_levels(name: str, columns: dict[str, Categories]) -> str:
    """A feature's name, with the categories of ``C(Diet)`` as whole numbers where a column of
    numbers has them: as floats, they would be 1.0 and 2.0."""
    if name == "Intercept":
        return INTERCEPT

    def plain(found: re.Match[str]) -> str:
        numbers = columns.get(found[2], ()) is None
        return f"{found[1]}{found[3]}]" if numbers else found[0]

    return re.sub(r"(C\(`?([^`,()]+)`?[^\[\]]*\)\[(?:T\.)?)(-?\d+)\.0\]", plain, name)


def _place(name: str, names: Sequence[str]) -> int | None:
    """Which column is this one: that of its name, or of the same factors (x:z is z:x)."""
    factors = set(name.split(":"))
    return next((j for j, one in enumerate(names) if set(one.split(":")) == factors), None)


def _refuse_others(names: list[str], fixed: str) -> None:
    """Random terms are among the fixed ones."""
    if names:
        raise InputError(
            f"formula: {names[0]!r:.80} differs between tasks but has no mean of its own; add it "
            f"to the fixed part, {fixed!r:.80}, coded alike"
        )


def stateful(coder: Coder) -> str:
    """A term that needs all rows at once, such as center(x); nothing where there is none."""
    return next((str(one) for one in coder.spec.transform_state), "") if coder.spec else ""
