"""Write the page, the figure and the README's block from the recorded measurements.

python benchmarks/report.py    # measures nothing
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))

from marks import Mark, Results, numbers, ratios
from matplotlib.ticker import NullFormatter

from bayesmeta.report.figures.style import (
    DPI,
    End,
    Look,
    clean,
    label_ends,
    method_look,
    new_figure,
    note_below,
)
from bayesmeta.report.markdown import write_block
from bayesmeta.report.page import render
from bayesmeta.runner.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
LOOKS = {
    "simulation": Look("simulation", "#009E73", (0, (5, 1, 1, 1)), "s"),
    "likelihood": method_look("reml"),
    "posterior": method_look("posterior"),
}
AXES = {"tasks": "tasks n", "steps": "steps a task T", "features": "features d"}


def figure_growth(results: Results) -> Figure:
    """Seconds in tasks, steps and features, each line with its exponent, on log scales."""
    figure = new_figure(11, 3.6)
    panels = figure.subplots(1, 3, sharey=True)
    ends: dict[str, list[End]] = {what: [] for what in AXES}
    for axes, (what, label) in zip(panels, AXES.items(), strict=True):
        for part, look in LOOKS.items():
            cost = results[part]["growth"][what]
            axes.plot(cost["sizes"], cost["seconds"], **look.options())
            named = look._replace(label=f"{look.label} {cost['exponent']:.1f}")
            ends[what].append(End(cost["sizes"][-1], cost["seconds"][-1], named))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label)
        clean(axes)
    for axes, what in zip(panels, AXES, strict=True):  # when all limits are known
        label_ends(axes, ends[what])
    sizes = results["simulation"]["growth"]["features"]["sizes"]
    panels[-1].set_xticks(sizes, map(str, sizes))
    for axes in panels:
        axes.xaxis.set_minor_formatter(NullFormatter())
    panels[0].set_ylabel("seconds")
    note_below(
        figure, "log scales; beside a name: its exponent, the slope of the line by least squares"
    )
    return figure


def contenders(results: Results) -> list[list[str]]:
    """Models and samplers of the posterior, compared with the first of them."""
    drawn = results["posterior"]
    first = drawn["contenders"]["sample_posterior"]["ess_per_second"]
    return [
        [
            name,
            f"{one['ess_per_second']:,.0f}",
            f"{first / one['ess_per_second']:,.1f}",
            f"{one['ess']:,.0f}",
            f"{one['seconds']:.1f}",
            f"{one['wait']:.1f}",
            f"{one['rhat']:.3f}",
            f"{drawn['agreement'][name]:.1f}" if name in drawn["agreement"] else "",
        ]
        for name, one in drawn["contenders"].items()
    ]


def exponents(results: Results) -> list[list[str]]:
    """Exponents of cost in tasks, steps and features."""
    return [
        [look.label, *(f"{results[part]['growth'][what]['exponent']:.2f}" for what in AXES)]
        for part, look in LOOKS.items()
    ]


def made_by(found: dict[str, dict[str, str]]) -> list[tuple[str, str]]:
    """Which parts were measured with which versions."""
    groups: dict[str, list[str]] = {}
    for part, versions in found.items():
        text = ", ".join(f"{name} {number}" for name, number in versions.items())
        groups.setdefault(text, []).append(part)
    return [(", ".join(parts), text) for text, parts in groups.items()]


def values(results: Results) -> dict[str, Any]:
    """What the templates are filled with."""
    compared, alone = ratios(results), numbers(results)
    missed = [mark for mark in [*compared, *alone] if not mark.met]
    return {
        "ratios": compared,
        "numbers": alone,
        "missed": [_named(mark) for mark in missed],
        "count": len(compared) + len(alone),
        "step": results["simulation"]["numpy"],
        "fits": results["likelihood"]["fits"],
        "full": results["studies"]["full_size"],
        "drawn": results["posterior"],
        "contenders": contenders(results),
        "exponents": exponents(results),
        "machine": results["machine"],
        "made_by": made_by(results["versions"]),
        "sources": len({one["source"] for one in results["versions"].values()}),
        "command": "python benchmarks/report.py",
    }


def _named(mark: Mark) -> str:
    """A mark's name, with its anchor if it has one."""
    return mark.name + (f" against {mark.anchor.split(':')[0]}" if mark.anchor else "")


def readme(results: Results) -> str:
    """The page of this folder."""
    return render(HERE / "README.md.j2", **values(results))


def main_block(results: Results) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(results))


def write(results: Results) -> None:
    """Write page, figure and block."""
    figure = figure_growth(results)
    write_atomically(HERE / "growth.png", lambda to: figure.savefig(to, dpi=DPI))
    page = readme(results)
    write_atomically(HERE / "README.md", lambda to: to.write_text(page))
    write_block(HERE.parent / "README.md", "bench", main_block(results))


if __name__ == "__main__":
    write(json.loads((HERE / "results.json").read_text()))
