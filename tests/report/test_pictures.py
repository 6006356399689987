"""Pictures by name: what they draw are the numbers they were given, on light pages and on dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import matplotlib.style
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import bayesmeta as bm
from bayesmeta.calibration.kinds import of_kind
from bayesmeta.claims.run import recorded
from bayesmeta.estimators.moments import least_squares
from bayesmeta.report.figures.compare import widths
from bayesmeta.report.figures.prior import NONE
from bayesmeta.report.figures.style import CONTRAST, INK, _light, look, method_look, tone
from tests.report.test_figures import check_labels

FAMILY = bm.paper_family(dim=2, horizon=30)
STATS = bm.simulation.statistics_of(FAMILY, bm.ROSTER["UKTS"], tasks=40, seed=0)


def lines(axes: Axes) -> dict[str, np.ndarray]:
    """Points of lines by their labels, shape (2, points)."""
    found = ((line.get_label(), line.get_xydata().T) for line in axes.lines)
    return {str(name): points for name, points in found if name and not str(name).startswith("_")}


def labels(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_gid() == "label"]


@pytest.fixture(scope="module")
def record() -> xr.Dataset:
    return bm.simulate(FAMILY, ["KTS", "UKTS", "REML-TS"], tasks=30, runs=3)


@pytest.fixture(scope="module")
def lab() -> xr.Dataset:
    """Moments, and a function that knows the truth."""

    def known(stats: bm.TaskStatistics, noise_sd: float | None) -> bm.GaussianPrior:
        return FAMILY.prior

    return bm.calibrate(
        FAMILY, tasks=[10, 40], estimators=["moment", known], replications=6, regret=3, jobs=1
    )


def draws(prior: bm.GaussianPrior, count: int = 8, features: str = "ab") -> xr.DataTree:
    """What a posterior looks like whose draws are all the same but for their means."""
    names = list(features)[: prior.dim]
    mu = np.stack([prior.mean + 0.01 * k for k in range(count)])[None]
    cov = np.broadcast_to(prior.cov, (1, count, prior.dim, prior.dim))
    data = xr.Dataset(
        {
            "mu": (("chain", "draw", "feature"), mu),
            "Sigma": (("chain", "draw", "feature", "feature_bis"), cov),
            "sd": (("chain", "draw", "feature"), np.sqrt(np.diagonal(cov, axis1=2, axis2=3))),
        },
        coords={"feature": names, "feature_bis": names},
    )
    return xr.DataTree.from_dict({"posterior": data})


def test_an_ellipse_holds_its_share() -> None:
    """Every point of the curve has the Mahalanobis distance whose probability is the level."""
    prior = bm.GaussianPrior([1.0, -2.0], [[4.0, 1.0], [1.0, 0.5]])
    (axes,) = bm.plot_prior({"reml": prior}, level=0.8).axes
    gap = lines(axes)["reml"] - prior.mean[:, None]
    squares = np.einsum("ik,ij,jk->k", gap, np.linalg.inv(prior.cov), gap)
    np.testing.assert_allclose(1 - np.exp(-squares / 2), 0.8)
    (mean,) = [line for line in axes.lines if line.get_gid() == "mean"]
    np.testing.assert_array_equal(mean.get_xydata()[0], prior.mean)


def test_truth_estimates_draws_and_tasks_are_told_apart() -> None:
    """The truth is filled, draws are thin and many, circles are the tasks' least squares."""
    estimates = {
        "reml": bm.fit_prior(STATS, 1.0, "reml"),
        "posterior": draws(FAMILY.prior, count=50),
    }
    figure = bm.plot_prior(estimates, truth=FAMILY, tasks=STATS, draws=20)
    (axes,) = figure.axes
    assert labels(axes) == ["truth", "reml", "posterior"]
    assert len(axes.patches) == 1 and axes.patches[0].get_label() == "truth"
    assert sum(line.get_gid() == "draw" for line in axes.lines) == 20
    (circles,) = [line for line in axes.lines if line.get_gid() == "tasks"]
    np.testing.assert_array_equal(circles.get_xydata(), least_squares(STATS))
    assert circles.get_fillstyle() == "none"
    caption = figure.get_supxlabel()
    assert "holds 90% of tasks" in caption and "thin: draws" in caption
    (x, y), own = circles.get_xydata().T, axes.viewLim
    outside = int(((x < own.x0) | (x > own.x1) | (y < own.y0) | (y > own.y1)).sum())
    assert (f"({outside} of 40 are outside)" in caption) == (outside > 0)
    assert check_labels(figure) == 3


def test_what_is_no_covariance_has_no_ellipse() -> None:
    """Its mean is there, and its name says why."""
    bad = bm.GaussianPrior.unusable(np.zeros(2), np.array([[1.0, 0.0], [0.0, -1.0]]))
    (axes,) = bm.plot_prior({"moment": bad, "reml": FAMILY.prior}).axes
    assert list(lines(axes)) == ["reml"]
    assert labels(axes)[0].endswith(NONE) and not labels(axes)[1].endswith(NONE)


def test_pairs_and_a_single_feature() -> None:
    """A panel for every pair of the features asked for, marginals of the whole; one: densities."""
    prior = bm.GaussianPrior(np.arange(4.0), np.diag([1.0, 2.0, 3.0, 4.0]))
    figure = bm.plot_prior(draws(prior, features="abcd"), features=["a", "c", "d"], draws=0)
    assert [(a.get_xlabel(), a.get_ylabel()) for a in figure.axes] == [
        ("", "c"),
        ("a", "d"),
        ("c", ""),
    ]
    curve = lines(figure.axes[2])["posterior"]
    radius = np.sqrt(-2 * np.log(0.1))
    np.testing.assert_allclose(
        curve.max(axis=1) - [2.035, 3.035], radius * np.sqrt([3, 4]), rtol=1e-3
    )
    (axes,) = bm.plot_prior(draws(prior, features="abcd"), features=["d"], draws=0).axes
    x, y = lines(axes)["posterior"]
    assert np.trapezoid(y, x) == pytest.approx(1, abs=1e-3)
    assert np.trapezoid(x * y, x) == pytest.approx(3.035, abs=1e-2)


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        ({}, {}, "priors is empty"),
        ("moment", {}, "a prior must be"),
        (FAMILY, {"level": 1.0}, "level"),
        (FAMILY, {"features": ["x9"]}, "did you mean"),
        (FAMILY, {"truth": bm.GaussianPrior([0.0], [[1.0]])}, "number of features"),
        (FAMILY, {"tasks": np.zeros(3)}, "tasks must have shape"),
        (FAMILY, {"axes": []}, "0 panels where 1"),
    ],
)
def test_bad_priors_are_refused(given: object, more: dict[str, object], said: str) -> None:
    with pytest.raises(bm.InputError, match=said):
        bm.plot_prior(given, **more)  # type: ignore[arg-type]


def test_regret_and_errors_are_those_of_the_record(record: xr.Dataset) -> None:
    """Means over runs, in units of KTS; without KTS in units of reward."""
    (axes,) = bm.plot_regret(record).axes
    total = record.regret.cumsum("task").mean("run")
    unit = float(total.sel(agent="KTS").isel(task=-1))
    asked = ["KTS", "UKTS", "REML-TS"]  # KTS_rescue is played along
    drawn = [line for line in axes.lines if len(line.get_xdata()) == 30]
    np.testing.assert_allclose([line.get_ydata() for line in drawn], total.sel(agent=asked) / unit)
    assert labels(axes) == [look(name).label for name in asked]
    (axes,) = bm.plot_regret(record, ["UKTS"]).axes
    assert "KTS at the end" in axes.get_ylabel() and labels(axes) == ["UKTS"]
    (axes,) = bm.plot_regret(record.sel(agent=["UKTS"])).axes
    assert "units of reward" in axes.get_ylabel()
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(float(total.sel(agent="UKTS")[-1]))
    mean, cov = bm.plot_errors(record).axes
    assert labels(mean) == labels(cov) == [look("UKTS").label, look("REML-TS").label]
    drawn = [line.get_ydata() for line in cov.lines if len(line.get_xdata()) == 30]
    wanted = record.covariance_error.sel(agent=["UKTS", "REML-TS"]).mean("run")
    np.testing.assert_allclose(drawn, wanted)
    with pytest.raises(bm.InputError, match="did you mean"):
        bm.plot_regret(record, ["UTKS"])
    with pytest.raises(bm.InputError, match="what simulate returned"):
        bm.plot_errors(xr.Dataset())


def test_comparisons_are_those_of_the_measures(lab: xr.Dataset) -> None:
    """A line an estimator in each panel; coverage and width only where there are intervals."""
    found = bm.measures(lab)
    figure = bm.plot_compare(lab)
    mean, cov, coverage, width, regret = figure.axes
    for axes, values in (
        (mean, found.mean_error),
        (cov, found.cov_error),
        (regret, 1 + found.relative_regret / found.known_regret),
    ):
        for name, (x, y) in lines(axes).items():
            np.testing.assert_array_equal(x, [10, 40])
            np.testing.assert_allclose(y, values.sel(estimator=name))
    assert lines(regret).keys() == {"moment", "known"}
    np.testing.assert_allclose(lines(regret)["known"][1], 1)  # it knows the truth
    share = of_kind(found, "mu", "sd", "corr").coverage.sel(level=0.95, estimator="moment")
    share = share.mean("quantity")
    np.testing.assert_allclose(lines(coverage)["moment"][1], 100 * (share - 0.95))
    assert lines(coverage).keys() == {"moment"}  # the other has no intervals
    assert set(lines(width)) == {"moment"}
    four = lab.drop_vars(["relative_regret", "known_regret"])
    assert len(bm.plot_compare(four, 0.9).axes) == 4
    with pytest.raises(bm.InputError, match="one number of tasks"):
        bm.plot_compare(lab.isel(tasks=[0]))
    with pytest.raises(bm.InputError, match="no level"):
        bm.plot_compare(lab, 0.42)


def test_widths_are_relative_quantity_by_quantity() -> None:
    """To the first estimator that has one: units of quantities do not matter."""
    values = np.array([[[1.0, np.nan], [2.0, 20.0], [4.0, 10.0]]] * 2) * [[[3.0, 0.1]]]
    given = xr.DataArray(values, dims=("tasks", "estimator", "quantity"))
    np.testing.assert_allclose(widths(given)[-1], [1, np.sqrt(2), np.sqrt(2)])
    assert np.isnan(widths(given.isel(quantity=[1], estimator=[0]))).all()


def test_claims_are_counted_and_the_violated_named() -> None:
    """By the recorded verdicts, or by those given."""
    figure = bm.plot_claims()
    (axes,) = figure.axes
    printed = {
        name: verdict
        for name, verdict in recorded(quick=False).items()
        if bm.claims.all_claims()[name].group.value == "printed"
    }
    assert {line.get_gid() for line in axes.lines} == set(printed)
    bad = {name for name, verdict in printed.items() if verdict == "violated"}
    words = " ".join(text.get_text() for text in axes.texts).replace(",", " ").split()
    assert set(words) == bad
    assert f"{len(bad)} are violated" in axes.get_title()
    found = bm.claims.run.check_claims(["posterior-recursion"])
    (axes,) = bm.plot_claims(found).axes
    assert axes.get_title().startswith("1 of 1 claims hold")
    with pytest.raises(bm.InputError, match="did you mean"):
        bm.plot_claims({"posterior-recursio": "holds"})
    with pytest.raises(bm.InputError, match="no claims of the group"):
        bm.plot_claims(found, group="ours")


def test_tasks_of_a_fit_on_axes_of_ones_own() -> None:
    """The same as in a figure of its own, without a note."""
    fit = bm.fit(bm.load_data("sleepstudy"), "Reaction ~ Days + (Days | Subject)")
    own = bm.plot_tasks(fit, sort="Days")
    figure = Figure()
    panels = figure.subplots(1, 2)
    assert bm.plot_tasks(fit, sort="Days", axes=panels) is figure
    assert own.get_supxlabel() and not figure.get_supxlabel()
    for one, other in zip(own.axes, panels, strict=True):
        assert one.get_title() == other.get_title()
        pairs = zip(one.lines, other.lines, strict=True)
        assert all(np.array_equal(a.get_xydata(), b.get_xydata()) for a, b in pairs)
    with pytest.raises(bm.InputError, match="what fit returned"):
        bm.plot_tasks(FAMILY)  # type: ignore[arg-type]


PICTURES: dict[str, Callable[[xr.Dataset, xr.Dataset], Figure]] = {
    "prior": lambda record, lab: bm.plot_prior(
        {"moment": bm.fit_prior(STATS, 1.0, "moment-clipped"), "posterior": draws(FAMILY.prior)},
        truth=FAMILY,
        tasks=STATS,
    ),
    "regret": lambda record, lab: bm.plot_regret(record),
    "errors": lambda record, lab: bm.plot_errors(record),
    "compare": lambda record, lab: bm.plot_compare(lab),
    "coverage": lambda record, lab: bm.plot_coverage(lab),
    "biases": lambda record, lab: bm.plot_biases(lab),
    "claims": lambda record, lab: bm.plot_claims(),
}


def colours(figure: Figure) -> Iterator[tuple[str, str]]:
    """What is drawn in which colour: lines, markers and text of all panels."""
    for axes in figure.axes:
        for line in axes.lines:
            if line.get_alpha() is None and line.get_label() != "_child0":
                yield f"{line.get_label()} {line.get_gid()}", line.get_color()
        for text in axes.texts:
            if text.get_text():
                yield text.get_text(), text.get_color()


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_show_on_a_dark_page(name: str, record: xr.Dataset, lab: xr.Dataset) -> None:
    """Every line, marker and word has contrast there, and none of a light page has changed."""
    with matplotlib.style.context("dark_background"):
        figure = PICTURES[name](record, lab)
    page = _light(np.array(to_rgb(figure.axes[0].get_facecolor())))
    assert page < 0.01
    found = dict(colours(figure))
    assert len(found) >= 2
    for what, color in found.items():
        contrast = (_light(np.array(to_rgb(color))) + 0.05) / (page + 0.05)
        assert contrast >= CONTRAST, (what, color)


def test_looks_keep_their_colours_on_a_light_page() -> None:
    """And stay different on a dark one."""
    assert tone(INK) == INK and method_look("posterior").color == "#000000"
    light = [look(name) for name in bm.agents.FIGURE_1]
    with matplotlib.style.context("dark_background"):
        dark = [look(name) for name in bm.agents.FIGURE_1]
        assert len({one.color for one in dark}) == len(dark)
    assert [one._replace(color="") for one in light] == [one._replace(color="") for one in dark]


def test_lines_differ_without_colour(lab: xr.Dataset) -> None:
    """Markers and dashes tell any two estimators apart."""
    for axes in bm.plot_compare(lab).axes[:2]:
        own = [line for line in axes.lines if str(line.get_label()) in ("moment", "known")]
        assert len({(line.get_marker(), line.get_linestyle()) for line in own}) == len(own) == 2
