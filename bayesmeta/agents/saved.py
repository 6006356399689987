"""A player's state in a file of text, JSON: safe to load, whoever wrote it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from bayesmeta.agents.centre import CentreMemory
from bayesmeta.agents.commit import ArmSums, Committed
from bayesmeta.agents.decorrelated import Decorrelations
from bayesmeta.agents.encoding import Parts, check_gram, decode, encode, number
from bayesmeta.agents.hyper import HyperMemory
from bayesmeta.agents.learners import Draws, History, MomentMemory
from bayesmeta.checks import InputError, array, of_type, whole
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.runner.files import write_atomically

FORMAT = 1
"""Goes up when files change so that older code cannot read them."""
_TITLE = "bayesmeta player"
_NAMES = (
    "tasks_seen",
    "_memory",
    "_warmup_memory",
    "_estimate",
    "_policy",
    "_in_task",
    "_step",
    "_opening_steps",
    "_energy",
    "_opening_energy",
    "_opening",
    "_action",
)
"""What a player remembers besides its arrays and its streams."""
_STREAMS = ("_rng", "_learner_rng")
_WRONG = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError)
"""What reading a damaged file may raise, InputError among them."""


def write(player: Any, path: Path | str) -> None:
    """Write a player, whole or not at all."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path must be that of a file, got {path!r:.80}")
    values = _arrays(player)
    if player._estimate is None:  # nothing has been written there
        values = [np.zeros_like(value) for value in values]
    parts = {"agent": player.agent, "setting": player.setting, "arrays": values}
    parts |= {name: getattr(player, name) for name in _names(player)}
    parts |= {name: getattr(player, name).bit_generator.state for name in _STREAMS}
    content = {"title": _TITLE, "format": FORMAT} | {k: encode(v) for k, v in parts.items()}
    text = json.dumps(content, allow_nan=False, indent=1)
    write_atomically(path, lambda to: to.write_text(text, encoding="utf-8"))


def read[P](kind: type[P], path: Path | str) -> P:
    """The player of class ``kind`` in a file; whatever is wrong with the file is an InputError."""
    try:
        made: P = _made(kind, _content(Path(path).read_bytes()))
        return made
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror or error})") from None
    except (*_WRONG, MemoryError) as error:
        raise InputError(
            f"{path} is not a player that can be loaded ({str(error)[:200]})"
        ) from None


def _content(text: bytes) -> Parts:
    """The parts of a player."""
    content = json.loads(text, parse_constant=_no_number)
    if not isinstance(content, dict) or content.pop("title", None) != _TITLE:
        raise InputError("it holds something else")
    found = content.pop("format", None)
    if found != FORMAT:
        raise InputError(f"its format is {found!r:.20}, this version of bayesmeta reads {FORMAT}")
    return {name: decode(value) for name, value in content.items()}


def _no_number(text: str) -> float:
    raise InputError(f"{text} is no number of a player")


def _made(kind: type[Any], parts: Parts) -> Any:
    """A player of these parts, each checked."""
    _check_names(parts, {"agent", "setting", "arrays", *_NAMES, *_STREAMS}, "_told")
    player = kind(parts["agent"], parts["setting"])
    _check_names(parts, {"agent", "setting", "arrays", *_names(player), *_STREAMS})
    for values, found in zip(_arrays(player), parts["arrays"], strict=True):
        values[:] = array("state", found, values.shape)
    belief, *sums = player._state
    if np.tril(belief.root, -1).any():
        raise InputError("the root of its belief is not triangular")
    for part in sums:
        check_gram(part.gram)
    for name in _STREAMS:
        getattr(player, name).bit_generator.state = parts[name]
    for name in ("_memory", "_warmup_memory"):
        if _likeness(parts[name]) != _likeness(getattr(player, name)):
            raise InputError("its memory is not one of its learner")
    _check_progress(player, parts)
    player.__dict__.update({name: parts[name] for name in _names(player)})
    if player._traced:
        d = player.setting.dim
        steps = [
            (array("action", a, (d,)), float(number("reward", x, signed=True)))
            for a, x in parts["_told"]
        ]
        if len(steps) != player._step:
            raise InputError("its steps are not as many as it says")
        player._told = steps
    return player


def _names(player: Any) -> tuple[str, ...]:
    """What a player remembers; with every step of its task where its learner needs them."""
    return (*_NAMES, "_told") if player._traced else _NAMES


def _check_names(parts: Parts, wanted: set[str], perhaps: str = "") -> None:
    """Refuse parts that are missing or unknown."""
    wrong = (wanted ^ set(parts)) - {perhaps}
    if wrong:
        name = min(wrong)
        raise InputError(f"{name!r:.40} is {'missing' if name in wanted else 'unknown'}")


def _arrays(player: Any) -> list[Any]:
    """Belief, sums and opening sums, which the kernels write to."""
    belief, sums, opening = player._state
    return [*belief[:2], *sums, *opening]


def _likeness(memory: Any) -> tuple[Any, ...]:
    """What two memories of one learner have in common: class, dimension, constants."""
    kind = type(memory)
    if isinstance(memory, tuple) and kind is tuple:
        return (kind, *(_likeness(one) for one in memory))
    if isinstance(memory, PriorEstimate):
        return kind, memory.prior.dim
    if isinstance(memory, MomentMemory):
        return kind, memory.state.mean.shape, memory.constant
    if isinstance(memory, Committed):
        return kind, _likeness(memory.memory)
    if isinstance(memory, Decorrelations):
        shapes = (np.shape(part) for part in (*memory.state, *memory.ridges))
        return kind, memory.logs, *shapes
    if isinstance(memory, CentreMemory):
        return kind, memory.ridge, *(np.shape(part) for part in memory.state)
    if isinstance(memory, ArmSums):
        return kind, memory.variance, *(np.shape(part) for part in memory[:-1])
    if isinstance(memory, HyperMemory):
        return kind, memory.told.variance, *(part.tobytes() for part in memory.told[1:])
    if isinstance(memory, History):
        return kind, memory.moment.shape[1]
    return (kind, memory.history.moment.shape[1]) if isinstance(memory, Draws) else (kind,)


def _check_progress(player: Any, parts: Parts) -> None:
    """Where in its tasks a player is."""
    agent, setting = player.agent, player.setting
    for name in ("tasks_seen", "_step", "_opening_steps"):
        whole(name, parts[name])
    for name in ("_energy", "_opening_energy"):
        number(name, parts[name])
    for name in ("_in_task", "_opening"):
        of_type(name, parts[name], bool, "")
    if not parts["_opening_steps"] <= parts["_step"] <= setting.horizon:
        raise InputError("its step lies beyond the horizon")
    if parts["_policy"] not in (agent.policy, agent.warmup_policy):
        raise InputError("its policy is not one of its agent")
    if parts["_action"] is not None:
        array("action", parts["_action"], (setting.dim,))
    estimate = parts["_estimate"]
    if estimate is not None:
        if of_type("estimate", estimate, PriorEstimate, "").prior.dim != setting.dim:
            raise InputError("its prior has another dimension than its setting")
    elif parts["_in_task"] or parts["tasks_seen"]:
        raise InputError("it has no prior, but tasks")
