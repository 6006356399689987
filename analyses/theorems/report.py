"""Write the README and figures of this folder, and the README's block, from the records.

python analyses/theorems/report.py
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from bayesmeta.report.figures.claims import figure_deviations, figure_growth
from bayesmeta.report.markdown import from_interval, table, write_block
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


def deviation_rows(records: dict[str, xr.Dataset], sigma: float) -> list[list[str]]:
    """What a wrong prior costs, beside k_1."""
    rows = []
    tau = float(records["ts"].sel(sigma=sigma).exploration_steps.mean())
    names = [str(name) for name in records["ts"].deviation.values if name != "none"]
    for name in names:
        at = records["ts"].sel(deviation=name)
        mean, cov = float(at.mean_size), float(at.covariance_size)
        bound = "excluded" if "times" in name else f"{k_1(sigma, tau, mean, cov):,.3g}"
        rows.append([name, *(from_interval(share(records[policy], sigma, name), 4)
                             for policy in ("ts", "ids")), bound])  # fmt: skip
    return rows


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


def growth(records: dict[str, xr.Dataset], many: xr.Dataset) -> list[dict[str, Any]]:
    """What the figure of growth draws: N from the runs of analyses/figure1, T and d from here."""
    total = cumulative(many)
    start, warmup = 1000, 125
    tasks = total.task.values[total.task.values >= start]
    after = total.cumulative_relative_regret - total.cumulative_relative_regret.sel(
        task=warmup, method="ffill"
    )
    lines = []
    for name in GROWING:
        values = after.sel(agent=name, task=tasks).values
        lines.append((name, values, from_interval(exponent(tasks, values), 2)))
    panels: list[dict[str, Any]] = [
        {"x": tasks, "lines": lines, "rate": 0.5, "printed": "printed: N^(1/2)",
         "label": "tasks N (those after the warm-up)", "ticks": [1000, 3000, 10_000]}
    ]  # fmt: skip
    here = records["horizon"]
    x = here.value.values
    found = {name: here.relative_regret.sel(agent=name).transpose("run", "value").values
             for name in GROWING}  # fmt: skip
    panels.append({
        "x": x, "rate": 0.5, "printed": "printed: T^(1/2)", "label": "steps T of a task",
        "lines": [(name, v, from_interval(exponent(x, v), 2)) for name, v in found.items()],
        "ticks": x.tolist()})  # fmt: skip
    x = records["dim"].value.values
    lines = []
    for title, key in (("a fixed", "dim"), ("a ~ √d", "dim-radius")):
        for name in GROWING:
            v = records[key].relative_regret.sel(agent=name).transpose("run", "value").values
            lines.append((f"{name}, {title}", v, from_interval(exponent(x, v), 2)))
    panels.append({"x": x, "lines": lines, "rate": 2.5, "printed": "printed: d^(5/2)",
                   "label": "dimension d", "ticks": x.tolist()})  # fmt: skip
    return panels


def growth_rows(panels: list[dict[str, Any]]) -> list[list[str]]:
    """The exponents, over the whole range and over its last part, since the curves bend."""
    rows = []
    for panel in panels:
        x = np.asarray(panel["x"])
        last = x >= x[-1] / 2.1 if len(x) < 20 else x >= x[-1] / 3.5
        last[-2:] = True
        for name, values, _ in panel["lines"]:
            only = ", two points" if last.sum() == 2 else ""
            rows.append([panel["label"], name, from_interval(exponent(x, values), 2),
                         f"{from_interval(exponent(x[last], values[:, last]), 2)} (from "
                         f"{int(x[last][0]):,} on{only})", f"{panel['rate']:g}"])  # fmt: skip
    return rows


def readme(records: dict[str, xr.Dataset], panels: list[dict[str, Any]]) -> str:
    ts = records["ts"]
    tau = {s: float(ts.sel(sigma=s).exploration_steps.mean()) for s in (1.0, 0.1)}
    limits = {s: (largest(s, tau[s], 1, 0), largest(s, tau[s], 0, 1)) for s in (1.0, 0.1)}
    up, down = (share(ts, 1.0, f"mean {sign}1 along") for sign in "+-")
    across, wide = share(ts, 1.0, "mean 1 across"), share(ts, 1.0, "covariance +1 I")
    mean_order, mean_sizes = order(ts, "mean {} across")
    cov_order, cov_sizes = order(ts, "covariance +{} I")
    scale = f"covariance times {SCALES[1]:g}"
    narrow = [share(records[policy], s, scale) for policy in ("ts", "ids") for s in (1.0, 0.1)]
    header = ["deviation", "TS", "IDS", "k_1"]
    return f"""# Theorems 1 and 2, measured

Generated by `python analyses/theorems/report.py` from the records beside it and that of
`figure1-orderings`; do not edit. Recorded by `bayesmeta study run theorems-ts` and `bayesmeta study
collect theorems-ts --record`, and likewise `theorems-ids`, `theorems-horizon`, `theorems-dim`,
`theorems-dim-radius`. Brackets are 95% t intervals over {ts.sizes["run"]} runs (in N: 60).

## What a wrong prior costs (Theorem 1)

The family of Section 6. Every task explores until E_v holds, λ_min(V) ≥ λ_A d/2 (on average after
{tau[1.0]:.1f} steps), then plays with a prior that is off: in its mean, by so much in Euclidean
norm; in its covariance, by so much in operator norm. *Along* is the direction of μ_* and of the
largest eigenvalue of Σ_*, *across* one of the smallest. Tasks, noise and draws are the same for all
priors. Numbers are relative regret, eq. (2), over the regret
of the policy with the true prior after exploration; Theorem 1 bounds it by k_1 (and c_bad δ/√d;
here with δ = {DELTA:g}). k_1 and M are those corrected for the units of rewards (see
[analyses/claims](../claims/README.md)), which for sigma = 1 are the printed ones.

![What a wrong prior costs](deviations.png)

Theorem 1 speaks of deviations with δ ≤ 1/M only: here of means off by at most {limits[1.0][0]:.1g}
and covariances off by at most {limits[1.0][1]:.1g} (sigma = 0.1: {limits[0.1][0]:.1g} and
{limits[0.1][1]:.1g}), where nothing can be measured. What can be measured, far outside:

- *Direction* matters. A mean off by 1 across costs Thompson Sampling {from_interval(across, 3)} of
  KQB's regret, one off by 1 along, where the prior is wide, much less: {from_interval(down, 3)} if
  it is too low. *Sign* does, too: if it is too high, {from_interval(up, 3)}, a gain (Thompson
  Sampling explores more than it need, see [figure1](../figure1/README.md)). Theorem 1 knows
  neither.
- A wrong mean is of *second* order: across, relative regret grows like its size to the power
  {from_interval(mean_order, 2)} (sizes {", ".join(f"{s:g}" for s in mean_sizes)}); along, there is
  a part of first order, but with a sign, which cancels for estimates that are too high as often as
  too low. A covariance that is too wide is of *first* order: power
  {from_interval(cov_order, 2)} (sizes
  {", ".join(f"{s:g}" for s in cov_sizes)}), and wider by 1 in all directions costs
  {from_interval(wide, 3)}. k_1 is linear in both. So it is widening that costs: what eq. (12) adds
  against a risk is a loss of first order in every task.
- A *narrower* covariance, which the theory excludes (it asks for Σ̂ ⪰ Σ_*, hence the widening), a
  fifth of the true one: Thompson Sampling {from_interval(narrow[0], 3)} (sigma = 0.1:
  {from_interval(narrow[1], 3)}), IDS {from_interval(narrow[2], 3)} ({from_interval(narrow[3], 3)}).

sigma = 1:

{table(header, deviation_rows(records, 1.0))}

sigma = 0.1:

{table(header, deviation_rows(records, 0.1))}

## How relative regret grows (Theorem 2)

Theorem 2 promises d^(5/2) √(NT), up to logarithms, for the tasks after N_0. Th-MTS_tau and
All-MTS_tau as in Section 6, after their warm-up of d³ tasks (in the study of d: tasks {FROM + 1} to
1,500 for every d). The exponents are slopes of log relative regret on the logarithm of N (from
1,000 to 10,000), T ({", ".join(str(int(v)) for v in records["horizon"].value.values)}) and d
({", ".join(str(int(v)) for v in records["dim"].value.values)}), run by run:

![How relative regret grows](growth.png)

{table(["in", "agent", "exponent", "in the last part", "printed"], growth_rows(panels))}

The curves bend, so an exponent is that of its range; the intervals are over runs and know nothing
of that. These are not the theorem's constants: its τ is longer than the task here, and its N_0 and
c_w are out of reach (`bayesmeta theory`). An exponent below the printed one does not contradict an
upper bound; nor does one above it, over a range as short as this: the bound's constant leaves room
for any of these curves. In N, √N is what losses of order 1/√n a task add up to; the widening is of
that order, but so wide at first that regret is not yet linear in it (see above).
"""


def main_block(records: dict[str, xr.Dataset], panels: list[dict[str, Any]]) -> str:
    """The block of the project's README."""
    ts = records["ts"]
    across, wide = share(ts, 1.0, "mean 1 across"), share(ts, 1.0, "covariance +1 I")
    tau = float(ts.sel(sigma=1.0).exploration_steps.mean())
    rows = growth_rows(panels)
    return (
        "Theorems 1 and 2, measured in the experiment of Section 6, far beyond the tiny deviations "
        "that Theorem 1 speaks of: a prior mean off by 1 where the prior is narrow costs Thompson "
        f"Sampling {from_interval(across, 2)} of its regret (k₁ = "
        f"{k_1(1.0, tau, 1.0, 0.0):,.0f}), and is an effect of second order; a "
        f"covariance wider by 1 costs {from_interval(wide, 2)} (k₁ = "
        f"{k_1(1.0, tau, 0.0, 1.0):,.0f}), and is one of first order: widening costs. Relative "
        "regret of Th-MTS_tau "
        f"grows like N to the power {rows[0][2]}, lately {rows[0][3]}, and like T to the power "
        f"{rows[2][2]}, lately {rows[2][3]}; printed are 1/2 and 1/2, and the curves still bend. "
        "(k₁ depends on how far the prior is off; `bayesmeta theory` prints it for what Lemma M-QB "
        "allows.) Details: "
        "[analyses/theorems](analyses/theorems/README.md)."
    )


def load() -> tuple[dict[str, xr.Dataset], list[dict[str, Any]]]:
    """The records, and what is drawn of growth."""
    records = {name: read_record(HERE / f"{name}.nc") for name in NAMES}
    return records, growth(records, read_record(HERE.parent / "figure1" / "orderings.nc"))


def main() -> None:
    records, panels = load()
    tau = float(records["ts"].sel(sigma=1.0).exploration_steps.mean())
    shares = {
        policy.upper(): {
            str(name): tuple(share(records[policy], 1.0, str(name)))
            for name in records[policy].deviation.values
        }
        for policy in ("ts", "ids")
    }
    bounds = {
        "mean": [k_1(1.0, tau, size, 0.0) for size in SIZES],
        "covariance": [k_1(1.0, tau, 0.0, size) for size in SIZES],
        "both": [k_1(1.0, tau, size, size) for size in SIZES],
    }
    first = figure_deviations(shares, bounds, SIZES)
    second = figure_growth(panels)
    write_atomically(HERE / "deviations.png", lambda to: first.savefig(to, dpi=110))
    write_atomically(HERE / "growth.png", lambda to: second.savefig(to, dpi=110))
    page = readme(records, panels)
    write_atomically(HERE / "README.md", lambda to: to.write_text(page))
    write_block(HERE.parent.parent / "README.md", "theorems", main_block(records, panels))


if __name__ == "__main__":
    main()
