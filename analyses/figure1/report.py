"""Write the README, figures and summaries of this folder, and the README's block, from records."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import xarray as xr

from bayesmeta.agents.roster import BAYESIAN, FIGURE_1, OURS, ROSTER
from bayesmeta.environment import paper_family
from bayesmeta.report.figure1 import RECORDED, recorded_rows, with_recorded
from bayesmeta.report.figures.style import figure_1
from bayesmeta.report.markdown import from_interval, table, with_ends, write_block
from bayesmeta.runner.files import write_atomically
from bayesmeta.simulation.records import cumulative, read_record, settings_of, write_record
from bayesmeta.simulation.summaries import (
    Interval,
    error_slopes,
    interval,
    normaliser,
    orderings,
    run_by_run,
    summarise,
)
from bayesmeta.studies.figure1 import DRAWN, LEARNERS

HERE = Path(__file__).parent
RECORDS = ("figure1", "fair", "orderings", "ids", "definiteness", "bayes", "few")
ROWS = (*DRAWN, *BAYESIAN)


def summary_table(record: xr.Dataset) -> str:
    """Final figures of every agent."""
    return table(
        ["agent", "regret (KTS = 1)", "less KTS's", "relative regret, eq. (2)", "against",
         "mean error", "covariance error", "before widening", "smallest eigenvalue", "raised",
         "singular", "explored steps a task"],
        [
            [
                name,
                with_ends(row["normalised_regret"], row["interval"]),
                with_ends(row["difference_to_KTS"], row["difference_interval"]),
                with_ends(row["relative_regret"], row["relative_interval"]),
                row["reference"],
                f"{row['mean_error']:.3f}",
                f"{row['covariance_error']:.3f}",
                f"{row['raw_covariance_error']:.3f}",
                f"{row['smallest_eigenvalue']:.3f}",
                f"{row['not_positive_definite']:g}",
                "" if row["singular"] is None else f"{row['singular']:.1f}",
                f"{row['exploration_steps'] / int(record.task[-1]):.1f}",
            ]
            for name, row in summarise(record).items()
        ],
    )  # fmt: skip


def section_6(record: xr.Dataset) -> str:
    """The runs that the check of Section 6's claims is made on, as package data."""
    unit = normaliser(record)
    found = {"study": "figure1-orderings", "tasks": int(record.task[-1]), "unit": unit,
             **run_by_run(record, FIGURE_1, LEARNERS, unit)}  # fmt: skip
    return json.dumps(found) + "\n"


def orderings_table(record: xr.Dataset) -> str:
    """What Section 6 states, judged."""
    return table(
        ["statement", "over", "number that must be negative", "value [interval]", "verdict"],
        [
            [c.statement, c.span, c.measure, from_interval(c.value), f"**{c.verdict}**"]
            for c in orderings(record)
        ],
    )


def paired(record: xr.Dataset, first: str, second: str, digits: int = 3) -> str:
    """Regret of one agent less that of another in the same run, in units of KTS's total."""
    final = cumulative(record).cumulative_regret.isel(task=-1) / normaliser(record)
    gap = final.sel(agent=first) - final.sel(agent=second)
    return from_interval(interval(gap.values), digits)


def late(record: xr.Dataset, agent: str) -> Interval:
    """Relative regret of the last half of the tasks, in units of KTS's total."""
    total = cumulative(record).cumulative_relative_regret.sel(agent=agent)
    last = int(record.task[-1])
    gap = total.sel(task=last) - total.sel(task=last // 2)
    return interval(gap.values / normaliser(record))


def fair_text(record: xr.Dataset) -> str:
    """What the rows that make a comparison fair say."""
    rows = summarise(record)
    theirs, true = rows["All-MTS"], float(np.linalg.eigvalsh(paper_family().prior.cov)[0])
    lines = []
    for name in OURS:
        row = rows[name]
        lines.append(
            f"- {name}: relative regret "
            f"{with_ends(row['relative_regret'], row['relative_interval'])}, of which in the last "
            f"half of the tasks {from_interval(late(record, name))}; less All-MTS's regret "
            f"{paired(record, name, 'All-MTS')}; mean error "
            f"{row['mean_error'] / theirs['mean_error']:.2f} and covariance error "
            f"{row['covariance_error'] / theirs['covariance_error']:.2f} times All-MTS's; smallest "
            f"eigenvalue {row['smallest_eigenvalue']:.3f} (true: {true:.1f})."
        )
    return "\n".join(lines)


def bayes_table(record: xr.Dataset) -> str:
    """The agents that learn a posterior against others in the same runs, total and relative."""
    final = cumulative(record).isel(task=-1)
    unit = normaliser(record)
    rows = []
    for name in BAYESIAN:
        for other in ("KTS", "REML-TS", "All-MTS", "All-MTS_w10"):
            if other not in record.agent:
                continue
            cells = []
            for part in ("cumulative_regret", "cumulative_relative_regret"):
                gap = (final[part].sel(agent=name) - final[part].sel(agent=other)) / unit
                cells.append(from_interval(interval(gap.values)))
            rows.append([name, other, *cells])
    return table(["agent", "less", "regret (KTS = 1)", "relative regret, eq. (2)"], rows)


def refits(tasks: int) -> list[int]:
    """The numbers of tasks after which an HB agent fits its posterior."""
    growth, n, found = ROSTER["HB-TS"].learner.growth, 0, []
    while n < tasks:
        found.append(n)
        n = max(n + 1, math.ceil(n * growth))
    return found


def early_table(record: xr.Dataset) -> str:
    """Errors on the way, where the boundary would show."""
    picked = [n for n in (20, 50, 100, 300, 1_000, 3_000, 10_000) if n <= int(record.task[-1])]
    near = record.sel(task=picked, method="nearest")
    rows = []
    for name in ("REML-TS", "ML-TS", "All-MTS", "All-MTS_w10"):
        for label, variable in (
            ("mean error", "mean_error"),
            ("covariance error", "covariance_error"),
            ("smallest eigenvalue", "smallest_eigenvalue"),
        ):
            values = near[variable].sel(agent=name).mean("run").values
            rows.append([name, label, *[f"{abs(v):.3f}" for v in values.round(6)]])
    return table(["agent", "", *[f"task {int(n):,}" for n in near.task.values]], rows)


def slopes_sentence(record: xr.Dataset) -> str:
    """How fast each learner's mean error falls over the last decade of tasks."""
    parts = [
        f"{name} {from_interval(interval(error_slopes(record, name)), 2)}" for name in LEARNERS
    ]
    return "; ".join(parts)


def verdict_counts(record: xr.Dataset) -> str:
    """How many statements hold, and the others by name."""
    found = orderings(record)
    other = [c for c in found if c.verdict != "holds"]
    if not other:
        return f"all {len(found)} hold."
    words = {"fails": "**fails**", "undecided": "is undecided"}
    named = "; ".join(
        f"“{c.statement}” {words[c.verdict]} over {c.span} ({c.measure}: {from_interval(c.value)})"
        for c in other
    )
    return f"{len(found) - len(other)} of {len(found)} hold; {named}."


def readme(records: dict[str, xr.Dataset]) -> str:
    """The README of this folder."""
    record, fair, many, ids, definite, bayes, few = (records[name] for name in RECORDS)
    fits = refits(settings_of(bayes)["tasks"])
    settings, size = settings_of(record), record.sizes["run"]
    eigenvalues = np.linalg.eigvalsh(paper_family().prior.cov)
    small = int((eigenvalues < eigenvalues[0] + 1e-9).sum())
    counts = definite.not_positive_definite
    definite_rows = [
        [
            name,
            f"{int((counts.sel(agent=name) > 0).sum())} of {definite.sizes['run']}",
            f"{int(counts.sel(agent=name).sum())}",
        ]
        for name in LEARNERS
    ]
    return f"""# Figure 1 at the paper's size

Generated by `python analyses/figure1/report.py` from the records beside it; do not edit.
{size} runs of {settings["tasks"]:,} tasks of 200 steps, seed {settings["seed"]}; recorded by
`bayesmeta study run figure1` and `bayesmeta study collect figure1 --record`, the records below
likewise (`bayesmeta study list`). `bayesmeta reproduce` makes the same bits.

![Figure 1](figure1.png)

## Final figures

Regret in units of KTS's mean total; brackets are 95% t intervals over runs. Errors are those of the
prior used in the last task, averaged over runs. The unit is KTS's mean over the runs, taken as
given, so KTS's own interval shows how its runs vary.

{summary_table(shown(records))}

KTS_tau and KTS_rescue are references: KTS that explores as Th-MTS_tau does, or as All-MTS does.
*Raised*: tasks a run whose covariance, eq. (12), was not positive definite and had to be raised;
*singular*: tasks a run played with a covariance of largest likelihood that is singular. The errors
of HB-TS are those of the prior it drew for the task, not of its posterior's mean.

REML-TS and ML-TS are ours: they learn the prior by likelihood from all steps, without forced
exploration, widening or bounds on eigenvalues, after a warm-up of
{ROSTER["REML-TS"].warmup} tasks.

## Is the comparison fair?

Thompson Sampling explores more than it need here: with its prior covariance scaled down, though
that is *wrong*, it loses less, and so do other policies with the true prior. A learner that
underestimates the covariance therefore looks better than it is, in regret and in relative regret
alike (the scaled rows have negative relative regret). What tells is the error of the prior in use.
All-MTS_w10 is All-MTS with the warm-up of our rows, ten tasks instead of d^3. The same
{fair.sizes["run"]} runs of {settings_of(fair)["tasks"]:,} tasks (`figure1-fair`):

{summary_table(fair)}

{fair_text(fair)}

On the way, averaged over runs:

{early_table(fair)}

With few tasks the likelihood is largest at or near a singular covariance, so the smallest
eigenvalue starts at zero. That it is still below the truth at the end says little: the truth has
{small} equal smallest eigenvalues, and the smallest of so many estimates is always low.

## A posterior instead of an estimate

HB-TS and HB-mean-TS learn the posterior of (mu, Sigma) by MCMC from all steps, from the first task
on, without forced exploration; HB-TS plays every task with a draw of it, HB-mean-TS with its
predictive distribution (as a Gaussian with its mean and covariance). Before any task they believe
what the bounds tell them, which here are exact: mu_i ~ N(0, b^2) with b = |mu_*|, standard
deviations half-normal with scale sqrt(lambda_max(Sigma_*)), correlation matrices uniform. (With
LKJ(2), the first choice, intervals for Sigma had covered less in a trial of six runs at this truth,
so the last was chosen with a look at the truth; that there is no warm-up, after a trial of ten runs
with one.) They fit again whenever the tasks have grown by
{ROSTER["HB-TS"].learner.growth - 1:.0%}, to the end ({len(fits)} fits, the last after {fits[-1]:,}
tasks), and use the same draws in between. The same {bayes.sizes["run"]} runs as the figure's
(`figure1-bayes`):

{summary_table(bayes)}

{untrusted_text(bayes)} Paired within runs:

{bayes_table(bayes)}

Where tasks are few one would expect that knowing how little one knows pays. It does not
({few.sizes["run"]} runs of {settings_of(few)["tasks"]} tasks, `figure1-few`; All-MTS is still
in its warm-up of d^3 tasks):

{summary_table(few)}

{bayes_table(few)}

{few_text(few)} {untrusted_text(few)}

## Does what Section 6 states hold?

Judged on {many.sizes["run"]} further runs of the same size (seed {settings_of(many)["seed"]}),
since ten leave some statements undecided. Differences are paired within runs. The intervals hold
all together with probability 95% (Bonferroni over {len(orderings(many))} statements); a verdict
is *undecided* where its interval contains 0.

{orderings_table(many)}

In short: {verdict_counts(many)}

Slopes of log mean error on log tasks, tasks {settings["tasks"] // 10:,} to {settings["tasks"]:,},
with 95% intervals (an error of order 1/√n has slope -0.5): {slopes_sentence(many)}.

On the ten runs of the figure alone, {verdict_counts(record)}

## Is the widened covariance positive definite?

Not always. In {definite.sizes["run"]} further runs of {settings_of(definite)["tasks"]} tasks
(seed {settings_of(definite)["seed"]}), runs in which eq. (12) was not positive definite at least
once, and tasks concerned:

{table(["agent", "runs", "tasks"], definite_rows)}

The agent then raises the eigenvalues to Assumption 2's lower bound, and says so in its status.

## The same rows with IDS inside

{ids.sizes["run"]} runs of {settings_of(ids)["tasks"]:,} tasks; V-IDS with
{ROSTER["KIDS"].policy.posterior_draws} posterior draws a step. Regret still in units of KTS's.

{summary_table(ids)}
"""


def untrusted_text(record: xr.Dataset) -> str:
    """How often the agents played with draws that should not be trusted."""
    rows = summarise(record)
    counts = ", ".join(f"{name} {rows[name]['untrusted']:.1f}" for name in BAYESIAN)
    return f"Tasks a run played with a prior from draws that diverged or did not move: {counts}."


def few_text(few: xr.Dataset) -> str:
    """Who wins where tasks are few, in words that the numbers choose."""
    final = cumulative(few).cumulative_regret.isel(task=-1) / normaliser(few)
    words = []
    for name in BAYESIAN:
        gap = interval((final.sel(agent=name) - final.sel(agent="REML-TS")).values)
        word = "more" if gap.low > 0 else "less" if gap.high < 0 else "about as much"
        words.append(f"{name} loses {word} (than REML-TS: {from_interval(gap)})")
    rows = summarise(few)
    errors = ", ".join(
        f"{name} {rows[name]['mean_error']:.2f} and {rows[name]['covariance_error']:.2f}"
        for name in ("REML-TS", *BAYESIAN)
    )
    return (
        f"{'; '.join(words)}. REML's covariance is singular in "
        f"{rows['REML-TS']['singular']:.0f} of {int(few.task[-1])} tasks, which "
        "makes Thompson Sampling explore less, and that is no loss here (see above). "
        f"Errors of mean and covariance in the last task: {errors}."
    )


def few_sentence(few: xr.Dataset) -> str:
    """Regret with few tasks, in a clause."""
    rows = summarise(few)
    parts = [
        f"{name} {with_ends(rows[name]['normalised_regret'], rows[name]['interval'], 2)}"
        for name in ("REML-TS", *BAYESIAN, "All-MTS_w10", "UKTS")
    ]
    size = f"{few.sizes['run']} runs of {int(few.task[-1])} tasks, KTS = 1"
    return f"{size}): {', '.join(parts)}"


def shown(records: dict[str, xr.Dataset]) -> xr.Dataset:
    """The figure's record with the recorded rows that ``reproduce`` adds."""
    return with_recorded(records["figure1"], HERE / "bayes.nc")[0]


def main_block(records: dict[str, xr.Dataset]) -> str:
    """The block of the project's README."""
    record, fair, many, ids, _, _, few = (records[name] for name in RECORDS)
    rows = [
        [
            name,
            ROSTER[name].note,
            with_ends(row["normalised_regret"], row["interval"], 2),
            with_ends(row["relative_regret"], row["relative_interval"], 2),
            f"{row['mean_error']:.2f}",
            f"{row['covariance_error']:.2f}",
        ]
        for name, row in summarise(shown(records)).items()
        if name in ROWS
    ]
    kids, scaled = summarise(ids)["KIDS"], summarise(fair)["KTS_x0.05"]
    header = ["agent", "what it is", "regret (KTS = 1)", "relative regret, eq. (2)", "mean error",
              "covariance error"]  # fmt: skip
    return (
        table(header, rows)
        + f"\n\n{record.sizes['run']} runs of {settings_of(record)['tasks']:,} tasks; 95% t "
        "intervals over runs; errors are those of the prior used in the last task. Of what the "
        "paper's Section 6 says about these curves, over all tasks and over their last half, on "
        f"{many.sizes['run']} further runs (with intervals that hold all together) "
        f"{verdict_counts(many)} With IDS in place of Thompson "
        f"Sampling and the true prior (KIDS, {settings_of(ids)['tasks']:,} tasks), regret is "
        f"{with_ends(kids['normalised_regret'], kids['interval'], 2)} of KTS's; with a twentieth "
        "of the true covariance for its prior (KTS_x0.05) Thompson Sampling has "
        f"{with_ends(scaled['normalised_regret'], scaled['interval'], 2)}, so regret does not say "
        "who has learned the prior well: the errors do. Where tasks are few "
        f"({few_sentence(few)}. Details: "
        "[analyses/figure1](analyses/figure1/README.md)."
    )


def main() -> None:
    records = {name: read_record(HERE / f"{name}.nc") for name in RECORDS}
    record = shown(records)
    figure = figure_1(record, ROWS)
    write_atomically(HERE / "figure1.png", lambda to: figure.savefig(to, dpi=110))
    text = json.dumps(summarise(record), indent=2) + "\n"
    write_atomically(HERE / "summary.json", lambda to: to.write_text(text))
    data = HERE.parent.parent / "bayesmeta" / "data"
    write_atomically(
        data / "section6.json", lambda to: to.write_text(section_6(records["orderings"]))
    )
    write_record(recorded_rows(records["bayes"]), data / RECORDED)
    page, block = readme(records), main_block(records)
    write_atomically(HERE / "README.md", lambda to: to.write_text(page))
    write_block(HERE.parent.parent / "README.md", "figure1", block)


if __name__ == "__main__":
    main()
