"""A fitted model's numbers as text and as tables, alike for a prior and a posterior."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.display import room_for_names, short_quantity, text_table, visible

if TYPE_CHECKING:
    from pandas import DataFrame

WIDTH = 80
"""Of a terminal."""


def number(value: float, digits: int = 5) -> str:
    """A number with so many digits, nothing where there is none."""
    return f"{value:.{digits}g}" if np.isfinite(value) else ""


def percent(part: float) -> str:
    """A probability as the head of a column: 2.5%."""
    return f"{100 * part:.4g}%"


def chains_and_draws(sizes: Mapping[Any, int]) -> str:
    """How many draws there are, in words."""
    chains, draws = sizes["chain"], sizes["draw"]
    return f"{chains} chain{'s' * (chains != 1)} of {draws} draw{'s' * (draws != 1)}"


def posterior_title(tasks: int, sizes: Mapping[Any, int]) -> str:
    """The headline of the tables of a posterior."""
    return f"The prior of {tasks} tasks, its posterior ({chains_and_draws(sizes)})"


def summary_rows(summary: DataFrame, level: float) -> list[list[str]]:
    """A summary as text, header first."""
    heads = {"low": percent((1 - level) / 2), "high": percent((1 + level) / 2)}
    digits = {"ess": 4, "rhat": 4}
    columns = [str(one) for one in summary.columns]
    rows = [["", *(heads.get(name, name) for name in columns), ""]]
    numbers = [
        [number(v, digits.get(c, 5)) for v, c in zip(values, columns, strict=True)]
        for values in summary.to_numpy(dtype=float)
    ]
    most = room_for_names([rows[0][1:-1], *numbers], WIDTH)
    for name, cells in zip(summary.index, numbers, strict=True):
        rows.append([short_quantity(visible(name), most), *cells, ""])
    return rows


def text_of(title: str, rows: list[list[str]], below: list[str]) -> str:
    """Headline, table and notes, each note a paragraph that fits a terminal."""
    notes = [textwrap.fill(note, WIDTH, subsequent_indent="  ") for note in below]
    return "\n".join([title, text_table(rows), *notes])
