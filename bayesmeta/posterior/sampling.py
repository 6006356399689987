"""Draw from the posterior of (mu, Sigma), and of the noise where it is not known.

``sample_posterior`` checks its arguments, draws with nutpie or PyMC, and adds data, prior and
diagnostics to the tree; ``draw_chain`` draws one chain of bare arrays."""

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

from bayesmeta.checks import Advice, Array, InputError, one_of, real, renamed, warn, whole
from bayesmeta.posterior.diagnostics import Trust, as_attribute, check_draws
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
from bayesmeta.runner.signals import never_lost
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import xarray as xr

    from bayesmeta.posterior.compiled import Compiled

SAMPLERS = ("nutpie", "pymc")
VARIABLES = ("mu", "Sigma", "sd", "corr", "sigma", "theta")
"""What is kept of the draws."""


class FitWarning(UserWarning):
    """Draws that should not be trusted; ``trustworthy`` says why."""


@renamed(seed="random_seed", sampler="nuts_sampler", progress="progressbar")
def sample_posterior(
    stats: TaskStatistics,
    noise_sd: float | None = None,
    *,
    prior: Prior | None = None,
    model: str = "fused",
    nuts_sampler: str = "nutpie",
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    cores: int | None = None,
    random_seed: int = 0,
    target_accept: float = 0.8,
    theta: bool = False,
    progressbar: bool = False,
) -> xr.DataTree:
    """Draw from the posterior of the prior N(mu, Sigma) that tasks come from.

    Draws that should not be trusted come with a ``FitWarning``.

    Parameters
    ----------
    stats
        The tasks; with ``count`` and ``energy`` where the noise is to be estimated.
    noise_sd
        The noise (sigma) of a reward; None: it is estimated, too.
    prior
        An ``LKJ``, ``InverseWishart`` or ``KnownCovariance``; None: ``default_prior``.
    model
        How the model is written: "fused", "collapsed", "noncentred" or "centred".
    nuts_sampler
        "nutpie" compiles once a process for models of one kind and dimension, "pymc" every time.
    draws, tune, chains, cores, random_seed, target_accept, progressbar
        As in ``pymc.sample``.
    theta
        Keep draws of every task's theta, too; ``add_theta`` adds them later.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (mu, Sigma, sd, corr; sigma where it is estimated; theta if asked for),
        ``sample_stats``, ``observed_data``, ``prior``. Its attributes repeat the arguments and have
        the result of the checks: ``trusted``, and ``diagnostics``, which ``trustworthy`` reads.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = rng.normal(2.0, 1.0, size=50)  # fifty tasks of four steps, one feature
    >>> rewards = theta.repeat(4) + 0.5 * rng.standard_normal(200)
    >>> stats = bm.TaskStatistics.from_arrays(np.arange(50).repeat(4), rewards, np.ones((200, 1)))
    >>> tree = bm.sample_posterior(stats, noise_sd=0.5, random_seed=1)
    >>> bool(bm.trustworthy(tree)), round(float(tree["posterior"]["mu"].mean()), 1)
    (True, 2.1)
    """
    settings = check_settings(
        draws, tune, chains, random_seed, target_accept, cores, nuts_sampler=nuts_sampler
    )
    problem = check_problem(stats, noise_sd, prior, model)
    require("pymc", nuts_sampler)
    start = time.perf_counter()
    tree = _drawn(problem, nuts_sampler, settings, progressbar)
    tree = _completed(tree, problem, settings, theta)
    trust = check_draws(tree)
    tree.attrs = _attributes(problem, nuts_sampler, settings) | {
        "seconds": time.perf_counter() - start,
        "trusted": int(bool(trust)),
        "diagnostics": as_attribute(trust, tree),
    }
    _warn_of(trust)
    return tree


def _completed(
    tree: xr.DataTree, problem: Problem, settings: dict[str, Any], theta: bool
) -> xr.DataTree:
    """With labels, data, draws of the prior, and theta or not."""
    seed = settings["random_seed"]
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    tree = observed(_relabelled(tree, problem), problem)
    tree = add_prior(tree, problem, rng)
    if theta and "theta" not in tree["posterior"]:
        tree = add_theta(tree, seed)
    elif not theta and "theta" in tree["posterior"]:
        tree["posterior"] = tree["posterior"].to_dataset().drop_vars("theta")
    return tree


def _attributes(problem: Problem, nuts_sampler: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a fit, as attributes that a file can hold."""
    return {
        "model": problem.kind,
        "nuts_sampler": nuts_sampler,
        "settings": json.dumps(settings),
        "noise_sd": "estimated" if problem.noise_sd is None else problem.noise_sd,
        "prior": json.dumps(describe_prior(problem.prior)),
        "versions": json.dumps(versions()),
    }


def check_settings(
    draws: int,
    tune: int,
    chains: int,
    random_seed: int,
    target_accept: float,
    cores: int | None = None,
    nuts_sampler: str = "nutpie",
) -> dict[str, Any]:
    """The sampler's arguments, checked; as many cores as chains, where there are."""
    one_of("nuts_sampler", nuts_sampler, SAMPLERS)
    settings: dict[str, Any] = {
        "draws": whole("draws", draws, least=1),
        "tune": whole("tune", tune),
        "chains": whole("chains", chains, least=1),
        "random_seed": whole("random_seed", random_seed),
        "target_accept": real("target_accept", target_accept),
    }
    if nuts_sampler == "nutpie" and tune == 0:
        raise InputError(Advice("{tune} must be at least 1 with nutpie, got 0"))
    if random_seed >= 2**64:
        raise InputError(
            Advice("{random_seed} must be less than 2**64, got {given}", given=str(random_seed))
        )
    if not 0 < settings["target_accept"] < 1:
        raise InputError(
            Advice("{target_accept} must be between 0 and 1, got {given}", given=str(target_accept))
        )
    settings["cores"] = (
        min(settings["chains"], usable_cores()) if cores is None else whole("cores", cores, least=1)
    )
    return settings


def _drawn(
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
                reason=_one_line(error),
            )
        ) from error


def _warn_of(trust: Trust) -> None:
    """A ``FitWarning`` where a check failed."""
    if not trust:
        failed = "; ".join(f"{c.name} {c.value:.5g} (wanted {c.wanted})" for c in trust.failed)
        warn(
            f"these draws should not be trusted: {failed}; print(bm.trustworthy(tree)) says what "
            "to do",
            FitWarning,
        )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _key(problem: Problem) -> tuple[Any, ...]:
    """What a compiled model depends on."""
    stats, prior = problem.stats, problem.prior
    seen = problem.kind in ("noncentred", "centred")
    unknown = problem.noise_sd is None
    return problem.kind, stats.dim, type(prior), unknown, len(stats) if seen else None


_COMPILED: dict[tuple[Any, ...], Compiled] = {}


def compiled(problem: Problem) -> Compiled:
    """The compiled model of a problem; made once for all problems of its kind."""
    from bayesmeta.posterior.compiled import compile_model

    key = _key(problem)
    if key not in _COMPILED:
        with never_lost():
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

    coords = {  # nutpie takes text
        name: [str(label) for label in labels] for name, labels in coords_of(problem).items()
    }
    return from_pyfunc(
        ready.size,
        make_density,
        make_expand,
        [np.dtype("float64")] * len(names),
        shapes,
        names,
        coords=coords,
        dims=dict(ready.dims),
        make_initial_point_fn=begin,
    )


def _run_nutpie(made: Any, chains: int, draws: int, **options: Any) -> xr.DataTree:
    """All draws, or an exception that says what happened."""
    import nutpie

    try:
        with _no_advice(), never_lost():
            tree: xr.DataTree = nutpie.sample(
                made, chains=chains, draws=draws, save_warmup=False, progress_bar=False, **options
            )
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's, which is no Exception
            raise
        raise RuntimeError(
            f"nutpie broke down ({_one_line(error)}); another random_seed, model or "
            "nuts_sampler='pymc' may do"
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
    """Silence ArviZ's guess that few draws are many chains; ``check_draws`` reports few draws."""
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


def _with_nutpie(problem: Problem, settings: dict[str, Any], progressbar: bool) -> xr.DataTree:
    """Draw with nutpie; the bar counts the draws of all chains."""
    with waiting("compiling the model, once for its kind") if progressbar else nullcontext():
        start, jitter = starting_point(problem, compiled(problem))
    total = settings["chains"] * (settings["draws"] + settings["tune"])
    counter = itertools.count(1)
    rest = {name: value for name, value in settings.items() if name != "random_seed"}
    with _bar(progressbar, total) as show:

        def count() -> None:
            done = next(counter)
            if done % 20 == 0:
                show(done)

        made = _for_nutpie(problem, start, jitter, count)
        tree = _run_nutpie(made, seed=settings["random_seed"], **rest)
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

    def joined(values: dict[str, Any], default: float) -> Array:
        parts = [
            np.broadcast_to(np.ravel(values.get(name, default)), size) for name, size in ready.parts
        ]
        return np.concatenate(parts)

    return joined(centre, 0.0), joined(spread, 0.5)


def _bar(progressbar: bool, total: int) -> AbstractContextManager[Callable[[float], None]]:
    if not progressbar:
        return nullcontext(lambda now: None)
    return progress_bar("drawing", "draws", total, 0)


def _tidied(tree: xr.DataTree) -> xr.DataTree:
    """Only the groups and variables that are kept."""
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    kept = posterior[[name for name in VARIABLES if name in posterior]]
    return xr.DataTree.from_dict(
        {"posterior": kept, "sample_stats": tree["sample_stats"].to_dataset()}
    )


def _relabelled(tree: xr.DataTree, problem: Problem) -> xr.DataTree:
    """The labels of features and tasks as they were given; nutpie turns them into text."""
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    labels = {dim: names for dim, names in coords_of(problem).items() if dim in posterior.coords}
    tree["posterior"] = xr.DataTree(posterior.assign_coords(labels))
    return tree


def _with_pymc(problem: Problem, settings: dict[str, Any], progressbar: bool) -> xr.DataTree:
    """Draw with PyMC's own NUTS, which compiles the model on every call."""
    import pymc as pm

    try:
        with model_of(problem), _no_advice(), never_lost():
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
    if not _complete(tree, settings["chains"], settings["draws"]):
        raise KeyboardInterrupt
    return _tidied(tree)
