"""Markdown made from records: tables, and blocks of a README that are generated, not typed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bayesmeta.checks import InputError
from bayesmeta.runner.files import write_atomically
from bayesmeta.simulation.summaries import Interval


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def say(text: str) -> None:
    """Show Markdown below the cell of a notebook."""
    from IPython.display import Markdown, display

    display(Markdown(text))  # type: ignore[no-untyped-call]


def matrix(values: Sequence[Sequence[float]], digits: int = 2) -> str:
    """A matrix in LaTeX."""
    rows = r"\\".join(" & ".join(f"{value:.{digits}f}" for value in row) for row in values)
    return rf"\begin{{pmatrix}}{rows}\end{{pmatrix}}"


def with_ends(value: float, ends: object, digits: int = 3) -> str:
    """A number with the ends of its interval."""
    if isinstance(ends, (list, tuple)):
        return f"{value:.{digits}f} [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]"
    return f"{value:.{digits}f}"


def from_interval(value: Interval, digits: int = 3) -> str:
    """An interval as text."""
    return with_ends(value.mean, [value.low, value.high], digits)


def replace_block(text: str, name: str, content: str) -> str:
    """The text with the lines between ``<!-- name -->`` and ``<!-- /name -->`` replaced."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(start) != 1 or text.count(end) != 1:
        raise InputError(f"the text needs exactly one block {start} … {end}")
    head, rest = text.split(start)
    _, tail = rest.split(end)
    content = content.strip()
    gap = "\n\n" if content.startswith(("|", "-")) else "\n"  # a table or list of its own
    return f"{head}{start}{gap}{content}\n{end}{tail}"


def write_block(path: Path, name: str, content: str) -> None:
    """Replace a block of a file."""
    text = replace_block(path.read_text(), name, content)
    write_atomically(path, lambda to: to.write_text(text))
