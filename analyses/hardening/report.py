"""Write this folder's page and figure, and the README's block, from the records of the trials.

python analyses/hardening/report.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.report.figures.style import BLUE, ORANGE, SMALL, TITLE, clean, new_figure
from bayesmeta.report.markdown import write_block
from bayesmeta.report.page import render, write_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TRIALS = ("fuzz", "soak", "mutants", "maxima")
FATES = {
    "killed": ("noticed", BLUE, ""),
    "timeout": ("ran too long", BLUE, "//"),
    "explained": ("harmless", "#cccccc", ""),
    "unexplained": ("not noticed", ORANGE, "xx"),
}
"""What became of a mutant: its name on the page, colour and hatching."""
ENDS = {
    "right": ("right answer", BLUE, ""),
    "refused": ("refused in one line", "#cccccc", ""),
    "unjudged": ("not judged", "#cccccc", "xx"),
}
"""How a random input ended, likewise."""


def read() -> dict[str, Any]:
    """The records of the trials, by name."""
    return {name: json.loads((HERE / f"{name}.json").read_text()) for name in TRIALS}


def values(records: dict[str, Any]) -> dict[str, Any]:
    """What the templates speak of."""
    found = records["mutants"]
    return {
        "command": "python analyses/hardening/report.py",
        **records,
        "noticed": found["killed"] + found["timeout"],
        "survivors": [one for one in found["survivors"] if one["why"] is None],
    }


def readme(records: dict[str, Any]) -> str:
    """The README of this folder."""
    return render(HERE / "README.md.j2", **values(records))


def main_block(records: dict[str, Any]) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(records)).strip()


def texts(records: dict[str, Any]) -> dict[Path, str]:
    """Every file of text that is made from the records."""
    return {HERE / "README.md": readme(records)}


def figure_hardening(records: dict[str, Any]) -> Figure:
    """What became of mutants, by part of the package, and of random inputs, by property."""
    figure = new_figure(12, 6.4)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    _bars(left, records["mutants"]["by_target"], FATES)
    clean(left, grid="x")
    left.set_title("What became of changed code", fontsize=TITLE, pad=26)
    left.set_xlabel("mutants")
    _bars(right, records["fuzz"]["properties"], ENDS)
    clean(right, grid="x")
    right.set_title("What became of random inputs", fontsize=TITLE, pad=26)
    right.set_xlabel("cases")
    return figure


def _bars(axes: Axes, rows: dict[str, dict[str, int]], parts: dict[str, Any]) -> None:
    """A bar a row, of its parts, with their names above: bars are too short to carry them."""
    names = list(rows)
    start = [0] * len(names)
    for part, (label, color, hatch) in parts.items():
        lengths = [rows[name][part] for name in names]
        look = {"color": color, "hatch": hatch, "edgecolor": "white"}
        axes.barh(names, lengths, left=start, label=label, **look)
        start = [a + b for a, b in zip(start, lengths, strict=True)]
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], fontsize=SMALL)
    axes.invert_yaxis()
    look = {"frameon": False, "fontsize": SMALL + 0.5, "handlelength": 1.4, "columnspacing": 0.9}
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1), ncols=len(parts), **look)


def main() -> None:
    records = read()
    write_page(texts(records), {HERE / "hardening.png": figure_hardening(records)})
    write_block(ROOT / "README.md", "hardening", main_block(records))


if __name__ == "__main__":
    main()
