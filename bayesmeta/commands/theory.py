"""``bayesmeta theory``: the constants of the paper, and whether they promise anything."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bayesmeta.checks import real, whole
from bayesmeta.commands.parsing import plain

if TYPE_CHECKING:
    from bayesmeta.commands.parsing import Subparsers
    from bayesmeta.theory.bounds import Line, Promise
    from bayesmeta.theory.regime import Regime


def _integer(text: str) -> int:
    """A whole number, also as 1e6."""
    from decimal import Decimal

    try:
        return plain(int, text)
    except ValueError:
        pass
    try:
        if plain(float, text).is_integer():
            return int(Decimal(text))
    except (ValueError, ArithmeticError):
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")


_OPTIONS: dict[str, tuple[Callable[[str], Any], str]] = {
    "dim": (_integer, "d (5)"),
    "tasks": (_integer, "N (10000)"),
    "horizon": (_integer, "T (200)"),
    "noise_sd": (float, "sigma (1)"),
    "radius": (float, "a: actions have norm at most this (0.25)"),
    "action_min": (float, "lower bound of lambda_min(Sigma_A) (default: of the uniform ball)"),
    "prior_min": (float, "lower bound of the eigenvalues of Sigma_* (0.2)"),
    "prior_max": (float, "upper bound of the eigenvalues of Sigma_* (0.2 + 0.8 d)"),
    "mean_norm": (float, "m: bound on |mu_*| (2 sqrt(d))"),
}


def add(commands: Subparsers) -> None:
    """Add the command."""
    theory = commands.add_parser(
        "theory",
        help="the constants of the theorems, and whether they say anything",
        description="Print tau, c_w, M, k_1, k_2, N_0 and the rest in a regime (default: the "
        "paper's experiment), as printed and corrected; say whether the conditions of the theorems "
        "hold, whether Theorem 2 then says anything, and from which T and N on.",
    )
    for name, (kind, text) in _OPTIONS.items():
        theory.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="X", help=text)
    theory.add_argument(
        "--delta",
        type=float,
        metavar="X",
        help="delta of Theorem 1, between 0 and 1 (1/N); Theorem 2 has 1/N",
    )
    theory.add_argument(
        "--actions", type=_integer, default=20, metavar="X", help="actions on offer (20)"
    )
    theory.add_argument("--json", action="store_true", help="print JSON instead of a table")
    theory.set_defaults(command=_theory)


def _regime(options: argparse.Namespace) -> Regime:
    """The paper's regime with the numbers given in place of its own."""
    from bayesmeta.theory import bounds
    from bayesmeta.theory.regime import check_regime

    given: dict[str, Any] = {
        name: value for name in _OPTIONS if (value := getattr(options, name)) is not None
    }
    for name, value in given.items():
        shown = f"--{name.replace('_', '-')}"
        if _OPTIONS[name][0] is _integer:
            whole(shown, value, least=2 if name == "tasks" else 1)
        elif name == "mean_norm":
            real(shown, value, least=0.0)
        else:
            real(shown, value, above=0.0)
    start = {name: given[name] for name in ("dim", "tasks", "radius") if name in given}
    return check_regime(bounds.paper_regime(**start).changed(**given))


def _theory(options: argparse.Namespace) -> int:
    from bayesmeta.theory import bounds
    from bayesmeta.theory.theorems import check_delta

    actions = whole("--actions", options.actions, least=1)
    delta = None if options.delta is None else check_delta(options.delta, "--delta")
    regime = _regime(options)
    lines = bounds.describe_theory(regime, actions, delta)
    doubts = bounds.doubtful(regime, actions)
    horizon = bounds.smallest_horizon(regime)
    printed, corrected = (bounds.promise(regime, better, delta) for better in (False, True))
    used = 1 / regime.tasks if delta is None else delta
    if options.json:
        print(
            json.dumps(
                {
                    "regime": regime.numbers(),
                    "delta": used,
                    "constants": {line.name: line.value for line in lines},
                    "corrected": {
                        one.name: one.corrected for one in lines if one.corrected is not None
                    },
                    "sharper": [line.name for line in lines if line.sharper],
                    "doubtful": doubts,
                    "smallest_horizon": horizon,
                    **_as_data(printed, ""),
                    **_as_data(corrected, "_corrected"),
                },
                indent=2,
                allow_nan=False,
            )
        )
        return 0
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console()
    console.print(_table(lines))
    numbers = {**regime.numbers(), "delta": used}
    console.print(
        ", ".join(f"{name} {x:g}" for name, x in numbers.items()), style="dim", highlight=False
    )
    said = _told(regime, horizon, printed, "printed")
    if corrected != printed:
        said += _told(regime, horizon, corrected, "corrected")
    else:
        said.append("with the corrected constants: the same")
    said += [f"take the corrected value, because {doubt}" for doubt in doubts]
    for text in said:
        indent = len(text) - len(text.lstrip())
        console.print(Padding(Text(text.lstrip()), (0, 0, 0, indent), expand=False))
    return 0


def _as_data(promise: Promise, suffix: str) -> dict[str, Any]:
    """For JSON; keys of the corrected constants end in ``suffix``."""

    def pair(values: tuple[int, int]) -> dict[str, int]:
        return {"horizon": values[0], "tasks": values[1]}

    return {
        f"vacuous{suffix}": promise.vacuous,
        f"smallest_tasks{suffix}": promise.tasks,
        f"both{suffix}": pair(promise.both),
        f"informative{suffix}": promise.informative,
        f"informative_from{suffix}": pair(promise.informative_from),
    }


def _told(regime: Regime, horizon: int, promise: Promise, which: str) -> list[str]:
    """What the theorems promise with the printed or the corrected constants, in words."""
    from bayesmeta.theory.bounds import count

    said = [f"vacuous here, because {reason}" for reason in promise.vacuous]
    if not said:
        side, sign = ("below", "<") if promise.informative else ("not below", ">=")
        said = [
            "the conditions of the theorems hold here",
            f"Theorem 2's bound is {side} the trivial one, N R_sing without any learning: "
            f"k_2 sqrt(N) + N_0 {sign} N",
        ]
    both, telling = (
        f"T = {count(steps)}, N = {count(tasks)}"
        for steps, tasks in (promise.both, promise.informative_from)
    )
    said += [
        f"smallest T with tau < T: {count(horizon)}; with T = "
        f"{count(max(horizon, regime.horizon))}, the smallest N >= N_0: {count(promise.tasks)}",
        f"tau grows with N: with delta = 1/N the conditions hold first at {both}; Theorem 2's "
        f"bound is below the trivial one first at {telling}",
    ]
    return [f"with the {which} constants:", *(f"  {text}" for text in said)]


def _table(lines: list[Line]) -> Any:
    """Printed and corrected, side by side."""
    from rich import box
    from rich.table import Table

    table = Table(
        title="The constants of the theory",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption="corrected: blank where it is the same as printed; * sharper: what is printed "
        "holds, too, but less will do",
        caption_justify="left",
    )
    for column in ("", "printed", "corrected", "what it is"):
        table.add_column(column, justify="left" if column in ("", "what it is") else "right")
    for line in lines:
        better = "" if line.corrected in (None, line.value) else f"{line.corrected:,.6g}"
        table.add_row(line.name, f"{line.value:,.6g}", better + "*" * line.sharper, line.what)
    return table
