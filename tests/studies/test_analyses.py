"""Recorded results are held to account: complete, current, and what the reports say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

import bayesmeta as bm
from bayesmeta.agents.roster import with_references
from bayesmeta.report.markdown import replace_block
from bayesmeta.report.page import faults, numbers_in
from bayesmeta.simulation.records import cumulative, settings_of
from bayesmeta.simulation.simulator import simulate_run
from bayesmeta.simulation.summaries import interval, orderings
from bayesmeta.streams import cell_seed
from bayesmeta.studies.bayes import SIZES, explored
from tests.helpers import ROOT, load

pytestmark = pytest.mark.slow

FIGURE1 = ROOT / "analyses" / "figure1"


@pytest.fixture(scope="module")
def record() -> xr.Dataset:
    return bm.read_record(FIGURE1 / "figure1.nc")


def test_figure1_is_complete(record: xr.Dataset) -> None:
    """Paper size: every agent, ten runs, ten thousand tasks, thinned with its landmarks."""
    wanted = [
        row.name
        for row in with_references(bm.agents.find_agents([*bm.agents.FIGURE_1, *bm.agents.OURS]))
    ]
    assert record.agent.values.tolist() == wanted
    settings = settings_of(record)
    assert (settings["runs"], settings["tasks"], settings["seed"]) == (10, 10_000, 0)
    assert record.sizes["run"] == 10
    assert {1_000, 5_000, 10_000} <= set(record.task.values.tolist())
    assert 150 <= record.sizes["task"] <= 250
    assert not record.isnull().any().to_array().any()


@pytest.mark.parametrize("name", ["figure1", "fair", "orderings", "ids", "bayes", "few"])
def test_records_are_current(name: str) -> None:
    """The recorded runs begin as the code of today plays them, past the end of the warm-up; not
    those of MCMC, whose draws depend on the last bits of a machine. Where a search for the largest
    likelihood ends depends on them, too, in the eighth digit."""
    record = bm.read_record(FIGURE1 / f"{name}.nc")
    names = [agent for agent in record.agent.values.tolist() if agent not in bm.agents.BAYESIAN]
    agents, tasks = bm.agents.find_agents(names), min(150, int(record.task[-1]))
    seed = cell_seed(settings_of(record)["seed"], "run=3")
    now = simulate_run(bm.paper_family(), agents, tasks=tasks, seed=seed)
    then = record.sel(run=3, task=record.task <= tasks, agent=names)
    index = then.task.values - 1
    np.testing.assert_allclose(
        then.cumulative_regret, now["regret"].cumsum(axis=1)[:, index], rtol=1e-9
    )
    searched = np.isin(names, bm.agents.OURS)
    for error in ("mean_error", "covariance_error", "smallest_eigenvalue"):
        recorded, today = then[error].values, now[error][:, index]
        np.testing.assert_allclose(recorded[~searched], today[~searched], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(recorded[searched], today[searched], rtol=1e-6, atol=1e-12)


def test_definiteness_is_current() -> None:
    """Runs in which eq. (12) failed, played again: the same counts."""
    record = bm.read_record(FIGURE1 / "definiteness.nc")
    counts = record.not_positive_definite
    run = int(counts.sel(agent="Th-MTS_tau").values.argmax())
    names = counts.agent.values.tolist()
    seed = cell_seed(settings_of(record)["seed"], f"run={run}")
    now = simulate_run(bm.paper_family(), bm.agents.find_agents(names), tasks=300, seed=seed)
    np.testing.assert_array_equal(now["not_positive_definite"].sum(axis=1), counts.isel(run=run))
    assert counts.isel(run=run).sum() > 0


def test_section_6_says_what_was_recorded_of_it() -> None:
    """The verdicts on Section 6's statements, by name: a change of any is a finding to report."""
    found = orderings(bm.read_record(FIGURE1 / "orderings.nc"))
    levelled = "the mean error of {} has levelled off: it no longer falls"
    assert len(found) == 21
    assert {(c.statement, c.span, c.verdict) for c in found if c.verdict != "holds"} == {
        ("Th-MTS_tau reaches KMTS", "all tasks", "undecided"),
        (levelled.format("All-MTS_tau"), "the last decade", "fails"),
        (levelled.format("All-MTS"), "the last decade", "fails"),
    }


PAGES = {
    "figure1": ("figure1", "fair", "orderings", "ids", "definiteness", "bayes", "few"),
    "estimators": ("estimators",),
    "bayes-vs-moment": ("compared", "priors"),
}
"""Pages, and the records that they are made of."""


@pytest.fixture(scope="module", params=PAGES)
def made(request: pytest.FixtureRequest) -> tuple[str, dict[Path, str], str]:
    """A page's name, its files of text and its block of the README, from the records."""
    name = request.param
    folder = ROOT / "analyses" / name
    report = load(folder / "report.py")
    records = {one: bm.read_record(folder / f"{one}.nc") for one in PAGES[name]}
    arguments = [records] if name == "figure1" else list(records.values())
    return name, report.texts(*arguments), report.main_block(*arguments)


def test_pages_are_generated(made: tuple[str, dict[Path, str], str]) -> None:
    """Pages, tables, summaries and the README's blocks are what the records give today."""
    name, texts, block = made
    assert texts[ROOT / "analyses" / name / "README.md"]
    for path, text in texts.items():
        if path.suffix == ".json":
            assert json.loads(path.read_text()) == json.loads(text)
        else:
            assert path.read_text() == text, path.name
    assert (
        replace_block((ROOT / "README.md").read_text(), name, block)
        == (ROOT / "README.md").read_text()
    )


def test_pages_keep_the_rules(made: tuple[str, dict[Path, str], str]) -> None:
    """Headline, one figure, small tables, few bullets, one limit; every file a page links to is
    there, and every table beside it is linked."""
    name, texts, _ = made
    folder = ROOT / "analyses" / name
    page = texts[folder / "README.md"]
    assert faults(page) == []
    links = set(re.findall(r"\]\(([^)#]+)", page))
    assert all((folder / link).exists() for link in links)
    assert {path.name for path in folder.glob("*.csv")} <= links


def test_blocks_of_the_readme_are_short(made: tuple[str, dict[Path, str], str]) -> None:
    """At most one table, of at most five columns, at most three bullets, and a link."""
    name, _, block = made
    bullets = re.findall(r"^- .*$", block, flags=re.MULTILINE)
    assert 1 <= len(bullets) <= 3 and all(len(numbers_in(line)) <= 3 for line in bullets)
    headers = [line for line in block.splitlines() if line.startswith("|--")]
    assert len(headers) <= 1 and all(line.count("|") - 1 <= 5 for line in headers)
    assert f"(analyses/{name}/README.md)" in block


def test_ours_learn_the_prior_from_all_steps() -> None:
    """The headline, by paired intervals: regret of KTS within three per cent, errors a fraction of
    All-MTS's, and not because the covariance is too small; the trap is seen in the scaled rows."""
    fair = bm.read_record(FIGURE1 / "fair.nc")
    assert (settings_of(fair)["runs"], settings_of(fair)["tasks"]) == (10, 10_000)
    rows = bm.summarise(fair)
    theirs = rows["All-MTS"]
    for name in bm.agents.OURS:
        row = rows[name]
        low, high = row["relative_interval"]
        assert row["reference"] == "KTS" and -0.03 < low < high < 0.03
        assert row["mean_error"] < theirs["mean_error"] / 3
        assert row["covariance_error"] < 0.5 * theirs["covariance_error"]
        assert 0.14 < row["smallest_eigenvalue"] < 0.26  # the true one is 0.2
        assert row["exploration_steps"] == 0
        assert row["singular"] < 500  # tasks of 10,000 played at the boundary
    assert rows["KTS_x0.05"]["difference_interval"][1] < -0.3
    for name in ("KGreedy", "KUCB", "KIDS"):
        assert rows[name]["difference_interval"][1] < -0.4


def test_posterior_learners_are_recorded() -> None:
    """At the paper's size both are within three per cent of KTS and far below All-MTS; where tasks
    are few, both lose much less than All-MTS after ten tasks, and more than REML-TS."""
    bayes, few = (bm.read_record(FIGURE1 / f"{name}.nc") for name in ("bayes", "few"))
    assert (settings_of(bayes)["runs"], settings_of(bayes)["tasks"]) == (10, 10_000)
    assert settings_of(few)["runs"] >= 10 and settings_of(few)["tasks"] == 100
    rows, early = bm.summarise(bayes), bm.summarise(few)
    final = cumulative(few).cumulative_regret.isel(task=-1)
    for name in bm.agents.BAYESIAN:
        low, high = rows[name]["relative_interval"]
        assert -0.03 < low < high < 0.03 and rows[name]["exploration_steps"] == 0
        assert high < rows["All-MTS"]["relative_interval"][0]
        assert early[name]["interval"][1] < early["All-MTS_w10"]["interval"][0]
        assert interval((final.sel(agent=name) - final.sel(agent="REML-TS")).values).low > 0


def test_ids_record_is_complete() -> None:
    """The IDS counterpart of every row of Figure 1, and KTS as the unit of regret."""
    ids = bm.read_record(FIGURE1 / "ids.nc")
    wanted = {name.replace("TS", "IDS") for name in bm.agents.FIGURE_1} | {"KTS"}
    assert wanted <= set(ids.agent.values.tolist())
    assert (settings_of(ids)["runs"], settings_of(ids)["tasks"]) == (10, 10_000)


MISSED = {
    "likelihood of a task with gradients, d = 5",
    "Figure 1 at full size, two processes",
    "memory of Figure 1, all processes",
    "a step of the slowest with fits or a warm-up, REML-UCB, over All-MTS",
}
"""Marks for speed that the recorded run does not meet."""


def benchmarks() -> dict[str, Any]:
    """The recorded measurements."""
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    return found


def test_benchmarks_meet_their_marks() -> None:
    """Every ratio to its anchor and every number alone, but for those known to be missed; the
    likelihoods are no lower than those of statsmodels and lme4; an empty study does not grow."""
    report, results = load(ROOT / "benchmarks" / "report.py"), benchmarks()
    marks = [*report.ratios(results), *report.numbers(results)]
    assert {mark.name for mark in marks if not mark.met} == MISSED and len(marks) >= 20
    fits = results["likelihood"]["fits"]
    assert (fits["tasks"], fits["dim"]) == (10_000, 3)
    for other in ("statsmodels", "lme4"):
        assert fits[other]["log_likelihood_less_theirs"] > -1e-6
    for row in results["studies"]["trivial"].values():
        assert row["cells"] == 10_000
        growth = (row["late_MiB"] - row["early_MiB"]) / 8000 * 1024  # kB a cell, from 10% to 90%
        assert growth < 4
    for part in ("simulation", "likelihood"):
        assert results[part]["growth"]["tasks"]["exponent"] < 1.2
        assert results[part]["growth"]["steps"]["exponent"] < 1.2


def test_models_of_the_benchmark_agree() -> None:
    """Of the differences between means and standard deviations of all entries, in Monte-Carlo
    errors, none is larger than the largest of so many normals with probability 1% (Bonferroni);
    every call of the benchmark is trusted, and a far origin changes no slope."""
    found = benchmarks()["posterior"]
    assert all(one["rhat"] < 1.02 for one in found["contenders"].values())
    assert found["entries"] == 20 and len(found["agreement"]) == len(found["contenders"]) - 1
    tests = 2 * found["entries"] * len(found["agreement"])
    assert max(found["agreement"].values()) < norm.isf(0.01 / tests / 2)
    assert all(all(one["trusted"]) for one in found["growth"].values())
    days, years = found["far_origin"]["days"], found["far_origin"]["years"]
    assert days["trusted"] and years["trusted"]
    assert abs(days["slope"] - years["slope"]) < days["slope_sd"] / 2


@pytest.mark.slow
def test_the_benchmark_of_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a small size: seconds of either kind, how cost grows, and a mark for each."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    costs, report = (load(ROOT / "benchmarks" / f"{name}.py") for name in ("lab_costs", "report"))
    monkeypatch.setattr(costs, "JOBS", 1)
    found = costs.measure(many=3, few=2, sizes=(2, 4), rounds=1)
    assert found["closed"]["seconds"] > 0 and found["posterior"]["seconds"] > 0
    assert len(found["growth"]["seconds"]) == 2
    names = [mark.name for mark in report.numbers(benchmarks() | {"lab": found})]
    assert "lab, 3 replications of moment, ml, reml" in names
    assert "lab, 2 replications of the posterior" in names


def test_benchmark_report_is_generated() -> None:
    """The benchmarks' page and the project's README are what the results give today."""
    report, results = load(ROOT / "benchmarks" / "report.py"), benchmarks()
    page = (ROOT / "benchmarks" / "README.md").read_text()
    assert page == report.readme(results) and faults(page) == []
    assert report.main_block(results) in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", ["bench", "ranks", "claims", "theorems"])
def test_other_blocks_of_the_readme_are_short(name: str) -> None:
    """At most one table of at most five columns, at most three bullets, at most three numbers a
    paragraph."""
    text = (ROOT / "README.md").read_text()
    block = text.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0].strip()
    tables = [part for part in block.split("\n\n") if part.startswith("|")]
    assert len(tables) <= 1 and all(one.split("\n")[0].count("|") <= 6 for one in tables)
    bullets = re.findall(r"^- (.*)$", block, flags=re.MULTILINE)
    assert len(bullets) <= 3
    rest = [part for part in block.split("\n\n") if part[0] not in "|-"]
    assert all(len(numbers_in(part)) <= 3 for part in [*bullets, *rest])


@pytest.mark.parametrize(
    "path", sorted((ROOT / "analyses").rglob("*.nc")), ids=lambda path: path.name
)
def test_records_are_small(path: Path) -> None:
    """Committed records stay under 5 MB."""
    assert path.stat().st_size < 5_000_000


@pytest.mark.parametrize(
    "path",
    sorted(
        path for folder in ("analyses", "benchmarks") for path in (ROOT / folder).rglob("*.png")
    ),
    ids=lambda path: path.name,
)
def test_figures_are_small(path: Path) -> None:
    """Committed figures stay under 500 kB."""
    assert path.stat().st_size < 500_000


def test_estimators_are_complete_and_current() -> None:
    """Every cell of the study; one corner of it, run again, gives what is recorded."""
    from bayesmeta.studies import estimators

    (study,) = estimators.STUDIES
    record = bm.read_record(ROOT / "analyses" / study.record)
    assert record.n.values.tolist() == list(estimators.SIZES)
    assert record.rule.values.tolist() == list(estimators.RULES)
    assert record.estimator.values.tolist() == list(estimators.METHODS)
    assert (
        record.d.values.tolist() == [2, 5, 10]
        and (record.available.sel(estimator="reml") == 1).all()
    )
    corner = {"d": 2, "rule": "tau=20", "n": 10}
    cells = {k: v for k, v in study.cells.items() if corner.items() <= v.items()}
    assert len(cells) == 20
    runs = [
        estimators.estimate_all(dict(settings), cell_seed(study.random_seed, name))
        for name, settings in cells.items()
    ]
    now = estimators.summary(xr.concat(runs, "run")).drop_vars("milliseconds")
    then = record.sel(corner).drop_vars(["milliseconds", *corner])
    for name in now.data_vars:
        np.testing.assert_allclose(now[name], then[name], rtol=1e-6, atol=1e-9, err_msg=str(name))


def test_estimators_say_what_was_recorded_of_them() -> None:
    """Moments and split halves are unbiased as far as the study can tell; likelihood errs less."""
    record = bm.read_record(ROOT / "analyses" / "estimators" / "estimators.nc")
    error = record.cov_rmse.sel(d=5, n=1000)
    assert (error.sel(estimator="reml") <= 1.1 * error.sel(estimator="moment")).all()
    assert float(error.sel(estimator="reml", rule="threshold")) < 0.7 * float(
        error.sel(estimator="moment", rule="threshold")
    )
    assert float(record.not_psd.sel(estimator="moment", rule="threshold", d=5, n=100)) > 0.5
    assert (record.not_psd.sel(estimator=["moment-clipped", "ml", "reml"]) == 0).all()


def calibration() -> list[xr.Dataset]:
    """The records of calibration."""
    folder = ROOT / "analyses" / "ranks"
    return [bm.read_record(folder / f"{name}.nc") for name in ("random", "adaptive", "methods")]


def test_calibration_notices_wrong_models() -> None:
    """At least 200 replications each; every wrong model is found out, by the quantity it gets
    wrong; the right ones are not, by the rule of the report (0.05 by the number of quantities)."""
    from bayesmeta.calibration.ranks import uniformity
    from bayesmeta.studies.calibration import DRAWS, MODELS, RIGHT

    random, adaptive, _ = calibration()
    assert random.model.values.tolist() == list(MODELS)
    assert random.sizes["run"] >= 200 and adaptive.sizes["run"] >= 200

    def p(record: xr.Dataset, quantity: str) -> float:
        return uniformity(record["rank"].sel(quantity=quantity).values, DRAWS).p_value

    for record in (*(random.sel(model=model) for model in RIGHT), adaptive):
        ranked = record["rank"].dropna("quantity").quantity.values.tolist()
        assert len(ranked) >= 6
        assert min(p(record, q) for q in ranked) > 0.05 / len(ranked)
        assert (record.divergent > 0).mean() < 0.02
    for model, quantity in (
        ("noise 20% too large", "sd 1"),
        ("least squares as theta", "sd 1"),
        ("no correlations", "corr"),
    ):
        assert p(random.sel(model=model), quantity) < 0.001
    assert (np.abs(adaptive.ols_z) <= 1.96).mean("run").max() < 0.9


def test_every_method_of_drawing_is_calibrated() -> None:
    """By the rule of the report, for all right models; among the replications by weights, too, of
    which there are enough with many tasks."""
    from bayesmeta.studies.calibration import METHODS, RIGHT

    rows = load(ROOT / "analyses" / "ranks" / "report.py").by_method(calibration()[2])
    assert {(row["case"], row["model"]) for row in rows} == {(c, m) for c in METHODS for m in RIGHT}
    assert all(row["calibrated"] and row["runs"] == 200 for row in rows)
    for row in rows:
        assert (row["weighed"] > 0) == (METHODS[row["case"]][1] == "auto")
        assert row["case"] != "many tasks, auto" or row["p_weighed"] is not None


BAYES = ROOT / "analyses" / "bayes-vs-moment"


def test_posterior_against_moments_is_current() -> None:
    """The closed forms of a recorded cell, computed again; what MCMC drew is not."""
    record = bm.read_record(BAYES / "compared.nc")
    assert record.sizes["run"] >= 20 and record.n.values.tolist() == list(SIZES)
    seed = cell_seed(7, "tau=50/n=50/run=3")
    family, stats = explored({"rule": "tau=50", "n": 50}, seed)
    there = record.sel(rule="tau=50", n=50, run=3)
    for name, method in (("moment", "moment"), ("REML", "reml")):
        found = bm.fit_prior(stats, family.noise_sd, method).prior
        error = np.linalg.norm(found.mean - family.prior.mean)
        np.testing.assert_allclose(there.mean_error.sel(estimate=name), error, rtol=1e-6)


def test_posterior_against_moments_says_what_was_recorded() -> None:
    """The paper's radii always hold, and are hundreds of times too wide for the covariance; the
    posterior is always definite, eq. (11) hardly ever with Section 6's exploration; the theory's
    widening makes the prior useless; the posterior's radii are of the size of the errors."""
    record = bm.read_record(BAYES / "compared.nc")
    assert record.trusted.mean() > 0.9
    bound = record.sel(radius="E_m, E_s at 95%")
    error = record.sel(estimate="moment")
    assert (error.mean_error <= bound.mean_radius).all()
    assert (100 * error.cov_error <= bound.cov_radius).mean() > 0.9
    assert (record.lowest_eigenvalue.sel(estimate="posterior") > 0).all()
    low = record.lowest_eigenvalue.sel(estimate="moment", rule="threshold", n=1000)
    assert (low < 0).mean() > 0.9
    last = record.sel(n=5000).regret.mean("run")
    assert (last.sel(played="widened, theory") > 4 * last.sel(played="KTS")).all()
    assert (last.sel(played="posterior") < 1.25 * last.sel(played="KTS")).all()
    own = record.sel(radius="posterior")
    ratio = own.mean_radius / record.mean_error.sel(estimate="posterior")
    assert 0.5 < float(ratio.median()) < 4


def test_calibration_report_is_generated() -> None:
    """Page, tables and the project's README are what the records give today."""
    folder = ROOT / "analyses" / "ranks"
    report, records = load(folder / "report.py"), calibration()
    page = (folder / "README.md").read_text()
    assert page == report.readme(*records) and faults(page) == []
    assert (folder / "ranks.csv").read_text() == report.as_csv(report.ranked(*records[:2]))
    covered = report.covered(*records[:2])
    assert (folder / "coverage.csv").read_text() == report.coverage_csv(covered)
    assert report.main_block(*records) in (ROOT / "README.md").read_text()
