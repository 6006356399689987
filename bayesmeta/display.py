"""How objects print: short labelled tables, as text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from bayesmeta.checks import Array

type Rows = Sequence[Sequence[str]]


def text_table(title: str, header: Sequence[str], rows: Rows) -> str:
    """Columns under a title; the first is left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    ]
    return "\n".join([title, *lines])


def html_table(title: str, header: Sequence[str], rows: Rows) -> str:
    """The same for notebooks."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = line(header, "th") + "".join(line(row, "td") for row in rows)
    return f"<table><caption>{escape(title)}</caption>{body}</table>"


def short(value: float) -> str:
    """A number to four digits."""
    return f"{value:.4g}"


SHOWN = 8
"""Features printed at most; the rest is counted."""


def moments_table(
    mean: Array, cov: Array, labels: Sequence[str] | None = None, error: Array | None = None
) -> tuple[list[str], list[list[str]]]:
    """Header and rows for a mean and a covariance: mean (± its error), sd, correlations."""
    d = len(mean)
    names = list(labels or [f"x{i + 1}" for i in range(d)])
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(np.diag(cov))
        corr = cov / np.outer(sd, sd)
    shown = min(d, SHOWN)
    header = ["", "mean", *(["± s.e."] if error is not None else []), "sd"]
    header += [f"corr {names[j]}" for j in range(shown - 1)]
    rows = []
    for i in range(shown):
        row = [names[i], short(mean[i])]
        row += [short(error[i])] if error is not None else []
        row += [short(sd[i]), *(short(corr[i, j]) if j < i else "" for j in range(shown - 1))]
        rows.append(row)
    if d > shown:
        rows.append([f"and {d - shown} more", *[""] * (len(header) - 1)])
    return header, rows
