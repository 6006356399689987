"""``bayesmeta agents``: the roster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesmeta.commands.parsing import Subparsers


def add(commands: Subparsers) -> None:
    """Add the command."""
    agents = commands.add_parser("agents", help="list the roster of agents")
    agents.set_defaults(command=_agents)


def _agents(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from bayesmeta.agents.roster import BAYESIAN, FIGURE_1, OURS, ROSTER

    table = Table(title="The roster")
    for column in ("name", "policy", "in Figure 1", "measured against", "what it is"):
        table.add_column(column, no_wrap=column == "name")
    for name, row in ROSTER.items():
        policy = row.policy.scheme.name.replace("_", "-").lower()
        drawn = "yes" if name in FIGURE_1 else "ours" if name in (*OURS, *BAYESIAN) else ""
        table.add_row(name, policy, drawn, row.reference, row.note)
    Console().print(table)
    return 0
