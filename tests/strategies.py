"""Hypothesis strategies for tables and for the arguments of public functions.

A table is drawn by its sizes, a seed of ordinary numbers and a few odd cells, so that it is made
fast and shrinks to a small one.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32 - 1)
EXTREME = [0.0, -0.0, 5e-324, 1e-310, 1e-200, 1e-150, 1e-100, 1e100, 1e150, 1e200, 1e308, -1e100]
"""Finite numbers that arithmetic does not expect."""
NOT_FINITE = [math.nan, math.inf, -math.inf]
NO_NUMBERS = [None, "a", "", [1.0], (1.0, 2.0), {"a": 1.0}, 1j, object, pd.NaT, dt.date(2020, 1, 2)]
"""What cannot stand for a number."""


class Drawn(NamedTuple):
    """A value as it is handed in, and the number it stands for; None: it must be refused."""

    value: Any
    means: float | None


def often[T](usual: st.SearchStrategy[T], odd: st.SearchStrategy[T], of: int = 4) -> Any:
    """The usual kind, and once in ``of`` the odd one; shrinks to the usual."""
    return st.integers(0, of - 1).flatmap(lambda k: odd if k == of - 1 else usual)


def reals(low: float = -10.0, high: float = 10.0) -> st.SearchStrategy[float]:
    """Ordinary numbers, ties and whole numbers among them."""
    return st.one_of(
        st.integers(math.ceil(low), math.floor(high)).map(float),
        st.floats(low, high, allow_subnormal=False).map(lambda x: float(f"{x:.3g}")),
        st.floats(low, high, allow_subnormal=False),
    )


def positive() -> st.SearchStrategy[float]:
    """Ordinary positive numbers."""
    return st.floats(0.01, 100.0).map(lambda x: float(f"{x:.3g}"))


def powers(most: int = 100) -> st.SearchStrategy[float]:
    """Scales: powers of ten."""
    return st.integers(-most, most).map(lambda k: 10.0**k)


def any_number() -> st.SearchStrategy[Drawn]:
    """A scalar of any type, and what it stands for."""
    good = st.one_of(
        reals().map(lambda x: Drawn(x, x)),
        positive().map(lambda x: Drawn(x, x)),
        st.sampled_from(EXTREME).map(lambda x: Drawn(x, x)),
        st.integers(-3, 3).map(lambda x: Drawn(x, float(x))),
        reals().map(lambda x: Drawn(np.float32(x), float(np.float32(x)))),
        reals().map(lambda x: Drawn(np.float64(x), x)),
        st.integers(0, 9).map(lambda x: Drawn(np.int8(x), float(x))),
        positive().map(lambda x: Drawn(Decimal(repr(x)), x)),
        st.fractions(0, 9, max_denominator=9).map(lambda x: Drawn(x, float(x))),
        st.just(Drawn(True, 1.0)),
        positive().map(lambda x: Drawn(repr(x), x)),
        positive().map(lambda x: Drawn(np.array(x), x)),
    )
    bad = st.sampled_from(
        [*NOT_FINITE, *NO_NUMBERS, 10**400, np.nan, np.datetime64("2020-01-01"), [], "nan", pd.NA]
    ).map(lambda x: Drawn(x, None))
    return often(good, bad, of=5)


# ---- Arrays in all containers.


def contained(draw: st.DrawFn, values: np.ndarray) -> tuple[Any, np.ndarray | None]:
    """An array in some container, and the numbers it then holds; None: it must be refused."""
    flat = values.ndim == 1
    kind = draw(
        often(
            st.sampled_from(
                [
                    *("array", "list", "tuple", "float32", "int", "object", "fortran", "strided"),
                    *("text", "pandas", "Decimal", "Fraction", "bool", "matrix list", "nullable"),
                    "longdouble",
                ]
            ),
            st.sampled_from(["masked", "none", "complex", "dates", "lengths", "ragged", "deep"]),
            of=8,
        )
    )
    usual: dict[str, Any] = {
        "array": lambda: values,
        "list": lambda: values.tolist(),
        "tuple": lambda: tuple(map(tuple, values)) if values.ndim == 2 else tuple(values.tolist()),
        "object": lambda: values.astype(object),
        "fortran": lambda: np.asfortranarray(values),
        "strided": lambda: np.repeat(values, 2, axis=0)[::2],
        "text": lambda: np.vectorize(repr, otypes=[object])(values.astype(object)).tolist(),
        "pandas": lambda: pd.Series(values) if flat else _frame(values),
        "Fraction": lambda: _each(values, Fraction),
        "Decimal": lambda: _each(values, Decimal),
        "matrix list": lambda: list(values),
        "longdouble": lambda: values.astype(np.longdouble),
        "nullable": lambda: pd.Series(values, dtype="Float64") if flat else _frame(values),
    }
    if kind in usual and np.isfinite(values).all():
        return usual[kind](), values
    if kind == "float32":
        with np.errstate(over="ignore"):
            short = values.astype(np.float32)
        return short, short.astype(float) if np.isfinite(short).all() else None
    if kind in ("int", "bool") and np.isfinite(values).all():
        whole = np.clip(values, -9, 9).round()
        whole = whole.astype(np.int16) if kind == "int" else whole > 0
        return whole, whole.astype(float)
    odd: dict[str, Any] = {
        "masked": lambda: (
            np.ma.masked_array(values, mask=np.arange(values.size) == 0).reshape(values.shape)
            if values.ndim == 1
            else np.ma.masked_less_equal(np.ma.array(values), np.nanmin(values))
        ),
        "none": lambda: _each(values, lambda x: None if x == values.flat[0] else x),
        "complex": lambda: values + 1j,
        "dates": lambda: values.astype("int64").astype("datetime64[s]"),
        "lengths": lambda: values.astype("int64").astype("timedelta64[s]"),
        "ragged": lambda: [*values.tolist(), [1.0] * 9] if values.ndim > 1 else [[1.0], 2.0],
        "deep": lambda: values[None, None],
    }
    if kind in odd and values.size and np.isfinite(values).all() and np.abs(values).max() < 1e15:
        return odd[kind](), None
    return values, values if np.isfinite(values).all() else None


def _each(values: np.ndarray, change: Any) -> list[Any]:
    """Lists of what each number becomes."""
    return [_each(one, change) if np.ndim(one) else change(float(one)) for one in values]


def _frame(values: np.ndarray) -> Any:
    return pd.DataFrame(values) if values.ndim == 2 else values.tolist()


# ---- Labels.

CONTROLS = ["\x1b[31mred", "a\nb", "a\rb", "tab\t", "a\0", "\u202eleft", "\u200b", "é", "é", "日本"]
"""Texts that terminals and tables take amiss; two of them look the same and are not."""
ALIKE = [1, "1", 2, "2", 1.5, "1.5", "True", 2**53, 2**53 + 1, "a", "a\0"]
"""Labels that are different, but not to everybody."""
PLAIN = st.text("abcxyz0123456789 _-.", min_size=1, max_size=5).filter(str.strip)


def texts() -> st.SearchStrategy[str]:
    """Labels of text."""
    wild = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
    special = ["NA", "nan", "None", "01", "1", "1.0", "True", "-", "=1+1", "a,b", 'a"b', " a", "a "]
    return st.one_of(PLAIN, st.sampled_from(special), st.sampled_from(CONTROLS), wild)


def label_sets(count: int, *, mixed: bool = True) -> st.SearchStrategy[list[Any]]:
    """So many different labels of tasks, of one type or mixed."""

    def unique(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
        return st.lists(kind, min_size=count, max_size=count, unique_by=lambda x: x)

    whole = st.integers(-5, 20)
    kinds: list[st.SearchStrategy[Any]] = [texts(), PLAIN, whole, whole.map(float), st.dates()]
    if count <= 2:
        kinds.append(st.booleans())
    if mixed:
        kinds.append(st.one_of(st.integers(2**53 - 2, 2**53 + 9), reals()))
        kinds.append(st.one_of(whole, texts(), whole.map(str), reals(0, 9), st.booleans()))
        kinds.append(st.sampled_from(ALIKE))
        kinds.append(often(whole, st.none(), of=8))
        kinds.append(st.tuples(whole, PLAIN))
    return st.sampled_from(kinds).flatmap(unique)


# ---- Tables.


class Table(NamedTuple):
    """Rows in long format: ``task`` numbers the tasks by first appearance."""

    task: np.ndarray
    rewards: np.ndarray
    features: np.ndarray
    flavour: str

    @property
    def tasks(self) -> int:
        return int(self.task.max()) + 1

    @property
    def dim(self) -> int:
        return int(self.features.shape[1])

    def rows(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Features and rewards of a task."""
        return self.features[self.task == j], self.rewards[self.task == j]


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    flavours: tuple[str, ...] = ("ordinary", "ties", "scaled", "extreme", "broken"),
    tasks: tuple[int, int] = (1, 8),
    rows: tuple[int, int] = (1, 6),
    dims: tuple[int, int] = (1, 4),
) -> Table:
    """A table of some flavour: ordinary numbers; few different ones; all times a power of ten; some
    cells extreme; some not finite."""
    flavour = draw(st.sampled_from(flavours))
    n, d = draw(st.integers(*tasks)), draw(st.integers(*dims))
    lengths = draw(st.lists(st.integers(*rows), min_size=n, max_size=n))
    rng = np.random.default_rng(draw(SEEDS))
    task = np.repeat(np.arange(n), lengths)
    features = rng.standard_normal((len(task), d))
    if draw(st.booleans()):
        features[:, 0] = 1.0
    theta = draw(reals(-3, 3)) + draw(st.sampled_from([1.0, 0.0, 3.0])) * rng.standard_normal(
        (n, d)
    )
    noise = draw(st.sampled_from([1.0, 0.1, 3.0]))
    rewards = (features * theta[task]).sum(axis=1) + noise * rng.standard_normal(len(task))
    if flavour == "ties":
        features, rewards = np.round(features), np.round(rewards)
    if flavour == "scaled":
        features = features * [draw(powers()) for _ in range(d)]
        rewards = rewards * draw(powers())
    if flavour in ("extreme", "broken"):
        cells = NOT_FINITE if flavour == "broken" else EXTREME
        places = st.tuples(st.integers(0, len(task) - 1), st.integers(0, d))
        for row, column in draw(st.lists(places, min_size=1, max_size=3)):
            (rewards if column == d else features[:, column])[row] = draw(st.sampled_from(cells))
    if draw(st.booleans()):  # tasks need not stand together
        order = rng.permutation(len(task))
        task, features, rewards = task[order], features[order], rewards[order]
        task = np.unique(task, return_inverse=True)[1]
        first = list(dict.fromkeys(task.tolist()))
        task = np.argsort(first)[task]
    return Table(task, rewards, features, flavour)


ORDINARY = ("ordinary", "ordinary", "ties")
"""Flavours on which estimators should seldom refuse."""


def covariances(draw: st.DrawFn, d: int) -> np.ndarray:
    """A covariance, sometimes singular."""
    rng = np.random.default_rng(draw(SEEDS))
    rank = draw(st.sampled_from([d, d, d, max(d - 1, 0), 1]))
    root = rng.standard_normal((d, rank)).round(2) if rank else np.zeros((d, 1))
    return root @ root.T
