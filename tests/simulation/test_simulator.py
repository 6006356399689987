"""The simulator and the roster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bayesmeta as bm
from bayesmeta.agents.exploration import Rule
from bayesmeta.agents.learners import KNOWN, Moments
from bayesmeta.agents.roster import ROSTER, find_agents, with_references
from bayesmeta.posterior.model import Problem
from bayesmeta.posterior.quick import Drawn
from bayesmeta.simulation.records import thin
from bayesmeta.simulation.simulator import VARIABLES, simulate_run
from bayesmeta.streams import ENVIRONMENT, cell_seed, stream


@pytest.fixture(scope="module")
def small() -> xr.Dataset:
    """Figure 1's agents on a short run."""
    return bm.simulate(
        bm.paper_family(horizon=40), find_agents(bm.agents.FIGURE_1), tasks=140, runs=2
    )


def test_the_record_holds_what_it_should(small: xr.Dataset) -> None:
    """Dimensions, variables, units in words, and enough attributes to repeat it."""
    assert dict(small.sizes) == {"run": 2, "agent": 8, "task": 140}
    assert set(small.data_vars) == set(VARIABLES)
    assert all(small[name].attrs["long_name"] for name in VARIABLES)
    assert not small.isnull().any().to_array().any()
    settings = json.loads(small.attrs["settings"])
    assert settings["tasks"] == 140
    assert settings["seed"] == 0
    assert settings["family"]["violations"] == {}
    assert len(settings["agents"]) == 8
    assert {"bayesmeta", "numpy", "numba", "python"} <= set(json.loads(small.attrs["versions"]))


def test_relative_regret_is_paired_with_the_reference(small: xr.Dataset) -> None:
    """Eqs. (2) and (3): regret less that of the reference in the same run and task."""
    for name in small.agent.values:
        reference = str(small.reference.sel(agent=name).values)
        difference = small.regret.sel(agent=name) - small.regret.sel(agent=reference)
        np.testing.assert_array_equal(small.relative_regret.sel(agent=name), difference)


def test_errors_of_known_priors(small: xr.Dataset) -> None:
    """KTS errs in nothing, KMTS in the covariance alone; learners begin as UKTS."""
    assert (small.mean_error.sel(agent="KTS") == 0).all()
    assert (small.covariance_error.sel(agent="KTS") == 0).all()
    assert (small.mean_error.sel(agent="KMTS") == 0).all()
    np.testing.assert_allclose(small.covariance_error.sel(agent="KMTS"), 4.0)
    np.testing.assert_allclose(small.mean_error.sel(agent="UKTS"), np.sqrt(20))
    warm = small.sel(agent="All-MTS", task=slice(1, 125))
    np.testing.assert_allclose(warm.mean_error, np.sqrt(20))
    assert (small.mean_error.sel(agent="All-MTS", task=126) < 4).all()


def test_errors_are_those_of_the_prior_in_use() -> None:
    """Algorithm 2, task by task: the block-wise bookkeeping of errors, across blocks, against the
    player's own priors."""
    family = bm.paper_family(horizon=12)
    row = replace(ROSTER["All-MTS_tau"], warmup=3)
    result = simulate_run(family, [row], tasks=300)
    player = bm.Player(row, family.setting(300))
    rng = stream(0, ENVIRONMENT)
    for n in range(300):
        task = family.draw(rng)
        estimate = player.start_task()
        player.play(task)
        raw = estimate.prior.cov if estimate.raw_cov is None else estimate.raw_cov
        expected = (
            np.linalg.norm(estimate.prior.mean - 2.0),
            np.linalg.norm(estimate.prior.cov - family.prior.cov, 2),
            np.linalg.norm(raw - family.prior.cov, 2),
            np.linalg.eigvalsh(estimate.prior.cov)[0],
        )
        errors = ("mean_error", "covariance_error", "raw_covariance_error", "smallest_eigenvalue")
        found = [result[name][0, n] for name in errors]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_same_bits_whatever_the_jobs() -> None:
    """One process or two, the same record to the bit."""
    family, rows = bm.paper_family(horizon=20), find_agents(["UKTS", "All-MTS"])
    rows = [replace(row, warmup=5) if row.name == "All-MTS" else row for row in rows]
    one, two = (bm.simulate(family, rows, tasks=70, runs=3, random_seed=7, jobs=j) for j in (1, 2))
    xr.testing.assert_identical(one, two)


def test_an_agents_randomness_is_keyed_by_its_name() -> None:
    """Adding rows or changing their order changes no other; another name, another stream."""
    family = bm.paper_family(horizon=20)
    alone = simulate_run(family, [ROSTER["KTS"]], tasks=5)["regret"][0]
    renamed = replace(ROSTER["KTS"], name="renamed")
    together = simulate_run(family, [renamed, ROSTER["UKTS"], ROSTER["KTS"]], tasks=5)["regret"]
    np.testing.assert_array_equal(together[2], alone)
    assert (together[0] != alone).any()


def test_fewer_tasks_are_a_prefix() -> None:
    """The first tasks of a long run are those of a short one."""
    family = bm.paper_family(horizon=20)
    short, long = (simulate_run(family, [ROSTER["UKTS"]], tasks=n)["regret"] for n in (4, 9))
    np.testing.assert_array_equal(short, long[:, :4])


def test_runs_differ() -> None:
    """Another run or another seed is another experiment; more runs leave the first as they are."""
    family = bm.paper_family(horizon=20)
    one, two, other = (
        bm.simulate(family, "UKTS", tasks=3, runs=runs, random_seed=seed).regret.sel(agent="UKTS")
        for runs, seed in ((2, 0), (3, 0), (2, 1))
    )
    assert len(np.unique(two)) == two.size
    assert not np.isin(other, two).any()
    np.testing.assert_array_equal(two[:2], one)
    alone = simulate_run(family, [ROSTER["UKTS"]], tasks=3, seed=cell_seed(0, "run=1"))
    np.testing.assert_array_equal(alone["regret"][0], one[1])


def test_progress_counts_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar is told the runs that are done, and parts of the one under way."""
    said: list[float] = []

    @contextmanager
    def bar(title: str, unit: str, total: int, done: int = 0) -> Iterator[object]:
        yield said.append

    monkeypatch.setattr("bayesmeta.runner.run.progress_bar", bar)
    bm.simulate(bm.paper_family(horizon=5), "KTS", tasks=128, runs=2, progressbar=True)
    assert {0.5, 1.0, 1.5, 2.0} <= set(said) and said == sorted(said)


def test_a_folder_keeps_runs_and_never_mixes_families(tmp_path: Path) -> None:
    """Played again from a folder: the same record, nothing played; other families are played."""
    family = bm.paper_family(horizon=5)
    first = bm.simulate(family, "UKTS", tasks=4, runs=2, folder=tmp_path)
    xr.testing.assert_identical(first, bm.simulate(family, "UKTS", tasks=4, runs=2))
    files = sorted((tmp_path / "cells").iterdir())
    again = bm.simulate(family, "UKTS", tasks=4, runs=2, folder=tmp_path)
    xr.testing.assert_identical(first, again)
    assert sorted((tmp_path / "cells").iterdir()) == files
    other = replace(family, noise_sd=2.0)
    mixed = bm.simulate(other, "UKTS", tasks=4, runs=2, folder=tmp_path)
    xr.testing.assert_identical(mixed, bm.simulate(other, "UKTS", tasks=4, runs=2))
    changed = bm.simulate(family, replace(ROSTER["UKTS"], note="else"), tasks=4, folder=tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 3 and changed.sizes["run"] == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_learner_raises_is_raised(jobs: int) -> None:
    """With its type and message, from this process or another."""
    row = replace(ROSTER["UKTS"], name="fails", learner=Fails(), warmup=0)
    with pytest.raises(ZeroDivisionError, match="at task 2"):
        bm.simulate(bm.paper_family(horizon=5), row, tasks=4, runs=2, jobs=jobs)


class Fails:
    """A learner that raises after two tasks."""

    all_steps = True

    def start(self, setting: bm.Setting) -> int:
        return 0

    def observe(self, memory: int, task: object) -> int:
        return memory + 1

    def estimate(self, memory: int, setting: bm.Setting, rng: object) -> bm.PriorEstimate:
        if memory == 2:
            raise ZeroDivisionError("at task 2")
        return bm.PriorEstimate(bm.GaussianPrior(np.zeros(5), np.eye(5)), bm.Status.OK)


def test_the_seed_goes_by_either_name() -> None:
    """``random_seed`` as PyMC has it, or ``seed``; not both."""
    family = bm.paper_family(horizon=5)
    one = bm.simulate(family, "KTS", tasks=2, random_seed=3)
    xr.testing.assert_identical(one, bm.simulate(family, "KTS", tasks=2, seed=3))
    with pytest.raises(bm.InputError, match="seed is the earlier name of random_seed"):
        bm.simulate(family, "KTS", tasks=2, seed=3, random_seed=3)


@pytest.mark.parametrize("name", ROSTER)
def test_every_row_names_a_fair_reference(name: str) -> None:
    """The reference plays the same policy with the same exploration and knows the true prior."""
    row, reference = ROSTER[name], ROSTER[ROSTER[name].reference]
    assert row.name == name
    assert reference.policy == row.policy
    assert reference.exploration == row.exploration
    assert reference.learner == KNOWN
    assert reference.reference == reference.name
    assert row.note


def test_rows_have_the_papers_settings() -> None:
    """N_0 = d^3, threshold 0.03, c_w 10 or 1, all samples or exploration alone (Section 6)."""
    theory, both, everything = (ROSTER[n] for n in ("Th-MTS_tau", "All-MTS_tau", "All-MTS"))
    setting = bm.paper_family().setting(10)
    assert [row.warmup_tasks(setting) for row in (theory, both, everything)] == [125] * 3
    assert theory.learner == Moments(all_steps=False, widening=10.0)
    assert both.learner == everything.learner == Moments(all_steps=True, widening=1.0)
    assert theory.exploration == both.exploration == bm.agents.until_eigenvalue(0.03)
    assert everything.exploration.rule is Rule.RESCUE


def test_an_agent_with_its_own_learner_is_one_more_row() -> None:
    """A prior from somewhere else needs three methods and no change to the package."""

    class Fresh:
        all_steps = True

        def start(self, setting: bm.Setting) -> list[float]:
            return []

        def observe(self, memory: list[float], task: object) -> list[float]:
            return [*memory, task.energy]  # type: ignore[attr-defined]

        def estimate(self, memory: list[float], setting: bm.Setting, rng: object):
            prior = bm.GaussianPrior(np.full(2, len(memory)), np.eye(2))
            return bm.PriorEstimate(prior, bm.Status.OK)

    family = bm.TaskFamily(
        bm.GaussianPrior(np.zeros(2), np.eye(2)), bm.UniformBall(2, 1.0, 5), 1.0, 10
    )
    row = bm.Agent("mine", bm.agents.thompson(), bm.agents.no_exploration(), Fresh(), "KTS")
    record = bm.simulate(family, [row], tasks=4)
    np.testing.assert_allclose(
        record.mean_error.sel(agent="mine", run=0), np.arange(4) * np.sqrt(2)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": 0}, "tasks must be at least 1"),
        ({"tasks": 2.5}, "tasks must be a whole number"),
        ({"runs": 0}, "runs must be at least 1"),
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"random_seed": -1}, "random_seed must be at least 0"),
        ({"agents": []}, "agents is empty"),
        ({"agents": [ROSTER["KTS"], ROSTER["KTS"]]}, "two agents are called 'KTS'"),
    ],
)
def test_bad_input(changes: dict, message: str) -> None:
    """Every argument is checked before anything is played."""
    arguments = {
        "agents": [ROSTER["KTS"]],
        "tasks": 2,
        "runs": 1,
        "random_seed": 0,
        "jobs": 1,
    } | changes
    with pytest.raises(bm.InputError, match=message):
        bm.simulate(bm.paper_family(), **arguments)


def test_tau_longer_than_the_task_is_refused() -> None:
    """Eq. (8) at the paper's settings asks for more steps than a task has."""
    row = replace(ROSTER["Th-MTS_tau"], exploration=bm.agents.theoretical_steps())
    with pytest.raises(bm.InputError, match=r"tau of eq. \(8\) is \d+ steps but .* horizon 200"):
        bm.simulate(bm.paper_family(), [row], tasks=10)


def test_functions_that_cannot_travel_are_named() -> None:
    """A lambda in a family works in one process and is refused for two, with what to do."""
    family = bm.TaskFamily(
        bm.GaussianPrior(np.zeros(2), np.eye(2)),
        bm.RadialDensity(2, 1.0, 4, density=lambda r: np.exp(-r)),
        1.0,
        10,
    )
    with pytest.raises(bm.InputError, match="use jobs=1"):
        bm.simulate(family, [ROSTER["KTS"]], tasks=2, runs=2, jobs=2)
    assert bm.simulate(family, [ROSTER["KTS"]], tasks=2, runs=2).sizes["run"] == 2


def test_names() -> None:
    """An unknown agent is refused with the nearest name; references come along once."""
    with pytest.raises(bm.InputError, match="unknown agent 'Th-MTS'; did you mean 'Th-MTS_tau'"):
        find_agents(["Th-MTS"])
    names = [row.name for row in with_references(find_agents(["All-MTS", "Th-MTS_tau"]))]
    assert names == ["All-MTS", "Th-MTS_tau", "KTS_rescue", "KTS_tau"]


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("base", ["Th-MTS_tau", "All-MTS"])
def test_units_do_not_matter_to_a_learner(unit: float, base: str) -> None:
    """Rewards, noise, prior times c, threshold over c^2, c_w times c^2: the same experiment."""
    regrets = []
    for c in (1.0, unit):
        plain = bm.paper_family(horizon=40)
        prior = bm.GaussianPrior(c * plain.prior.mean, c**2 * plain.prior.cov)
        family = replace(plain, prior=prior, noise_sd=c)
        row = ROSTER[base]
        rule = replace(row.exploration, threshold=row.exploration.threshold / c**2)
        learner = replace(row.learner, widening=row.learner.widening * c**2)
        row = replace(row, exploration=rule, learner=learner, warmup=6)
        regrets.append(simulate_run(family, [row], tasks=40)["regret"][0] / c)
    np.testing.assert_allclose(regrets[1], regrets[0], rtol=1e-7)


def test_a_change_of_policy_leaves_the_other_agents_alone() -> None:
    """An agent whose warm-up plays another policy does not disturb those beside it, ever."""
    family = bm.paper_family(horizon=15)
    changing = replace(ROSTER["All-MTS"], warmup=3, warmup_policy=bm.agents.v_ids(draws=5))
    rows = [ROSTER["UKTS"], changing, ROSTER["KMTS"]]
    together = simulate_run(family, rows, tasks=8)["regret"]
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(
            together[i], simulate_run(family, [row], tasks=8)["regret"][0]
        )


def test_tasks_that_cannot_be_used_are_recorded() -> None:
    """With two fixed actions in three dimensions no task is usable, and the record says so."""
    family = bm.TaskFamily(
        bm.GaussianPrior(np.zeros(3), np.eye(3)), bm.UniformBall(3, 1.0, 2, "task"), 1.0, 100
    )
    record = bm.simulate(family, replace(ROSTER["All-MTS"], warmup=2), tasks=40)
    passed = record.passed_over.sel(agent="All-MTS", run=0).values
    np.testing.assert_array_equal(passed[2:], np.arange(2, 40))
    assert float(record.covariance_error.max()) < 10


def test_fits_that_cannot_be_trusted_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks played so far with a prior from a chain that went wrong, here every third one; in
    summaries, too, which need no such count of an older record."""
    fits = []

    def chain(problem: Problem, *, draws: int, **rest: object) -> Drawn:
        fits.append(len(problem.stats))
        mu = np.random.default_rng(0).standard_normal((draws, 1))
        found = {"mu": mu, "Sigma": np.ones((draws, 1, 1))}
        return Drawn(found, None, int(fits[-1] % 3 == 0), "nuts")

    monkeypatch.setattr("bayesmeta.posterior.online.draw_quickly", chain)
    family = bm.TaskFamily(
        bm.GaussianPrior([1.5], [[0.4]]), bm.UniformBall(1, 1.0, 5), noise_sd=0.7, horizon=4
    )
    record = bm.simulate(family, ["HB-TS", "KTS"], tasks=30)
    used = [max((k for k in fits if k <= n), default=0) for n in range(30)]
    bad = np.cumsum([k > 0 and k % 3 == 0 for k in used])
    np.testing.assert_array_equal(record.untrusted.sel(agent="HB-TS", run=0), bad)
    assert 0 < bad[-1] < 29 and (record.untrusted.sel(agent="KTS") == 0).all()
    old = record.drop_vars("untrusted")
    for found in (record, thin(record)):
        assert bm.summarise(found)["HB-TS"]["untrusted"] == bad[-1]
    assert "untrusted" not in bm.summarise(thin(old))["HB-TS"]


@pytest.mark.parametrize("singular", [0.0, 1.0])
def test_a_family_with_a_singular_prior_is_played(singular: float) -> None:
    """Sigma_* of rank one, or zero: recorded as violating Assumption 2, and played all the same."""
    direction = np.array([1.0, 2.0, 0.5])
    family = bm.TaskFamily(
        bm.GaussianPrior(np.ones(3), singular * np.outer(direction, direction)),
        bm.UniformBall(3, 1.0, 6),
        0.5,
        30,
    )
    assert family.told().prior_min == 0
    assert "Assumption 2" in family.violations()
    rows = ["KTS", replace(ROSTER["All-MTS"], warmup=3)]
    record = bm.simulate(family, rows, tasks=30)
    assert not record.isnull().any().to_array().any()


@pytest.mark.parametrize("name", ["environment", "KTS/learner", ""])
def test_names_that_would_share_a_stream_are_refused(name: str) -> None:
    """The environment's stream and the learners' are not to be had by a name."""
    with pytest.raises(bm.InputError, match="cannot be called"):
        replace(ROSTER["KTS"], name=name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": bm.agents.thompson}, "policy must be Policy"),
        ({"exploration": "none"}, "exploration must be Exploration"),
        ({"learner": bm.agents.Moments}, "learner of agent KTS must be an object"),
        ({"learner": bm.agents.Moments(widening=1.0)}, "never explores"),
        ({"warmup": 2.5}, "warmup of agent KTS must be a whole number"),
    ],
)
def test_a_row_is_checked_when_it_is_made(changes: dict, message: str) -> None:
    """What cannot be played is refused with the row, not in the middle of a run."""
    with pytest.raises(bm.InputError, match=message):
        replace(ROSTER["KTS"], **changes)


def test_agents_can_be_given_by_name() -> None:
    """Names of the roster do as well as rows, one alone as well as several."""
    family = bm.paper_family(horizon=5)
    for agents in ("KTS", ["KTS"], ROSTER["KTS"], [ROSTER["KTS"]]):
        assert bm.simulate(family, agents, tasks=2).agent.values.tolist() == ["KTS"]
    with pytest.raises(bm.InputError, match="agent must be Agent"):
        bm.simulate(family, [3], tasks=2)


def test_descriptions_keep_every_digit() -> None:
    """A record's settings hold arrays in full and functions by name."""
    family = bm.TaskFamily(
        bm.GaussianPrior(np.full(2, 1 / 3), np.eye(2)), bm.FiniteSet(np.eye(2) / 3), 1.0, 5
    )
    settings = json.loads(bm.simulate(family, "KTS", tasks=1).attrs["settings"])
    assert settings["family"]["mean"] == [1 / 3, 1 / 3]
    assert settings["family"]["actions"]["actions"] == (np.eye(2) / 3).tolist()
    assert settings["agents"][0]["policy"]["posterior_draws"] == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_warm_up_that_cannot_be_played_is_refused_at_once(jobs: int) -> None:
    """The whole ball with a warm-up that compares actions: refused before any process starts."""
    prior = bm.GaussianPrior(np.zeros(2), np.eye(2))
    family = bm.TaskFamily(prior, bm.WholeBall(2, 1.0), 1.0, 5)
    row = replace(ROSTER["All-MTS"], warmup=1, warmup_policy=bm.agents.oful(norm_bound=3.0))
    with pytest.raises(bm.InputError, match=r"policy oful .* whole ball"):
        bm.simulate(family, row, tasks=2, runs=2, jobs=jobs)


def test_a_refused_row_is_named() -> None:
    """Of several rows the one that this family cannot be played with."""
    with pytest.raises(bm.InputError, match=r"^AdaTS: this agent is told a hyper-prior"):
        bm.simulate(bm.paper_family(dim=2, horizon=20), ["KTS", "AdaTS"], tasks=2, runs=1)
