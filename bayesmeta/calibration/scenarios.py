"""Several worlds side by side: ways in which data come about, and ways in which the model is wrong.

What is given as a list or a dict becomes a dimension of the result, ``data`` or ``wrong``; all
worlds of a replication have the same seed, and each is what it would be alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesmeta.agents.agent import Agent
from bayesmeta.calibration.worlds import Redrawn, World, world_of
from bayesmeta.calibration.wrong import NOTHING, WRONG, Wrong
from bayesmeta.checks import InputError, one_of

if TYPE_CHECKING:
    import xarray as xr

DATA, HOW_WRONG = "data", "wrong"
AXES = (DATA, HOW_WRONG)
"""Dimensions that a lab may have beside tasks and replications."""


type Variables = dict[str, tuple[tuple[str, ...], NDArray[Any]]]
"""Name -> dimensions and values."""


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Worlds in the order of ``axes``, the last of which runs fastest."""

    axes: dict[str, list[str]]
    """name of a dimension -> its labels; none where there is one world"""
    worlds: list[World]

    @property
    def first(self) -> World:
        """All have the same truth."""
        return self.worlds[0]

    def stacked(self, parts: list[Variables]) -> Variables:
        """The variables of all worlds, with the axes as leading dimensions."""
        lengths = [len(labels) for labels in self.axes.values()]
        found: Variables = {}
        for name, (dims, values) in parts[0].items():
            every = np.array([part[name][1] for part in parts])
            found[name] = (*self.axes, *dims), every.reshape((*lengths, *values.shape))
        return found


def scenarios_of(
    where: object,
    explore: object,
    wrong: object,
    truth: object,
    noise_sd: float | str,
    halved: bool,
) -> Scenarios:
    """The worlds that arguments of ``calibrate`` describe, checked."""
    ways, errors = _ways(explore), _errors(wrong)
    worlds = []
    for way in ways.values():
        one = world_of(where, way, truth, noise_sd, halved)
        worlds += [_wronged(one, name, how, noise_sd) for name, how in errors.items()]
    axes: dict[str, list[str]] = {}
    if isinstance(explore, (Mapping, list, tuple)):
        axes[DATA] = list(ways)
    if wrong is not None and not isinstance(wrong, str):
        axes[HOW_WRONG] = list(errors)
    return Scenarios(axes, worlds)


def _ways(explore: object) -> dict[str, object]:
    """Ways in which data come about, by their names."""
    if isinstance(explore, Mapping):
        found = {str(name): one for name, one in explore.items()}
    elif isinstance(explore, (list, tuple)):
        found = {_called(one): one for one in explore}
        if len(found) < len(explore):
            raise InputError("explore has one way twice; give a dict of names and ways")
    else:
        found = {"": explore}
    if not found:
        raise InputError("explore is empty; give a way in which data come about, or several")
    return found


def _called(way: object) -> str:
    if way is None:
        return "all steps explore"
    return way.name if isinstance(way, Agent) else str(way)


def _errors(wrong: object) -> dict[str, Wrong]:
    """What is wrong, by name."""
    if wrong is None:
        wrong = NOTHING
    if not isinstance(wrong, Iterable):
        raise InputError(f"wrong must be a name or several, got {wrong!r:.80}")
    names = [wrong] if isinstance(wrong, str) else list(wrong)
    if not names:
        raise InputError(f"wrong is empty; name what is wrong, or {NOTHING!r}")
    found = {one_of("wrong", name, tuple(WRONG)): WRONG[name] for name in names}
    if len(found) < len(names):
        raise InputError("wrong has a name twice")
    return found


def _wronged(world: World, name: str, wrong: Wrong, noise_sd: float | str) -> World:
    if isinstance(world, Redrawn) and wrong.noise == "heavy-tailed":
        raise InputError(
            f"wrong={name!r} is about the rows of tasks, of which a table has kept the sums only; "
            "it is for a TaskFamily. 'unequal noise' is for tables, too"
        )
    if wrong.told != 1 and noise_sd != "known":
        raise InputError(f"wrong={name!r} needs noise_sd='known', got {noise_sd!r}")
    return replace(world, wrong=wrong)


def each_world(found: xr.Dataset) -> list[tuple[dict[str, str], xr.Dataset]]:
    """A lab, or its measures, world by world: labels of the dimensions there are, and the part."""
    parts: list[tuple[dict[str, str], xr.Dataset]] = [({}, found)]
    for axis in AXES:
        if axis in found.dims:
            labels = [str(label) for label in found[axis].values]
            parts = [
                (at | {axis: label}, one.sel({axis: label}))
                for at, one in parts
                for label in labels
            ]
    return parts


def one_world(found: xr.Dataset) -> xr.Dataset:
    """A lab, or its measures, that has one world only; refused otherwise."""
    for axis in AXES:
        if axis in found.dims:
            first = str(found[axis].values[0])
            raise InputError(
                f"there are several worlds by {axis!r}; choose one, as in lab.sel({axis}={first!r})"
            )
    return found
