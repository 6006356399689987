"""Constants of the theory: by hand, against each other, and as the command shows them."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.theory import bounds, theorems
from bayesmeta.theory import constants as c
from bayesmeta.theory.regime import Bounds, Regime
from tests.helpers import run

PAPER = bounds.regime_of(bm.paper_family(), 10_000)
SIMPLE = Regime.of(
    dim=1,
    horizon=100,
    tasks=100,
    noise_sd=1.0,
    radius=1.0,
    action_min=0.5,
    prior_min=1.0,
    prior_max=1.0,
    mean_norm=1.0,
)
JUMPY = Regime.of(
    dim=1,
    horizon=500,
    tasks=10,
    noise_sd=1.251876112782076e-05,
    radius=0.06391074442504793,
    action_min=0.0013615277509879315,
    prior_min=0.025856529874417108,
    prior_max=0.25856529874417106,
    mean_norm=1.0,
)
"""N_0 = N at 465; at 466 tau jumps, and N_0 with it."""


def some_regimes(size: int) -> list[Regime]:
    """Small noise, so that N_0 is small enough to count up to it."""
    rng, found = np.random.default_rng(6), []
    for _ in range(size):
        d, radius, low = int(rng.integers(1, 4)), rng.uniform(0.05, 2.0), 10 ** rng.uniform(-2, 1)
        share, tasks, horizon = rng.uniform(0.1, 1.0), *rng.integers(2, 1000, 2)
        noise = low * radius * 10 ** rng.uniform(-6.0, -3.5)
        found.append(
            Regime.of(
                dim=d,
                horizon=int(horizon),
                tasks=int(tasks),
                noise_sd=noise,
                radius=radius,
                action_min=share * radius**2 / d,
                prior_min=low,
                prior_max=low * rng.uniform(1, 10),
                mean_norm=1.0,
            )
        )
    return found


def test_constants_of_the_papers_experiment() -> None:
    """By hand: d = 5, lambda_A = a^2/(d+2) = 1/112, eigenvalues of Sigma 0.2 and 4.2, sigma 1."""
    assert PAPER.bounds.action_min == pytest.approx(1 / 112)
    assert c.tau_of(PAPER) == math.ceil(8 / 16 * 112 * math.log(25 * 1e8 * 200))
    assert c.gram_steps(PAPER, 1e-8) == pytest.approx(56 * math.log(5000 * 1e8))
    assert c.estimate_variance_of(PAPER) == pytest.approx(44.8 + 4.2)
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
    told = (p.dim, p.noise_sd, p.bounds.action_min, p.bounds.prior_max)
    eta = 1 / (p.dim * n * p.horizon)
    assert c.mean_radius(*told, n, eta) == pytest.approx(math.sqrt(c.f_m(p, n) / (n - 1)))
    wide = 2 * c.covariance_radius(*told, n, eta)
    assert wide == pytest.approx(math.sqrt(c.f_s(p, n) / (n - 1)))
    tau, fm, fs = c.tau_of(p), c.f_m(p, n), c.f_s(p, n)
    assert c.k_2(p) == pytest.approx(2 * math.sqrt(n) * c.k_1(p, tau, fm, fs, 1 / n))
    fm, fs = c.f_m(p, n + 1), c.f_s(p, n + 1)
    assert c.n_0(p) == pytest.approx(c.largest_m(p, tau, fm, fs, 1 / n))
    assert c.largest_m(replace(p, noise_sd=1e-9), tau, fm, fs, 0.3) == 3.0


def test_m_and_k_1_by_hand() -> None:
    """d = 1, c_s = 4, ln(dT/delta) = ln 10^4 = 9.210340, c_xi^2 = 46.05170, c_1 = 18.42068."""
    told = (10, 2.0, 0.5, 0.01)  # tau, f_m, f_s, delta
    # 18 46.05170 4 (2 + (18.42068 + 46.05170 4/36) / 2)
    assert c.largest_m(SIMPLE, *told) == pytest.approx(45653.42, rel=1e-6)
    assert c.largest_m(SIMPLE, 100, *told[1:]) == 80_000  # 4^2 100^2 / 2
    # 12 sqrt(46.05170 4 2/100) + (4 10 + 12 sqrt(46.05170 4 18.42068) + 8 46.05170) sqrt(1/200)
    # = 23.03292 + (40 + 699.01569 + 368.41361) 0.07071068
    assert c.k_1(SIMPLE, *told) == pytest.approx(101.3400, rel=1e-6)
    small = replace(SIMPLE, noise_sd=0.5)  # c_s = 1; c_xi^2 = 11.512925, or corrected 46.05170
    assert c.largest_m(small, *told) == pytest.approx(2356.285, rel=1e-6)
    assert c.largest_m(small, *told, corrected=True) == pytest.approx(9822.784, rel=1e-6)


def test_brackets_by_hand() -> None:
    """d = 2, T = 100, N = 10, a = 2, sigma = 1, lambda_max = 1, so lambda_max a^2 = 4 and ln 5 =
    1.609438; with 20 actions ln(4 20 T^2) = ln 8e5 = 13.592367 and ln(4 20 (NT)^2) = ln 8e7 =
    18.197537; ln(1 + 100) = 4.615121."""
    regime = Regime.of(
        dim=2,
        horizon=100,
        tasks=10,
        noise_sd=1.0,
        radius=2.0,
        action_min=1.0,
        prior_min=1.0,
        prior_max=1.0,
        mean_norm=1.0,
    )
    # 4 sqrt(4 / 1.609438 13.592367) sqrt(100 4.615121) + sqrt 8 = 23.248793 21.482832 + 2.828427
    assert theorems.prior_dependent_task(regime, 20) == pytest.approx(502.2783, rel=1e-6)
    # sqrt(8 4 18.197537 / 1.609438) sqrt(4.615121 2 100) = 19.021475 30.381312
    assert theorems.prior_dependent_meta(regime, 20) == pytest.approx(577.8974, rel=1e-6)
    # sqrt(8 13.592367 / 1.609438) sqrt(200 ln 201) + 2 / (4 sqrt(2 pi) 100)
    assert theorems.prior_dependent_corrected(regime, 20) == pytest.approx(267.6991, rel=1e-6)


def test_m_tilde_suffices() -> None:
    """delta = 1 / M-tilde satisfies delta <= 1 / (a ln^p(1/delta) + b)."""
    for a, b, p in ((1.0, 1.0, 1), (50.0, 3.0, 2), (1e6, 1e3, 3), (1 / 27, 0.5, 3)):
        delta = 1 / c.m_tilde(a, b, p)
        assert delta <= 1 / (a * math.log(1 / delta) ** p + b)


@pytest.mark.parametrize("corrected", [False, True])
def test_m_tilde_of_a_regime_suffices(corrected: bool) -> None:
    """N >= M-tilde is enough for delta = 1/N <= 1/M, with N_0 = M_{N+1} of Theorem 2; the
    polynomial is above M for all delta <= 1/3, and at 1/3 hardly."""
    for regime in [PAPER, SIMPLE, JUMPY, bounds.paper_regime(50), *some_regimes(30)]:
        enough = c.m_tilde_of(regime, corrected=corrected)
        a, b = c.bounding_polynomial(regime, corrected=corrected)
        assert a >= 1 / 27 and b >= 3
        for less in (1, 7, 10**6):
            n = math.ceil(enough) * less
            here = replace(regime, tasks=n)
            fm, fs = c.f_m(here, n + 1), c.f_s(here, n + 1)
            m = c.largest_m(here, c.tau_of(here), fm, fs, 1 / n, corrected)
            assert m / n <= 1 and (corrected or c.n_0(here) <= n)
        for n in (10**30, 10**9, 1000, 10, 3):
            here = replace(regime, tasks=n)
            fm, fs = c.f_m(here, n + 1), c.f_s(here, n + 1)
            m = c.largest_m(here, c.tau_of(here), fm, fs, 1 / n, corrected)
            assert m <= a * math.log(n) ** 3 + b
        assert a * math.log(3) ** 3 + b < 1.5 * m


def test_m_tilde_of_other_deviations() -> None:
    """f_m = f_s = d + ln(1/delta) and the tau of the lemma on the gram, as lines in ln(1/delta)."""
    for regime in [PAPER, SIMPLE, replace(PAPER, noise_sd=1e-3)]:
        d, per = regime.dim, 8 * regime.bounds.radius**2 / regime.bounds.action_min
        tau = (max(d, per * math.log(d**2 * regime.horizon)), per)
        delta = 1 / c.m_tilde_of(regime, tau, (d, 1.0), (d, 1.0))
        f = d - math.log(delta)
        assert delta * c.largest_m(regime, c.gram_steps(regime, delta), f, f, delta) <= 1


def test_the_smallest_horizon_and_tasks_are_smallest() -> None:
    """They do, and one less does not."""
    horizon = bounds.smallest_horizon(PAPER)
    assert c.tau_of(replace(PAPER, horizon=horizon)) < horizon
    assert c.tau_of(replace(PAPER, horizon=horizon - 1)) >= horizon - 1
    easy = PAPER.changed(noise_sd=1e-3, action_min=1 / 80, horizon=10_000)
    tasks = bounds.smallest_tasks(easy)
    assert tasks >= c.n_0(replace(easy, tasks=tasks))
    assert tasks == 2 or tasks - 1 < c.n_0(replace(easy, tasks=tasks - 1))
    both = replace(
        PAPER, **dict(zip(("horizon", "tasks"), bounds.smallest_both(PAPER), strict=True))
    )
    assert bounds.vacuous(both) == []
    assert len(bounds.vacuous(PAPER)) == 3 and bounds.vacuous(PAPER)[0].startswith("tau > T: 1,509")


def test_the_smallest_are_those_found_by_counting() -> None:
    """Also where tau jumps, so that N does, N + 1 does not, and N + 2 does."""
    assert bounds.smallest_tasks(JUMPY) == 465 == math.ceil(c.n_0(replace(JUMPY, tasks=465)))
    assert c.n_0(replace(JUMPY, tasks=466)) > 466
    compared = 0
    for regime in [JUMPY, *some_regimes(120)]:
        horizon = bounds.smallest_horizon(regime)
        counted = (t for t in range(1, 10**6) if c.tau_of(replace(regime, horizon=t)) < t)
        assert horizon == next(counted)
        for corrected in (False, True):
            tasks = bounds.smallest_tasks(regime, corrected)
            if tasks < 5000:
                compared += 1
                assert tasks == next(
                    n for n in range(2, 5000) if n >= c.n_0(replace(regime, tasks=n), corrected)
                )
    assert compared > 60


def test_the_least_of_both_do_not_depend_on_those_given() -> None:
    """From least values: below what is given where that is more than is needed; and no pair with
    a smaller T or N has both."""
    ample = Regime.of(
        dim=2,
        horizon=5000,
        tasks=100_000,
        noise_sd=1e-3,
        radius=1.0,
        action_min=0.25,
        prior_min=0.2,
        prior_max=1.8,
        mean_norm=2 * math.sqrt(2),
    )
    horizon, tasks = bounds.smallest_both(ample)
    assert horizon < 5000 and tasks <= bounds.smallest_tasks(ample) < 100_000
    assert bounds.smallest_both(replace(ample, tasks=2, horizon=1)) == (horizon, tasks)

    def holds(regime: Regime) -> bool:
        return c.tau_of(regime) < regime.horizon and c.n_0(regime) <= regime.tasks

    near = replace(JUMPY, noise_sd=1e-6)
    for corrected in (False, True):
        t, n = bounds.smallest_both(near, corrected)
        assert bounds.vacuous(replace(near, horizon=t, tasks=n), corrected) == []
    t, n = bounds.smallest_both(near)
    assert n < 100
    grid = [(i, j) for i in range(t - 50, t + 50) for j in range(2, n + 50)]
    good = [one for one in grid if holds(replace(near, horizon=one[0], tasks=one[1]))]
    assert (min(i for i, _ in good), min(j for _, j in good)) == (t, n) and (t, n) in good


@pytest.mark.parametrize("corrected", [False, True])
def test_where_theorem_2_beats_learning_nothing(corrected: bool) -> None:
    """k_2 sqrt(N) + N_0 < N at the least T and N, and not with one task less; the bound itself,
    with R = R_sing, is then below N R_sing."""
    for regime in [PAPER, SIMPLE, JUMPY, *some_regimes(20)]:
        horizon, tasks = bounds.smallest_informative(regime, corrected)
        found = replace(regime, horizon=horizon, tasks=tasks)
        assert bounds.informative(found, corrected) and not bounds.vacuous(found, corrected)
        bound = theorems.theorem_2(found, 1.0, 1.0, corrected)
        assert bound < tasks
        fewer = replace(found, tasks=min(tasks - 1, math.floor(tasks * (1 - 1e-12))))
        assert not bounds.informative(fewer, corrected)
        first, least = bounds.smallest_both(regime, corrected)
        assert first <= horizon and least <= tasks


def test_what_is_said_where_numbers_are_equal() -> None:
    """tau = T is tau >= T, N_0 = N is enough, and N_0 is compared rounded up."""
    tau = c.tau_of(PAPER)  # it grows with T; at its own value:
    while c.tau_of(replace(PAPER, horizon=tau)) > tau:
        tau = c.tau_of(replace(PAPER, horizon=tau))
    same = replace(PAPER, horizon=tau)
    assert bounds.vacuous(same)[0] == (
        f"tau >= T: {tau:,} steps of exploration in tasks of {tau:,}"
    )
    longer = replace(JUMPY, horizon=2000, tasks=2)
    tasks = bounds.smallest_tasks(longer)
    assert bounds.vacuous(replace(longer, tasks=tasks)) == []
    texts = bounds.vacuous(replace(longer, tasks=tasks - 1))
    assert texts[-1] == f"N_0 > N: {tasks} tasks of exploration of {tasks - 1}"


def test_the_papers_regime_in_closed_form() -> None:
    """As from the family."""
    for d in (1, 2, 5, 20):
        found = bounds.paper_regime(d, 50, 0.7).numbers()
        assert found == pytest.approx(
            bounds.regime_of(bm.paper_family(dim=d, radius=0.7), 50).numbers(), rel=1e-9
        )


@pytest.mark.parametrize("delta", [0, 1, 2, -1, math.nan])
def test_delta_is_a_probability(delta: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused by the functions, and by the command in one line."""
    with pytest.raises(bm.InputError, match="delta must be"):
        theorems.theorem_1(PAPER, 50, 1.0, 1.0, delta, 1.0)
    with pytest.raises(bm.InputError, match="delta must be"):
        bounds.describe_theory(PAPER, 20, delta)
    with pytest.raises(bm.InputError, match="delta must be"):
        bounds.vacuous(PAPER, delta=delta)
    assert run("theory", "--delta", str(delta)) == 2
    error = capsys.readouterr().err
    assert "--delta must be" in error and len(error.splitlines()) == 1


def test_delta_is_that_of_theorem_1(capsys: pytest.CaptureFixture[str]) -> None:
    """It changes c_xi, c_1, c_bad, M, k_1 and the bound; Theorem 2 has 1/N whatever it is."""
    usual, other = (
        {line.name: line.value for line in bounds.describe_theory(PAPER, 20, delta)}
        for delta in (None, 0.01)
    )
    changed = {name for name, value in usual.items() if value != other[name]}
    assert changed == {"c_xi", "c_1", "c_bad", "k_1", "Theorem 1"}  # M is c_s^2 tau^2 f_s here
    loud = replace(PAPER, noise_sd=100.0)
    assert bounds.describe_theory(loud, 20, 0.01)[9] < bounds.describe_theory(loud, 20)[9]
    assert other["c_1"] == pytest.approx(10 * math.log(5e5))
    assert run("theory", "--delta", "0.01", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["delta"] == 0.01 and found["constants"] == pytest.approx(other)
    assert found["vacuous"][1].startswith("delta > 1/M: Theorem 1 asks for delta <= ")


def test_bounds_are_what_they_are_made_of() -> None:
    """Theorem 1 and 2 with regret 0 and 1; both brackets grow with the horizon."""
    fm, fs = c.f_m(PAPER, 100), c.f_s(PAPER, 100)
    rest = theorems.theorem_1(PAPER, 50, fm, fs, 0.01, 0.0)
    assert rest == pytest.approx(c.c_bad(PAPER, 0.01) * 0.01 / math.sqrt(5))
    whole = theorems.theorem_1(PAPER, 50, fm, fs, 0.01, 2.0)
    assert whole - rest == pytest.approx(2 * c.k_1(PAPER, 50, fm, fs, 0.01))
    assert theorems.theorem_2(PAPER, 0.0, 2.0) == 2 * math.ceil(c.n_0(PAPER))
    assert theorems.theorem_2(PAPER, 1.0, 0.0) == pytest.approx(100 * c.k_2(PAPER))
    left_out = c.c_bad(PAPER, 1e-4) * (1 + math.log(1e4)) / math.sqrt(5)
    assert c.bad_tasks(PAPER) == pytest.approx(left_out)
    assert theorems.theorem_2(PAPER, 0.0, 0.0, corrected=True) == 0  # two or more on offer
    quiet = replace(PAPER, noise_sd=0.1)  # c_xi^2 without 0.1^2
    more = theorems.theorem_1(quiet, 0, 1.0, 0.0, 0.01, 1.0, corrected=True)
    less = theorems.theorem_1(quiet, 0, 1.0, 0.0, 0.01, 1.0)
    assert more - less == pytest.approx(0.9 * c.k_1(quiet, 0, 1.0, 0.0, 0.01, corrected=True))
    longer = replace(PAPER, horizon=400)
    for bracket in (theorems.prior_dependent_task, theorems.prior_dependent_meta):
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
    assert found["both"] == found["both_corrected"] and not found["informative"]
    assert found["informative_from"]["tasks"] > found["both"]["tasks"]


def test_theory_says_both_printed_and_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    """Where noise is small the printed constants promise more than they may; said side by side."""
    command = ["theory", "--dim", "2", "--radius", "1", "--noise-sd", "1e-3", "--horizon", "5e3"]
    assert run(*command, "--tasks", "1e5", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["regime"]["tasks"] == 100_000 and found["regime"]["horizon"] == 5000
    assert found["vacuous"] == [] and len(found["vacuous_corrected"]) == 2
    assert found["smallest_tasks_corrected"] > 100_000 > found["smallest_tasks"]
    for key in ("both", "informative_from"):
        assert found[f"{key}_corrected"]["tasks"] > found[key]["tasks"]
    assert found["both"]["tasks"] <= found["smallest_tasks"] < 100_000
    assert found["both"]["horizon"] < 5000
    assert "M" not in found["sharper"] and "task bound" in found["sharper"]
    assert "bad tasks" not in found["constants"]  # covered by N_0 R_sing
    assert run(*command, "--tasks", "100000") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "with the printed constants: the conditions of the theorems hold here" in shown
    assert "Theorem 2's bound is not below the trivial one" in shown
    assert "with the corrected constants: vacuous here, because delta = 1/N > 1/M" in shown
    assert "not vacuous" not in shown and "blank where it is the same" in shown
    assert run(*command, "--tasks", "1e10") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("the conditions of the theorems hold here") == 2
    assert shown.count("Theorem 2's bound is below the trivial one, N R_sing") == 1
    assert shown.count("Theorem 2's bound is not below the trivial one, N R_sing") == 1
    assert run("theory") == 0
    assert "with the corrected constants: the same" in capsys.readouterr().out


def test_a_large_dimension_takes_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    """No matrix of that size is made."""
    for dim in ("3000", "1000000"):
        assert run("theory", "--dim", dim, "--json") == 0
        found = json.loads(capsys.readouterr().out)["regime"]
        assert found["prior_max"] == pytest.approx(0.2 + 0.8 * int(dim))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--radius", "0"], "--radius must be greater than 0"),
        (["--noise-sd", "-1"], "--noise-sd must be greater than 0"),
        (["--tasks", "1"], "--tasks must be at least 2"),
        (["--dim", "0"], "--dim must be at least 1"),
        (["--prior-min", "5"], "prior_min (5) must not exceed prior_max (4.2)"),
        (["--action-min", "1"], "radius^2 / dim = 0.0125"),
        (["--horizon", "many"], "--horizon: must be a whole number, got 'many'"),
        (["--tasks", "1.5"], "--tasks: must be a whole number"),
        (["--tasks", "1e400"], "--tasks: must be a whole number"),
        (["--tasks", "1_0"], "--tasks: must be a whole number, got '1_0'"),
        (["--noise-sd", "1_5"], "--noise-sd: invalid float value: '1_5'"),
        (["--noise-sd", "1e-300"], "floating point with noise_sd 1e-300; bring it nearer to 1"),
        (["--noise-sd", "1e-160"], "noise_sd 1e-160"),
        (["--noise-sd", "1e200"], "noise_sd 1e+200"),
        (["--action-min", "1e-320"], "action_min 1e-320"),
        (["--radius", "1e200"], "radius 1e+200"),
        (["--radius", "1e-200"], "radius 1e-200"),
        (["--prior-min", "1e-300"], "prior_min 1e-300"),
        (["--prior-min", "1e-80"], "prior_min 1e-80"),
        (["--dim", "1" + "0" * 320], "dim of 1e+300 or more"),
        (["--horizon", "1" + "0" * 320], "horizon of 1e+300 or more"),
        (["--tasks", "1" + "0" * 320], "tasks of 1e+300 or more"),
    ],
)
def test_bad_regimes_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit code 2."""
    assert run("theory", *arguments) == 2
    error = capsys.readouterr().err
    assert words in error and len(error.splitlines()) == 1


def test_a_setting_is_a_regime() -> None:
    """One definition: the constants take what a learner is told as it is."""
    setting = bm.paper_family().setting(10_000)
    assert isinstance(setting, Regime) and setting.numbers() == PAPER.numbers()
    assert c.k_2(setting) == c.k_2(PAPER) and c.tau_of(setting) == c.tau_of(PAPER)
    assert bm.Bounds is Bounds and pickle.loads(pickle.dumps(setting)).bounds == PAPER.bounds


def test_a_regime_is_changed_by_name() -> None:
    """Numbers of the regime and of its bounds alike; other names and bad numbers are refused."""
    other = PAPER.changed(noise_sd=2.0, radius=3.0)
    assert (other.noise_sd, other.bounds.radius) == (2.0, 3.0)
    assert other.changed(noise_sd=1.0, radius=0.25) == PAPER
    assert Regime.of(**PAPER.numbers()) == PAPER  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="radii"):
        PAPER.changed(radii=1.0)
    with pytest.raises(bm.InputError, match="noise_sd must be greater than 0"):
        PAPER.changed(noise_sd=0.0)
    with pytest.raises(bm.InputError, match="must not exceed prior_max"):
        PAPER.changed(prior_min=5.0)


def test_the_estimate_variance_has_one_home() -> None:
    """f_m, f_s, k_2 and N_0 and the radii follow the one function, and c_w is 50 times it."""
    told = (PAPER.dim, PAPER.noise_sd, PAPER.bounds.action_min, PAPER.bounds.prior_max)
    each = c.estimate_variance(*told)
    assert each == c.estimate_variance_of(PAPER) == pytest.approx(49.0)
    assert c.widening_constant(*told) == c.widening_constant_of(PAPER) == 50 * each
    source = Path(c.__file__).read_text()
    assert source.count("noise_sd**2 / (action_min * dim)") == 1 and source.count("50 *") == 1
