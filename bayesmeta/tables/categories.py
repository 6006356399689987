"""Which columns hold categories, and in which order: one rule, whichever way a table comes.

- A pandas categorical is one of categories, also where they are numbers. They keep its order,
  ordered or not, and those without a row are left out.
- Text of which nothing reads as a number is categories, in the order of characters. Dates as text
  are refused, as dates are, and text of which some reads as numbers is refused as numbers, unless a
  formula says C(…): a category for every day, or for a misprint, is seldom meant.
- A Parquet file keeps the order of a pandas categorical of text; of numbers it keeps only that they
  are categories, so these are sorted. So are dictionaries that pandas did not write and that are
  not called ordered, and those that differ between parts of a file or partitions of Dask's.

The first category is the reference where there is an intercept.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import InputError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MOST = 200
"""Categories of a column; more are labels, not categories."""
SEEN = 100_000
"""Values of a column after which no more are looked at."""
_DAY, _YEAR, _TIME = r"(?:0?[1-9]|[12]\d|3[01])", r"[12]\d{3}", r"(?:[T ]\d\d?:\d\d.*)?"
DATE = re.compile(
    rf"{_YEAR}([-/.]){_DAY}\1{_DAY}{_TIME}|{_DAY}([-/.]){_DAY}\2{_YEAR}{_TIME}"
    rf"|{_DAY}/{_DAY}/\d\d{_TIME}"
)
"""A date as text: 2024-01-31, 31.1.2024, 1/31/24, perhaps with a time."""

Categories = tuple[str, ...] | None
"""Of a column; None where it holds numbers."""


class Seen:
    """The values of a column, of one table or of batch after batch."""

    def __init__(self) -> None:
        self.orders: set[tuple[Hashable, ...]] = set()
        """those of pandas categoricals"""
        self.values: dict[Hashable, None] = {}
        self.odd = False
        """whether some are lists or the like"""

    @property
    def enough(self) -> bool:
        """Whether more rows would change nothing."""
        return self.odd or len(self.values) > SEEN

    def add(self, column: Series) -> None:
        """Rows of the column."""
        import pandas as pd

        column = column[column.notna().to_numpy()]
        if isinstance(column.dtype, pd.CategoricalDtype):
            self.orders.add(tuple(column.cat.categories))
        try:
            self.values |= dict.fromkeys(column.unique().tolist())
        except TypeError:
            self.odd = True

    def categories(self, name: str, called: bool = False) -> Categories:
        """In their order; None where the column holds numbers, or what is refused as numbers.
        ``called``: whether a formula calls them categories, so that text is, whatever it reads."""
        if self.odd:
            return None
        if self.orders:
            first = next(iter(self.orders))
            one = len(self.orders) == 1
            found = [value for value in first if value in self.values] if one else []
            return _checked([label(value) for value in found or in_order(self.values)], name)
        if not _words(self.values, called):
            return None
        if not called:
            _refuse_dates(name, self.values)
        return _checked(sorted(map(label, self.values)), name)


def categories_of(column: Series, name: str, called: bool = False) -> Categories:
    """Those of a whole column."""
    seen = Seen()
    seen.add(column)
    return seen.categories(name, called)


def label(value: Any) -> str:
    """A category as text: 1.0 is "1", as other tables may have it."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)


def in_order(values: Iterable[Any]) -> list[Any]:
    """Numbers by their size, all else by characters."""
    found = list(values)
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=str)


def sort_dictionary(frame: DataFrame, name: str) -> None:
    """Sort the categories of a column, a pandas categorical, whose order says nothing."""
    column = frame[name]
    frame[name] = column.cat.set_categories(in_order(column.cat.categories), ordered=False)


def _words(values: Iterable[Hashable], called: bool) -> bool:
    """Whether these are text of which nothing reads as a number; of what is ``called`` categories,
    whether there is such text."""
    import pandas as pd

    found = list(values)
    texts = [one for one in found if isinstance(one, str)]
    if not texts or (len(texts) < len(found) and not called):
        return False
    no = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").isna()
    return bool(no.any() if called else no.all())


def _refuse_dates(name: str, values: Iterable[Hashable]) -> None:
    """Text that is dates in all rows."""
    texts = list(map(str, values))
    if all(map(DATE.fullmatch, texts)):
        raise InputError(
            f"column {name!r} holds dates as text, such as {texts[0]!r:.60}; give numbers, such as "
            f"days since the first, or write C({name}) in a formula for a category each"
        )


def _checked(found: list[str], name: str) -> tuple[str, ...]:
    """Neither one nor very many, and no two alike."""
    if len(found) == 1:
        raise InputError(
            f"column {name!r} has one category only, {found[0]!r:.60}; leave it out of the features"
        )
    if len(found) > MOST:
        raise InputError(
            f"column {name!r} has {len(found)} categories, such as {found[0]!r:.60}; more than "
            f"{MOST} are not coded: leave it out, or make fewer of them"
        )
    twice = next((one for one in found if found.count(one) > 1), None)
    if twice is not None:
        raise InputError(
            f"column {name!r} has two categories that are both written {twice!r:.60}; give them "
            "other names"
        )
    return tuple(found)
