"""Learned priors on real answers: 316 people, 24 items, every answer known (VerbAgg of lme4).

A person is a task, an item an action that can be asked once; its reward is the answer, 0 (no),
1 (perhaps) or 2 (yes), so that Gaussian noise is wrong. What that costs is seen beside a twin: the
same people drawn from the fitted model, whose noise is Gaussian.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesmeta.agents.agent import Agent
from bayesmeta.agents.exploration import every_step, no_exploration
from bayesmeta.agents.learners import UNKNOWN
from bayesmeta.agents.policies import greedy, thompson
from bayesmeta.agents.roster import ROSTER
from bayesmeta.checks import Array
from bayesmeta.data.shipped import load_data
from bayesmeta.estimators.estimate import PriorEstimate
from bayesmeta.estimators.fit import fit_prior
from bayesmeta.runner.study import Study, grid
from bayesmeta.simulation.table import replay
from bayesmeta.statistics import TaskStatistics
from bayesmeta.streams import stream

if TYPE_CHECKING:
    import xarray as xr

ITEMS = ("intercept", "scold", "shout", "self", "do")
"""Features of an item: what would be said, whose fault it is, and whether one wants it or does."""
ANSWERS = {"no": 0.0, "perhaps": 1.0, "yes": 2.0}
HORIZON = 8
"""Items asked of a person, a third of them."""
ORDERS = 4
"""Random orders of people."""
WORLDS = ("answers", "gaussian twin")
FACTORS = (0.5, 1.0, 2.0)
"""Of the noise that agents are told, beside that fitted."""

RANDOM = Agent("Random", thompson(), every_step(), UNKNOWN, "Random", note="asks at random")
NO_PRIOR = Agent("UKGreedy", greedy(), no_exploration(), UNKNOWN, "UKGreedy", note="knows nothing")
MOMENTS = replace(ROSTER["All-MTS_w10"], name="All-MGreedy_w10", policy=greedy())
POSTERIORS = (ROSTER["HB-TS"], ROSTER["HB-Greedy"])
"""Slow: played in the answers alone, with the noise fitted."""
ROWS = (
    RANDOM,
    ROSTER["UKTS"],
    NO_PRIOR,
    ROSTER["REML-TS"],
    ROSTER["REML-Greedy"],
    ROSTER["All-MTS_w10"],
    MOMENTS,
    ROSTER["KTS"],
    ROSTER["KGreedy"],
)
"""KTS and KGreedy know the prior fitted to all people beforehand."""


@cache
def answers() -> tuple[Array, Array]:
    """Rewards (person, item), and features of the items."""
    frame = load_data("VerbAgg")
    table = frame.assign(reward=frame["resp"].map(ANSWERS)).pivot(
        index="id", columns="item", values="reward"
    )
    items = frame.drop_duplicates("item").set_index("item").loc[table.columns]
    features = np.column_stack(
        [
            np.ones(len(items)),
            items["btype"] == "scold",
            items["btype"] == "shout",
            items["situ"] == "self",
            items["mode"] == "do",
        ]
    )
    return table.to_numpy(float), features.astype(float)


@cache
def fitted() -> PriorEstimate:
    """REML of all answers."""
    rewards, features = answers()
    task = np.arange(len(rewards)).repeat(len(features))
    stats = TaskStatistics.from_arrays(task, rewards.ravel(), np.tile(features, (len(rewards), 1)))
    return fit_prior(stats)


def by_means(rewards: Array, horizon: int) -> Array:
    """What those items earn that all other people answer highest: no model, no learning within a
    person, but everybody's answers."""
    others = rewards.sum(axis=0) - rewards
    best = np.argsort(-others, axis=1, kind="stable")[:, :horizon]
    earned: Array = np.take_along_axis(rewards, best, axis=1).sum(axis=1)
    return earned


def one_order(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """One cell: what each row earns of each person, who come in a random order."""
    import xarray as xr

    rewards, features = answers()
    found = fitted()
    assert found.noise_sd is not None
    if settings["world"] != "answers":
        rng = stream(seed, "twin")
        rewards = found.prior.sample(rng, len(rewards)) @ features.T
        rewards = rewards + found.noise_sd * rng.standard_normal(rewards.shape)
    slow = POSTERIORS if settings["world"] == "answers" and settings["noise"] == 1.0 else ()
    played = replay(
        rewards,
        features,
        [*ROWS, *slow],
        noise_sd=settings["noise"] * found.noise_sd,
        told=found.prior,
        horizon=HORIZON,
        random_seed=seed % 2**31,
    )
    total = played.reward.sum("step").reindex(agent=[row.name for row in (*ROWS, *POSTERIORS)])
    back = np.argsort(played.row.values)
    each = total.values[:, back]
    return xr.Dataset(
        {
            "reward": (("agent", "person"), each, {"long_name": "total reward of a person"}),
            "late": ("agent", total.values[:, len(rewards) // 2 :].mean(axis=1)),
            "means": ("person", by_means(rewards, HORIZON)),
            "best": ("person", played.best.sum("step").values[back]),
        },
        coords={"agent": total.agent.values, "person": np.arange(len(rewards))},
    )


def summary(record: xr.Dataset) -> xr.Dataset:
    """Means over people and orders, with errors over people of what is gained over asking at
    random and over no prior; what the best items would earn in hindsight."""
    import xarray as xr

    each = record.reward.mean("order")
    beside = {"random": each.sel(agent="Random"), "no_prior": each.sel(agent="UKGreedy")}
    out: dict[str, Any] = {
        "reward": each.mean("person"),
        "late": record.late.mean("order"),
        "means": record.means.mean(["order", "person"]),
        "best": record.best.mean(["order", "person"]),
        "between_orders": record.reward.mean("person").std("order", ddof=1),
    }
    for name, base in beside.items():
        gain = each - base
        out[f"over_{name}"] = gain.mean("person")
        out[f"over_{name}_error"] = gain.std("person", ddof=1) / np.sqrt(gain.sizes["person"])
    gap = record.means.mean("order") - beside["random"]
    out["means_over_random"] = gap.mean("person")
    out["means_over_random_error"] = gap.std("person", ddof=1) / np.sqrt(gap.sizes["person"])
    found = fitted()
    attrs = {
        "people": record.sizes["person"],
        "items": len(answers()[1]),
        "horizon": HORIZON,
        "orders": record.sizes["order"],
        "features": list(ITEMS),
        "prior_mean": found.prior.mean.tolist(),
        "prior_sd": np.sqrt(np.diag(found.prior.cov)).tolist(),
        "noise_sd": found.noise_sd,
    }
    return xr.Dataset(out).assign_attrs(attrs)


def study_of(name: str, world: str, note: str) -> Study:
    """One world, at every noise that agents are told."""
    return Study(
        name,
        grid(world=[world], noise=FACTORS, order=range(ORDERS)),
        one_order,
        random_seed=18,
        dims=("world", "noise", "order"),
        note=note,
        keep=summary,
        record=f"rivals/{name}.nc",
    )


STUDIES = (
    study_of("replay", WORLDS[0], "learned priors on real answers, replayed without a model"),
    study_of("replay-twin", WORLDS[1], "the same on answers drawn from the fitted model"),
)
"""What is recorded in analyses/rivals beside ``rivals``."""
