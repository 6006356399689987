"""Draws as bare arrays, without checks of convergence, for agents and studies that fit thousands.

By importance weights where these pass every check, otherwise by one chain of NUTS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesmeta.checks import Array
from bayesmeta.posterior.laplace import draw_laplace
from bayesmeta.posterior.model import Problem, require
from bayesmeta.posterior.nuts import draw_points
from bayesmeta.posterior.target import Target
from bayesmeta.posterior.whitening import find_frame

PROPOSALS = 1000
"""Proposals that importance weights are judged by, however few draws are wanted."""
TUNE = 100
"""Tuning draws that suffice in coordinates of ``find_frame``."""
FEWEST = 10
"""Tasks for each feature below which importance weights hardly ever do, and are not tried."""


class Drawn(NamedTuple):
    """Draws by name, the mode (mu, Sigma) that they lie about where there is one, how many
    diverged, and the method."""

    draws: dict[str, Array]
    mode: tuple[Array, Array] | None
    divergent: int
    method: str

    @property
    def stuck(self) -> bool:
        """Whether an entry of mu never moved."""
        return bool((np.ptp(self.draws["mu"], axis=0) == 0).any())


def draw_quickly(
    problem: Problem,
    *,
    draws: int,
    tune: int,
    seed: int,
    start: tuple[Array, Array] | None = None,
    method: str = "auto",
) -> Drawn:
    """By the quickest method that passes its checks, or by "nuts".

    ``start`` is a (mu, Sigma) to look for the mode from; ``tune`` is for chains that find none,
    and those that do take no more than ``TUNE``.
    """
    require("pymc", "nutpie")
    stats = problem.stats
    if method == "auto" and len(stats) >= FEWEST * stats.dim:
        many = max(draws, PROPOSALS)
        found = draw_laplace(problem, draws, seed, start=start, proposals=many, pilot=True)
        if found is not None and found.weights.good:
            return Drawn(found.draws, found.mode, 0, "laplace")
    return _by_nuts(problem, draws, tune, seed, start)


def _by_nuts(
    problem: Problem, draws: int, tune: int, seed: int, start: tuple[Array, Array] | None
) -> Drawn:
    target = Target(problem)
    frame = find_frame(target, target.points_at(start))
    mode = None
    if frame is not None:
        tune = min(tune, TUNE)
        at = target.constrained(frame.centre[None])
        mode = at["mu"][0].copy(), at["Sigma"][0].copy()
    found = draw_points(target, frame, chains=1, draws=draws, tune=tune, cores=1, seed=seed)
    diverged = int(found.stats["diverging"].sum())
    return Drawn(target.constrained(found.points[0]), mode, diverged, "nuts")
