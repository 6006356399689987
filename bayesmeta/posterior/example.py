"""A tree made by hand, as ``sample_posterior`` returns one, for examples that must be quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


def example_tree() -> xr.DataTree:
    """Four chains of 500 independent draws, one feature, three tasks of one step."""
    import xarray as xr

    rng = np.random.default_rng(0)
    sampled, square = ("chain", "draw"), ("feature", "feature_bis")
    draws = {
        "mu": ((*sampled, "feature"), rng.standard_normal((4, 500, 1))),
        "Sigma": ((*sampled, *square), rng.chisquare(5, (4, 500, 1, 1))),
    }
    data = {
        "gram": (("task", *square), np.ones((3, 1, 1))),
        "moment": (("task", "feature"), np.array([[0.5], [1.0], [1.5]])),
        "count": ("task", np.ones(3)),
        "energy": ("task", np.array([0.25, 1.0, 2.25])),
    }
    names = {"feature": ["x1"], "feature_bis": ["x1"]}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(draws, {"chain": range(4), "draw": range(500), **names}),
            "sample_stats": xr.Dataset({"diverging": (sampled, np.zeros((4, 500), dtype=bool))}),
            "constant_data": xr.Dataset(data, {"task": [1, 2, 3], **names}, {"noise_sd": 1.0}),
            "observed_data": xr.Dataset(
                {"moment": data["moment"]}, {"task": [1, 2, 3], "feature": ["x1"]}
            ),
        }
    )
