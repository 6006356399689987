"""Predictions as draws: ArviZ's groups ``predictions`` and ``predictions_constant_data``."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesmeta.checks import whole
from bayesmeta.columns import label_key
from bayesmeta.fitted.rows import NEW, Asked, asked_rows
from bayesmeta.posterior.predictive import thetas_of
from bayesmeta.posterior.tree import read
from bayesmeta.statistics import TaskStatistics
from bayesmeta.tables.design import Design

if TYPE_CHECKING:
    import xarray as xr


def with_predictions(
    tree: xr.DataTree,
    design: Design,
    new: Any,
    task: Hashable | None,
    rewards: bool,
    random_seed: int,
) -> xr.DataTree:
    """A tree with a draw of every row's mean reward, or reward, for every drawn prior.

    Rows of a task have its theta in common, also those of a new task: rows with one label that was
    not fitted, or all of them where there is no column of tasks.
    """
    import xarray as xr

    seed = whole("random_seed", random_seed, least=0)
    rows, stats = asked_rows(design, new, task, rewards), design.stats
    places, names = _places(design, rows, new)
    used, local = np.unique(places, return_inverse=True)
    unknown, d = len(names) - len(stats), stats.dim
    sums = TaskStatistics.trusted(
        np.concatenate([stats.gram, np.zeros((unknown, d, d))])[used],
        np.concatenate([stats.moment, np.zeros((unknown, d))])[used],
    )
    found = read(tree, stats=sums)
    theta = thetas_of(found, seed)
    values = np.zeros((len(theta), len(local)))
    for i in range(d):
        values += theta[:, local, i] * rows.features[:, i]
    if rewards:
        rng = np.random.default_rng(np.random.SeedSequence([seed, 4]))
        noise = found.noise_sds[:, None] / np.sqrt(rows.weights)
        values += noise * rng.standard_normal(values.shape)
    labels = np.arange(len(local)) if rows.labels is None else np.asarray(rows.labels)
    where = {name: tree["posterior"][name].values for name in ("chain", "draw")}
    drawn = (("chain", "draw", "row"), values.reshape(*found.shape, -1))
    constant = {
        "features": (("row", "feature"), rows.features),
        "task": ("row", np.array([str(names[place]) for place in places])),
    }
    features = [str(one) for one in stats.feature_labels]
    made = tree.copy()
    name = "rewards" if rewards else "mean_rewards"
    made["predictions"] = xr.DataTree(xr.Dataset({name: drawn}, where | {"row": labels}))
    made["predictions_constant_data"] = xr.DataTree(
        xr.Dataset(constant, {"row": labels, "feature": features})
    )
    return made


def _places(design: Design, rows: Asked, new: Any) -> tuple[NDArray[np.intp], list[Hashable]]:
    """The task of every row, the new ones after those that were fitted, and the labels of all."""
    places, known = rows.task.copy(), list(design.stats.task_labels)
    named = hasattr(new, "columns") and design.task in new.columns
    found: dict[str, int] = {}
    for row in np.flatnonzero(places == NEW):
        label = label_key(new[design.task].iloc[row]) if named else "new"
        places[row] = len(known) + found.setdefault(label, len(found))
    return places, [*known, *found]
