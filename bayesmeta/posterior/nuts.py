"""NUTS by nutpie, from a target's log-density to draws of the model's variables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bayesmeta.checks import Array
from bayesmeta.posterior.target import Target
from bayesmeta.posterior.whitening import Frame
from bayesmeta.runner.signals import never_lost

if TYPE_CHECKING:
    import xarray as xr


APART = 2.5
"""Chains start within this many standard deviations of the mode, 1.4 times as far as draws lie."""

MANY = 40
"""Entries of a point from which on trajectories are those of a standard normal, where there is a
frame: these need half as many steps at d = 20, and with few entries they only cost draws."""


class Drawn(NamedTuple):
    """Unconstrained points (chains, draws, size), and nutpie's statistics of them."""

    points: Array
    stats: xr.Dataset


def draw_points(
    target: Target,
    frame: Frame | None,
    count: Callable[[int], None] = lambda done: None,
    *,
    chains: int,
    draws: int,
    **options: Any,
) -> Drawn:
    """All draws, or an exception that says what happened; ``count`` is told how many
    there are, now and then.

    In the coordinates of a frame, chains start from points that are further apart than draws are;
    without one, where the prior is.
    """
    import nutpie

    from bayesmeta.posterior.nutpie_model import DEPTH, model_for_nutpie

    size = target.size
    centre, jitter = target.start()

    def begin(seed: int) -> Array:
        way = np.random.default_rng(seed).uniform(-1, 1, size)
        return centre + jitter * way if frame is None else APART * way

    def count_all(progress: list[Any]) -> None:
        count(sum(chain.finished_draws for chain in progress))

    normal = frame is not None and size >= MANY
    function, data = target.compiled.value_and_gradient, target.data(frame)
    made = model_for_nutpie(function, data, size, begin, normal)
    try:
        # chains share the cores; threads of BLAS beside them only wait for each other
        with no_advice(), never_lost(), threadpool_limits(1):
            tree: xr.DataTree = nutpie.sample(
                made,
                chains=chains,
                draws=draws,
                save_warmup=False,
                progress_bar=False,
                progress_callback=count_all,
                **options,
            )
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's, which is no Exception
            raise
        raise RuntimeError(
            f"nutpie broke down ({one_line(error)}); another random_seed, model or "
            "nuts_sampler='pymc' may do"
        ) from error
    if not complete(tree, "point", chains, draws):
        raise KeyboardInterrupt
    points = tree["posterior"]["point"].transpose("chain", "draw", ...).values
    if frame is not None:
        points = frame.points(points)
    stats = tree["sample_stats"].to_dataset()
    if normal:  # nutpie says so of trajectories that have their length, too
        stats["maxdepth_reached"] = stats["depth"] >= DEPTH
    return Drawn(points, stats)


def complete(tree: xr.DataTree, name: str, chains: int, draws: int) -> bool:
    """Whether all draws are there: interrupted samplers hand out what they have. PyMC drops chains
    and cuts the others, nutpie fills up with NaN."""
    if "posterior" not in tree.children or name not in tree["posterior"]:
        return False
    values = tree["posterior"].to_dataset()[name]
    if (values.sizes["chain"], values.sizes["draw"]) != (chains, draws):
        return False
    return not bool(values.isel(draw=-1).isnull().any())


@contextmanager
def no_advice() -> Iterator[None]:
    """Silence ArviZ's guess that few draws are many chains; ``check_draws`` reports few draws."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found chain dimension to be longer", UserWarning)
        yield


def one_line(error: BaseException) -> str:
    """The words of an exception, shortened."""
    return " ".join(str(error).split())[:200]
