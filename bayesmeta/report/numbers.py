"""Numbers of pages: shares and ratios with their intervals, and tables of all numbers as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

import numpy as np

from bayesmeta.calibration.shares import exact_interval
from bayesmeta.checks import Array
from bayesmeta.simulation.summaries import Interval


def exact_share(count: int, of: int) -> Interval:
    """A share with its exact 95% interval (Clopper and Pearson)."""
    low, high = exact_interval(np.array(count), np.array(of), 0.95)
    return Interval(count / of, float(low), float(high))


def ratio_of_means(values: Array, units: Array) -> Interval:
    """The ratio of two means over the same runs with a 95% t interval (delta method)."""
    from scipy.stats import t

    ratio = float(values.mean() / units.mean())
    error = float((values - ratio * units).std(ddof=1) / units.mean()) / math.sqrt(values.size)
    half = float(t.isf(0.025, values.size - 1)) * error
    return Interval(ratio, ratio - half, ratio + half)


def ratio_of_errors(errors: Array, units: Array, draws: int = 4000) -> Interval:
    """The ratio of two root mean squares over the same runs, with a 95% bootstrap interval."""
    squares = np.stack([errors**2, units**2])
    runs = squares.shape[1]
    drawn = np.random.default_rng(0).integers(runs, size=(draws, runs))
    again = np.sqrt(squares[0][drawn].mean(axis=1) / squares[1][drawn].mean(axis=1))
    low, high = np.quantile(again, [0.025, 0.975])
    return Interval(float(np.sqrt(squares[0].mean() / squares[1].mean())), float(low), float(high))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file: numbers with six digits; None and NaN are empty."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return file.getvalue()


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
"""Digits of exponents."""


def scientific(value: float) -> str:
    """A positive number as a whole one or, from a million on and below 1, as a multiple of a power
    of ten with two digits; and 0."""
    if value == 0 or 1 <= value < 1e6:
        return f"{value:,.0f}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}·10{str(int(power)).translate(RAISED)}"
