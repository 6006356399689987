"""The small data sets that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.checks import one_of

if TYPE_CHECKING:
    from pandas import DataFrame

NAMES = ("bcg", "eight_schools", "sleepstudy")


def data_path(name: str) -> Path:
    """The file of a data set."""
    return Path(__file__).parent / f"{one_of('data set', name, NAMES)}.csv"


def load_data(name: str) -> DataFrame:
    """One of the data sets that come with the package.

    Parameters
    ----------
    name : str
        ``"sleepstudy"`` (reaction times of 18 subjects over ten days), ``"eight_schools"``
        (effects of coaching, with standard errors) or ``"bcg"`` (13 vaccine trials, with the
        variances of their effects).

    Returns
    -------
    pandas.DataFrame

    Examples
    --------
    >>> load_data("eight_schools").head(2)
      school  effect  se
    0      A      28  15
    1      B       8  10
    """
    import pandas as pd

    return pd.read_csv(data_path(name))
