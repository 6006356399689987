"""Write the README and figure of this folder from the record.

python analyses/estimators/report.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from scipy.stats import binomtest

from bayesmeta.report.figures.estimators import figure_estimators
from bayesmeta.report.markdown import table, write_block
from bayesmeta.runner.files import write_atomically
from bayesmeta.simulation.records import read_record
from bayesmeta.studies.estimators import METHODS, STUDIES, WIDENING

HERE = Path(__file__).parent
(STUDY,) = STUDIES
RUNS = len({settings["run"] for settings in STUDY.cells.values()})


def number(value: xr.DataArray, digits: int = 2) -> str:
    """A value, or a dash where the method cannot be used."""
    return f"{float(value):.{digits}f}" if bool(value.notnull()) else "none"


def errors(record: xr.Dataset, d: int, rule: str) -> str:
    """Bias and error of every method for one dimension and rule."""
    rows = []
    for method in METHODS:
        here = record.sel(d=d, rule=rule, estimator=method)
        cells = [method]
        for n in (100, 1000, 10_000):
            one = here.sel(n=n)
            if float(one.available) < 1:
                some = f"{100 * float(one.available.fillna(0)):.0f}% of runs"
                cells += ["none" if one.available.fillna(0) == 0 else some, "", "", "", ""]
                continue
            bias = f"{number(one.cov_bias)} ({number(one.cov_bias_error)})"
            cells += [number(one.mean_rmse), bias, number(one.cov_rmse),
                      number(100 * one.not_psd, 0), number(100 * one.singular, 0)]  # fmt: skip
        cells.append(number(here.sel(n=10_000).milliseconds, 0))
        rows.append(cells)
    header = ["method"]
    for n in ("100", "1,000", "10,000"):
        header += [
            f"n = {n}: mean RMSE",
            "cov bias (s.e.)",
            "cov RMSE",
            "not PSD, %",
            "singular, %",
        ]
    return table([*header, "ms at 10,000"], rows)


def unbiased(record: xr.Dataset) -> str:
    """The largest bias of moment and split in standard errors, against what chance allows."""
    from scipy.stats import t

    z = record.cov_bias_z.sel(estimator=["moment", "split"])
    d = xr.DataArray(record.d.values, dims="d")
    count = int((z.notnull() * d * (d + 1) / 2).sum())
    bound = t.isf(0.025 / count, RUNS - 1)
    return (
        "The largest bias of an entry under `moment` and `split`, in standard errors over runs, is "
        f"{float(z.max()):.1f} among {count:,} entries; were all of them unbiased and normal, the "
        f"largest would stay below {bound:.1f} in 95% of studies."
    )


def compare(record: xr.Dataset, rule: str, n: int) -> str:
    """How much smaller REML's error is than that of the moments."""
    return f"{ratio(record, rule, n)} ({rule}, {n:,} tasks)"


def ratio(record: xr.Dataset, rule: str, n: int) -> str:
    """Root mean square error (operator norm) of moments over REML's; runs drawn anew in pairs."""
    here = record.cov_error.sel(d=5, rule=rule, n=n)
    errors = np.stack([here.sel(estimator=name).values ** 2 for name in ("moment", "reml")])
    drawn = np.random.default_rng(0).integers(errors.shape[1], size=(4000, errors.shape[1]))
    again = np.sqrt(errors[0][drawn].mean(axis=1) / errors[1][drawn].mean(axis=1))
    low, high = np.quantile(again, [0.025, 0.975])
    return f"{np.sqrt(errors[0].mean() / errors[1].mean()):.2f} [{low:.2f}, {high:.2f}]"


def share(record: xr.Dataset, method: str) -> str:
    """How many estimates of a method were no covariance, where all of them could be used."""
    common = (record.available == 1).sel(estimator=list(METHODS)).all("estimator")
    values = record.not_psd.sel(estimator=method).where(common)
    count = int(common.sum()) * RUNS
    low, high = binomtest(round(float(values.sum()) * RUNS), count).proportion_ci(method="exact")
    return f"{100 * float(values.mean()):.0f}% [{100 * low:.0f}, {100 * high:.0f}]"


def percent(value: float) -> str:
    """A share of the runs with its exact 95% interval."""
    low, high = binomtest(round(value * RUNS), RUNS).proportion_ci(method="exact")
    return f"{100 * value:.0f}% [{100 * low:.0f}, {100 * high:.0f}]"


def singular(record: xr.Dataset) -> str:
    """How often REML ends at a singular covariance under Section 6's rule, d = 5."""
    here = record.singular.sel(d=5, rule="threshold", estimator="reml")
    return ", ".join(f"{percent(float(here.sel(n=n)))} of the runs at n = {n:,}"
                     for n in (100, 1000, 10_000))  # fmt: skip


def wide(record: xr.Dataset) -> str:
    """Where widening is not enough."""
    here = record.not_psd.sel(d=10, rule="tau=20", estimator="moment-widened")
    return ", ".join(f"{100 * float(value):.0f}%" for value in here)


def sizes(record: xr.Dataset) -> str:
    """The numbers of tasks."""
    return ", ".join(f"{int(n):,}" for n in record.n)


def doubtful(record: xr.Dataset) -> str:
    """Fits that say they did not arrive."""
    here = record.doubtful.sel(estimator=["ml", "reml"])
    return f"{round(float(here.sum()) * RUNS)} of {here.size * RUNS:,}"


def readme(record: xr.Dataset) -> str:
    """The README of this folder."""
    sections = "\n\n".join(
        f"### d = 5, {rule}\n\n{errors(record, 5, rule)}" for rule in record.rule.values.tolist()
    )
    others = "\n\n".join(
        f"### d = {d}, threshold\n\n{errors(record, d, 'threshold')}" for d in (2, 10)
    )
    many = ", ".join(compare(record, rule, n) for rule, n in
                     (("threshold", 1000), ("tau=20", 1000), ("tau=200", 1000)))  # fmt: skip
    return f"""# Estimating the prior: bias, error, definiteness and time

Generated by `python analyses/estimators/report.py` from the record beside it; do not edit. Recorded
by `bayesmeta study run estimators` and `bayesmeta study collect estimators --record`:
{len(STUDY.cells):,} cells, {RUNS} runs of each. Tasks of the paper's family (noise known) explore
until the smallest eigenvalue of V/sigma^2 is 0.03 ("threshold", Section 6) or for tau steps; every
method is given the same exploration data. Widening uses c_w = {WIDENING:g}. `gls-known` is told the
true covariance, so it has no error there. "none": some task, or half of one, does not determine
theta, so the method cannot be used; where that happened in some runs, their share is given. Errors
are those of the worst coefficient or entry; a bias that is worst among many entries is never 0, so
the largest standard error of an entry stands beside it. "Singular": the smallest eigenvalue is 0.

![Error and definiteness against the number of tasks](estimators.png)

- The error of the moments' covariance (operator norm) as a multiple of REML's, with 95% bootstrap
  intervals over runs: {many}.
- {unbiased(record)}
- Where every method could be used, {share(record, "moment")} of the estimates of `moment` had a
  negative eigenvalue, of `split` {share(record, "split")}, of `moment-widened`
  {share(record, "moment-widened")} (exact 95% intervals). Clipping and likelihood have none by
  construction, but stop at 0 instead: REML's was singular in {singular(record)}.
- Widening does not always help: for d = 10 and 20 steps `moment-widened` had a negative eigenvalue
  in {wide(record)} of the runs (n = {sizes(record)}).
- Fits of `ml` and `reml` that did not converge, or whose result is not determined:
  {doubtful(record)}.

{sections}

{others}
"""


def main_block(record: xr.Dataset) -> str:
    """The block of the project's README."""
    here = record.sel(d=5, rule="threshold")
    last = int(record.n[-1])
    moments = here.sel(estimator="moment", n=last)
    wide_error, reml = (
        float(here.sel(estimator=name, n=last).cov_rmse) for name in ("moment-widened", "reml")
    )
    return (
        f"Where the truth is known (d = 5, tasks explore as in Section 6, {RUNS} runs): with 1,000 "
        f"tasks the moments' covariance errs {ratio(record, 'threshold', 1000)} times as much as "
        f"REML's (with 200 steps of exploration {ratio(record, 'tau=200', 1000)} times). With "
        f"{last:,} tasks eq. (11) still has a negative eigenvalue in "
        f"{percent(float(moments.not_psd))} of the runs; widening, eq. (12), cures that here and "
        f"errs by {wide_error:.2f} where REML errs by {reml:.2f} (worst entry). Details: "
        "[analyses/estimators](analyses/estimators/README.md)."
    )


def main() -> None:
    record = read_record(HERE / "estimators.nc")
    figure = figure_estimators(record, 5)
    write_atomically(HERE / "estimators.png", lambda to: figure.savefig(to, dpi=110))
    page = readme(record)
    write_atomically(HERE / "README.md", lambda to: to.write_text(page))
    write_block(HERE.parent.parent / "README.md", "estimators", main_block(record))


if __name__ == "__main__":
    main()
