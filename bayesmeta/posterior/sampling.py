"""Draw from the posterior of (mu, Sigma), and of the noise where it is not known."""

from __future__ import annotations

import itertools
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import Array, InputError, one_of, real, whole
from bayesmeta.posterior.diagnostics import diagnose
from bayesmeta.posterior.model import (
    Problem,
    check_problem,
    coords_of,
    data_of,
    model_of,
    require,
)
from bayesmeta.posterior.predictive import add_prior, add_theta, observed
from bayesmeta.posterior.priors import LKJ, InverseWishart, KnownCovariance, Prior, describe_prior
from bayesmeta.runner.executors import usable_cores
from bayesmeta.runner.progress import progress_bar, waiting
from bayesmeta.runner.provenance import versions
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import xarray as xr

    from bayesmeta.posterior.compiled import Compiled

SAMPLERS = ("nutpie", "pymc")
VARIABLES = ("mu", "Sigma", "sd", "corr", "sigma", "theta")
"""What is kept of the draws."""


class FitWarning(UserWarning):
    """Draws that should not be trusted; ``diagnose`` says why."""


def sample_posterior(
    stats: TaskStatistics,
    noise_sd: float | None = None,
    *,
    prior: Prior | None = None,
    model: str = "fused",
    sampler: str = "nutpie",
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    cores: int | None = None,
    seed: int = 0,
    target_accept: float = 0.8,
    theta: bool = False,
    progress: bool = False,
) -> xr.DataTree:
    """The posterior of the prior N(mu, Sigma) that tasks come from, as an ArviZ DataTree.

    Groups: ``posterior`` (mu, Sigma, sd, corr; sigma where ``noise_sd`` is None; theta if asked
    for), ``sample_stats``, ``observed_data``, ``prior``. Attributes repeat the fit and carry the
    verdict of ``diagnose``; draws that should not be trusted come with a ``FitWarning``.

    ``prior`` None: wide, in the data's own units (``default_prior``). With nutpie, models and data
    of the same kind and dimension are compiled once in a process; PyMC compiles on every call.
    """
    one_of("sampler", sampler, SAMPLERS)
    settings: dict[str, Any] = {
        name: whole(name, value, least=least)
        for name, value, least in (("draws", draws, 1), ("tune", tune, 0), ("chains", chains, 1),
                                   ("seed", seed, 0))
    }  # fmt: skip
    if sampler == "nutpie" and tune == 0:
        raise InputError("tune must be at least 1 with sampler 'nutpie', got 0")
    if seed >= 2**64:
        raise InputError(f"seed must be less than 2**64, got {seed}")
    settings["target_accept"] = real("target_accept", target_accept)
    if not 0 < settings["target_accept"] < 1:
        raise InputError(f"target_accept must be between 0 and 1, got {target_accept}")
    problem = check_problem(stats, noise_sd, prior, model)
    require("pymc", sampler)
    settings["cores"] = (
        min(settings["chains"], usable_cores()) if cores is None else whole("cores", cores, least=1)
    )
    start = time.perf_counter()
    run = _with_nutpie if sampler == "nutpie" else _with_pymc
    try:
        tree = run(problem, settings, progress)
    except RuntimeError as error:  # nutpie's, from deep inside
        if "initial" not in str(error).lower():
            raise
        text = " ".join(str(error).split())[:200]
        raise InputError(
            f"no chain could start ({text}); give a prior in the units of the data, or look for "
            "features that nearly make up others"
        ) from error
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    tree = observed(_relabelled(tree, problem), problem)
    tree = add_prior(tree, problem, rng)
    if theta and "theta" not in tree["posterior"]:
        tree = add_theta(tree, seed)
    elif not theta and "theta" in tree["posterior"]:
        tree["posterior"] = tree["posterior"].to_dataset().drop_vars("theta")
    verdict = diagnose(tree)
    tree.attrs = {
        "model": model,
        "sampler": sampler,
        "settings": json.dumps(settings),
        "noise_sd": "estimated" if problem.noise_sd is None else problem.noise_sd,
        "prior": json.dumps(describe_prior(problem.prior)),
        "versions": json.dumps(versions()),
        "seconds": time.perf_counter() - start,
        "trusted": int(bool(verdict)),
    }
    if not verdict:
        failed = "; ".join(
            f"{check.name} {check.value:.5g} (wanted {check.wanted})"
            for check in verdict
            if not check.passed
        )
        warnings.warn(
            f"these draws should not be trusted: {failed}; print(bm.diagnose(...)) says what to do",
            FitWarning,
            stacklevel=2,
        )
    return tree


def _key(problem: Problem) -> tuple[Any, ...]:
    """What a compiled model depends on."""
    stats, prior = problem.stats, problem.prior
    seen = problem.kind in ("noncentred", "centred")
    return (problem.kind, stats.dim, type(prior), problem.noise_sd is None,
            len(stats) if seen else None)  # fmt: skip


_COMPILED: dict[tuple[Any, ...], Compiled] = {}


def compiled(problem: Problem) -> Compiled:
    """The compiled model of a problem; made once for all problems of its kind."""
    from bayesmeta.posterior.compiled import compile_model

    key = _key(problem)
    if key not in _COMPILED:
        _COMPILED[key] = compile_model(model_of(problem), VARIABLES)
    return _COMPILED[key]


def _for_nutpie(
    problem: Problem, start: Array, jitter: Array, count: Callable[[], None], points: bool = False
) -> Any:
    """The compiled model with its data, as nutpie takes it; with ``points`` it also keeps the
    unconstrained points."""
    from nutpie.compiled_pyfunc import from_pyfunc

    ready, data = compiled(problem), data_of(problem)
    names, shapes = list(ready.names), list(ready.shapes)
    if points:
        names, shapes = [*names, "point"], [*shapes, (ready.size,)]

    def make_density() -> Callable[..., tuple[float, Array]]:
        return lambda point: ready.log_density(point, data)

    def make_expand(*seeds: int) -> Callable[..., dict[str, Array]]:
        def expand(point: Array) -> dict[str, Array]:
            count()
            values = ready.constrained(point, data)
            return values | {"point": point} if points else values

        return expand

    def begin(seed: int) -> Array:
        return start + jitter * np.random.default_rng(seed).uniform(-1, 1, ready.size)

    return from_pyfunc(
        ready.size, make_density, make_expand, [np.dtype("float64")] * len(names), shapes, names,
        coords={name: [str(label) for label in labels]  # nutpie takes text
                for name, labels in coords_of(problem).items()},
        dims=dict(ready.dims), make_initial_point_fn=begin,
    )  # fmt: skip


def _run_nutpie(made: Any, chains: int, draws: int, **options: Any) -> xr.DataTree:
    """All draws, or an exception that says what happened."""
    import nutpie

    try:
        with _no_advice():
            tree: xr.DataTree = nutpie.sample(
                made, chains=chains, draws=draws, save_warmup=False, progress_bar=False, **options
            )
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's, which is no Exception
            raise
        text = " ".join(str(error).split())[:200]
        raise RuntimeError(
            f"nutpie broke down ({text}); another seed, model or sampler='pymc' may do"
        ) from error
    if not _complete(tree, chains, draws):
        raise KeyboardInterrupt
    return tree


def _complete(tree: xr.DataTree, chains: int, draws: int) -> bool:
    """Whether all draws are there: interrupted samplers hand out what they have. PyMC drops chains
    and cuts the others, nutpie fills up with NaN."""
    if "posterior" not in tree.children or "mu" not in tree["posterior"]:
        return False
    mu = tree["posterior"].to_dataset()["mu"]
    if (mu.sizes["chain"], mu.sizes["draw"]) != (chains, draws):
        return False
    return not bool(mu.isel(draw=-1).isnull().any())


@contextmanager
def _no_advice() -> Iterator[None]:
    """Without ArviZ's guess that few draws are many chains: ``diagnose`` says that they are few."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found chain dimension to be longer", UserWarning)
        yield


class Chain(NamedTuple):
    """Draws by name, the unconstrained point where they ended, and how many diverged."""

    draws: dict[str, Array]
    last: Array
    divergent: int

    @property
    def stuck(self) -> bool:
        """Whether an entry of mu never moved."""
        return bool((np.ptp(self.draws["mu"], axis=0) == 0).any())


def draw_chain(
    problem: Problem, *, draws: int, tune: int, seed: int, start: Array | None = None
) -> Chain:
    """One chain as bare arrays, for agents and studies that fit thousands."""
    require("pymc", "nutpie")
    ready = compiled(problem)
    centre, jitter = starting_point(problem, ready)
    if start is not None:
        centre, jitter = start, np.zeros(ready.size)
    made = _for_nutpie(problem, centre, jitter, lambda: None, points=True)
    tree = _run_nutpie(made, 1, draws, tune=tune, cores=1, seed=seed)
    found = {str(name): values.values[0] for name, values in tree["posterior"].to_dataset().items()}
    divergent = int(tree["sample_stats"]["diverging"].sum())
    return Chain(found, found["point"][-1], divergent)


def _with_nutpie(problem: Problem, settings: dict[str, Any], progress: bool) -> xr.DataTree:
    """Draw with nutpie; the bar counts the draws of all chains."""
    with waiting("compiling the model, once for its kind") if progress else nullcontext():
        start, jitter = starting_point(problem, compiled(problem))
    total = settings["chains"] * (settings["draws"] + settings["tune"])
    counter = itertools.count(1)
    with _bar(progress, total) as show:

        def count() -> None:
            done = next(counter)
            if done % 20 == 0:
                show(done)

        tree = _run_nutpie(_for_nutpie(problem, start, jitter, count), **settings)
        show(total)
    return _tidied(tree)


def starting_point(problem: Problem, ready: Compiled) -> tuple[Array, Array]:
    """Where chains start, unconstrained, and how far they are spread about it."""
    prior, d = problem.prior, problem.stats.dim
    centre: dict[str, Any] = {"sigma_log__": math.log(prior.noise_scale), "mu": prior.mean}
    spread: dict[str, Any] = {}
    if isinstance(prior, LKJ):
        centre["spread"] = prior.scale
        spread["spread"] = np.asarray(prior.scale) / 2
    if isinstance(prior, (LKJ, KnownCovariance)):
        spread["mu"] = np.asarray(prior.mean_sd) / 5
    if isinstance(prior, InverseWishart):
        centre["squares_log__"] = np.log(prior.degrees - np.arange(d))
    if problem.kind == "centred":
        centre["theta"] = np.tile(np.asarray(prior.mean), len(problem.stats))
    parts = [
        [np.broadcast_to(np.ravel(values.get(name, default)), size) for values, default in
         ((centre, 0.0), (spread, 0.5))]
        for name, size in ready.parts
    ]  # fmt: skip
    return np.concatenate([one[0] for one in parts]), np.concatenate([one[1] for one in parts])


def _bar(progress: bool, total: int) -> AbstractContextManager[Callable[[float], None]]:
    if not progress:
        return nullcontext(lambda now: None)
    return progress_bar("drawing", "draws", total, 0)


def _tidied(tree: xr.DataTree) -> xr.DataTree:
    """The groups people use."""
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    kept = posterior[[name for name in VARIABLES if name in posterior]]
    return xr.DataTree.from_dict(
        {"posterior": kept, "sample_stats": tree["sample_stats"].to_dataset()}
    )


def _relabelled(tree: xr.DataTree, problem: Problem) -> xr.DataTree:
    """With the labels of features and tasks as they were given, where nutpie made text of them."""
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    labels = {dim: names for dim, names in coords_of(problem).items() if dim in posterior.coords}
    tree["posterior"] = xr.DataTree(posterior.assign_coords(labels))
    return tree


def _with_pymc(problem: Problem, settings: dict[str, Any], progress: bool) -> xr.DataTree:
    """Draw with PyMC's own NUTS, which compiles the model on every call."""
    import pymc as pm

    rest = {name: value for name, value in settings.items() if name != "seed"}
    try:
        with model_of(problem), _no_advice():
            tree = pm.sample(
                random_seed=settings["seed"],
                nuts_sampler="pymc",
                progressbar=progress,
                compute_convergence_checks=False,
                **rest,
            )
    except ValueError as error:
        if "Not enough samples to build a trace" not in str(error):
            raise
        raise KeyboardInterrupt from error  # while tuning
    if not _complete(tree, settings["chains"], settings["draws"]):
        raise KeyboardInterrupt
    return _tidied(tree)
