"""Generated pages: Jinja2 templates filled with recorded numbers, and the rules they must keep."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.report.figures.style import DPI
from bayesmeta.report.markdown import from_interval, table
from bayesmeta.runner.files import Writer, write_together
from bayesmeta.runner.provenance import sources_of
from bayesmeta.simulation.summaries import Interval

if TYPE_CHECKING:
    import xarray as xr
    from jinja2 import Environment
    from matplotlib.figure import Figure

COLUMNS, BULLETS, NUMBERS = 5, 5, 3
"""At most so many columns a table, bullets a page, numbers a paragraph, outside folds."""
_NAMED = "Theorem|Lemma|Section|Figure|Table|Assumption|Algorithm"
_NOT_NUMBERS = re.compile(rf"`[^`]*`|\]\([^)]*\)|eqs?\. \(\d+\)(-\(\d+\))?|\b({_NAMED}) \d+")


def render(template: Path, **values: object) -> str:
    """Fill a template, which extends ``page.md.j2``, with values; a name it lacks is an error.

    Templates have the filters ``pm`` (an interval as ``x ± h``), ``ends`` (as ``x [low, high]``,
    for intervals that are not symmetric), ``percent`` (a share as ``56% [53, 58]``), ``num`` (a
    number with so many digits after the point) and ``count`` (a whole number with thousands
    separated), the function ``table(header, rows)``, and ``fold(title)`` for
    ``{% call fold("…") %} … {% endcall %}``.
    """
    text = _environment(template.parent).get_template(template.name).render(**values)
    parts = re.split(r"(<details>.*?</details>)", text, flags=re.DOTALL)
    parts[::2] = [re.sub(r"\n(?=- )", "\n\n", part) for part in parts[::2]]  # bullets apart
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip() + "\n"


def made_from(records: Iterable[xr.Dataset]) -> str:
    """Which state of the source made the records of a page, in words; one that does not say (the
    earliest did not) counts as a state of its own."""
    unknown = '{"source": "not recorded"}'
    found = [sources_of(record.attrs.get("versions", unknown)) for record in records]
    states = set().union(*found)
    if len(states) == 1:
        return f"made from one state of the source, {states.pop()}"
    return f"made from {len(states)} states of the source"


def write_page(texts: dict[Path, str], figures: dict[Path, Figure]) -> None:
    """Write the texts and the figures of a page, all or none."""
    writers: dict[Path, Writer] = {path: text_writer(text) for path, text in texts.items()}
    writers |= {path: figure_writer(figure) for path, figure in figures.items()}
    write_together(writers)


def text_writer(text: str) -> Writer:
    """Writes a text."""
    return lambda to: to.write_text(text, encoding="utf-8")


def figure_writer(figure: Figure) -> Writer:
    """Draws a figure, in the format of the file's name."""
    return lambda to: figure.savefig(to, dpi=DPI)


def _environment(folder: Path) -> Environment:
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([FileSystemLoader(folder), PackageLoader("bayesmeta.report")]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"pm": plus_minus, "ends": from_interval, "percent": percent}
    made.filters |= {"num": number, "count": whole}
    made.globals |= {"table": table, "fold": fold}
    return made


def plus_minus(value: Interval, digits: int = 2) -> str:
    """``x ± h``: a mean and half its interval; the mean alone where there is no interval, or where
    all runs agree."""
    half = (value.high - value.low) / 2
    varies = half > 1e-9 * abs(value.mean)  # false for NaN
    return number(value.mean, digits) + (f" ± {half:.{digits}f}" if varies else "")


def percent(value: Interval) -> str:
    """A share in per cent with the ends of its interval."""
    return f"{value.mean:.0%} [{100 * value.low:.0f}, {100 * value.high:.0f}]"


def number(value: float, digits: int = 2) -> str:
    """A number with so many digits after the point."""
    return f"{value:.{digits}f}"


def whole(value: float) -> str:
    """A whole number, thousands separated."""
    return f"{round(value):,}"


def fold(title: str, caller: object) -> str:
    """What a reader may skip, behind its title."""
    assert callable(caller)
    return f"<details><summary>{title}</summary>\n\n{str(caller()).strip()}\n\n</details>\n"


def faults(text: str) -> list[str]:
    """Which rules of a page a text breaks; empty where it keeps them all."""
    shown = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    blocks = [block for block in re.split(r"\n\s*\n", shown) if block.strip()]
    tables = [block for block in blocks if block.startswith("|")]
    bullets = re.findall(r"^- ", shown, flags=re.MULTILINE)
    found = []
    if not (len(blocks) > 1 and blocks[0].startswith("# ") and blocks[1][0] not in "|-!<#"):
        found.append("a page begins with a title and a headline sentence")
    if len(re.findall(r"^!\[", shown, flags=re.MULTILINE)) != 1:
        found.append("a page has one figure outside its folds")
    for block in tables:
        columns = block.split("\n")[0].count("|") - 1
        if columns > COLUMNS:
            found.append(f"a table has {columns} columns, at most {COLUMNS}: {block[:60]}")
    if len(bullets) > BULLETS:
        found.append(f"{len(bullets)} bullets, at most {BULLETS}")
    for block in blocks:
        if block[0] not in "|!<#":
            for part in re.split(r"^- ", block, flags=re.MULTILINE):
                count = len(numbers_in(part))
                if count > NUMBERS:
                    found.append(
                        f"{count} numbers in one paragraph, at most {NUMBERS}: {part[:60]}"
                    )
    if "**Limit.**" not in shown:
        found.append("a page ends with its one limit")
    return found


def numbers_in(text: str) -> list[str]:
    """The numbers a reader meets: an interval ``x ± h`` counts once; equations, names in code and
    links do not count."""
    plain = re.sub(_NOT_NUMBERS, " ", text)
    plain = re.sub(r" ± [\d.,]+", "", plain)
    return re.findall(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?", plain)
