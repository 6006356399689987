"""Objects that players are made of, as plain data with arrays in it as base64, and back.

Data names classes only by the words of ``_READERS``, and what each is made of is checked as it is
made; nothing runs that it could choose. ``encode`` and ``decode`` are inverse, bit by bit.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.centre import Centre, CentreMemory
from bayesmeta.agents.commit import ArmMoments, ArmSums, Commit, Committed
from bayesmeta.agents.decorrelated import Decorrelated, Decorrelations
from bayesmeta.agents.exploration import WHOLE_TASK, Exploration
from bayesmeta.agents.hyper import Hyper, HyperMemory
from bayesmeta.agents.learners import (
    Draws,
    Given,
    History,
    Likelihood,
    MomentMemory,
    Moments,
    Posterior,
)
from bayesmeta.agents.moment_mean import MomentMean
from bayesmeta.agents.policies import Policy
from bayesmeta.agents.told import Told
from bayesmeta.checks import (
    Array,
    InputError,
    array,
    in_sizes,
    of_type,
    one_of,
    own_sizes,
    real,
    whole,
)
from bayesmeta.environment import Bounds, Setting
from bayesmeta.estimators.estimate import PriorEstimate, Status
from bayesmeta.estimators.moments import MomentState
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.kernels.centre import CentreSums
from bayesmeta.kernels.codes import Rule, Scheme
from bayesmeta.kernels.decorrelate import Ridges
from bayesmeta.kernels.hyper import HyperState, HyperTold
from bayesmeta.runner.plain import parts_of

type Parts = dict[str, Any]


def encode(value: Any) -> Any:
    """Plain data for JSON; refuses what ``decode`` does not know."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Enum):
        return {"is": type(value).__name__, "name": value.name}
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value, "<f8").tobytes()).decode("ascii")
        return {"is": "array", "shape": list(value.shape), "data": data}
    if type(value) in _PARTS:
        parts = _PARTS[type(value)](value)
        return {"is": type(value).__name__} | {k: encode(v) for k, v in parts.items()}
    if type(value) is dict:
        return {"is": "dict", "of": {key: encode(inner) for key, inner in value.items()}}
    if type(value) in (list, tuple):
        return [encode(inner) for inner in value]
    raise InputError(
        f"a player with {type(value).__module__}.{type(value).__qualname__} in it cannot be saved: "
        "a file may name the package's own learners, policies and rules only; pickle it instead, "
        "and unpickle only what you trust, since that runs code"
    )


def decode(value: Any) -> Any:
    """The inverse of ``encode``; lists become tuples."""
    if isinstance(value, list):
        return tuple(decode(inner) for inner in value)
    if not isinstance(value, dict):
        return value
    parts = dict(value)
    kind = parts.pop("is", None)
    if kind == "array":
        return _array(**parts)
    if kind == "dict":
        return {str(key): decode(inner) for key, inner in parts["of"].items()}
    if not isinstance(kind, str) or kind not in _READERS:
        raise InputError(f"{kind!r:.80} is not a class that a player is made of")
    return _READERS[kind](**{key: decode(inner) for key, inner in parts.items()})


def _array(shape: list[int], data: str) -> Array:
    sizes = [whole("shape", size) for size in shape]
    values = np.frombuffer(base64.b64decode(data, validate=True), "<f8").astype(float)
    if math.prod(sizes) != values.size or not np.isfinite(values).all():
        raise InputError("an array has a wrong shape, or a NaN or infinite entry")
    return values.reshape(sizes)


def number(name: str, value: Any, *, signed: bool = False) -> float:
    """A number (of at least 0 unless signed) that is written as one, not as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{name} is no number")
    return real(name, value, least=-math.inf if signed else 0.0)


def check_gram(gram: Array) -> None:
    """Refuse what is no sum of squares and products, whole or its upper triangle."""
    squares = np.diagonal(gram, axis1=-2, axis2=-1)
    roots = np.sqrt(np.maximum(squares, 0.0)) * (1 + 1e-6)
    most = roots[..., :, None] * roots[..., None, :]
    if (squares < 0).any() or (np.abs(gram) > most).any():
        raise InputError("a gram is no sum of squares and products")


def _prior(mean: Array, cov: Array, cholesky: Array | None = None) -> GaussianPrior:
    prior = GaussianPrior(mean, cov)
    root = prior.cholesky if cholesky is None else array("cholesky", cholesky, cov.shape)
    sizes = own_sizes(np.diagonal(cov))
    gap = np.abs(in_sizes(root @ root.T - cov, sizes[:, None], sizes))
    if gap.max() > 1e-8 or np.triu(root, 1).any():
        raise InputError("a root is not that of its covariance")
    return prior if cholesky is None else GaussianPrior.trusted(mean, cov, cholesky)


def _agent(warmup_policy: Policy | None, **parts: Any) -> Agent:
    if warmup_policy is not None:
        of_type("warmup_policy", warmup_policy, Policy, "")
    return Agent(warmup_policy=warmup_policy, **parts)


def _told(priors: tuple[GaussianPrior, ...]) -> Told:
    return Told(tuple(of_type("prior", prior, GaussianPrior, "") for prior in priors))


def _policy(scheme: Scheme, **numbers: Any) -> Policy:
    of_type("scheme", scheme, Scheme, "")
    made = Policy(scheme, **numbers)
    whole("posterior_draws", made.posterior_draws)
    for name in ("ridge", "norm_bound", "delta"):
        if getattr(made, name) is not None:
            number(name, getattr(made, name))
    for name in ("randomised", "sobol", "centred"):
        of_type(name, getattr(made, name), bool, "")
    one_of("level", made.level, ("step", "total"))
    return made


def _exploration(rule: Rule, tau: int | None, threshold: float) -> Exploration:
    of_type("rule", rule, Rule, "")
    tau = None if tau is None else whole("tau", tau, least=WHOLE_TASK)
    return Exploration(rule, tau, number("threshold", threshold))


def _estimate(prior: GaussianPrior, status: Status, **rest: Any) -> PriorEstimate:
    of_type("prior", prior, GaussianPrior, "")
    of_type("status", status, Status, "")
    for name in ("raw_cov", "mean_cov", "cov_sd"):
        if rest.get(name) is not None:
            array(name, rest[name], prior.cov.shape)
    for name in ("passed_over", "negative"):
        whole(name, rest[name])
    if rest.get("noise_sd") is not None:
        number("noise_sd", rest["noise_sd"])
    return PriorEstimate(prior, status, **rest)


def _moment_state(tasks: Array, mean: Array, scatter: Array, inverse_grams: Array) -> MomentState:
    d = len(mean)
    array("tasks", tasks, (2,))
    array("mean", mean, (None,))
    for part in (scatter, inverse_grams):
        if (np.diagonal(array("scatter", part, (d, d))) < 0).any():
            raise InputError("a sum of squares is negative")
    if (tasks < 0).any() or (tasks != np.floor(tasks)).any():
        raise InputError("a number of tasks is not whole")
    return MomentState(tasks, mean, scatter, inverse_grams)


def _moment_memory(state: MomentState, constant: float) -> MomentMemory:
    of_type("state", state, MomentState, "")
    return MomentMemory(state, number("constant", constant))


def _hyper_state(precision: Array, shift: Array) -> HyperState:
    d = len(array("shift", shift, (None,)))
    check_gram(array("precision", precision, (d, d)))
    return HyperState(precision, shift)


def _hyper_told(
    variance: float, cov: Array, root: Array, centre: Array, hyper_root: Array
) -> HyperTold:
    d = len(array("centre", centre, (None,)))
    for part in (cov, root, hyper_root):
        array("a covariance or its root", part, (d, d))
    return HyperTold(number("variance", variance), cov, root, centre, hyper_root)


def _hyper_memory(state: HyperState, told: HyperTold) -> HyperMemory:
    of_type("state", state, HyperState, "")
    return HyperMemory(state, of_type("told", told, HyperTold, ""))


def _history(gram: Array, moment: Array, next_fit: int, estimate: PriorEstimate | None) -> History:
    n, d = array("moment", moment, (None, None)).shape
    check_gram(array("gram", gram, (n, d, d)))
    made = History(d, max(n, 16))
    made.gram[:n], made.moment[:n], made.tasks = gram, moment, n
    made.next_fit = whole("next_fit", next_fit)
    made.estimate = None if estimate is None else of_type("estimate", estimate, PriorEstimate, "")
    return made


def _draws(
    history: History,
    priors: tuple[GaussianPrior, ...],
    centre: GaussianPrior | None,
    mode: tuple[Array, Array] | None,
    status: Status,
    next_fit: int,
) -> Draws:
    d = of_type("history", history, History, "").moment.shape[1]
    made = Draws(d)
    for prior in (*priors, *(() if centre is None else (centre,))):
        if of_type("prior", prior, GaussianPrior, "").dim != d:
            raise InputError("a drawn prior has another dimension")
    if bool(priors) != (centre is not None):
        raise InputError("draws and their centre do not go together")
    made.history, made.priors, made.centre = history, list(priors), centre
    if mode is not None:
        mean, cov = mode
        made.mode = array("mode", mean, (d,)), array("mode", cov, (d, d))
    made.status, made.next_fit = of_type("status", status, Status, ""), whole("next_fit", next_fit)
    return made


def _parts_of_prior(prior: GaussianPrior) -> Parts:
    known = {"mean": prior.mean, "cov": prior.cov}
    root = prior.__dict__.get("cholesky")  # an estimator's own may have other last digits
    return known if root is None else known | {"cholesky": root}


def _parts_of_history(memory: History) -> Parts:
    n = memory.tasks
    return {
        "gram": memory.gram[:n],
        "moment": memory.moment[:n],
        "next_fit": memory.next_fit,
        "estimate": memory.estimate,
    }


def _own_fields(value: Any) -> Parts:
    return parts_of(value) if is_dataclass(value) else value._asdict()


def _sums[T](kind: type[T]) -> Callable[..., T]:
    """What makes a tuple of running sums again; ``saved`` compares its shapes with its learner."""

    def read(**parts: Any) -> T:
        for name in ("variance", "ridge", "logs"):
            if name in parts:
                number(name, parts[name])
        if not isinstance(parts.get("tasks", np.empty(0)), np.ndarray):
            whole("tasks", parts["tasks"])
        for name in ("settled", "lowest"):
            if (parts.get(name, np.empty(0)) < 0).any():
                raise InputError(f"{name} is negative")
        return kind(**parts)

    return read


_DESCRIPTIONS = (
    Setting, Bounds, Given, Hyper, Moments, MomentMean, Likelihood, Posterior, ArmMoments, Commit,
    Centre, Decorrelated,
)  # fmt: skip
_SUMS = (ArmSums, Committed, CentreSums, CentreMemory, Ridges, Decorrelations)
"""Dataclasses that check themselves when made."""
_TUPLES = (
    Agent, Told, Policy, Exploration, PriorEstimate, MomentState, MomentMemory, HyperState,
    HyperTold, HyperMemory, *_SUMS,
)  # fmt: skip
_PARTS: dict[type, Callable[[Any], Parts]] = {
    **dict.fromkeys((*_DESCRIPTIONS, *_TUPLES), _own_fields),
    GaussianPrior: _parts_of_prior,
    History: _parts_of_history,
    Draws: lambda memory: dict(vars(memory)),
}
"""What is written of an object of a class."""
_READERS: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in _DESCRIPTIONS}
_READERS |= {kind.__name__: _sums(kind) for kind in _SUMS} | {
    "Agent": _agent,
    "Told": _told,
    "GaussianPrior": _prior,
    "Policy": _policy,
    "Exploration": _exploration,
    "PriorEstimate": _estimate,
    "MomentState": _moment_state,
    "MomentMemory": _moment_memory,
    "HyperState": _hyper_state,
    "HyperTold": _hyper_told,
    "HyperMemory": _hyper_memory,
    "History": _history,
    "Draws": _draws,
    "Scheme": lambda name: Scheme[name],
    "Rule": lambda name: Rule[name],
    "Status": lambda name: Status[name],
}
"""What makes it again, by the name of the class."""
