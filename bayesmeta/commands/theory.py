"""``bayesmeta theory``: the constants of the paper, and whether they promise anything."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import real, whole

if TYPE_CHECKING:
    from bayesmeta.commands.parsing import Subparsers

_OPTIONS: dict[str, tuple[type, str]] = {
    "dim": (int, "d"),
    "tasks": (int, "N"),
    "horizon": (int, "T"),
    "noise_sd": (float, "sigma"),
    "radius": (float, "a: actions have norm at most this"),
    "action_min": (float, "lower bound of lambda_min(Sigma_A) (default: of the uniform ball)"),
    "prior_min": (float, "lower bound of the eigenvalues of Sigma_*"),
    "prior_max": (float, "upper bound of the eigenvalues of Sigma_*"),
    "mean_norm": (float, "m: bound on |mu_*|"),
}


def add(commands: Subparsers) -> None:
    """Add the command."""
    theory = commands.add_parser(
        "theory",
        help="the constants of the theorems, and whether they say anything",
        description="Print tau, c_w, M, k_1, k_2, N_0 and the rest in a regime (default: the "
        "paper's experiment), say where they are vacuous, and from which T and N on they are not.",
    )
    for name, (kind, text) in _OPTIONS.items():
        theory.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="X", help=text)
    theory.add_argument("--actions", type=int, default=20, help="actions on offer (20)")
    theory.add_argument("--json", action="store_true", help="print JSON instead of a table")
    theory.set_defaults(command=_theory)


def _theory(options: argparse.Namespace) -> int:
    from dataclasses import replace

    from bayesmeta.environment import paper_family
    from bayesmeta.theory import bounds
    from bayesmeta.theory.constants import Regime

    given: dict[str, Any] = {
        name: value for name in _OPTIONS if (value := getattr(options, name)) is not None
    }
    for name, value in given.items():
        shown = f"--{name.replace('_', '-')}"
        if _OPTIONS[name][0] is int:
            whole(shown, value, least=2 if name == "tasks" else 1)
        elif name == "mean_norm":
            real(shown, value, least=0.0)
        else:
            real(shown, value, above=0.0)
    actions = whole("--actions", options.actions, least=1)
    family = paper_family(dim=given.get("dim", 5))
    paper = bounds.regime_of(family, given.get("tasks", 10_000))
    if "radius" in given and "action_min" not in given:  # of the uniform ball of that radius
        given["action_min"] = paper.action_min * (given["radius"] / paper.radius) ** 2
    regime: Regime = bounds.check_regime(replace(paper, **given))
    lines, why = bounds.describe_theory(regime, actions), bounds.vacuous(regime)
    doubts = bounds.doubtful(regime, actions)
    horizon = bounds.smallest_horizon(regime)
    longer = replace(regime, horizon=max(horizon, regime.horizon))
    tasks = bounds.smallest_tasks(longer)
    if options.json:
        print(json.dumps({
            "regime": bounds.as_numbers(regime),
            "constants": {line.name: line.value for line in lines},
            "corrected": {one.name: one.corrected for one in lines if one.corrected is not None},
            "vacuous": why,
            "doubtful": doubts,
            "smallest_horizon": horizon,
            "smallest_tasks": tasks,
            "both": dict(zip(("horizon", "tasks"), bounds.smallest_both(regime), strict=True)),
        }, indent=2))  # fmt: skip
        return 0
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title="The constants of the theory", box=box.SIMPLE_HEAD, title_justify="left")
    for column in ("", "printed", "corrected", "what it is"):
        table.add_column(column, justify="left" if column in ("", "what it is") else "right")
    for line in lines:
        better = "" if line.corrected in (None, line.value) else f"{line.corrected:,.6g}"
        table.add_row(line.name, f"{line.value:,.6g}", better, line.what)
    console.print(table)
    console.print(
        ", ".join(f"{name} {value:g}" for name, value in bounds.as_numbers(regime).items()),
        style="dim", highlight=False,
    )  # fmt: skip
    for reason in why:
        console.print(f"vacuous here, because {reason}", highlight=False)
    if not why:
        console.print("not vacuous here", highlight=False)
    for doubt in doubts:
        console.print(f"take the corrected value, because {doubt}", highlight=False)
    both = bounds.smallest_both(regime)
    console.print(
        f"smallest T with tau < T: {horizon:,}; with T = {longer.horizon:,}, the smallest "
        f"N >= N_0: {tasks:.4g} (tau grows with N; both hold from T = {both[0]:,}, "
        f"N = {both[1]:.4g})",
        highlight=False,
    )
    return 0
