"""The origin of features does not matter where there is an intercept: draws are made about the
means of the others, and put back."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import patch

import arviz_stats as azs
import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.estimators.origin import intercept_of
from bayesmeta.posterior import sampling
from bayesmeta.posterior.centring import Centring, centring_of


def sleep_like(origin: float, seed: int = 0, subjects: int = 30) -> bm.TaskStatistics:
    """A level of 250 ± 25 at the origin, a slope of 10 ± 6, ten days each."""
    rng = np.random.default_rng(seed)
    day = np.tile(np.arange(10.0), subjects)
    theta = rng.normal([250.0, 10.0], [25.0, 6.0], (subjects, 2)).repeat(10, axis=0)
    reward = theta[:, 0] + theta[:, 1] * day + 25 * rng.standard_normal(len(day))
    frame = pd.DataFrame({"who": np.arange(subjects).repeat(10), "day": day + origin, "y": reward})
    return bm.TaskStatistics.from_frame(frame, "who", "y", ["day"], intercept=True)


def test_centred_statistics_are_those_of_centred_rows() -> None:
    """To rounding, with a far origin, too."""
    far = sleep_like(2000.0)
    centring = centring_of(far)
    assert centring is not None
    assert centring.intercept == 0
    np.testing.assert_allclose(centring.means, [0.0, 2004.5])
    found, exact = centring.inside(far), sleep_like(-4.5)
    np.testing.assert_allclose(found.gram, exact.gram, rtol=1e-8, atol=1e-7)
    np.testing.assert_allclose(found.moment, exact.moment, rtol=1e-8, atol=1e-5)
    assert found.feature_labels == far.feature_labels


def test_there_and_back() -> None:
    """Means and covariances survive; x'theta is the same in both coordinates."""
    rng = np.random.default_rng(1)
    centring = Centring(1, np.array([3.0, 0.0, -2.0]))
    mean, root = rng.standard_normal((5, 3)), rng.standard_normal((5, 3, 3))
    cov, x = root @ root.transpose(0, 2, 1), np.array([0.7, 1.0, -1.1])
    np.testing.assert_allclose(mean @ x, centring.mean_inside(mean) @ (x - centring.means))
    np.testing.assert_allclose(centring.mean_outside(centring.mean_inside(mean)), mean)
    inside = centring.cov_inside(cov)
    np.testing.assert_allclose(centring.cov_outside(inside), cov)
    moved = x - centring.means
    np.testing.assert_allclose(
        np.einsum("i,sij,j->s", moved, inside, moved), np.einsum("i,sij,j->s", x, cov, x)
    )


def test_what_is_centred() -> None:
    """Only with a feature that is always 1, whatever its name, as REML's note has it; not if
    switched off, and not where entries of +-1 leave open which one it is."""
    stats = sleep_like(3.0)
    assert centring_of(stats, False) is None
    for names in (("const", "day"), ("day", "intercept")):
        found = centring_of(replace(stats, features=names))
        assert found is not None and found.intercept == 0 == intercept_of(stats)
    assert centring_of(replace(stats, features=("one", "day")), "one") is not None
    signs = np.tile([[1.0, -1.0], [1.0, 1.0]], (20, 1))
    signed = bm.TaskStatistics.from_arrays(np.arange(20).repeat(2), np.arange(40.0), signs)
    assert centring_of(signed) is None
    with pytest.raises(bm.InputError, match="always 1"):
        centring_of(signed, True)
    with pytest.raises(bm.InputError, match="always 1"):
        centring_of(stats, "day")
    with pytest.raises(bm.InputError, match="label of a feature"):
        centring_of(stats, "two")


def test_an_intercept_without_variance_moves_no_varying_feature() -> None:
    """A coefficient that differs between tasks would make the intercept differ, too."""
    stats = replace(sleep_like(3.0), varying=(False, True))
    assert centring_of(stats) is None
    other = centring_of(replace(stats, varying=(True, False)))
    assert other is not None


def test_the_default_prior_does_not_depend_on_the_origin() -> None:
    """It is that of the centred features; that of features as they are does depend on it."""
    near, far = (bm.default_prior(sleep_like(origin)) for origin in (0.0, 2000.0))
    for name in ("mean", "mean_sd", "scale"):
        np.testing.assert_allclose(getattr(near, name), getattr(far, name), rtol=1e-6)
    as_given = bm.default_prior(sleep_like(2000.0), centre=False)
    assert np.asarray(as_given.scale)[0] > 100 * np.asarray(far.scale)[0]


class Asked(Exception):
    """What is to be taken off was asked for; there is no need to draw."""


def test_a_feature_of_plus_and_minus_one_is_no_intercept() -> None:
    """Its squares are those of one, so sums cannot tell; rows can."""
    rng = np.random.default_rng(0)
    who, x = np.arange(20).repeat(8), rng.normal(3.0, 1.0, 160)
    frame = pd.DataFrame({"who": who, "x": x, "t": rng.choice([-1.0, 1.0], 160)})
    frame["y"] = x + frame["t"] * rng.normal(1.0, 0.5, 20)[who] + rng.standard_normal(160)
    found = {}
    for name in ("t", "one"):
        design = bm.tabulate(frame.assign(one=1.0), task="who", reward="y", features=[name, "x"])
        assert design.rows is not None
        assert intercept_of(design.stats) == 0
        with patch.object(sampling, "centring_of", side_effect=Asked) as asked:
            with pytest.raises(Asked):
                bm.sample_posterior(design.stats, rows=design.rows)
            found[name] = asked.call_args.args[1]
            with pytest.raises(Asked):
                bm.sample_posterior(design.stats)
            assert asked.call_args.args[1] is None
    assert found == {"t": False, "one": None}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nuts", "laplace"])
def test_years_and_days_give_the_same_posterior_of_slopes(method: str) -> None:
    """Within Monte-Carlo error (4 of them, five quantities), both trusted; results, prior and tasks
    are in the coordinates of the features as given."""
    trees = [
        bm.sample_posterior(sleep_like(origin), method=method, random_seed=seed)
        for seed, origin in enumerate((0.0, 2000.0))
    ]
    for tree, origin in zip(trees, (0.0, 2000.0), strict=True):
        assert tree.attrs["trusted"]
        assert json.loads(tree.attrs["centred"]) == pytest.approx({"day": origin + 4.5})
    days, years = (tree["posterior"].to_dataset() for tree in trees)
    level = [
        days["mu"].sel(feature="intercept"),
        years["mu"].sel(feature="intercept") + 2000 * years["mu"].sel(feature="day"),
    ]
    pairs = [level, [days["sigma"], years["sigma"]]]
    for name in ("mu", "sd"):
        pairs.append([one[name].sel(feature="day") for one in (days, years)])
    for one, other in pairs:
        error = np.hypot(float(azs.mcse(one)), float(azs.mcse(other)))
        assert abs(float(one.mean() - other.mean())) < 4 * error
    sds = [tree["prior"].to_dataset()["sd"].mean(["chain", "draw"]).values for tree in trees]
    assert sds[0][1] == pytest.approx(sds[1][1], rel=0.15)  # other draws of the same prior
    assert sds[1][0] > 100 * sds[0][0]
    assert sds[1][0] == pytest.approx(2000 * sds[1][1], rel=0.1)


@pytest.mark.slow
def test_centring_can_be_switched_off() -> None:
    """Then the posterior is that of the features as given, and depends on the origin."""
    tree = bm.sample_posterior(sleep_like(0.0), centre=False)
    assert tree.attrs["centred"] == "no"
    assert tree["constant_data"].attrs["centred"] == "no"


def told(varying: list[str], taken: str) -> str:
    """What is said of draws of tasks that differ in ``varying``."""
    import xarray as xr

    from bayesmeta.posterior.centring import centred_in_words

    sd = xr.DataArray(np.ones((1, 2, len(varying))), dims=["chain", "draw", "varying"])
    posterior = sd.assign_coords(varying=varying).to_dataset(name="sd")
    tree = xr.DataTree.from_dict({"posterior": posterior})
    tree.attrs["centred"] = taken
    return centred_in_words(tree)


def test_a_line_says_what_the_prior_is_about() -> None:
    """Which features were centred, and how to switch it off, in the words of Python and of the
    command; spread and correlations where slopes differ; nothing where nothing was centred."""
    from bayesmeta.commands.table import in_options

    said = told(["intercept", "Days"], '{"Days": 4.5}')
    assert (
        "Days; the prior takes the intercept, its spread and correlations at the mean (4.5" in said
    )
    assert "\n" not in said and said.endswith("centre=False")
    assert in_options(said).endswith("--no-centre")
    alone = told(["intercept"], '{"age": 11.0, "age:Sex[T.Male]": 6.5}')
    assert alone.startswith("centred: age, age:Sex[T.Male]; the prior takes the intercept at the")
    assert "correlation" not in alone and "6.5" not in alone
    assert told(["intercept"], "no") == ""
