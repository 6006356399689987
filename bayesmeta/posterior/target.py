"""The log-density of a posterior at unconstrained points, and where its chains may start."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.posterior.model import Problem, coords_of, data_of, model_of
from bayesmeta.posterior.priors import LKJ, InverseWishart, KnownCovariance
from bayesmeta.runner.signals import never_lost

if TYPE_CHECKING:
    from bayesmeta.posterior.compiled import Compiled

VARIABLES = ("mu", "Sigma", "sd", "corr", "sigma", "theta")
"""What is kept of the draws."""
_COMPILED: dict[tuple[Any, ...], Compiled] = {}


def compiled(problem: Problem) -> Compiled:
    """The compiled model of a problem; made once for all problems of its kind."""
    from bayesmeta.posterior.compiled import compile_model

    key = problem.kind, type(problem.prior), problem.noise_sd is None
    if key not in _COMPILED:
        with never_lost():
            _COMPILED[key] = compile_model(model_of(problem), VARIABLES)
    return _COMPILED[key]


class Target:
    """The compiled model of a problem with its data: a function of points, vectors of ``size``."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.compiled = compiled(problem)
        lengths = {name: len(labels) for name, labels in coords_of(problem).items()}
        data = data_of(problem) | {name: np.asarray(count) for name, count in lengths.items()}
        self._value_data = [data[name] for name in self.compiled.value_data]
        self._expand_data = [data[name] for name in self.compiled.expand_data]
        self.shapes = {
            name: tuple(lengths[dim] for dim in dims) for name, dims in self.compiled.parts.items()
        }
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()]).tolist()
        self.size: int = ends[-1]
        self._parts = [
            (slice(first, end), shape)
            for first, end, shape in zip([0, *ends], ends, self.shapes.values(), strict=False)
        ]
        self.kept = {
            name: tuple(lengths[dim] for dim in dims) for name, dims in self.compiled.kept.items()
        }
        with never_lost():
            self.log_density(self.start()[0])  # numba compiles at the first call

    def log_density(self, point: Array) -> tuple[float, Array]:
        """Up to a constant, and its gradient."""
        parts = [point[where].reshape(shape) for where, shape in self._parts]
        value, *slopes = self.compiled.value_and_gradients(*parts, *self._value_data)
        return float(value), np.concatenate([slope.reshape(-1) for slope in slopes])

    def constrained(self, points: Array) -> dict[str, Array]:
        """The variables of the model at (s, size) points, s of each."""
        s = len(points)
        parts = [points[:, where].reshape(s, *shape) for where, shape in self._parts]
        found = self.compiled.expand(*parts, *self._expand_data)
        return {
            name: np.broadcast_to(values, (s, *shape))
            for (name, shape), values in zip(self.kept.items(), found, strict=True)
        }

    def start(self) -> tuple[Array, Array]:
        """Where chains start, and how far they are spread about it, by the prior alone."""
        problem, prior = self.problem, self.problem.prior
        centre: dict[str, Any] = {"sigma_log__": math.log(prior.noise_scale), "mu": prior.mean}
        spread: dict[str, Any] = {}
        if isinstance(prior, LKJ):
            centre["spread"] = prior.scale
            spread["spread"] = np.asarray(prior.scale) / 2
        if isinstance(prior, (LKJ, KnownCovariance)):
            spread["mu"] = np.asarray(prior.mean_sd) / 5
        if isinstance(prior, InverseWishart):
            centre["squares_log__"] = np.log(prior.degrees - np.arange(problem.stats.dim))
        if problem.kind == "centred":
            centre["theta"] = prior.mean

        def joined(values: dict[str, Any], default: float) -> Array:
            parts = [
                np.broadcast_to(values.get(name, default), shape).reshape(-1)
                for name, shape in self.shapes.items()
            ]
            return np.concatenate(parts)

        return joined(centre, 0.0), joined(spread, 0.5)
