"""The log-density of a posterior at unconstrained points, and where its chains may start."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.checks import Array, InputError
from bayesmeta.posterior.defaults import pooled
from bayesmeta.posterior.model import Problem, coords_of, data_of, model_of
from bayesmeta.posterior.priors import LKJ, InverseWishart, KnownCovariance
from bayesmeta.posterior.whitening import Frame
from bayesmeta.runner.signals import never_lost

if TYPE_CHECKING:
    from bayesmeta.posterior.compiled import Compiled

VARIABLES = ("mu", "Sigma", "sd", "corr", "sigma", "theta")
"""What is kept of the draws."""
_BLOCK = 250
"""Points that are turned into variables together."""
_COMPILED: dict[tuple[Any, ...], Compiled] = {}


def has_frame(problem: Problem) -> bool:
    """Whether to look for a frame: the model has no theta, and so few variables."""
    return problem.kind in ("fused", "collapsed")


def compiled(problem: Problem) -> Compiled:
    """The compiled model of a problem; made once for all problems of its kind."""
    from bayesmeta.posterior.compiled import compile_model

    fixed = problem.stats.varying is not None
    key = problem.kind, type(problem.prior), problem.noise_sd is None, fixed
    if key not in _COMPILED:
        with never_lost():
            _COMPILED[key] = compile_model(model_of(problem), VARIABLES, has_frame(problem))
    return _COMPILED[key]


class Target:
    """The compiled model of a problem with its data: a function of points, vectors of ``size``."""

    def __init__(self, problem: Problem) -> None:
        from bayesmeta.posterior.compiled import exactly

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
        self._plain = self.density(None)
        with never_lost(), exactly():
            self.log_density(self.start()[0])  # numba compiles at the first call

    def density(self, frame: Frame | None) -> Callable[[Array], tuple[float, Array]]:
        """The log-density up to a constant, and its gradient, in the coordinates of a frame."""
        function, data = self.compiled.value_and_gradient, self.data(frame)

        def at(z: Array) -> tuple[float, Array]:
            value, gradient = function(np.array(z), *data)  # read-only arrays are of another type
            return value.item(), gradient

        return at

    def data(self, frame: Frame | None) -> tuple[Any, ...]:
        """What the compiled log-density takes beside a point in the coordinates of a frame."""
        if not self.compiled.framed:
            return tuple(self._value_data)
        if frame is None:
            frame = Frame(np.zeros(self.size), np.eye(self.size), np.empty(0))
        root, turned = np.ascontiguousarray(frame.root), np.ascontiguousarray(frame.root.T)
        return frame.centre, root, turned, *self._value_data

    def log_density(self, point: Array) -> tuple[float, Array]:
        """Up to a constant, and its gradient."""
        return self._plain(point)

    def constrained(self, points: Array) -> dict[str, Array]:
        """The variables of the model at (s, size) points, s of each; some points at a time, since
        d^3 numbers are made of each on the way."""
        blocks = [self._expanded(points[i : i + _BLOCK]) for i in range(0, len(points), _BLOCK)]
        return {name: np.concatenate([block[name] for block in blocks]) for name in self.kept}

    def _expanded(self, points: Array) -> dict[str, Array]:
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
        differs = problem.stats.differs
        centre: dict[str, Any] = {"sigma_log__": math.log(prior.noise_scale), "mu": prior.mean}
        spread: dict[str, Any] = {}
        if isinstance(prior, LKJ):
            centre["spread"] = np.asarray(prior.scale)[differs]
            spread["spread"] = centre["spread"] / 2
        if isinstance(prior, (LKJ, KnownCovariance)):
            spread["mu"] = np.asarray(prior.mean_sd) / 5
        if isinstance(prior, InverseWishart):
            centre["squares_log__"] = np.log(prior.degrees - np.arange(problem.stats.dim))
        if problem.kind == "centred":
            centre["theta"] = prior.mean
        return self._joined(centre, 0.0), self._joined(spread, 0.5)

    def scales(self) -> Array:
        """Widths of the prior, roughly, of every entry of a point."""
        prior = self.problem.prior
        if isinstance(prior, InverseWishart):
            return np.ones(self.size)
        widths: dict[str, Any] = {"mu": prior.mean_sd}
        if isinstance(prior, LKJ):
            widths["spread"] = np.asarray(prior.scale)[self.problem.stats.differs]
        return self._joined(widths, 1.0)

    def starts(self) -> list[Array]:
        """Where to look for the mode from: the prior, and under LKJ the spread of the tasks."""
        found = [self.start()[0]]
        if isinstance(self.problem.prior, LKJ):
            with suppress(InputError, np.linalg.LinAlgError):  # the tasks do not span all features
                found.append(self._joined(_spread_of_tasks(self.problem), 0.0))
        return found

    def points_at(self, given: tuple[Array, Array] | None) -> list[Array]:
        """The point of a (mu, Sigma), for a known noise and an LKJ prior; none where there is no
        such point."""
        lkj = isinstance(self.problem.prior, LKJ) and self.problem.noise_sd is not None
        if given is None or not lkj:
            return []
        with suppress(np.linalg.LinAlgError):
            return [self._joined(_variables_at(*given), 0.0)]
        return []

    def _joined(self, values: dict[str, Any], default: float) -> Array:
        parts = [
            np.broadcast_to(values.get(name, default), shape).reshape(-1)
            for name, shape in self.shapes.items()
        ]
        return np.concatenate(parts)


def _spread_of_tasks(problem: Problem) -> dict[str, Any]:
    """The unconstrained variables of the LKJ model at the pooled mean and the scatter of tasks."""
    mean, scatter, noise, variance = pooled(problem.stats, problem.noise_sd)
    differs = problem.stats.differs
    cov = (scatter + noise)[np.ix_(differs, differs)]
    return _variables_at(mean, cov) | {"sigma_log__": math.log(variance) / 2}


def _variables_at(mean: Array, cov: Array) -> dict[str, Any]:
    """The unconstrained variables of the LKJ model at a mean and a covariance."""
    root = np.linalg.cholesky(cov)
    sd = np.linalg.norm(root, axis=1)
    rows, columns = np.tril_indices(len(root), -1)
    corr = root / sd[:, None]
    left = np.cumsum(corr[:, ::-1] ** 2, axis=1)[:, ::-1]  # 1 less what is left of a column
    partial = corr[rows, columns] / np.sqrt(left[rows, columns])
    odds = 2 * np.arctanh(np.clip(partial, -1 + 1e-12, 1 - 1e-12))
    return {"mu": mean, "spread": sd, "partial_logodds__": odds}
