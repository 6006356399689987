"""How draws are made, each way ending in the same tree: by importance weights, nutpie, or PyMC."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from bayesmeta.checks import Advice, Array, InputError
from bayesmeta.posterior.model import Problem, coords_of, model_of
from bayesmeta.posterior.nuts import complete, draw_points, no_advice, one_line
from bayesmeta.posterior.target import VARIABLES, Target, has_frame
from bayesmeta.posterior.tree import labelled
from bayesmeta.posterior.whitening import find_frame
from bayesmeta.runner.plain import without_nan
from bayesmeta.runner.progress import progress_bar, waiting
from bayesmeta.runner.signals import never_lost

if TYPE_CHECKING:
    import xarray as xr

    from bayesmeta.posterior.laplace import Weights

LEAST = 1000
"""Draws of all chains from which on "auto" tries "laplace"; of fewer the tail says little."""
ACCEPT = 0.8
"""``target_accept`` where none is asked for."""
TUNE, TUNE_WHITENED = 500, 100
"""Tuning draws of a chain, and those of one that moves in coordinates of ``find_frame``."""


def suits_laplace(problem: Problem, nuts_sampler: str, settings: dict[str, Any]) -> bool:
    """Whether nothing was asked for that is NUTS's alone, and there are draws enough to weigh."""
    enough = settings["chains"] > 1 and settings["chains"] * settings["draws"] >= LEAST
    tuned = settings["tune"] is not None or settings["target_accept"] != ACCEPT
    return problem.kind == "fused" and nuts_sampler == "nutpie" and not tuned and enough


def by_laplace(
    problem: Problem, settings: dict[str, Any], keep: bool
) -> tuple[xr.DataTree | None, dict[str, float]]:
    """Draws as a tree, if they are good or to be kept all the same, and what the weights were, or
    how far ``apart`` tasks are where they are too close."""
    from bayesmeta.posterior.laplace import draw_laplace, too_close

    close = None if keep else too_close(problem)
    if close is not None:
        return None, {"apart": close}
    chains, draws = settings["chains"], settings["draws"]
    seed, cores = settings["random_seed"], settings["cores"]
    found = draw_laplace(problem, chains * draws, seed, cores, pilot=not keep)
    if found is None:
        if keep:
            raise InputError(
                Advice("no mode was found to draw about; set {method} to nuts or auto")
            )
        return None, {}
    weights = without_nan(found.weights._asdict())
    if not (found.weights.good or keep):
        return None, weights
    return _as_tree(problem, found.draws, chains, draws, _weight_stats(found.weights)), weights


def _weight_stats(weights: Weights) -> xr.Dataset:
    """What ``sample_stats`` hold of draws that have weights instead of trajectories."""
    import xarray as xr

    return xr.Dataset(weights._asdict())


def by_nuts(
    problem: Problem, nuts_sampler: str, settings: dict[str, Any], progressbar: bool
) -> xr.DataTree:
    """Draw; where no chain can start, say what may be the reason."""
    run = _with_nutpie if nuts_sampler == "nutpie" else _with_pymc
    try:
        return run(problem, settings, progressbar)
    except RuntimeError as error:  # nutpie's, from deep inside
        if "initial" not in str(error).lower():
            raise
        raise InputError(
            Advice(
                "no chain could start ({reason}); give a prior in the units of the data ({prior}), "
                "or look for features that nearly make up others",
                reason=one_line(error),
            )
        ) from error


def _with_nutpie(problem: Problem, settings: dict[str, Any], progressbar: bool) -> xr.DataTree:
    """Draw with nutpie; the bar counts the draws of all chains."""
    with waiting("compiling the model, once for its kind") if progressbar else nullcontext():
        target = Target(problem)
        frame = find_frame(target) if has_frame(problem) else None
    if settings["tune"] is None:
        settings["tune"] = TUNE if frame is None else TUNE_WHITENED
    total = settings["chains"] * (settings["draws"] + settings["tune"])
    rest = {name: value for name, value in settings.items() if name != "random_seed"}
    with _bar(progressbar, total) as show:
        found = draw_points(target, frame, show, seed=settings["random_seed"], **rest)
        show(total)
    chains, draws, size = found.points.shape
    values = target.constrained(found.points.reshape(-1, size))
    return _as_tree(problem, values, chains, draws, found.stats)


def _as_tree(
    problem: Problem, values: dict[str, Array], chains: int, draws: int, stats: xr.Dataset
) -> xr.DataTree:
    """Draws of the model's variables with their labels, and the sampler's statistics."""
    import xarray as xr

    groups = {"posterior": labelled(problem, values, chains, draws), "sample_stats": stats}
    return xr.DataTree.from_dict(groups)


def _bar(progressbar: bool, total: int) -> AbstractContextManager[Callable[[float], None]]:
    if not progressbar:
        return nullcontext(lambda now: None)
    return progress_bar("drawing", "draws", total, 0)


def _with_pymc(problem: Problem, settings: dict[str, Any], progressbar: bool) -> xr.DataTree:
    """Draw with PyMC's own NUTS, which compiles the model on every call."""
    import pymc as pm
    import xarray as xr

    if settings["tune"] is None:
        settings["tune"] = TUNE
    try:
        with model_of(problem), no_advice(), never_lost(), threadpool_limits(1):
            tree = pm.sample(
                nuts_sampler="pymc",
                progressbar=progressbar,
                compute_convergence_checks=False,
                **settings,
            )
    except ValueError as error:
        if "Not enough samples to build a trace" not in str(error):
            raise
        raise KeyboardInterrupt from error  # while tuning
    if not complete(tree, "mu", settings["chains"], settings["draws"]):
        raise KeyboardInterrupt
    posterior = tree["posterior"].to_dataset()
    kept = posterior[[name for name in VARIABLES if name in posterior and posterior[name].size]]
    labels = {dim: names for dim, names in coords_of(problem).items() if dim in kept.dims}
    return xr.DataTree.from_dict(
        {
            "posterior": kept.assign_coords(labels),
            "sample_stats": tree["sample_stats"].to_dataset(),
        }
    )
