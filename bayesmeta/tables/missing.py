"""Rows that lack a value: counted and named, all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import Advice, InputError

if TYPE_CHECKING:
    from pandas import DataFrame

SHOWN = 20
"""Row numbers in a message."""


class Missing:
    """Rows without a value, of one table or of batch after batch."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[int] = []
        self.columns: list[str] = []

    def look(
        self, frame: DataFrame, task: str, names: Sequence[str], before: int = 0
    ) -> NDArray[np.bool_]:
        """Which rows lack a value in one of the columns; ``before`` rows came before them."""
        out = np.zeros(len(frame), dtype=bool)
        for name in names:
            column = frame[name]
            lacks = column.isna().to_numpy(dtype=bool)
            if name == task and column.dtype.kind not in "biuf":
                lacks = lacks | column.map(lambda one: isinstance(one, str) and not one).to_numpy(
                    dtype=bool
                )
            if lacks.any() and name not in self.columns:
                self.columns.append(name)
            out |= lacks
        self.count += int(out.sum())
        places = np.flatnonzero(out)[: SHOWN - len(self.first)]
        self.first += [before + int(at) + 1 for at in places]
        return out

    def refuse(self) -> None:
        """An error that names them, if there are any."""
        if not self.count:
            return
        raise InputError(
            Advice(
                "{rows} without a value in {columns}: {which} (not counting the header); fill "
                "them in, or leave these rows out by {drop_missing}",
                rows="1 row is" if self.count == 1 else f"{self.count} rows are",
                columns=_listed([repr(str(one)) for one in self.columns]),
                which=("row " if self.count == 1 else "rows ") + self.rows(),
            )
        )

    def rows(self) -> str:
        """Their numbers, twenty of them at most."""
        more = self.count - len(self.first)
        if more:
            return f"{', '.join(map(str, self.first))} and {more} more"
        return _listed(self.first)

    def note(self) -> str:
        """What was left out; nothing where nothing was."""
        if not self.count:
            return ""
        rows = "1 row" if self.count == 1 else f"{self.count} rows"
        columns = _listed([repr(str(one)) for one in self.columns])
        return f"left out {rows} without a value in {columns}: {self.rows()}"


def _listed(words: Sequence[Any]) -> str:
    """One, two and three."""
    texts = list(map(str, words))
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
