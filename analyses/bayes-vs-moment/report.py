"""Write the README and figure of this folder, and the README's block, from the records.

python analyses/bayes-vs-moment/report.py
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import xarray as xr
from scipy.stats import binomtest, t

from bayesmeta.report.figures.compared import figure_compared
from bayesmeta.report.markdown import from_interval, table, write_block
from bayesmeta.runner.files import write_atomically
from bayesmeta.simulation.records import read_record
from bayesmeta.simulation.summaries import interval
from bayesmeta.studies.bayes import HORIZON, LEVEL, METHODS, NEXT, PLAYED, RADII, explored

HERE = Path(__file__).parent
DIM = 5
RULES = {
    "threshold": "Section 6's rule (explore until lambda_min(V) >= 0.03 sigma^2)",
    "tau=50": "50 steps of exploration",
}


def mean_of(values: xr.DataArray, digits: int = 2) -> str:
    """A mean over runs with its standard error."""
    there = values.dropna("run")
    if there.sizes["run"] < 2:
        return ""
    error = float(there.std("run", ddof=1)) / np.sqrt(there.sizes["run"])
    mean = float(there.mean("run"))
    digits = max(digits - max(0, int(np.log10(max(abs(mean), 1e-9)))), 0)
    return f"{mean:,.{digits}f} ± {error:,.{digits}f}"


def errors_table(record: xr.Dataset, rule: str, variable: str) -> str:
    """Errors of every estimate against the number of tasks."""
    here = record[variable].sel(rule=rule)
    sizes = record.n.values.tolist()
    rows = [[m, *[mean_of(here.sel(estimate=m, n=n)) for n in sizes]] for m in METHODS]
    return table(["", *[f"n = {n:,}" for n in sizes]], rows)


def radius_table(record: xr.Dataset, rule: str, variable: str, error: str) -> str:
    """95% radii beside the errors they are about, and how often they hold."""
    about = {"moment": "moment", "REML": "REML", "posterior": "posterior"}
    sizes, rows = record.n.values.tolist(), []
    for name in RADII:
        radius = record[variable].sel(rule=rule, radius=name)
        if radius.isnull().all():
            continue
        gap = record[error].sel(rule=rule, estimate=about.get(name, "moment"))
        cells = []
        for n in sizes:
            if variable == "cov_radius" and name in LEMMAS and not applies(name, n):
                cells.append("")
                continue
            held = int((gap.sel(n=n) <= radius.sel(n=n)).sum())
            cells.append(
                f"{float(radius.sel(n=n).mean()):,.2f} ({share(held, record.sizes['run'])})"
            )
        rows.append([LEMMAS.get(name, name), *cells])
    return table(["", *[f"n = {n:,}" for n in sizes]], rows)


LEMMAS = {
    "E_m, E_s at 95%": "the paper's lemmas, at 95%",
    "E_m, E_s as defined": "the paper's lemmas, at the level of E_m and E_s",
}


def applies(name: str, n: int) -> bool:
    """Whether the lemma on the covariance speaks of n tasks: n + 1 > 5d + 2 ln(1/eta)."""
    eta = (1 - LEVEL) / 6 if name.endswith("95%") else 1 / (DIM * (n + 1) * HORIZON)
    return n + 1 > 5 * DIM - 2 * math.log(eta)


def share(count: int, runs: int) -> str:
    """A percentage with its exact 95% interval."""
    low, high = binomtest(count, runs).proportion_ci(method="exact")
    return f"{count / runs:.0%} [{100 * low:.0f}, {100 * high:.0f}]"


def share_table(record: xr.Dataset, rule: str) -> str:
    """Positive definite, and wider than the truth."""
    sizes, rows = record.n.values.tolist(), []
    for m in METHODS:
        here = record.sel(rule=rule, estimate=m)
        runs = record.sizes["run"]
        cells = [
            f"{share(int((here.lowest_eigenvalue.sel(n=n) > 1e-9).sum()), runs)}; "
            f"{share(int(here.dominates.sel(n=n).sum()), runs)}"
            for n in sizes
        ]
        rows.append([m, *cells])
    return table(["positive definite, wider than Sigma", *[f"n = {n:,}" for n in sizes]], rows)


def cover_table(record: xr.Dataset, rule: str) -> str:
    """How often 95% intervals of single entries hold."""
    sizes, rows = record.n.values.tolist(), []
    for variable, what in (("mu", "mu"), ("cov", "Sigma")):
        for name in RADII[:3]:
            inside = record[f"{variable}_in"].sel(rule=rule, radius=name)
            if inside.isnull().all():
                continue
            width = record[f"{variable}_width"].sel(rule=rule, radius=name)
            cells = []
            for n in sizes:
                there = int(inside.sel(n=n).notnull().sum())
                text = f"{float(inside.sel(n=n).mean()):.2f} (width "
                text += f"{float(width.sel(n=n).mean()):.2f})"
                if there < record.sizes["run"]:
                    text = f"{text}, in the {there} runs that have them" if there else ""
                cells.append(text)
            rows.append([f"{what}, {name}", *cells])
    return table(["entries", *[f"n = {n:,}" for n in sizes]], rows)


def ratio_of(values: xr.DataArray, unit: xr.DataArray) -> tuple[float, float]:
    """The ratio of two means over the same runs, and its standard error (delta method)."""
    x, k = values.values, unit.values
    ratio = float(x.mean() / k.mean())
    error = float((x - ratio * k).std(ddof=1) / k.mean() / np.sqrt(len(x)))
    return ratio, error


def with_t(values: xr.DataArray, unit: xr.DataArray) -> str:
    """The same with a 95% t interval."""
    ratio, error = ratio_of(values, unit)
    half = float(t.isf(0.025, values.size - 1)) * error
    return f"{ratio:.2f} [{ratio - half:.2f}, {ratio + half:.2f}]"


def regret_table(record: xr.Dataset, rule: str) -> str:
    """Regret of the next task as a multiple of KTS's."""
    here = record.regret.sel(rule=rule)
    sizes = record.n.values.tolist()
    rows = []
    for name in PLAYED:
        cells = []
        for n in sizes:
            ratio, error = ratio_of(here.sel(played=name, n=n), here.sel(played="KTS", n=n))
            cells.append(f"{ratio:.2f} ± {error:.2f}")
        rows.append([name, *cells])
    return table(["", *[f"n = {n:,}" for n in sizes]], rows)


def priors_table(priors: xr.Dataset) -> str:
    """Coverage and error under other priors over correlations."""
    rows = []
    for eta in priors.eta.values.tolist():
        here = priors.sel(eta=eta)
        cells = [
            f"{mean_of(here.cov_in.sel(n=n))}; {mean_of(here.cov_error.sel(n=n))}; "
            f"{mean_of(here['corr'].sel(n=n))}"
            for n in priors.n.values.tolist()
        ]
        rows.append([f"LKJ({eta:g})", *cells])
    head = ["coverage, error, mean correlation", *[f"n = {n:,}" for n in priors.n.values.tolist()]]
    return table(head, rows)


def story(record: xr.Dataset) -> dict[str, str]:
    """The numbers of the text."""
    here = record.sel(rule="threshold")
    last = int(record.n[-1])

    def times(variable: str, mine: str, error: str, estimate: str, n: int, digits: int = 0) -> str:
        ratio = here[variable].sel(radius=mine, n=n) / here[error].sel(estimate=estimate, n=n)
        return f"{float(ratio.median('run')):,.{digits}f}"

    def next_task(name: str, n: int) -> str:
        return with_t(here.regret.sel(played=name, n=n), here.regret.sel(played="KTS", n=n))

    def gap(first: str, second: str, n: int) -> str:
        regret = here.regret.sel(n=n)
        return with_t(
            regret.sel(played=first) - regret.sel(played=second), regret.sel(played="KTS")
        )

    definite = here.lowest_eigenvalue.sel(estimate="moment") > 1e-9
    first = [int(n) for n in record.n.values if float(definite.sel(n=n).mean()) >= 0.5]
    ours, reml = (here.cov_error.sel(estimate=name, n=100).values for name in ("posterior", "REML"))
    return {
        "mean_loose": times("mean_radius", RADII[3], "mean_error", "moment", 1000),
        "cov_loose": times("cov_radius", RADII[3], "cov_error", "moment", 1000),
        "own_mean": times("mean_radius", "posterior", "mean_error", "posterior", 1000, 1),
        "own_cov": times("cov_radius", "posterior", "cov_error", "posterior", 1000, 1),
        "reml_mean": times("mean_radius", "REML", "mean_error", "REML", 1000, 1),
        "theory_definite": share(
            int((record.lowest_eigenvalue.sel(estimate=METHODS[2]) > 0).sum()),
            record.trusted.size,
        ),
        "widening": f"{float(here.trace.sel(estimate=METHODS[2], n=last).mean()) / 5:,.0f}",
        "definite": f"from {first[0]:,} tasks on" if first else "of no size recorded here",
        "posterior_20": next_task("posterior", 20),
        "moment_20": next_task("moment", 20),
        "reml_20": next_task("REML", 20),
        "wide_20": next_task(METHODS[1], 20),
        "theory_last": next_task(METHODS[2], last),
        "draws_20": next_task("posterior draws", 20),
        "posterior_last": next_task("posterior", last),
        "reml_last": next_task("REML", last),
        "moment_last": next_task("moment", last),
        "gap_20": gap("posterior", "REML", 20),
        "gap_100": gap("posterior", "REML", 100),
        "gap_1000": gap("posterior", "REML", 1000),
        "reml_cov": f"{float(here.cov_error.sel(estimate='REML', n=20).mean()):.1f}",
        "posterior_cov": f"{float(here.cov_error.sel(estimate='posterior', n=20).mean()):.1f}",
        "errors": from_interval(interval(ours - reml), 2),
        "held": f"{float(here.cov_in.sel(radius='posterior', n=200).mean()):.0%}",
        "trusted": f"{int(record.trusted.sum())} of {record.trusted.size}",
        "last": f"{last:,}",
    }


def explored_enough(tasks: int = 2000) -> str:
    """In how many tasks with 50 steps of exploration E_v holds, lambda_min(V) >= lambda_A d / 2."""
    family, stats = explored({"rule": "tau=50", "n": tasks}, 0)
    least = family.told().action_min * family.dim / 2
    return f"{int((np.linalg.eigvalsh(stats.gram)[:, 0] >= least).sum()):,} of {tasks:,}"


def readme(record: xr.Dataset, priors: xr.Dataset) -> str:
    """The README of this folder."""
    s = story(record)
    parts = [
        f"""# The moment estimator and the posterior, side by side

Generated by `python analyses/bayes-vs-moment/report.py` from the records beside it; do not edit.
Recorded by `bayesmeta study run NAME` and `study collect NAME --record` for `bayes-vs-moment`,
`bayes-vs-moment-fits` and `bayes-vs-moment-priors`. The story with pictures is
[notebook 03](../../notebooks/03-a-posterior-of-the-prior.ipynb).

The paper's family (d = 5, radius 0.25, 20 actions, noise 1, Sigma with ones and 0.8). n tasks are
explored; from the same data the prior is estimated by eq. (11) (moment), by eq. (12) with
c_w = 10 (Section 6) and with the theory's c_w, by REML, and by the posterior of (mu, Sigma), whose
prior is what the agents are told (mu_i ~ N(0, m^2), standard deviations half-normal with scale
sqrt(lambda_max), correlation matrices uniform). {record.sizes["run"]} runs; {s["trusted"]}
posteriors passed all diagnostics, the others are in the tables, too. ±: standard errors.

![Errors, radii and the next task](compared.png)

## What to see

- **How far off, and who says so.** With Section 6's exploration and 1,000 tasks, the radius that
  the theory gives the mean's error at 95% is {s["mean_loose"]} times the error itself (median over
  runs), that of the covariance's error {s["cov_loose"]} times. The posterior's are
  {s["own_mean"]} and {s["own_cov"]} times its errors, REML's for the mean {s["reml_mean"]} times.
  (The lemmas are conditional on E_v. Section 6's rule ensures it; after 50 steps it held in
  {explored_enough()} tasks looked at.)
- **Definite or not.** Under Section 6's exploration eq. (11) is positive definite in at least half
  of the runs {s["definite"]}. Eq. (12) with the theory's c_w is positive definite in
  {s["theory_definite"]} of all runs, and at
  n = {s["last"]} still has eigenvalues of about {s["widening"]} where the truth has 0.2 and 4.2.
- **The next task.** Regret in multiples of KTS's, after 20 tasks: posterior {s["posterior_20"]},
  a draw of the posterior for every task {s["draws_20"]}, REML {s["reml_20"]}, eq. (11)
  {s["moment_20"]}, c_w = 10 {s["wide_20"]}. After {s["last"]}: posterior
  {s["posterior_last"]}, REML {s["reml_last"]}, moment {s["moment_last"]}, the theory's c_w
  {s["theory_last"]}. Posterior less REML: {s["gap_20"]} at 20, {s["gap_100"]} at 100,
  {s["gap_1000"]} at 1,000 tasks. A smaller regret is not a better prior: REML's covariance is
  nearly always singular, Thompson Sampling then explores less, and here that pays
  (`analyses/figure1`).
  (The posterior is played as a Gaussian with the mean and covariance of its predictive law;
  eq. (11) is raised where it is not positive definite, nothing else is. Errors of ratios include
  KTS's.)
- **The posterior is not magic.** At one fixed truth its intervals need not cover 95%: they do on
  average over truths drawn from its prior ([analyses/calibration](../calibration/README.md)). Here
  all correlations are 0.8, which a prior uniform over 5 x 5 correlation matrices thinks unlikely,
  and exploration by Section 6's rule says little about Sigma: of its entries, 95% intervals hold
  {s["held"]} at n = 200; see also the last table. Error of the covariance at n = 100,
  posterior less REML: {s["errors"]}.
"""
    ]
    for rule, text in RULES.items():
        parts.append(
            f"""## {text[0].upper() + text[1:]}

Error of the mean, |mu-hat - mu|:

{errors_table(record, rule, "mean_error")}

Error of the covariance, operator norm:

{errors_table(record, rule, "cov_error")}

{share_table(record, rule)}

Radius of the uncertainty of the mean at {LEVEL:.0%} (how often the error was within it, with the
exact 95% interval of that share). The lemmas are also given at the level of the events E_m and E_s,
1 - 1/(dnT) and 1 - 6/(dnT) with T = {HORIZON}:

{radius_table(record, rule, "mean_radius", "mean_error")}

The same of the covariance. The lemma's radius is that of eq. (11), before widening; E_s has twice
it, for the widened estimate; it speaks of more than 5d + 2 ln(1/eta) tasks:

{radius_table(record, rule, "cov_radius", "cov_error")}

Coverage of 95% intervals for single entries (REML's are Wald intervals, which a fit at the boundary
does not have: those that do are a selection):

{cover_table(record, rule)}

Regret of Thompson Sampling in {NEXT} further tasks, in multiples of KTS's:

{regret_table(record, rule)}
"""
        )
    parts.append(
        f"""## Other priors over correlations

Coverage of the entries of Sigma at 95%, error of its posterior mean, and the posterior mean of a
correlation (the truth is 0.8); Section 6's rule, {priors.sizes["run"]} runs. In a trial of 6 runs
before this one LKJ(2), the first choice, had covered less than LKJ(1), and the agents' prior became
LKJ(1), uniform.

{priors_table(priors)}
"""
    )
    return "\n".join(parts)


def main_block(record: xr.Dataset) -> str:
    """The block of the project's README."""
    s = story(record)
    return (
        "After 20 explored tasks, the next task costs, in multiples of the regret of an agent "
        f"that knows the prior: {s['posterior_20']} with the posterior, {s['reml_20']} with REML, "
        f"{s['moment_20']} with the paper's eq. (11), {s['wide_20']} with its eq. (12) and "
        f"c_w = 10 (95% intervals). After {s['last']}: {s['posterior_last']}, {s['reml_last']}, "
        f"{s['moment_last']}, and {s['theory_last']} with the c_w of the theory. At 1,000 tasks "
        f"the 95% radius of the paper's lemma on the covariance is {s['cov_loose']} times the "
        "error. (REML's covariance is nearly always singular, which makes Thompson Sampling "
        "explore less; that pays here, but at 20 tasks REML's covariance errs by "
        f"{s['reml_cov']}, the posterior's by {s['posterior_cov']}.) "
        "Details: [analyses/bayes-vs-moment](analyses/bayes-vs-moment/README.md)."
    )


def main() -> None:
    record, priors = (read_record(HERE / f"{name}.nc") for name in ("compared", "priors"))
    figure = figure_compared(record)
    write_atomically(HERE / "compared.png", lambda to: figure.savefig(to, dpi=110))
    page = readme(record, priors)
    write_atomically(HERE / "README.md", lambda to: to.write_text(page))
    write_block(HERE.parent.parent / "README.md", "bayes-vs-moment", main_block(record))


if __name__ == "__main__":
    main()
