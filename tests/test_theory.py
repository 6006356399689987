"""Constants of the theory and the alignment of two learners."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.theory import alignment, bounds
from bayesmeta.theory import constants as c
from tests.test_cli import run

PAPER = bounds.regime_of(bm.paper_family(), 10_000)


def test_constants_of_the_papers_experiment() -> None:
    """By hand: d = 5, lambda_A = a^2/(d+2) = 1/112, eigenvalues of Sigma 0.2 and 4.2, sigma 1."""
    assert PAPER.action_min == pytest.approx(1 / 112)
    assert c.tau_of(PAPER) == math.ceil(8 / 16 * 112 * math.log(25 * 1e8 * 200))
    assert c.gram_steps(PAPER, 1e-8) == pytest.approx(56 * math.log(5000 * 1e8))
    assert PAPER.estimate_variance == pytest.approx(44.8 + 4.2)
    assert c.c_s(PAPER) == pytest.approx(2 * 112 / 0.04)
    assert c.c_xi(PAPER, 0.01) ** 2 == pytest.approx(5 * math.log(1e5))
    assert c.c_1(PAPER, 0.01) == pytest.approx(10 * math.log(5e5))
    expected = 5.5 * (math.sqrt(20) + math.sqrt(16.8 * math.log(5e5)))
    assert c.c_bad(PAPER, 0.01) == pytest.approx(expected)
    assert c.f_m(PAPER, 100) == pytest.approx(147 * (5 + math.log(1e5)))
    assert c.f_s(PAPER, 100) == pytest.approx(4900**2 * (25 + 2 * math.log(1e5)))


def test_constants_fit_together() -> None:
    """Radii are roots of f delta, k_2 is 2 k_1 sqrt(N) at delta = 1/N, N_0 is M at n = N + 1."""
    p, n = PAPER, PAPER.tasks
    told = (p.dim, p.noise_sd, p.action_min, p.prior_max)
    eta = 1 / (p.dim * n * p.horizon)
    assert c.mean_radius(*told, n, eta) == pytest.approx(math.sqrt(c.f_m(p, n) / (n - 1)))
    wide = 2 * c.covariance_radius(*told, n, eta)
    assert wide == pytest.approx(math.sqrt(c.f_s(p, n) / (n - 1)))
    tau, fm, fs = c.tau_of(p), c.f_m(p, n), c.f_s(p, n)
    assert c.k_2(p) == pytest.approx(2 * math.sqrt(n) * c.k_1(p, tau, fm, fs, 1 / n))
    fm, fs = c.f_m(p, n + 1), c.f_s(p, n + 1)
    assert c.n_0(p) == pytest.approx(c.largest_m(p, tau, fm, fs, 1 / n))
    assert c.largest_m(replace(p, noise_sd=1e-9), tau, fm, fs, 0.3) == 3.0


def test_m_tilde_suffices() -> None:
    """delta = 1 / M-tilde satisfies delta <= 1 / (a ln^p(1/delta) + b)."""
    for a, b, p in ((1.0, 1.0, 1), (50.0, 3.0, 2), (1e6, 1e3, 3), (1 / 27, 0.5, 3)):
        delta = 1 / c.m_tilde(a, b, p)
        assert delta <= 1 / (a * math.log(1 / delta) ** p + b)


def test_the_smallest_horizon_and_tasks_are_smallest() -> None:
    """They do, and one less does not."""
    horizon = bounds.smallest_horizon(PAPER)
    assert c.tau_of(replace(PAPER, horizon=horizon)) < horizon
    assert c.tau_of(replace(PAPER, horizon=horizon - 1)) >= horizon - 1
    easy = replace(PAPER, noise_sd=1e-3, action_min=1 / 80, horizon=10_000)
    tasks = bounds.smallest_tasks(easy)
    assert tasks >= c.n_0(replace(easy, tasks=tasks))
    assert tasks == 2 or tasks - 1 < c.n_0(replace(easy, tasks=tasks - 1))
    both = replace(PAPER, **dict(zip(("horizon", "tasks"), bounds.smallest_both(PAPER),
                                     strict=True)))  # fmt: skip
    assert bounds.vacuous(both) == []
    assert len(bounds.vacuous(PAPER)) == 3 and bounds.vacuous(PAPER)[0].startswith("tau > T: 1,509")


def test_bounds_are_what_they_are_made_of() -> None:
    """Theorem 1 and 2 with regret 0 and 1; both brackets grow with the horizon."""
    fm, fs = c.f_m(PAPER, 100), c.f_s(PAPER, 100)
    rest = bounds.theorem_1(PAPER, 50, fm, fs, 0.01, 0.0)
    assert rest == pytest.approx(c.c_bad(PAPER, 0.01) * 0.01 / math.sqrt(5))
    whole = bounds.theorem_1(PAPER, 50, fm, fs, 0.01, 2.0)
    assert whole - rest == pytest.approx(2 * c.k_1(PAPER, 50, fm, fs, 0.01))
    assert bounds.theorem_2(PAPER, 0.0, 2.0) == 2 * math.ceil(c.n_0(PAPER))
    assert bounds.theorem_2(PAPER, 1.0, 0.0) == pytest.approx(100 * c.k_2(PAPER))
    longer = replace(PAPER, horizon=400)
    for bracket in (bounds.prior_dependent_task, bounds.prior_dependent_meta):
        assert 1.2 < bracket(longer, 20) / bracket(PAPER, 20) < 2


def test_theory_command(capsys: pytest.CaptureFixture[str]) -> None:
    """A table that says where it is vacuous and why; JSON with the same numbers."""
    assert run("theory") == 0
    shown = capsys.readouterr().out
    assert "1,509" in shown and "vacuous here, because tau > T" in shown and "1,627" in shown
    command = ["theory", "--dim", "2", "--radius", "1", "--tasks", "1000", "--horizon", "500"]
    assert run(*command, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["regime"]["action_min"] == pytest.approx(1 / 4)  # of the ball
    assert found["constants"]["tau"] == math.ceil(32 * math.log(4e6 * 500))
    assert found["vacuous"][0].startswith("tau > T")
    assert found["both"]["horizon"] >= found["smallest_horizon"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--radius", "0"], "--radius must be greater than 0"),
        (["--noise-sd", "-1"], "--noise-sd must be greater than 0"),
        (["--tasks", "1"], "--tasks must be at least 2"),
        (["--dim", "0"], "--dim must be at least 1"),
        (["--prior-min", "5"], "prior_min (5) must not exceed prior_max (4.2)"),
        (["--action-min", "1"], "radius^2 / dim = 0.0125"),
        (["--horizon", "many"], "--horizon"),
    ],
)
def test_bad_regimes_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit code 2."""
    assert run("theory", *arguments) == 2
    error = capsys.readouterr().err
    assert words in error and len(error.splitlines()) == 1


def learners(d: int, seed: int) -> tuple[bm.GaussianPrior, bm.GaussianPrior, np.random.Generator]:
    """A prior in use that is wider than the true one, as E_s asks."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((d, d))
    cov = half @ half.T + 0.5 * np.eye(d)
    wider = rng.standard_normal((d, d))
    used = bm.GaussianPrior(rng.standard_normal(d), cov + 0.02 * wider @ wider.T)
    return used, bm.GaussianPrior(rng.standard_normal(d), cov), rng


@pytest.mark.parametrize("d", [1, 2, 5])
def test_two_learners_are_brought_to_one_posterior(d: int) -> None:
    """Covariances by actions, means by noise; the maps have their inverses."""
    used, true, rng = learners(d, d)
    actions, theta = 2 * rng.standard_normal((d + 6, d)), rng.standard_normal(d)
    noise = 0.3 * rng.standard_normal(d + 6)
    gap = alignment.covariance_gap(used, true, 0.3)
    moved = alignment.aligned_actions(actions, gap)
    np.testing.assert_allclose(alignment.original_actions(moved, gap), actions, atol=1e-10)
    gram, other = actions.T @ actions, moved.T @ moved
    np.testing.assert_allclose(other, gram - gap, atol=1e-10)
    mean, cov = alignment.posterior_after(used, 0.3, gram, actions.T @ noise, theta)
    shifted = alignment.aligned_noise(used, true, 0.3, other, moved.T @ noise, theta)
    theirs, same = alignment.posterior_after(true, 0.3, other, shifted, theta)
    np.testing.assert_allclose(theirs, mean, atol=1e-10)
    np.testing.assert_allclose(same, cov, atol=1e-10)
    tilde = alignment.aligned_mean(used, true, 0.3, actions, noise, theta)
    again, _ = alignment.posterior_after(
        bm.GaussianPrior(tilde, true.cov), 0.3, other, moved.T @ noise, theta
    )
    np.testing.assert_allclose(again, mean, atol=1e-10)


def test_the_jacobian_of_the_actions() -> None:
    """Automatic differentiation and differences agree."""
    used, true, rng = learners(2, 7)
    actions = 2 * rng.standard_normal((4, 2))
    gap = alignment.covariance_gap(used, true, 0.3)
    found = alignment.jacobian(actions, gap)
    np.testing.assert_allclose(found, alignment.jacobian_by_differences(actions, gap), atol=1e-7)


def test_priors_too_far_apart_do_not_align() -> None:
    """Where V - B is not positive definite there is nothing to map to; said so."""
    used, true, rng = learners(2, 3)
    gap = alignment.covariance_gap(used, true, 50.0)
    with pytest.raises(bm.InputError, match="V - B is not positive definite"):
        alignment.aligned_actions(0.01 * rng.standard_normal((5, 2)), gap)
