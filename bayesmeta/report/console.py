"""Tables on a terminal, in one look."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import Array
from bayesmeta.display import apart, in_middle, room_for_names, short_quantity, visible

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.text import Text

    from bayesmeta.statistics import TaskStatistics

SHOWN = 20
"""Tasks printed; all of them are in the JSON."""


def table(
    title: str, columns: Sequence[str | Text], rows: Iterable[Sequence[str | Text]] = ()
) -> Group:
    """A table below its title, whose first column is text and whose others are numbers; the title
    may be wider than the table."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for i, column in enumerate(columns):
        made.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    return Group(Text(title, style="italic"), made) if title else Group(made)


def quantity_rows(
    console: Console, names: Sequence[str], numbers: Sequence[Sequence[str]]
) -> list[list[str | Text]]:
    """Rows of a summary: names as short as the numbers, which are never cut, make them."""
    from rich.text import Text

    most = room_for_names(numbers, console.width)
    return [
        [Text(short_quantity(visible(name), most)), *own]
        for name, own in zip(names, numbers, strict=True)
    ]


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

    return Text(in_middle(visible(text), most))


def number(value: float | None, digits: int = 6) -> str:
    """A number with so many digits; nothing where there is none."""
    return "" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def noise_in_words(noise_sd: float | None) -> str:
    """The noise below a table; None: every row has a variance of its own."""
    if noise_sd is None:
        return "noise: known for each row"
    return f"noise: variance {number(noise_sd**2)}, sd {number(noise_sd)}"


def features_of(stats: TaskStatistics, varying: bool) -> list[str]:
    """The features that differ between tasks, or those that do not."""
    both = zip(map(str, stats.feature_labels), stats.differs, strict=True)
    return [name for name, differs in both if differs == varying]


def task_estimates(
    stats: TaskStatistics, mean: Array, sd: Array, conditional: bool
) -> list[dict[str, Any]]:
    """Mean and standard deviation, both (n, d), of every task in the features that differ, as
    tables and JSON have them."""
    found = zip(
        map(str, stats.task_labels),
        mean[:, stats.differs].tolist(),
        sd[:, stats.differs].tolist(),
        strict=True,
    )
    return [
        {"task": name, "mean": one, "sd": spread, "conditional": conditional}
        for name, one, spread in found
    ]


def same_in_words(features: Sequence[object]) -> str:
    """Which features tables of tasks leave out, as they do not differ; nothing where all do."""
    if not features:
        return ""
    names = ", ".join(in_middle(visible(name), 24) for name in features[:5])
    more = f" and {len(features) - 5} more" if len(features) > 5 else ""
    return f"the same in all tasks, and not among these columns: {names}{more}"


def same_in_json(features: Sequence[object]) -> list[str]:
    """The same of the JSON, as a list of notes."""
    said = same_in_words(features).replace("these columns", "task_estimates")
    return [said] if said else []


def print_blocks(
    console: Console,
    title: str,
    first: Sequence[str | Text],
    groups: Sequence[Sequence[Sequence[str | Text]]],
) -> None:
    """A table whose columns are printed in blocks as wide as the console, so that no number is cut.

    ``first`` is the first column with its head, which every block repeats; each of ``groups`` is
    one or more columns that stay together.
    """
    from rich.measure import Measurement

    unlimited, begin = console.options.update(max_width=10_000), 0
    while begin < len(groups):
        for end in range(len(groups), begin, -1):
            columns = [column for group in groups[begin:end] for column in group]
            heads = [first[0], *(column[0] for column in columns)]
            rows = list(zip(first[1:], *(column[1:] for column in columns), strict=True))
            made = table("" if begin else title, heads, rows)
            if Measurement.get(console, unlimited, made).maximum <= console.width:
                break
        console.print(made)
        begin = end


def print_tasks(
    console: Console,
    title: str,
    features: Sequence[str],
    tasks: Sequence[dict[str, Any]],
    note: str,
    digits: int = 6,
    same: Sequence[str] = (),
) -> None:
    """The first tasks with mean and standard deviation of every feature; a note on the latter, and
    on features that are the ``same`` in all tasks.

    Deviations of tasks that are ``conditional`` have a star, which is explained below.
    """
    shown = tasks[:SHOWN]

    def deviation(task: dict[str, Any], i: int) -> str:
        return number(task["sd"][i], digits) + "*" * bool(task.get("conditional"))

    groups: list[list[list[str | Text]]] = [
        [
            [label(name, 16), *(number(task["mean"][i], digits) for task in shown)],
            ["± sd", *(deviation(task, i) for task in shown)],
        ]
        for i, name in enumerate(features)
    ]
    names = apart([visible(task["task"]) for task in shown], 16)
    print_blocks(console, title, ["task", *(label(name, 40) for name in names)], groups)
    console.print(f"± sd: {note}")
    if same:
        console.print(same_in_words(same), markup=False, emoji=False, highlight=False)
    if any(task.get("conditional") for task in shown):
        console.print("* conditional on a covariance that is singular or not determined: too short")
    if len(tasks) > SHOWN:
        console.print(f"and {len(tasks) - SHOWN} more tasks; --json has them all")
