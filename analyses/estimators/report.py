"""Write this folder's page, figure and table, and the README's block, from the record.

python analyses/estimators/report.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from bayesmeta.report.figures.estimators import figure_estimators
from bayesmeta.report.markdown import write_block
from bayesmeta.report.numbers import csv_text, exact_share, ratio_of_errors
from bayesmeta.report.page import made_from, render, write_page
from bayesmeta.simulation.records import read_record
from bayesmeta.simulation.summaries import Interval, interval
from bayesmeta.studies.estimators import METHODS, STUDIES, WIDENING

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
(STUDY,) = STUDIES
RUNS = len({settings["run"] for settings in STUDY.cells.values()})
SHOWN = tuple(method for method in METHODS if method != "gls-known")
"""The methods that estimate the covariance; gls-known is told it."""


def ratio(record: xr.Dataset, rule: str, n: int, method: str = "moment") -> Interval:
    """Root mean square error (operator norm) of a method's covariance over REML's, d = 5."""
    errors = record.cov_error.sel(d=5, rule=rule, n=n)
    return ratio_of_errors(errors.sel(estimator=method).values, errors.sel(estimator="reml").values)


def share(record: xr.Dataset, measure: str, method: str, **where: object) -> Interval:
    """How many estimates of a method were not definite, or singular, in one cell of the study."""
    value = float(record[measure].sel(estimator=method, **where))
    return exact_share(round(value * RUNS), RUNS)


def share_of_all(record: xr.Dataset, method: str) -> Interval:
    """How many estimates had a negative eigenvalue, where all methods could be used."""
    common = (record.available == 1).sel(estimator=list(METHODS)).all("estimator")
    values = record.not_psd.sel(estimator=method).where(common)
    return exact_share(round(float(values.sum()) * RUNS), int(common.sum()) * RUNS)


def unbiased(record: xr.Dataset) -> dict[str, float]:
    """The largest bias of moment and split in standard errors, against what chance allows."""
    from scipy.stats import t

    z = record.cov_bias_z.sel(estimator=["moment", "split"])
    d = xr.DataArray(record.d.values, dims="d")
    count = int((z.notnull() * d * (d + 1) / 2).sum())
    return {"z": float(z.max()), "entries": count, "bound": t.isf(0.025 / count, RUNS - 1)}


def row(record: xr.Dataset, method: str) -> dict[str, Any]:
    """A method with Section 6's exploration, d = 5; nothing where it cannot be used."""
    here = record.sel(d=5, rule="threshold", estimator=method)
    if not bool((here.available == 1).all()):
        return {"usable": False}
    where = {"d": 5, "rule": "threshold", "n": 1000}
    return {
        "usable": True,
        "error": interval(here.cov_error.sel(n=1000).values),
        "negative": share(record, "not_psd", method, **where),
        "singular": share(record, "singular", method, **where),
        "milliseconds": float(here.milliseconds.sel(n=10_000)),
    }


def values(record: xr.Dataset) -> dict[str, Any]:
    """What the templates speak of."""
    rules = record.rule.values.tolist()
    doubtful = record.doubtful.sel(estimator=["ml", "reml"])
    rmse = record.cov_rmse.where(record.available == 1).sel(d=5, n=1000)
    last = int(record.n[-1])
    return {
        "command": "python analyses/estimators/report.py",
        "made_from": made_from([record]),
        "settings": len(STUDY.cells) // RUNS,
        "runs": RUNS,
        "widening": WIDENING,
        "rules": rules,
        "rows": {method: row(record, method) for method in SHOWN},
        "rmse": {m: [float(rmse.sel(estimator=m, rule=r)) for r in rules] for m in SHOWN},
        "ratio": {rule: ratio(record, rule, 1000) for rule in rules},
        "wide_ratio": ratio(record, "threshold", 1000, "moment-widened"),
        "negative": {m: share_of_all(record, m) for m in ("moment", "split", "moment-widened")},
        "still_negative": share(record, "not_psd", "moment", d=5, rule="threshold", n=last),
        "singular": {
            n: share(record, "singular", "reml", d=5, rule="threshold", n=n)
            for n in (100, 1000, 10_000)
        },
        "not_enough": {
            int(n): share(record, "not_psd", "moment-widened", d=10, rule="tau=20", n=n)
            for n in record.n.values
        },
        "bias": unbiased(record),
        "doubtful": (round(float(doubtful.sum()) * RUNS), doubtful.size * RUNS),
    }


def readme(record: xr.Dataset) -> str:
    """The README of this folder."""
    return render(HERE / "README.md.j2", **values(record))


def main_block(record: xr.Dataset) -> str:
    """The block of the project's README."""
    return render(HERE / "block.md.j2", **values(record)).strip()


def all_numbers(record: xr.Dataset) -> str:
    """Every summary of every cell."""
    table = record.drop_vars("cov_error")  # of single runs; their mean stands beside the others
    table["cov_error"] = record.cov_error.mean("run", skipna=False)
    frame = table.drop_dims("run", errors="ignore").to_dataframe().reset_index()
    return csv_text(list(frame), frame.itertuples(index=False, name=None))


def texts(record: xr.Dataset) -> dict[Path, str]:
    """Every file of text that is made from the record."""
    return {HERE / "README.md": readme(record), HERE / "estimators.csv": all_numbers(record)}


def main() -> None:
    record = read_record(HERE / "estimators.nc")
    write_page(texts(record), {HERE / "estimators.png": figure_estimators(record, 5)})
    write_block(ROOT / "README.md", "estimators", main_block(record))


if __name__ == "__main__":
    main()
