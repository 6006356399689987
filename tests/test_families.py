"""Families with a hyper-prior: what is drawn for a run, what is told, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.checks import InputError
from bayesmeta.runner.plain import describe
from bayesmeta.simulation.records import settings_of
from bayesmeta.simulation.simulator import simulate_run


def test_every_run_has_a_mean_of_its_own() -> None:
    """Drawn from the hyper-prior by the seed of the run; tasks and noise as without."""
    family = bm.arms_family(arms=2, hyper_sd=3.0)
    means = np.array([family.in_run(seed).prior.mean for seed in range(400)])
    assert np.abs(means.std(axis=0) - 3.0).max() < 0.5 and np.abs(means.mean(axis=0)).max() < 0.6
    np.testing.assert_array_equal(family.in_run(5).prior.mean, means[5])
    assert not family.in_run(5).redraw and family.in_run(5).hyper is family.hyper
    fixed = bm.arms_family(arms=2, mean=[0.5, -1.0])
    assert fixed.in_run(3) is fixed and not fixed.redraw


def test_the_mean_of_a_run_is_what_its_agents_meet() -> None:
    """KTS is told it, and it is where errors are measured from: a run is one at that mean."""
    family = bm.linear_family(dim=2, horizon=10)
    rows = [bm.ROSTER[name] for name in ("KTS", "AdaTS")]
    found = simulate_run(family, rows, tasks=5, seed=3)
    again = simulate_run(family.in_run(3), rows, tasks=5, seed=3)
    for name, values in found.items():
        np.testing.assert_array_equal(values, again[name], err_msg=name)
    assert (found["mean_error"][0] == 0).all() and (found["mean_error"][1] > 0).all()


def test_records_tell_bayes_regret_from_that_at_one_mean() -> None:
    """In words, and in the settings that repeat them; families without hyper-prior say neither."""
    drawn = bm.simulate(bm.arms_family(arms=2, horizon=5), "KTS", tasks=2, runs=2)
    fixed = bm.simulate(bm.arms_family(arms=2, horizon=5, mean=[0, 1]), "KTS", tasks=2, runs=2)
    assert "drawn from the hyper-prior" in drawn.attrs["regret"]
    assert fixed.attrs["regret"] == "at the one mu_* of the family"
    assert settings_of(drawn)["family"]["redraw"] and not settings_of(fixed)["family"]["redraw"]
    plain = bm.simulate(bm.paper_family(dim=2, horizon=5), "KTS", tasks=2)
    assert "regret" not in plain.attrs and "hyper" not in json.dumps(settings_of(plain))


def test_descriptions_of_what_has_no_hyper_prior_stay() -> None:
    """A field that came later is written only where it is used: digests of studies stay."""
    plain = bm.paper_family(dim=2)
    assert "hyper" not in describe(plain) and "redraw" not in describe(plain)
    assert describe(bm.arms_family())["redraw"] is True
    assert "level" not in describe(bm.agents.bayes_ucb())
    assert describe(bm.agents.bayes_ucb("total"))["level"] == "total"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bm.arms_family(arms=0), "count must be at least 1"),
        (lambda: bm.arms_family(hyper_sd=-1.0), "hyper_sd must be at least 0"),
        (lambda: bm.arms_family(prior_sd=np.nan), "prior_sd must be finite"),
        (lambda: bm.arms_family(arms=2, mean=[1.0]), "mean must have shape"),
        (lambda: bm.linear_family(dim=0), "dim must be at least 1"),
        (lambda: replace(bm.paper_family(), redraw=True), "redraw needs hyper"),
        (lambda: replace(bm.paper_family(), hyper=3), "hyper must be"),
        (
            lambda: replace(bm.paper_family(), hyper=bm.arms_family().hyper),
            "hyper has dimension 4, the tasks have 5",
        ),
    ],
)
def test_bad_families_are_refused_by_name(make, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        make()


def test_a_family_shows_its_hyper_prior() -> None:
    assert "drawn for every run" in repr(bm.arms_family())
    assert "mu is fixed" in repr(bm.arms_family(arms=1, mean=[0.0]))


def test_each_action_once() -> None:
    """Action k in step k, by the kernel and step by step; the whole ball is refused."""
    row = replace(bm.ROSTER["AdaTS"], exploration=bm.agents.each_action_once())
    family = bm.arms_family(arms=4, horizon=9)
    player = bm.Player(row, family.setting(2))
    player.start_task()
    outcome = player.play(family.draw(np.random.default_rng(0)))
    assert outcome.chosen[:4].tolist() == [0, 1, 2, 3] and outcome.explored == 4
    player.start_task()
    asked = []
    for _ in range(4):
        asked.append(player.ask(np.eye(4)))
        player.tell(0.0)
    assert asked == [0, 1, 2, 3]
    ball = replace(bm.linear_family(dim=2), actions=bm.WholeBall(2, 1.0))
    with pytest.raises(InputError, match=r"^each_action_once takes finitely many actions"):
        bm.simulate(ball, row, tasks=2)
    player = bm.Player(row, ball.setting(2))
    player.start_task()
    with pytest.raises(InputError, match=r"^each_action_once takes finitely many actions"):
        player.ask()
