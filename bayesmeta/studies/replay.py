"""Learned priors on real answers, every one known: people are tasks, items actions asked once.

VerbAgg of lme4: 316 people, 24 items, an answer is 0 (no), 1 (perhaps) or 2 (yes). bfi of psych:
2,436 people without a missing answer, 25 items, an answer is 1 (very inaccurate) to 6 (very
accurate). So Gaussian noise is wrong; what that costs is seen beside a twin: the same people drawn
from the fitted model, whose noise is Gaussian.

Looked at, and left out: MovieLens and InstEval (a person has seen few of the films or lecturers,
and chose them: what the others would have earned is not known), cheese and orange juice of bayesm
(a week has one price, of others the sales are a model's), barley of lattice (12 fields, fewer than
rows need to learn), Chem97 (pupils of a school, no two of which can be asked the same).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
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

VERBAL, TRAITS = "VerbAgg", "bfi"
ITEMS = {
    VERBAL: ("intercept", "scold", "shout", "self", "do"),
    TRAITS: ("intercept", "agreeable", "conscientious", "extravert", "neurotic", "open"),
}
"""Features of an item: what would be said, whose fault it is, and whether one wants it or does; or
which trait it asks for, 1, or for the lack of which, -1."""
ANSWERS = {"no": 0.0, "perhaps": 1.0, "yes": 2.0}
REVERSED = ("A1", "C4", "C5", "E1", "E2", "O2", "O5")
"""Items of bfi that ask for the lack of a trait, by the key of psych."""
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
"""Slow: played in the answers of VerbAgg alone, with the noise fitted."""
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
def answers(data: str = VERBAL) -> tuple[Array, Array]:
    """Rewards (person, item), and features of the items."""
    return _verbal() if data == VERBAL else _traits()


def _verbal() -> tuple[Array, Array]:
    frame = load_data(VERBAL)
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


def _traits() -> tuple[Array, Array]:
    """People who answered everything; names of items begin with the letter of their trait."""
    names = [f"{trait}{k}" for trait in "ACENO" for k in range(1, 6)]
    table = load_data(TRAITS)[names].dropna().to_numpy(float)
    asked = [["ACENO".index(name[0]), -1 if name in REVERSED else 1] for name in names]
    features = np.zeros((len(names), 6))
    features[:, 0] = 1.0
    for row, (trait, sign) in zip(features, asked, strict=True):
        row[1 + trait] = sign
    return table, features


@cache
def fitted(data: str = VERBAL) -> PriorEstimate:
    """REML of all answers."""
    rewards, features = answers(data)
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

    data = settings.get("data", VERBAL)
    (rewards, features), found = answers(data), fitted(data)
    assert found.noise_sd is not None
    if settings["world"] != "answers":
        rng = stream(seed, "twin")
        rewards = found.prior.sample(rng, len(rewards)) @ features.T
        rewards = rewards + found.noise_sd * rng.standard_normal(rewards.shape)
    plain = settings["world"] == "answers" and settings["noise"] == 1.0
    slow = POSTERIORS if plain and data == VERBAL else ()
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


def summary(record: xr.Dataset, data: str = VERBAL) -> xr.Dataset:
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
    found = fitted(data)
    attrs = {
        "data": data,
        "people": record.sizes["person"],
        "items": len(answers(data)[1]),
        "horizon": HORIZON,
        "orders": record.sizes["order"],
        "features": list(ITEMS[data]),
        "prior_mean": found.prior.mean.tolist(),
        "prior_sd": np.sqrt(np.diag(found.prior.cov)).tolist(),
        "noise_sd": found.noise_sd,
    }
    return xr.Dataset(out).assign_attrs(attrs)


def study_of(name: str, world: str, note: str, data: str = VERBAL, orders: int = ORDERS) -> Study:
    """One world, at every noise that agents are told."""
    common = {} if data == VERBAL else {"data": data}  # ids and settings of VerbAgg are recorded
    return Study(
        name,
        grid(common, world=[world], noise=FACTORS, order=range(orders)),
        one_order,
        random_seed=18,
        dims=("world", "noise", "order"),
        note=note,
        keep=partial(summary, data=data),
        record=f"rivals/{name}.nc",
    )


STUDIES = (
    study_of("replay", WORLDS[0], "learned priors on real answers, replayed without a model"),
    study_of("replay-twin", WORLDS[1], "the same on answers drawn from the fitted model"),
    study_of("replay-bfi", WORLDS[0], "the same on answers about oneself", TRAITS, orders=2),
    study_of("replay-bfi-twin", WORLDS[1], "those, drawn from the fitted model", TRAITS, orders=2),
)
"""What is recorded in analyses/rivals beside ``rivals``."""
