"""Tables on a terminal, in one look."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bayesmeta.display import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

SHOWN = 20
"""Tasks printed; all of them are in the JSON."""


def table(
    title: str, columns: Sequence[str | Text], rows: Iterable[Sequence[str | Text]] = ()
) -> Table:
    """A table with a title, whose first column is text and whose others are numbers."""
    from rich import box
    from rich.table import Table

    made = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
    for i, column in enumerate(columns):
        made.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    return made


def rendered(show: Callable[[Console], None], plain_width: int | None = None) -> str:
    """What ``show`` prints, as text: in colour for a terminal, otherwise ``plain_width`` wide."""
    from rich.console import Console

    real, out = Console(), io.StringIO()
    width = plain_width if plain_width and not real.is_terminal else real.width
    show(Console(file=out, force_terminal=real.is_terminal, width=width))
    return out.getvalue().rstrip("\n")


def label(text: object, most: int = 24) -> Text:
    """A label as it is, neither markup nor a name of an emoji, cut in the middle to ``most``
    characters: long names often differ at their ends."""
    from rich.text import Text

    shown = visible(text)
    if len(shown) > most:
        shown = f"{shown[: most // 2]}…{shown[len(shown) - (most - 1) // 2 :]}"
    return Text(shown)


def number(value: float | None, digits: int = 6) -> str:
    """A number with so many digits; nothing where there is none."""
    return "" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def print_tasks(
    console: Console,
    title: str,
    features: Sequence[str],
    tasks: Sequence[dict[str, Any]],
    note: str,
    digits: int = 6,
) -> None:
    """The first tasks with mean and standard deviation of every feature; a note on the latter."""
    columns: list[str | Text] = [part for name in features for part in (label(name, 16), "± sd")]
    rows: list[list[str | Text]] = [
        [
            label(task["task"], 16),
            *(
                number(value, digits)
                for pair in zip(task["mean"], task["sd"], strict=True)
                for value in pair
            ),
        ]
        for task in tasks[:SHOWN]
    ]
    console.print(table(title, ["task", *columns], rows))
    console.print(f"± sd: {note}")
    if len(tasks) > SHOWN:
        console.print(f"and {len(tasks) - SHOWN} more tasks; --json has them all")
