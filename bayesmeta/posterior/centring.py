"""Features about their means: the origin of a feature (a year, a temperature) should not matter.

With an intercept, x'theta = (x - m)'theta + m'theta: the intercept then stands for the level at
the features' means m, over all rewards, instead of where all features are 0. The likelihood is the
same; a prior on the intercept, on its spread and on its correlations is not, and at the means it
says what is meant by it. Draws are made there, and put back into the coordinates of the features as
given.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import Advice, Argument, Array, InputError
from bayesmeta.display import in_middle, visible
from bayesmeta.estimators.origin import intercept_of, may_be_one
from bayesmeta.statistics import TaskStatistics

if TYPE_CHECKING:
    import xarray as xr

    from bayesmeta.tables.design import Rows

ROUNDING = 1e-13
"""What of a feature's sum of squares in a task is taken for 0 once its mean is off."""


class Centring(NamedTuple):
    """Which feature is the intercept, and what is taken off every feature (0 off the intercept)."""

    intercept: int
    means: Array

    def inside(self, stats: TaskStatistics) -> TaskStatistics:
        """The same tasks with the means taken off; not checked anew."""
        k, means = self.intercept, self.means
        column = stats.gram[:, :, k]  # sums of every feature
        gram = stats.gram - means[:, None] * column[:, None, :] - column[:, :, None] * means
        gram = gram + np.outer(means, means) * column[:, k, None, None]
        moment = stats.moment - means * stats.moment[:, k, None]
        squares = np.diagonal(stats.gram, axis1=1, axis2=2)
        lost = np.diagonal(gram, axis1=1, axis2=2) <= ROUNDING * squares
        moment[lost] = 0.0
        gram[lost] = 0.0
        gram.swapaxes(1, 2)[lost] = 0.0
        made = copy.copy(stats)
        made.__dict__.update(gram=gram, moment=moment)
        return made

    def mean_inside(self, mean: Array) -> Array:
        """Coefficients (…, d) of the centred features, from those of the features as given."""
        return self._moved(mean, self.means)

    def mean_outside(self, mean: Array) -> Array:
        """The way back."""
        return self._moved(mean, -self.means)

    def cov_inside(self, cov: Array) -> Array:
        """Likewise of covariances (…, d, d)."""
        return self._moved(self._moved(cov, self.means).swapaxes(-1, -2), self.means)

    def cov_outside(self, cov: Array) -> Array:
        """The way back."""
        return self._moved(self._moved(cov, -self.means).swapaxes(-1, -2), -self.means)

    def _moved(self, values: Array, means: Array) -> Array:
        out = np.array(values)
        out[..., self.intercept] += (values * means).sum(axis=-1)
        return out

    def attribute(self) -> str:
        """As text, for a file."""
        return json.dumps({"intercept": self.intercept, "means": self.means.tolist()})


def centring_from(attribute: Any) -> Centring | None:
    """From the text of ``attribute``; None where nothing was centred."""
    if not isinstance(attribute, str) or attribute == "no":
        return None
    found = json.loads(attribute)
    return Centring(int(found["intercept"]), np.asarray(found["means"], dtype=float))


def centring_of(stats: TaskStatistics, centre: bool | str | None = None) -> Centring | None:
    """What to take off the features; None where there is no intercept, or nothing to take off.

    ``centre`` is the intercept's label, None: look for one, True: refuse where there is none,
    False: take nothing off. Where the intercept is the same in all tasks, coefficients that differ
    keep their origin: another would be another model.
    """
    if centre is False:
        return None
    names = [str(name) for name in stats.feature_labels]
    given = centre if isinstance(centre, str) else None
    if given is not None and given not in names:
        raise InputError(
            Advice(
                "{centre} must be the label of a feature that is always 1, got {given}",
                given=repr(given),
            )
        )
    k = intercept_of(stats) if given is None else names.index(given)
    if k is None or not may_be_one(stats, k):
        if centre is not None:
            raise InputError(
                Advice(
                    "{centre} needs a feature that is always 1; add an intercept, or leave it out"
                )
            )
        return None
    total = stats.gram[:, k].sum(axis=0)
    means = total / total[k]
    means[k] = 0.0
    if not stats.differs[k]:
        means[stats.differs] = 0.0
    return Centring(k, means) if means.any() else None


def told_by_rows(
    stats: TaskStatistics, centre: bool | str | None, rows: Rows | None
) -> bool | str | None:
    """What to give as ``centre`` where rows are known: False where the feature that was found
    to be the intercept is none, as one of +-1 is, which sums cannot tell."""
    if centre is not None or rows is None:
        return centre
    k = intercept_of(stats)
    return centre if k is None or (rows.features[:, k] == 1).all() else False


def taken_off(tree: xr.DataTree) -> dict[str, float]:
    """The means that were taken off features, by their labels; empty where none were."""
    told = tree.attrs.get("centred", "no")
    found: dict[str, float] = {} if told == "no" else json.loads(told)
    return found


def centred_in_words(tree: xr.DataTree) -> Advice:
    """Which features were centred, what of the prior that is about, and how to switch it off;
    nothing where none were."""
    taken = taken_off(tree)
    if not taken:
        return Advice("")
    means = list(taken.values())
    shown = [in_middle(visible(name), 24) for name in list(taken)[:3]]
    more = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
    draws = tree["posterior"].to_dataset()
    own = draws[draws["sd"].dims[-1]].values.astype(str)
    # with the same slope in all tasks, their spread does not depend on the origin
    spread = ", its spread and correlations" if set(own) & set(taken) else ""
    return Advice(
        "centred: {features}; the prior takes the intercept{spread} at {mean}, the table at 0; to "
        "have the prior at 0: {centre}",
        features=", ".join(shown) + more,
        spread=spread,
        mean=f"the mean ({means[0]:.5g})" if len(means) == 1 else "the means",
        centre=Argument("centre=False"),
    )
