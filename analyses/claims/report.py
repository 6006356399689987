"""Write the referee's report of this folder, its figures, its table and the README's block.

python analyses/claims/report.py            # from the recorded run, claims.json
python analyses/claims/report.py --record   # check everything anew first, and record the verdicts
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesmeta.claims.detecting import (
    never_with_the_true_prior,
    one_dimension,
    several_dimensions,
)
from bayesmeta.claims.experiment import section_6
from bayesmeta.claims.faults import FAULTS, USES
from bayesmeta.claims.run import BUDGET, POINTS, Teeth, accepted, as_json, check_claims
from bayesmeta.claims.verdict import PROVED, Level, Point
from bayesmeta.environment import paper_family
from bayesmeta.report.figures.claims import figure_teeth
from bayesmeta.report.figures.faults import CIRCLED, figure_graph
from bayesmeta.report.figures.needed import figure_needed
from bayesmeta.report.markdown import write_block
from bayesmeta.report.numbers import RAISED, scientific
from bayesmeta.report.page import render, write_page
from bayesmeta.runner.files import write_atomically
from bayesmeta.runner.progress import progress_bar
from bayesmeta.theory import constants as c
from bayesmeta.theory import sharper
from bayesmeta.theory.bounds import describe_theory, regime_of, smallest_both, vacuous
from bayesmeta.theory.regime import Regime

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
Row = dict[str, Any]
GROUPS = ("printed", "in another reading", "ours")
RATIOS = [10.0 ** (k / 4) for k in range(-12, 33)]
"""Signal-to-noise, lambda_min a^2 / sigma^2, of the figure."""
VERSIONS = ("printed", "repaired", "sharpened")
STEPS = 10_000
"""The horizon T there, and where the paper's experiment is held against the theorems: eq. (8) asks
for more steps of exploration than its 200."""
TASKS = 10_000
"""Tasks of the paper's experiment."""


def record() -> None:
    """Check everything, quick and full, and keep what came of it."""
    from bayesmeta.claims import all_claims

    verdicts = {}
    for quick in (True, False):
        name = "quick" if quick else "full"
        with progress_bar(f"checking, {name}", "claims", len(all_claims())) as show:
            found = check_claims(quick=quick, progress=show, bite=not quick)
        verdicts[name] = {one.claim.id: one.verdict.verdict for one in found}
    text = json.dumps(as_json(found), indent=1, allow_nan=False) + "\n"
    write_atomically(HERE / "claims.json", lambda to: to.write_text(text))
    kept = json.dumps(verdicts, indent=2) + "\n"
    path = ROOT / "bayesmeta" / "data" / "verdicts.json"
    write_atomically(path, lambda to: to.write_text(kept))


def number(value: object) -> str:
    """A number for reading."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}"


def power(value: float) -> str:
    """The nearest power of ten."""
    return "10" + str(round(math.log10(value))).translate(RAISED)


def where(row: Row) -> str:
    """Where the paper states a claim: section, lemma or equation, or the lines of its source."""
    return str(row.get("where") or f"lines {row['lines']}")


def strength(row: Row) -> str:
    """The smallest constant that the check would still accept, in words."""
    return "" if row["teeth"] is None else accepted(Teeth(**row["teeth"]))


def known_by(row: Row) -> str:
    """How a claim that holds is known: by a proof, and whose; else by exact laws, or by draws."""
    if row["proof"]:
        return f"proved ({row['proof']})"
    return "simulated only" if row["simulated"] else "exact law"


def shown(value: object) -> str:
    """A value of a counterexample, for a cell of a table."""
    return "infinite" if value is None else number(value)


def example(found: Row | None) -> str:
    """The two sides of a counterexample, and where it lies, in one line for the table of all."""
    if found is None:
        return ""
    place = ", ".join(f"{name} = {value}" for name, value in parameters(found))
    return f"{sides(found)}, at {place}"


def sides(found: Row) -> str:
    """The two sides of a counterexample, with the interval of the first where it was measured."""
    text = f"{shown(found['left'])} > {shown(found['right'])}"
    text += " in logarithms" if found.get("logarithms") else ""
    if "interval" in found and found["interval"][0] != found["interval"][1]:
        text += f" (interval {number(found['interval'][0])} to {number(found['interval'][1])})"
    if "counts" in found:
        text += f" ({found['counts'][0]:,} of {found['counts'][1]:,} trials)"
    return text


def parameters(found: Row) -> list[tuple[str, str]]:
    """Where a counterexample lies, by name."""
    apart = ("left", "right", "counts", "interval", "logarithms")
    return [(name, number(value)) for name, value in found.items() if name not in apart]


def corrections(rows: Sequence[Row]) -> dict[str, Row]:
    """Our corrected versions, by the id of what they correct."""
    return {row["corrects"]: row for row in rows if row.get("corrects")}


def as_csv(rows: Sequence[Row]) -> str:
    """Every claim with all that is recorded of it, one a row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    plain = ("id", "group", "section", "kind")
    after = ("statement", "verdict", "points", "remark", "survives", "sides")
    writer.writerow(
        [*plain, "where", "quote", *after, "known by", "counterexample", "others", "accepts"]
    )
    for row in rows:
        others = " / ".join(example(other) for other in row["others"])
        holds = row["verdict"] in ("holds", PROVED)
        known = known_by(row) if holds else ""
        cells = [known, example(row["counterexample"]), others, strength(row)]
        stands = [where(row), row.get("quote", "")]
        writer.writerow([*(row[k] for k in plain), *stands, *(row[k] for k in after), *cells])
    return text.getvalue()


def theory() -> dict[str, Any]:
    """What the theorems promise in the paper's own experiment."""
    regime = regime_of(paper_family(), TASKS)
    horizon, tasks = smallest_both(regime)
    return {
        "regime": regime,
        "constants": {line.name: line.value for line in describe_theory(regime, 20)},
        "vacuous": vacuous(regime),
        "horizon": horizon,
        "tasks": tasks,
    }


def required(regime: Regime) -> dict[str, int]:
    """Tasks until the prior costs no more than R, by version of Theorem 1."""
    return {
        "printed": sharper.needed(regime),
        "repaired": sharper.needed(regime, corrected=True),
        "sharpened": sharper.needed_sharp(regime),
    }


def at_ratio(ratio: float) -> Regime:
    """d = 5, Sigma_* = I, actions uniform in the unit ball."""
    return Regime.of(
        dim=5,
        horizon=STEPS,
        tasks=2,
        noise_sd=ratio**-0.5,
        radius=1.0,
        action_min=1 / 7,
        prior_min=1.0,
        prior_max=1.0,
        mean_norm=1.0,
    )


def apart() -> dict[str, str]:
    """The teeth of Theorem 1's check, part by part, at the points of a quick one."""
    level = Level(True, 0, BUDGET / POINTS)
    bad = never_with_the_true_prior(level)

    def said(points: Sequence[Point], printed: float = 1.0) -> str:
        return accepted(
            Teeth(printed, printed * max(1 / (one.loose or math.inf) for one in points))
        )

    return {
        "bad events": said([one for one in bad if one.where["d"] == 1], 22),
        "bad events, d = 2": said([one for one in bad if one.where["d"] == 2], 22),
        "k_1": said(one_dimension(level)),
        "k_1, d = 2": said(several_dimensions(level)),
    }


def longer_experiment() -> Regime:
    """The paper's experiment, with longer tasks."""
    return regime_of(paper_family(horizon=STEPS), TASKS)


def experiment() -> dict[str, float]:
    """The same in the paper's experiment with longer tasks, and what eq. (12) adds before its last
    task: as printed, and by the sharper radius."""
    regime = longer_experiment()
    bounds, n, d = regime.bounds, regime.tasks, regime.dim
    eta = 1 / (d * n * regime.horizon)
    told = (d, regime.noise_sd, bounds.action_min, bounds.prior_max)
    return {
        **required(regime),
        "prior_max": bounds.prior_max,
        "ratio": bounds.prior_min * bounds.radius**2 / regime.noise_sd**2,
        "widening": c.covariance_radius(*told, n, eta),
        "sharper": sharper.estimation_radii(regime, c.tau_of(regime), n)[1],
    }


def values(rows: Sequence[Row]) -> dict[str, Any]:
    """What the templates are filled with."""
    groups = {name: [row for row in rows if row["group"] == name] for name in GROUPS}
    verdicts = ("holds", "violated", "undecided", PROVED)
    better = corrections(rows)
    bad = [row["id"] for row in groups["printed"] if row["verdict"] == "violated"]
    repairs = [better[name] for name in bad if name in better]
    return {
        "groups": groups,
        "counts": {
            name: {verdict: sum(row["verdict"] == verdict for row in here) for verdict in verdicts}
            for name, here in groups.items()
        },
        "by_id": {row["id"]: row for row in rows},
        "proved": PROVED,
        "faults": FAULTS,
        "numbers": CIRCLED,
        "points": sum(row["points"] for row in rows),
        "budget": BUDGET,
        "a_point": BUDGET / POINTS,
        "theory": theory(),
        "experiment": experiment(),
        "required": {ratio: required(at_ratio(ratio)) for ratio in (1.0, 1e2, 1e4, 1e6)},
        "corrected": better,
        "sharpened": [
            row
            for row in groups["ours"]
            if row not in repairs and (row["corrects"] or row["sharpens"])
        ],
        "precise": [row for row in groups["ours"] if not (row["corrects"] or row["sharpens"])],
        "scientific": scientific,
        "power": power,
        "where": where,
        "strength": strength,
        "known_by": known_by,
        "sides": sides,
        "parameters": parameters,
        "steps": STEPS,
        "apart": apart(),
        "figure_1": len(section_6()["total"]["KTS"]),
        "changes": sharper.steps_to_sharp(longer_experiment()),
        "command": "python analyses/claims/report.py",
    }


def readme(rows: Sequence[Row]) -> str:
    """The referee's report."""
    return render(HERE / "README.md.j2", **values(rows))


def main_block(rows: Sequence[Row]) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(rows))


def main(arguments: list[str]) -> None:
    if arguments == ["--record"]:
        record()
    rows = json.loads((HERE / "claims.json").read_text())
    verdicts = {row["id"]: row["verdict"] for row in rows}
    every = [required(at_ratio(ratio)) for ratio in RATIOS]
    needed = {name: [float(one[name]) for one in every] for name in VERSIONS}
    figures = {
        "graph.png": figure_graph(USES, FAULTS, verdicts),
        "teeth.png": figure_teeth(rows),
        "needed.png": figure_needed(RATIOS, needed, experiment(), TASKS),
    }
    page, everything = readme(rows), as_csv(rows)
    write_page(
        {HERE / "README.md": page, HERE / "claims.csv": everything},
        {HERE / name: figure for name, figure in figures.items()},
    )
    write_block(ROOT / "README.md", "claims", main_block(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
