"""The compiled log-density against one written by hand, in every dimension by one compilation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba.core.event as events
import numpy as np
import pytest
from scipy.special import gammaln

import bayesmeta as bm
from bayesmeta.posterior import target as module
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.priors import Prior, bartlett_root
from bayesmeta.posterior.target import Target
from bayesmeta.posterior.whitening import Frame
from tests.helpers import Problem as Data

pytestmark = pytest.mark.slow

DIMS = (2, 1, 5, 9)


def normal(x: np.ndarray, mean: object = 0.0, sd: object = 1.0) -> complex:
    z = (x - mean) / np.asarray(sd)
    return (-0.5 * z**2 - np.log(sd) - 0.5 * np.log(2 * np.pi)).sum()


def by_hand(
    data: Data, prior: Prior, noise_sd: float | None, parts: dict[str, np.ndarray]
) -> complex:
    """Log-prior with Jacobians plus the Gaussian density of all rewards; of complex numbers, too,
    whose imaginary parts then give its gradient to all digits."""
    d = data.stats.dim
    below = np.tril_indices(d, -1)
    value: complex = 0.0
    if isinstance(prior, bm.InverseWishart):
        logs, degrees = parts["squares_log__"], prior.degrees - np.arange(d)
        value += (degrees / 2 * (logs - np.log(2)) - np.exp(logs) / 2 - gammaln(degrees / 2)).sum()
        value += normal(parts["offs"]) + normal(parts["raw"])
        lower = np.diag(np.exp(logs / 2))
        lower[below] = parts["offs"]
        root = np.linalg.inv(bartlett_root(np.asarray(prior.scale)) @ lower[::-1, ::-1]).T
        mean = np.asarray(prior.mean) + root @ parts["raw"] / np.sqrt(prior.weight)
    else:
        mean = parts["mu"]
        value += normal(mean, prior.mean, prior.mean_sd)
        root = np.linalg.cholesky(getattr(prior, "cov", np.eye(d)))
    if isinstance(prior, bm.LKJ):
        value += normal(parts["spread"], 0.0, prior.scale)
        half = 1 / (1 + np.exp(-parts["partial_logodds__"]))
        beta = prior.eta + (d - 2 - below[1]) / 2
        value += (beta * np.log(half * (1 - half)) - 2 * gammaln(beta) + gammaln(2 * beta)).sum()
        root = root.astype(complex)
        root[below] = 2 * half - 1
        for i in range(d):
            rest = 1.0 + 0j
            for j in range(i + 1):
                partial = root[i, j]
                root[i, j] *= np.sqrt(rest)
                rest *= 1 - partial**2
        root = parts["spread"][:, None] * root
    sigma = noise_sd
    if noise_sd is None:
        sigma = np.exp(parts["sigma_log__"])
        value += np.log(2) + normal(sigma, 0.0, prior.noise_scale) + parts["sigma_log__"]
    for rows, rewards in zip(data.rows, data.rewards, strict=True):
        omega = sigma**2 * np.eye(len(rows)) + rows @ root @ root.T @ rows.T
        gap = rewards - rows @ mean
        value -= 0.5 * (len(rows) * np.log(2 * np.pi) + np.log(np.linalg.det(omega) + 0j))
        value -= 0.5 * gap @ np.linalg.solve(omega, gap)
    return value


def prior_of(name: str, d: int) -> Prior:
    rng = np.random.default_rng(d)
    square = rng.standard_normal((d, d + 2))
    cov = square @ square.T / d
    if name == "lkj":
        return bm.LKJ(rng.standard_normal(d), 1 + rng.random(d), 1 + rng.random(d), 1.7)
    if name == "wishart":
        return bm.InverseWishart(rng.standard_normal(d), 2.0, d + 2.5, cov)
    return bm.KnownCovariance(cov, rng.standard_normal(d), 1 + rng.random(d))


class Compilations(events.Listener):
    """Counts what numba compiles, but for looking up where a routine of BLAS is."""

    count = 0

    def on_start(self, event: events.Event) -> None:
        self.count += "pointer" not in str(event.data["dispatcher"])

    def on_end(self, event: events.Event) -> None:
        pass


@pytest.mark.parametrize(
    ("name", "noise"), [("lkj", 0.8), ("lkj", None), ("wishart", None), ("known", 0.8)]
)
def test_one_compilation_serves_every_dimension(name: str, noise: float | None) -> None:
    """Values and gradients equal those by hand; after the first dimension nothing is compiled,
    neither by PyTensor nor by numba."""
    listener = Compilations()
    for d in DIMS:
        data = Data(50 + d, d, 14)
        problem = Problem(data.stats, noise, prior_of(name, d).settled(d), "fused")
        models = len(module._COMPILED)
        with events.install_listener("numba:compile", listener):
            before = listener.count
            target = Target(problem)
            point = np.random.default_rng(d).normal(0.0, 0.7, target.size)
            value, gradient = target.log_density(point)
        if d != DIMS[0]:
            assert listener.count == before and len(module._COMPILED) == models

        def hand(flat: np.ndarray, data=data, problem=problem, target=target) -> complex:  # type: ignore[no-untyped-def]
            ends = np.cumsum([int(np.prod(shape)) for shape in target.shapes.values()])
            cut = np.split(flat, ends[:-1])
            shapes = target.shapes.items()
            parts = {n: one.reshape(s) for (n, s), one in zip(shapes, cut, strict=True)}
            return by_hand(data, problem.prior, noise, parts)

        digits = 1e-9 if name == "wishart" else 1e-11  # the inverse-Wishart's root is an inverse
        np.testing.assert_allclose(value, hand(point + 0j).real, rtol=digits)
        steps = 1e-30j * np.eye(target.size)
        expected = np.array([hand(point + step).imag / 1e-30 for step in steps])
        np.testing.assert_allclose(gradient, expected, atol=10 * digits * abs(expected).max())
    assert len(compiled_signatures(target)) == 1


def compiled_signatures(target: Target) -> list[object]:
    """For which types of arguments numba has compiled the log-density."""
    return target.compiled.value_and_gradient.signatures  # type: ignore[attr-defined, no-any-return]


def test_one_feature_has_no_correlations() -> None:
    """The same model with nothing below the diagonal; PyMC's own sampler takes it, too."""
    data = Data(3, 1, 8)
    problem = Problem(data.stats, 1.0, prior_of("lkj", 1).settled(1), "fused")
    target = Target(problem)
    assert target.shapes["partial_logodds__"] == (0,)
    found = target.constrained(np.array([[0.3, -2.0], [0.1, 1.5]]))
    np.testing.assert_allclose(found["Sigma"][:, 0, 0], [4.0, 2.25])
    assert found["corr"].shape == (2, 0)


_BITS = """
import hashlib
import numpy as np
from bayesmeta.posterior.whitening import Frame
from tests.posterior.test_target import Data, Problem, Target, prior_of

target = Target(Problem(Data(3, 5, 40).stats, 1.0, prior_of("lkj", 5).settled(5), "fused"))
rng = np.random.default_rng(0)
root = rng.normal(size=(target.size, target.size)) / 20
density = target.density(Frame(target.start()[0], root, np.empty(0)))
found = hashlib.sha256()
for z in rng.normal(size=(50, target.size)):
    value, gradient = density(z)
    found.update(np.append(gradient, value).tobytes())
print(found.hexdigest())
"""


def test_compiled_just_now_or_kept_on_disk_gives_the_same_bits(tmp_path: Path) -> None:
    """Seen to fail where the compiler may reorder sums."""
    flags = {"PYTENSOR_FLAGS": f"base_compiledir={tmp_path}"}
    cold, warm = (
        subprocess.run(
            [sys.executable, "-c", _BITS],
            env=os.environ | flags,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout
        for _ in range(2)
    )
    assert len(cold) > 60
    assert cold == warm


def test_density_in_a_frame_is_that_of_its_points() -> None:
    """And the gradient follows by the chain rule."""
    target = Target(Problem(Data(3, 3, 12).stats, 1.0, prior_of("lkj", 3).settled(3), "fused"))
    rng = np.random.default_rng(1)
    root = rng.normal(size=(target.size, target.size)) / 10
    frame, z = Frame(target.start()[0], root, np.empty(0)), rng.normal(size=target.size)
    value, gradient = target.density(frame)(z)
    expected, slope = target.log_density(frame.point(z))
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, root.T @ slope, rtol=1e-9, atol=1e-9 * abs(slope).max())
