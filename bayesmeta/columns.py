"""The columns of a table: labels of tasks, and numbers; what is neither is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesmeta.checks import Array, InputError
from bayesmeta.units import MOST

_EXACT = 2.0**53
"""Up to which floats hold every whole number."""
_WRITTEN = re.compile(r"(0|-?[1-9][0-9]*)\.0+")
"""A whole number as a float is written."""


def plain_label(label: Any) -> Any:
    """A label, 308 where it is 308.0: pandas makes floats of a column of whole numbers with a gap.

    >>> plain_label(308.0), plain_label(0.5), plain_label("308.0")
    (308, 0.5, '308.0')
    """
    if not isinstance(label, (float, np.floating)):
        return label
    value = float(label)
    return int(value) if abs(value) < _EXACT and value.is_integer() else label


def plain_text(text: str) -> str:
    """The same of a label as a file has it; 01 stays another one than 1.

    >>> plain_text("308.0"), plain_text("01"), plain_text("1.10")
    ('308', '01', '1.10')
    """
    found = _WRITTEN.fullmatch(text)
    return found[1] if found else text


def label_key(label: Any) -> str:
    """By which labels of different tables are matched: 308, 308.0 and both as text have the same.

    >>> label_key(308.0), label_key("308.0"), label_key("a")
    ('308', '308', 'a')
    """
    return plain_text(str(plain_label(label)))


def row_labels(task: ArrayLike) -> list[Any] | NDArray[np.int64]:
    """The labels of rows as they are, but for whole numbers that are floats: NumPy would make text
    of [1, "1"] and one task of both."""
    if isinstance(task, (str, bytes)) or not np.iterable(task):
        raise InputError(f"task must have one label a row, got {task!r:.80}")
    if not hasattr(task, "__array__"):
        return plain_labels(task)
    labels = np.asarray(task)
    if labels.ndim != 1 or np.ma.is_masked(task):
        raise InputError(f"task must have one label a row, none masked, got shape {labels.shape}")
    if labels.dtype.kind == "i":
        return labels.astype(np.int64, copy=False)
    return list(labels) if labels.dtype.kind in "mM" else plain_labels(labels.tolist())


def plain_labels(labels: Iterable[Any]) -> list[Any]:
    """Whole numbers as such, where a label is a float."""
    labels = list(labels)
    floats = any(issubclass(kind, (float, np.floating)) for kind in set(map(type, labels)))
    return [plain_label(one) for one in labels] if floats else labels


def tasks_of(labels: list[Any] | NDArray[np.int64]) -> tuple[list[Any], NDArray[np.intp]]:
    """The different labels in the order in which they come, and which of them each row has."""
    if isinstance(labels, np.ndarray):
        changes = labels[1:] != labels[:-1]
        if (labels[1:] >= labels[:-1]).all():  # in order: no need to sort them
            index = np.concatenate([np.zeros(min(len(labels), 1), np.intp), np.cumsum(changes)])
            return [*labels[:1].tolist(), *labels[1:][changes].tolist()], index
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return labels[first[order]].tolist(), rank[inverse]
    try:
        place: dict[Any, int] = {}
        index = np.array([place.setdefault(label, len(place)) for label in labels], dtype=np.intp)
    except TypeError:
        raise InputError(
            "task has labels that are lists or the like; give text or numbers"
        ) from None
    found = [one.item() if isinstance(one, (np.number, np.str_)) else one for one in place]
    if any(one is None or type(one).__name__ == "NAType" or one != one for one in found):
        raise InputError("task has rows without a label (NaN)")
    if len(set(map(type, labels))) > 1:  # 1 and True are the same to Python
        spelt: dict[Any, Any] = {}
        for label in labels:
            first = spelt.setdefault(label, label)
            if str(first) != str(label):
                raise InputError(
                    f"task has the labels {first!r} and {label!r}, which are equal; make text of "
                    "them if they are two tasks, numbers of one kind if they are one"
                )
    return found, index


def check_columns(frame: Any, task: str, reward: str, names: list[str]) -> None:
    """Each column is there, once, and serves for one thing."""
    for name in (task, reward, *names):
        found = int((frame.columns == name).sum())
        if not found:
            known = ", ".join(repr(str(one)) for one in frame.columns)
            raise InputError(f"there is no column {name!r}; the columns are {known:.200}")
        if found > 1:
            raise InputError(f"there are {found} columns {name!r}; give each a name of its own")
    if task == reward:
        raise InputError(f"column {task!r} cannot be both the task and the reward")
    for name, what in ((task, "task"), (reward, "reward")):
        if name in names:
            raise InputError(f"column {name!r} is the {what}; leave it out of the features")


def numbers(frame: Any, name: str, rows: NDArray[np.int64] | None = None) -> Array:
    """A column as numbers; the first cell that is none is named by its row, which is its place, or
    what ``rows`` says."""
    import pandas as pd

    column = frame[name]
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        kind = kind.categories.dtype
    if getattr(kind, "kind", "") == "M" or isinstance(kind, pd.PeriodDtype):
        raise InputError(f"column {name!r} holds dates; give numbers, such as days since the first")
    if getattr(kind, "kind", "") == "m":
        raise InputError(f"column {name!r} holds durations; give numbers, such as seconds")
    try:
        converted = pd.to_numeric(column, errors="coerce")
        if converted.dtype.kind == "c":
            raise TypeError
        found = converted.to_numpy(dtype=float, na_value=np.nan)
    except Exception:
        raise InputError(f"column {name!r} holds {kind}, not real numbers") from None
    high, low = found.max(initial=0.0), found.min(initial=0.0)  # NaN where there is one
    if not (high <= MOST and -low <= MOST):
        bad = ~np.isfinite(found)
        if not bad.any():
            bad = np.abs(found) > MOST
        place = int(np.argmax(bad))
        row = place + 1 if rows is None else int(rows[place])
        value = column.iloc[place]
        shown = value.item() if isinstance(value, np.generic) else value
        none = pd.api.types.is_scalar(value) and pd.isna(value)
        what = "no value" if none else f"{shown!r:.60}, which is not a finite number,"
        units = ""
        if np.isfinite(found[place]):
            what, units = f"{found[place]:.6g}, which is too large,", "; choose other units"
        raise InputError(
            f"column {name!r} has {what} in row {row} (not counting the header){units}"
        )
    out: Array = found
    return out
