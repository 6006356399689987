"""Write the page, the figure and the README's block from the recorded measurements.

python benchmarks/report.py    # measures nothing
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bayesmeta.agents.roster import FIGURE_1
from bayesmeta.report.figures.style import BLUE, DPI, LABEL, ORANGE, clean, new_figure
from bayesmeta.report.markdown import write_block
from bayesmeta.report.page import render
from bayesmeta.runner.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
Results = dict[str, Any]


class Mark(NamedTuple):
    """Something measured, and what was wanted of it."""

    name: str
    measured: float
    wanted: float
    at_least: bool
    unit: str

    @property
    def margin(self) -> float:
        """How many times better than wanted; below 1 where the mark is missed."""
        return self.measured / self.wanted if self.at_least else self.wanted / self.measured

    @property
    def text(self) -> str:
        """The measured number and the wanted one."""
        bound = "at least" if self.at_least else "at most"
        return f"{self.measured:.3g} {self.unit}".rstrip() + f" ({bound} {self.wanted:g})"


def marks(results: Results) -> list[Mark]:
    """Every mark that is a number, the tightest first."""
    estep, reml = results["likelihood"]["estep"], results["likelihood"]["statsmodels"]
    full, trivial = results["studies"]["full_size"], results["studies"]["trivial"]
    drawn, waits = results["posterior"], results["posterior"]["waits"]
    memory = full["driver_MiB"] + 2 * full["largest_worker_MiB"]
    least = [
        ("a step of an agent against NumPy", results["numpy"]["ratio"], 350, "times faster"),
        ("two processes against one", full["speedup"], 1.8, "times faster"),
        ("an E-step against batched NumPy", estep["ratio"], 6, "times faster"),
        ("REML against statsmodels", reml["ratio"], 100, "times faster"),
        ("ESS a second against non-centred", posterior_ratio(results), 25, "times more"),
    ]
    most = [
        ("a step against drawing its numbers", results["drawing"]["ratio"], 3, "times"),
        ("import bayesmeta against numpy", results["import"]["ratio"], 2, "times"),
        ("exponent of a step's cost in d", results["growth"]["dimension"]["exponent"], 2, ""),
        ("an E-step of one task", estep["kernel_us"], 0.35, "µs"),
        ("REML of 10,000 tasks, from sums", reml["seconds"], 0.2, "s"),
        ("a posterior of 10,000 tasks", drawn["large"]["seconds"], 120, "s"),
        ("first draw, compiled before", waits["warm"], 10, "s"),
        ("first draw of a second fit", waits["second"], 1, "s"),
        ("an empty cell of a study, one process", trivial["one"]["ms_a_cell"], 15, "ms"),
        ("an empty cell, two processes", trivial["two"]["ms_a_cell"], 15, "ms"),
        ("an empty cell, a Dask cluster", trivial["dask"]["ms_a_cell"], 15, "ms"),
        ("Figure 1 at full size", full["seconds"], 60, "s"),
        ("memory of Figure 1, all processes", memory, 1024, "MiB"),
    ]
    found = [Mark(name, value, wanted, True, unit) for name, value, wanted, unit in least]
    found += [Mark(name, value, wanted, False, unit) for name, value, wanted, unit in most]
    return sorted(found, key=lambda mark: mark.margin)


def posterior_ratio(results: Results, ours: str = "fused, nutpie") -> float:
    """Effective draws a second, ours against the usual non-centred model."""
    found = results["posterior"]["contenders"]
    return float(found[ours]["ess_per_second"] / found["non-centred, nutpie"]["ess_per_second"])


def simulated(results: Results) -> float:
    """The NumPy loop against one of Figure 1's agents in the whole simulator (fastest rounds)."""
    each = results["drawing"]["whole_step_us"] / len(FIGURE_1)
    return float(results["numpy"]["numpy_us_one_agent"] / each)


def contenders(results: Results) -> list[list[str]]:
    """Models and samplers of the posterior, compared with the first of them."""
    drawn = results["posterior"]
    first = drawn["contenders"]["fused, nutpie"]["ess_per_second"]
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


def made_by(found: dict[str, dict[str, str]]) -> list[tuple[str, str]]:
    """Which parts were measured with which versions."""
    groups: dict[str, list[str]] = {}
    for part, numbers in found.items():
        text = ", ".join(f"{name} {number}" for name, number in numbers.items())
        groups.setdefault(text, []).append(part)
    return [(", ".join(parts), text) for text, parts in groups.items()]


def figure_marks(found: list[Mark]) -> Figure:
    """How many times better than wanted each mark is, on a log scale; crosses are missed."""
    figure = new_figure(9, 0.3 * len(found) + 1.1)
    axes = figure.subplots()
    for place, mark in enumerate(reversed(found)):
        missed = mark.margin < 1
        color = ORANGE if missed else BLUE
        axes.plot([1, mark.margin], [place, place], color="#bbbbbb", linewidth=1, zorder=1)
        axes.plot(mark.margin, place, "x" if missed else "o", color=color, mew=1.6, zorder=2)
        axes.annotate(
            mark.text,
            (max(mark.margin, 1), place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=LABEL,
        )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.4, 300)
    ticks = [0.5, 1, 2, 5, 10, 20]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(-0.8, len(found) - 0.2)
    axes.set_yticks(range(len(found)), [mark.name for mark in reversed(found)], fontsize=LABEL)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("times better than wanted (log scale; crosses: missed)", loc="left")
    clean(axes, grid="x")
    return figure


def values(results: Results) -> dict[str, Any]:
    """What the templates are filled with."""
    found = marks(results)
    return {
        **results["likelihood"],
        "step": results["numpy"],
        "drawing": results["drawing"],
        "imports": results["import"],
        "cost": results["growth"],
        "full": results["studies"]["full_size"],
        "trivial": results["studies"]["trivial"],
        "drawn": results["posterior"],
        "machine": results["machine"],
        "marks": found,
        "missed": [mark for mark in found if mark.margin < 1],
        "more_draws": posterior_ratio(results),
        "more_draws_to_verdict": posterior_ratio(results, "fused, sample_posterior"),
        "simulated": simulated(results),
        "contenders": contenders(results),
        "made_by": made_by(results["versions"]),
        "sources": len({one["source"] for one in results["versions"].values()}),
        "command": "python benchmarks/report.py",
    }


def readme(results: Results) -> str:
    """The page of this folder."""
    return render(HERE / "README.md.j2", **values(results))


def main_block(results: Results) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(results))


def write(results: Results) -> None:
    """Write page, figure and block."""
    figure = figure_marks(marks(results))
    write_atomically(HERE / "marks.png", lambda to: figure.savefig(to, dpi=DPI))
    page = readme(results)
    write_atomically(HERE / "README.md", lambda to: to.write_text(page))
    write_block(HERE.parent / "README.md", "bench", main_block(results))


if __name__ == "__main__":
    write(json.loads((HERE / "results.json").read_text()))
