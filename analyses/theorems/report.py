"""Write the page, figures and table of this folder, and the README's block, from the records.

python analyses/theorems/report.py
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesmeta.report.figures.style import DPI, Look, look
from bayesmeta.report.figures.theorems import Growth, figure_deviations, figure_growth
from bayesmeta.report.markdown import write_block
from bayesmeta.report.page import made_from, render
from bayesmeta.runner.files import write_atomically
from bayesmeta.simulation.records import cumulative, read_record
from bayesmeta.simulation.summaries import Interval, interval
from bayesmeta.studies.theorems import FROM, GROWING, SCALES, SIZES, family_with
from bayesmeta.theory import constants as c
from bayesmeta.theory.bounds import regime_of

HERE = Path(__file__).parent
DELTA = 1e-4
NAMES = ("ts", "ids", "horizon", "dim", "dim-radius")


def share(record: xr.Dataset, sigma: float, name: str) -> Interval:
    """Relative regret over KQB's regret after exploration, both means over runs; the interval is
    that of relative regret."""
    here = record.sel(sigma=sigma)
    known = float(here.known_regret.mean())
    return interval(here.relative_regret.sel(deviation=name).values / known)


def k_1(sigma: float, tau: float, mean: float, cov: float) -> float:
    """k_1 of Theorem 1, corrected (printed and corrected agree for sigma = 1), where sqrt(f_m
    delta) and sqrt(f_s delta) are these deviations."""
    regime = regime_of(family_with(sigma), 10_000)
    return c.k_1(regime, tau, mean**2 / DELTA, cov**2 / DELTA, DELTA, corrected=True)


def largest(sigma: float, tau: float, mean: float, cov: float) -> float:
    """How far one may go in this direction with delta <= 1/M: M is quadratic in deviations."""
    regime = regime_of(family_with(sigma), 10_000)
    cs, cx = c.c_s(regime), c.c_xi(regime, DELTA, corrected=True) ** 2
    first = cs**2 * tau**2 * cov**2
    inner = mean**2 + (c.c_1(regime, DELTA) * regime.dim + cx * cs / 36) * cov**2
    return 1 / math.sqrt(max(first, 18 * cx * cs * inner))


def deviations(records: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """What every wrong prior costs, beside k_1: the rows of deviations.csv."""
    rows = []
    for sigma in records["ts"].sigma.values.tolist():
        tau = exploration(records, sigma)
        for name in records["ts"].deviation.values.tolist():
            if name == "none":
                continue
            at = records["ts"].sel(deviation=name)
            mean, cov = float(at.mean_size), float(at.covariance_size)
            row = {"sigma": sigma, "deviation": name, "mean_size": mean, "covariance_size": cov}
            for policy in ("ts", "ids"):
                found = share(records[policy], sigma, name)
                row |= {
                    policy: found.mean,
                    f"{policy}_low": found.low,
                    f"{policy}_high": found.high,
                }
            row["k_1"] = None if excluded(name) else k_1(sigma, tau, mean, cov)
            rows.append(row)
    return rows


def excluded(name: str) -> bool:
    """Whether the theory excludes a deviation: it asks for a covariance no smaller than the true
    one."""
    return name.startswith("covariance times")


def exploration(records: dict[str, xr.Dataset], sigma: float) -> float:
    """Steps of exploration in a task, on average."""
    return float(records["ts"].sel(sigma=sigma).exploration_steps.mean())


def order(record: xr.Dataset, name: str, sigma: float = 1.0) -> tuple[Interval, list[float]]:
    """Exponent of relative regret in the size of a deviation, and the sizes it is fitted to: those
    at most 1 whose interval is positive. Leave-one-out intervals, for single runs may be negative.
    """
    here = record.sel(sigma=sigma).relative_regret
    use = [s for s in SIZES if s <= 1 and share(record, sigma, name.format(f"{s:g}")).low > 0]
    values = np.array([here.sel(deviation=name.format(f"{s:g}")).values for s in use])
    runs = values.shape[1]

    def slope(chosen: np.ndarray) -> float:
        return float(np.polyfit(np.log(use), np.log(chosen.mean(axis=1)), 1)[0])

    whole = slope(values)
    pseudo = [runs * whole - (runs - 1) * slope(np.delete(values, i, axis=1)) for i in range(runs)]
    return interval(np.array(pseudo)), use


def exponent(x: np.ndarray, values: np.ndarray) -> Interval:
    """Slope of log values (runs, x) on log x, run by run."""
    return interval(np.array([np.polyfit(np.log(x), np.log(row), 1)[0] for row in values]))


def growth(records: dict[str, xr.Dataset], many: xr.Dataset) -> list[Growth]:
    """What the figure of growth draws: N from the runs of analyses/figure1, T and d from here."""
    total = cumulative(many)
    start, warmup = 1000, 125
    tasks = total.task.values[total.task.values >= start]
    after = total.cumulative_relative_regret - total.cumulative_relative_regret.sel(
        task=warmup, method="ffill"
    )
    in_tasks = {name: (look(name), after.sel(agent=name, task=tasks).values) for name in GROWING}
    steps, dims = records["horizon"].value.values, records["dim"].value.values
    in_steps = {name: (look(name), found) for name, found in each_run(records["horizon"])}
    in_dims = {
        f"{name}, {radius}": (at_radius(look(name), radius), found)
        for key, radius in (("dim", "a fixed"), ("dim-radius", "a ~ √d"))
        for name, found in each_run(records[key])
    }
    return [
        Growth(tasks, "tasks N after warm-up", [1000, 3000, 10_000], 0.5, "√N, printed", in_tasks),
        Growth(steps, "steps T of a task", steps.tolist(), 0.5, "√T, printed", in_steps),
        Growth(dims, "dimension d", dims.tolist(), 2.5, "$d^{5/2}$, printed", in_dims),
    ]


def at_radius(style: Look, radius: str) -> Look:
    """The look of an agent whose actions have such a radius."""
    line = style.line if radius == "a fixed" else (0, (1, 1))
    return Look(f"{style.label}, {radius}", style.color, line, style.marker)


def each_run(record: xr.Dataset) -> list[tuple[str, np.ndarray]]:
    """Relative regret of the agents that grow, (runs, values)."""
    regret = record.relative_regret.transpose("agent", "run", "value")
    return [(name, regret.sel(agent=name).values) for name in GROWING]


def exponents(panels: list[Growth]) -> list[dict[str, Any]]:
    """The exponents, over the whole range and over its last part, since the curves bend."""
    rows = []
    for panel in panels:
        x = panel.x
        last = x >= x[-1] / 2.1 if len(x) < 20 else x >= x[-1] / 3.5
        last[-2:] = True
        for agent, (_, values) in panel.curves.items():
            rows.append(
                {
                    "grows": panel.label,
                    "agent": agent,
                    "all": exponent(x, values),
                    "last": exponent(x[last], values[:, last]),
                    "since": int(x[last][0]),
                    "points": int(last.sum()),
                    "printed": panel.rate,
                }
            )
    return rows


def values(records: dict[str, xr.Dataset], panels: list[Growth]) -> dict[str, Any]:
    """What the templates are filled with."""
    ts = records["ts"]
    tau = {sigma: exploration(records, sigma) for sigma in (1.0, 0.1)}
    mean_order, mean_sizes = order(ts, "mean {} across")
    cov_order, cov_sizes = order(ts, "covariance +{} I")
    return {
        "runs": ts.sizes["run"],
        "steps": tau[1.0],
        "delta": DELTA,
        "limits": {s: (largest(s, tau[s], 1, 0), largest(s, tau[s], 0, 1)) for s in tau},
        "share": lambda policy, name, sigma=1.0: share(records[policy], sigma, name),
        "k_1": lambda mean, cov: k_1(1.0, tau[1.0], mean, cov),
        "least": min(
            row["k_1"] / row[policy]
            for row in deviations(records)
            for policy in ("ts", "ids")
            if row["k_1"] is not None and row[policy] > 0
        ),
        "mean_order": mean_order,
        "mean_sizes": mean_sizes,
        "cov_order": cov_order,
        "cov_sizes": cov_sizes,
        "exponents": exponents(panels),
        "horizons": records["horizon"].value.values.tolist(),
        "dims": records["dim"].value.values.tolist(),
        "start": FROM + 1,
        "narrow": f"covariance times {SCALES[1]:g}",
        "command": "python analyses/theorems/report.py",
        "made_from": made_from(records.values()),
    }


def readme(records: dict[str, xr.Dataset], panels: list[Growth]) -> str:
    """The page of this folder."""
    return render(HERE / "README.md.j2", **values(records, panels))


def main_block(records: dict[str, xr.Dataset], panels: list[Growth]) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(records, panels))


def as_csv(records: dict[str, xr.Dataset]) -> str:
    """deviations.csv: every deviation, with 95% intervals."""
    text: str = pd.DataFrame(deviations(records)).to_csv(index=False, float_format="%.4g")
    return text


def load() -> tuple[dict[str, xr.Dataset], list[Growth]]:
    """The records, and what is drawn of growth."""
    records = {name: read_record(HERE / f"{name}.nc") for name in NAMES}
    return records, growth(records, read_record(HERE.parent / "figure1" / "orderings.nc"))


def main() -> None:
    records, panels = load()
    tau = exploration(records, 1.0)
    names = records["ts"].deviation.values.tolist()
    shares = {
        title: {name: share(records[policy], 1.0, name) for name in names}
        for title, policy in (("Thompson Sampling", "ts"), ("IDS", "ids"))
    }
    bounds = {"mean": k_1(1.0, tau, 1.0, 0.0), "covariance": k_1(1.0, tau, 0.0, 1.0)}
    first = figure_deviations(shares, bounds, [size for size in SIZES if size <= 1])
    second = figure_growth(panels)
    write_atomically(HERE / "deviations.png", lambda to: first.savefig(to, dpi=DPI))
    write_atomically(HERE / "growth.png", lambda to: second.savefig(to, dpi=DPI))
    page, everything = readme(records, panels), as_csv(records)
    write_atomically(HERE / "README.md", lambda to: to.write_text(page))
    write_atomically(HERE / "deviations.csv", lambda to: to.write_text(everything))
    write_block(HERE.parent.parent / "README.md", "theorems", main_block(records, panels))


if __name__ == "__main__":
    main()
