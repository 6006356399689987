"""Grids, studies in memory and their collection, against plain loops."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from hypothesis import strategies as st

import bayesmeta as bm
from bayesmeta.streams import cell_seed
from tests.properties.rule import ask, holds_for
from tests.strategies import PLAIN, often, reals, texts


class Axes(NamedTuple):
    """Arguments of grid."""

    axes: dict[str, Any]
    dims: Any
    seed: Any


@st.composite
def axes(draw: st.DrawFn) -> Axes:
    names = draw(
        st.lists(st.sampled_from(["n", "dim", "agent"]), min_size=1, max_size=2, unique=True)
    )
    kinds = [
        st.integers(-3, 9),
        st.integers(-3, 9),
        reals(),
        PLAIN,
        texts(),
        st.integers(0, 3).map(np.int64),
        st.one_of(st.integers(0, 3), PLAIN),
        st.sampled_from([1, 1.0, True, np.float64(1), "1", "n=1", None]),
    ]
    found: dict[str, Any] = {}
    for name in names:
        values = draw(st.lists(draw(st.sampled_from(kinds)), min_size=1, max_size=3))
        found[name] = draw(often(st.just(values), st.sampled_from(["ab", [], [[1]]]), of=12))
    dims = draw(
        often(st.just(tuple(names)), st.sampled_from([(), "n", ("n", "n"), ("cell",)]), of=6)
    )
    return Axes(
        found, dims, draw(often(st.integers(0, 2**40), st.sampled_from([-1, 1.5, "a"]), 10))
    )


def cell(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Its seed, and what its settings say."""
    return xr.Dataset({"seed": seed % 2**40, "said": str(sorted(settings.items()))})


@holds_for(axes(), weight=2, examples=15)
def studies_are_plain_loops(case: Axes) -> None:
    """Every cell once, in its place, with the seed of its id."""
    cells = ask(bm.grid, **case.axes)
    points = list(product(*case.axes.values()))
    assert len(cells) == len(points) == len({repr(point) for point in points})
    for settings, point in zip(cells.values(), points, strict=True):
        assert list(settings.values()) == list(point)
    study = ask(bm.Study, "fuzz", cells, cell, random_seed=case.seed, dims=case.dims)
    report = ask(bm.run_study, study, jobs=1)
    assert report.complete and not report.failures
    found = ask(bm.collect, study, report)
    for name, settings in cells.items():
        place = {dim: settings[dim] for dim in study.dims} or {"cell": name}
        try:
            here = found.sel(place)
        except KeyError:
            raise AssertionError(f"{place} is not in {found.coords}") from None
        assert int(here.seed) == cell_seed(case.seed, name) % 2**40, name
        assert str(here.said.values) == str(sorted(_as_json(settings).items()))


def _as_json(settings: dict[str, Any]) -> dict[str, Any]:
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in settings.items()}
