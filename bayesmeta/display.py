"""How objects print: short labelled tables, as text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from html import escape
from typing import Any

import numpy as np

from bayesmeta.checks import Array

type Rows = Sequence[Sequence[str]]
SHOWN = 12
"""Features printed at most; the rest is counted."""


def visible(text: object) -> str:
    r"""Text that only shows: control characters, escape sequences, line breaks, characters without
    a width and those that turn the direction of writing are spelt out.

    The one home of what happens to labels before a terminal, a figure or a page shows them.

    >>> visible("a\x1b[31m b")
    'a\\x1b[31m b'
    """
    label = str(text)
    if label.isprintable():
        return label
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in label)


def in_middle(text: str, most: int) -> str:
    """Text cut to so many characters, in its middle: names that begin alike end differently.

    >>> in_middle("temperature_of_the_room", 12)
    'temper…_room'
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[-tail:] if tail else ''}"


def short_quantity(name: str, most: int) -> str:
    """The name of a quantity cut to so many characters, each of its features in its middle.

    >>> short_quantity("corr[temperature_of_the_room, humidity]", 26)
    'corr[tempe…room, humidity]'
    >>> short_quantity("mu[temperature_of_the_room]", 16)
    'mu[temper…_room]'
    """
    kind, bracket, inside = name.partition("[")
    if len(name) <= most or not bracket or not inside.endswith("]"):
        return in_middle(name, most)
    first, comma, second = inside[:-1].partition(", ")
    room = most - len(kind) - len(comma) - 2
    if kind != "corr" or not comma:
        return f"{kind}[{in_middle(inside[:-1], room)}]"
    one = min(len(first), max(room // 2, room - len(second)))
    return f"{kind}[{in_middle(first, one)}, {in_middle(second, room - one)}]"


def apart(labels: Sequence[str], most: int) -> list[str]:
    """Labels cut to ``most`` characters, or to as many as keep them different, forty at most.

    >>> apart(["sensor-001-building-B", "sensor-002-building-B"], 16)
    ['sensor-001…uilding-B', 'sensor-002…uilding-B']
    """
    different = len(set(labels))
    for width in range(most, 41):
        cut = [in_middle(one, width) for one in labels]
        if len(set(cut)) == different:
            return cut
    return [in_middle(one, most) for one in labels]


def room_for_names(cells: Sequence[Sequence[str]], width: int) -> int:
    """Characters that rows of numbers leave to the names before them: names are shortened, numbers
    never."""
    taken = sum(max(5, *map(len, column)) + 2 for column in zip(*cells, strict=True))
    return max(12, min(40, width - taken - 3))


def text_table(rows: Rows) -> str:
    """Rows below each other: first and last column left-aligned, those between right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1

    def cell(i: int, text: str) -> str:
        return text.rjust(widths[i]) if 0 < i < last else text.ljust(widths[i])

    return "\n".join(
        "  ".join(cell(i, text) for i, text in enumerate(row)).rstrip() for row in rows
    )


def html_table(title: str, rows: Rows, note: str = "") -> str:
    """The same for notebooks; the first row is the header."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in cells) + "</tr>"

    body = line(rows[0], "th") + "".join(line(row, "td") for row in rows[1:])
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><caption>{escape(title)}</caption>{body}</table>{below}"


def moments_rows(
    mean: Array, cov: Array, error: Array | None = None, labels: Sequence[str] | None = None
) -> list[list[str]]:
    """A mean (with its standard errors), standard deviations and correlations, header first."""
    names = (
        [f"x{i + 1}" for i in range(len(mean))]
        if labels is None
        else [visible(one) for one in labels]
    )
    between = correlation(cov)
    several = len(mean) > 1
    rows = [["", "mean" if error is None else "mean ± s.e.", "sd", "correlation" * several]]
    for i, value in enumerate(mean[:SHOWN]):
        doubt = "" if error is None else f" ± {error[i]:.3g}"
        sd = f"{np.sqrt(cov[i, i]):.4g}" if cov[i, i] >= 0 else "none"
        others = "  ".join("none" if np.isnan(r) else f"{r:.2f}" for r in between[i, :i])
        rows.append([names[i], f"{value:.4g}{doubt}", sd, others])
    if len(mean) > SHOWN:
        rows.append([f"and {len(mean) - SHOWN} more", "", "", ""])
    return rows


def correlation(cov: Array) -> Array:
    """Correlations; NaN where there is none, a variance or the matrix not being positive."""
    sd = np.sqrt(np.where(np.diag(cov) > 0, np.diag(cov), np.nan))
    found = cov / np.outer(sd, sd)
    return np.asarray(np.where(np.abs(found) <= 1 + 1e-9, found, np.nan))


def other_than_default(value: Any, *left_out: str) -> str:
    """The fields of a dataclass that have another value than by default, as ``a=1, b=2``."""
    return ", ".join(
        f"{field.name}={getattr(value, field.name)!r}"
        for field in fields(value)
        if field.name not in left_out and getattr(value, field.name) != field.default
    )
