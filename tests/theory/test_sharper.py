"""The sharper Theorem 1: its factors against the alignment they bound, and where it says more."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bayesmeta.checks import InputError
from bayesmeta.claims.jacobian import log_jacobian
from bayesmeta.gaussian import GaussianPrior
from bayesmeta.theory import alignment, sharper
from bayesmeta.theory import constants as c
from bayesmeta.theory.bounds import paper_regime
from bayesmeta.theory.regime import Regime


def regime(dim: int, noise_sd: float = 1.0, horizon: int = 10_000) -> Regime:
    return Regime.of(
        dim=dim,
        horizon=horizon,
        tasks=2,
        noise_sd=noise_sd,
        radius=1.0,
        action_min=1 / (dim + 2),
        prior_min=0.5,
        prior_max=2.0,
        mean_norm=1.0,
    )


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_the_factors_bound_the_alignment(dim: int) -> None:
    """Random actions, priors, theta and noise within the events: Jacobian and ratio of densities
    are no more than the two factors, and a quarter of the second, as a logarithm, would not do."""
    rng, here, tau, delta = np.random.default_rng(dim), regime(dim), 15, 0.01
    shares = []
    for _ in range(30):
        actions = rng.standard_normal((tau, dim))
        gram = actions.T @ actions
        actions *= math.sqrt(here.bounds.action_min * tau / 2 / np.linalg.eigvalsh(gram)[0])
        gram = actions.T @ actions
        unit, way = (x / np.linalg.norm(x) for x in rng.standard_normal((2, dim)))
        true = GaussianPrior(np.zeros(dim), 0.5 * np.eye(dim) + np.diag(rng.random(dim)))
        size, off = 0.02, 0.05
        used = GaussianPrior(off * way, true.cov + size * np.outer(unit, unit))
        cost = sharper.alignment_cost(here, tau, off, size, delta)
        gap = alignment.covariance_gap(used, true, 1.0)
        jacobian = -log_jacobian(actions, gap)
        assert jacobian <= math.log(cost.jacobian)
        log = math.log(dim * here.horizon / delta)
        corner = math.sqrt(2 * (log + math.log(dim))) * np.sign(rng.standard_normal(dim))
        theta = true.mean + alignment.symmetric_power(true.cov, 0.5) @ corner
        root = alignment.symmetric_power(gram - gap, 0.5)
        y = np.linalg.solve(root, alignment.shift(used, true, 1.0, theta))
        y *= math.sqrt(dim + 2 * math.sqrt(dim * log) + 2 * log) / np.linalg.norm(y)
        noise = root @ y
        moved = alignment.aligned_noise(used, true, 1.0, gram - gap, noise, theta)
        ratio = alignment.noise_log_ratio(noise, moved, gram - gap, 1.0)
        assert ratio <= math.log(cost.ratio)
        shares.append(ratio / math.log(cost.ratio))
    assert max(shares) > 1 / 4


def test_factors_do_not_change_with_units() -> None:
    """Rewards times 10: the same factors. Too wide a covariance: infinite."""
    one = sharper.alignment_cost(regime(2), 50, 0.1, 0.01, 0.01)
    ten = regime(2, noise_sd=10.0).changed(prior_min=50.0, prior_max=200.0)
    other = sharper.alignment_cost(ten, 50, 1.0, 1.0, 0.01)
    assert other == pytest.approx(one, rel=1e-12)
    assert one.factor == pytest.approx(one.jacobian * one.ratio - 1)
    assert sharper.alignment_cost(regime(2), 50, 0.0, 1e3, 0.01).factor == math.inf


def test_where_the_theorems_begin_to_speak() -> None:
    """From the smallest N found the condition holds, and just below it does not; sharper asks for
    fewer tasks than the corrected one, by many orders."""
    here = regime(5, noise_sd=0.1)
    first = sharper.needed_sharp(here)
    assert sharper.cost_before(here, first).factor <= 1
    assert sharper.cost_before(here, int(0.97 * first)).factor > 1
    repaired = sharper.needed(here, corrected=True)
    assert repaired > 1e5 * first
    at = replace(here, tasks=repaired)
    told = (c.tau_of(at), c.f_m(at, repaired), c.f_s(at, repaired), 1 / (repaired - 1))
    assert c.k_1(at, *told, corrected=True) <= 1
    paper = replace(paper_regime(), horizon=10_000)
    assert 1e13 < sharper.needed_sharp(paper) < 1e14 < 1e24 < sharper.needed(paper)


def test_each_change_asks_for_fewer_tasks() -> None:
    """From the repaired theorem to the sharp one in three steps, each of them less."""
    here = regime(5, noise_sd=0.1)
    steps = list(sharper.steps_to_sharp(here).values())
    assert steps[0] == sharper.needed(here, corrected=True)
    assert steps[-1] == sharper.needed_sharp(here)
    assert all(after < 0.7 * before for before, after in pairwise(steps))


def test_exploration_must_fit_into_a_task() -> None:
    """tau < T is a condition of the theorems: where it fails first no number of tasks is enough."""
    short = regime(5, noise_sd=0.1, horizon=900)
    for count in (sharper.needed, sharper.needed_sharp):
        with pytest.raises(InputError, match="raise horizon"):
            count(short)
    for count in (sharper.needed, sharper.needed_sharp):
        longer = replace(short, horizon=10_000)
        assert c.tau_of(replace(longer, tasks=count(longer))) < 10_000


def test_radii_are_those_of_the_proofs() -> None:
    """At most 8 s2 sqrt(x) for the covariance (covariance-error-sharp), where tau = d."""
    here = regime(3)
    for n in (60, 1000, 10**6):
        log = math.log(3 * n * here.horizon)
        variance = c.estimate_variance_of(here)
        x = (15 + 2 * log) / (n - 1)
        mean, cov = sharper.estimation_radii(here, 3, n)
        assert cov <= 8 * variance * math.sqrt(x)
        assert mean**2 <= c.f_m(here, n) / (n - 1)
