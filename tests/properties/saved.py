"""Players written to files and read again: the same bits, and damaged files refused."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import bayesmeta as bm
from tests.properties.play import Played, played, row
from tests.properties.rule import ask, holds_for
from tests.strategies import often


class Saved(NamedTuple):
    """A player, the call before which it is saved, and what happens to the file."""

    case: Played
    stop: int
    damage: str
    place: float
    """in the file, from 0 to 1"""


@st.composite
def saved(draw: st.DrawFn) -> Saved:
    damages = ["cut", "byte", "part", "format", "title", "NaN", "list", "empty", "infinite"]
    return Saved(
        draw(played(most=1)),
        draw(st.integers(0, 60)),
        draw(often(st.just(""), st.sampled_from(damages), of=4)),
        draw(st.floats(0, 1, exclude_max=True)),
    )


def calls(case: Played) -> list[str]:
    """What happens to a player, in order."""
    task = ["start", *["ask", "tell"] * case.horizon, "end"]
    return task * case.tasks


def do(player: bm.Player, call: str, rng: np.random.Generator, case: Played) -> Any:
    """One call; what it answers."""
    if call == "start":
        found = player.start_task()
        return found.prior.mean, found.prior.cov, found.status
    if call == "ask":
        if case.actions.kind == "ball":
            return player.ask()
        size = max(case.actions.count, 1)
        return player.ask(rng.standard_normal((size, case.actions.dim)) * case.stretch)
    if call == "tell":
        return player.tell(float(rng.standard_normal()) * case.scale)
    return player.end_task()


def damaged(content: bytes, how: str, place: float) -> bytes:
    """A file that is no player any more."""
    at = int(place * len(content))
    if how == "cut":
        return content[:at]
    if how == "byte":
        return content[:at] + b"\xff" + content[at:]
    found = json.loads(content)
    name = list(found)[int(place * len(found))]
    if how == "part":
        del found[name]
    elif how in ("format", "title"):
        found[how] = [2, None, "1", 1.5][int(place * 4)]
    elif how in ("NaN", "infinite"):
        found["tasks_seen"] = float(how[:3])
    else:
        found = [found] if how == "list" else {}
    return json.dumps(found).encode()


@holds_for(saved(), weight=4, examples=15)
def a_saved_player_goes_on_to_the_same_bits(saved: Saved) -> None:
    """Saved before any call, at any scale, and loaded: its answers are those of the player that
    was not; damaged files are refused."""
    case, order = saved.case, calls(saved.case)
    setting = case.restated().setting(case.tasks)
    player = ask(lambda: bm.Player(row(case.agents[0]), setting, random_seed=case.seed))
    stop = saved.stop % len(order)
    rng = np.random.default_rng(case.seed)
    for call in order[:stop]:
        ask(do, player, call, rng, case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "player.json"
        player.save(path)
        if saved.damage:
            path.write_bytes(damaged(path.read_bytes(), saved.damage, saved.place))
        other = ask(bm.Player.load, path)
    assert not saved.damage, f"loaded a file with damage: {saved.damage}"
    again = np.random.default_rng(case.seed)
    again.bit_generator.state = rng.bit_generator.state
    for call in order[stop:]:
        one, two = ask(do, player, call, rng, case), do(other, call, again, case)
        for mine, own in zip(
            *(x if isinstance(x, tuple) else (x,) for x in (one, two)), strict=True
        ):
            assert np.array_equal(mine, own), (call, one, two)
    assert player.tasks_seen == other.tasks_seen == case.tasks
