"""What the records of the rivals say: the paper's experiment, exponents, told covariances.

Regret is in units of KTS's in the same record. What it is a mean over, one mu_* or a hyper-prior,
each record says (``attrs["regret"]``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesmeta.agents.rivals import RIVALS
from bayesmeta.agents.roster import ROSTER
from bayesmeta.checks import Array
from bayesmeta.simulation.slopes import growth_exponent
from bayesmeta.simulation.summaries import NORMALISER, Interval, interval

if TYPE_CHECKING:
    import xarray as xr

TOLD = {
    "KMTS": "mu_*, lambda_max",
    "UKTS": "bounds",
    "REML-TS": "bounds, at first",
    "ML-TS": "bounds, at first",
    "REML-UCB": "bounds, at first",
    "REML-Greedy": "bounds, at first",
    "REML-IDS": "bounds, at first",
}
"""What the rows of the paper and ours are told besides noise, horizon and number of tasks."""


def told(name: str) -> str:
    """What a row is told."""
    if name in RIVALS:
        return RIVALS[name].told
    if name in TOLD:
        return TOLD[name]
    return "the prior" if ROSTER[name].reference == name else "bounds"


class Place(NamedTuple):
    """A row in the paper's experiment: regret in units of KTS's, the same less its reference's, the
    reference's, the last error of the mean, tasks, and whether it knows the prior."""

    name: str
    regret: Interval
    relative: Interval
    reference: str
    reference_regret: float
    mean_error: Interval
    tasks: int
    told: str


def places(record: xr.Dataset) -> list[Place]:
    """Every row of a record, the least regret first."""
    final = record.isel(task=-1)
    unit = float(final.cumulative_regret.sel(agent=NORMALISER).mean())
    found = []
    for name in record.agent.values.tolist():
        here = final.sel(agent=name)
        reference = str(here.reference.values)
        of_reference = final.cumulative_regret.sel(agent=reference).mean()
        found.append(
            Place(
                name,
                interval(here.cumulative_regret.values / unit),
                interval(here.cumulative_relative_regret.values / unit),
                reference,
                float(of_reference) / unit,
                interval(here.mean_error.values),
                int(final.task),
                told(name),
            )
        )
    return sorted(found, key=lambda place: place.regret.mean)


def learned(place: Place) -> bool:
    """Whether a row learns its prior: it has a reference, and a learner that is no oracle."""
    row = ROSTER[place.name]
    return row.reference != row.name and type(row.learner).__name__ != "Given"


AXES = ("N", "T", "d")
BOUNDS: dict[str, dict[str, dict[str, float]]] = {
    "linear": {
        "Th-MTS_tau": {"N": 0.5, "T": 0.5, "d": 2.5},
        "MQB-TS": {"N": 0.5, "T": 0.5, "d": 2.5},
        "Meta-DP++": {"N": 0.5, "T": 1.5, "d": 3.5},
        "AdaTS": {"N": 0.5, "T": 0.5, "d": 0.5},
    },
    "arms": {
        "MetaTS": {"N": 0.5, "T": 2.0, "d": 1.0},
        "AdaTS": {"N": 0.5, "T": 0.5, "d": 0.5},
    },
    "pricing": {"Meta-DP++_price": {"N": 0.5, "T": 1.5, "d": 4.0}},
}
"""Exponents of the printed bounds on relative regret, logarithms left out: Table 1 of the paper and
its footnote (Meta-DP++ has sqrt(d) less on a linear bandit), Table 1 of Guan and Xiong (AdaTS)."""


class Grown(NamedTuple):
    """A system in a family as one of N, T and d grows: exponents of its relative regret over the
    last factor of four or more, of all tasks and of those after its warm-up (in N, on the tasks
    since), and of its regret over KTS's; None where that is not positive. ``local`` are the
    exponents between neighbouring values."""

    family: str
    grows: str
    name: str
    values: list[int]
    exponent: Interval | None
    after: Interval | None
    against_kts: Interval | None
    local: list[Interval | None]
    bound: float | None


def grown(family: str, grows: str, record: xr.Dataset) -> list[Grown]:
    """The rows of a record of growth, references left out."""
    return [
        _grown(family, grows, record, name)
        for name in record.agent.values.tolist()
        if name in ROSTER and str(record.reference.sel(agent=name).values) != name
    ]


def _grown(family: str, grows: str, record: xr.Dataset, name: str) -> Grown:
    x, sums = sums_of(record, grows, name, "cumulative_relative_regret", after=False)
    _, after = sums_of(record, grows, name, "cumulative_relative_regret", after=True)
    _, own = sums_of(record, grows, name, "cumulative_regret", after=False)
    _, kts = sums_of(record, grows, NORMALISER, "cumulative_regret", after=False)
    places = {value: i for i, value in enumerate(_at(record, grows, NORMALISER))}
    gap = [one - kts[places[value]] for value, one in zip(x, own, strict=True)]
    paired = grows == "N"
    warm = _warmup(record, name)
    late = [i for i, value in enumerate(x) if not paired or value > warm]
    local = [
        growth_exponent(x[i : i + 2], sums[i : i + 2], paired=paired) for i in range(len(x) - 1)
    ]
    return Grown(
        family,
        grows,
        name,
        x,
        exponent(x, sums, paired),
        exponent([x[i] - int(warm) * paired for i in late], [after[i] for i in late], paired),
        exponent(x, gap, paired),
        local,
        BOUNDS[family].get(name, {}).get(grows),
    )


def exponent(x: Sequence[int], values: Sequence[Array], paired: bool) -> Interval | None:
    """The exponent over the last factor of four of x, or as little above it as the values allow."""
    last = last_factor(x)
    if len(last) < 2:
        return None
    return growth_exponent([x[i] for i in last], [values[i] for i in last], paired=paired)


def last_factor(x: Sequence[float]) -> list[int]:
    """Places of the values from the largest on that is at most a quarter of the last; all, where
    none is."""
    if not len(x):
        return []
    first = max((value for value in x if value <= x[-1] / 4), default=x[0])
    return [i for i, value in enumerate(x) if value >= first]


def sums_of(
    record: xr.Dataset, grows: str, name: str, what: str, *, after: bool
) -> tuple[list[int], list[Array]]:
    """What a row sums up to, run by run, for every value of what grows; after its warm-up only
    where asked for, and where it has played."""
    x = _at(record, grows, name)
    here = record.sel(agent=name)
    warm = here[f"{what}_in_warmup"] if after else 0.0 * here[f"{what}_in_warmup"]
    if grows == "N":
        total = (here[what] - warm).isel(value=0)
        return x, [total.sel(task=value).values for value in x]
    total = here[what].isel(task=-1) - warm
    return x, [total.sel(value=value).values for value in x]


def _at(record: xr.Dataset, grows: str, name: str) -> list[int]:
    """The values of what grows at which a row played."""
    if grows == "N":
        return [int(value) for value in record.task.values]
    here = record.cumulative_regret.sel(agent=name).isel(task=-1)
    return [int(value) for value in here.value.values[here.notnull().all("run").values]]


def _warmup(record: xr.Dataset, name: str) -> float:
    return float(np.nanmax(record.warmup.sel(agent=name).values))


class Sum(NamedTuple):
    """A row's relative regret in units of KTS's regret, with and without its first N_0 tasks,
    against its own reference and against KTS."""

    name: str
    own: Interval
    after: Interval
    against_kts: Interval
    warmup: int


def relative(record: xr.Dataset) -> list[Sum]:
    """The last column of Table 1 at the most tasks of a record of growth in N."""
    here = record.isel(value=0)
    final = here.isel(task=-1)
    kts = final.cumulative_regret.sel(agent=NORMALISER).values
    unit, found = float(kts.mean()), []
    for name in record.agent.values.tolist():
        row = final.sel(agent=name)
        if str(record.reference.sel(agent=name).values) == name:
            continue
        own = row.cumulative_relative_regret.values
        found.append(
            Sum(
                name,
                interval(own / unit),
                interval((own - row.cumulative_relative_regret_in_warmup.values) / unit),
                interval((row.cumulative_regret.values - kts) / unit),
                int(_warmup(record, name)),
            )
        )
    return sorted(found, key=lambda one: one.own.mean)


def by_factor(
    record: xr.Dataset, tasks: int, factors: Sequence[float], names: Sequence[str]
) -> tuple[dict[str, Array], dict[str, Interval]]:
    """Regret in units of KTS's after so many tasks: of rows told the covariance times each factor,
    and of all other rows."""
    at = record.cumulative_regret.sel(task=tasks).dropna("agent", how="all")
    unit = float(at.sel(agent=NORMALISER).mean())
    scaled = {
        name: np.array([float(at.sel(agent=f"{name} x {f:g}").mean()) / unit for f in factors])
        for name in names
    }
    others = [name for name in at.agent.values.tolist() if " x " not in name]
    return scaled, {name: interval(at.sel(agent=name).values / unit) for name in others}


REFERENCE = {
    "arms, K = 2, each once": (41.9, 181.8, 63.1, 103.4, 60.6),
    "arms, K = 2, free": (31.0, 180.7, 52.1, 101.2, 52.4),
    "arms, K = 4, each once": (112.5, 381.0, 142.2, 306.6, 149.6),
    "arms, K = 4, free": (29.6, 385.6, 70.8, 352.9, 84.0),
}
"""Total regret of KTS, MarginalTS, AdaTS, MetaTS and MetaMean in the setting of MetaTS, as another
program measured it, of whose runs there were 1000."""
REFERENCE_ROWS = ("KTS", "MarginalTS", "AdaTS", "MetaTS", "MetaMean")
REFERENCE_ERROR = 0.03
"""Its standard error, in parts of the value: "about 1-3 %", so that 3 % is the most."""


class Repeated(NamedTuple):
    """A published setting played again: our mean with its standard error, theirs, and their
    distance in standard errors of the difference."""

    setting: str
    name: str
    ours: float
    error: float
    theirs: float
    distance: float


def repeated(record: xr.Dataset) -> list[Repeated]:
    """The settings of MetaTS beside the values of another program."""
    found = []
    for setting, values in REFERENCE.items():
        for name, theirs in zip(REFERENCE_ROWS, values, strict=True):
            each = runs_of(record, setting, name)
            error = float(each.std(ddof=1) / np.sqrt(each.size))
            own = float(each.mean())
            apart = abs(own - theirs) / np.hypot(error, REFERENCE_ERROR * theirs)
            found.append(Repeated(setting, name, own, error, theirs, float(apart)))
    return found


def runs_of(record: xr.Dataset, setting: str, name: str, what: str = "regret") -> Array:
    """Regret of a row in every run of a published setting."""
    each = record[what].sel(setting=setting, agent=name).values.ravel()
    return each[np.isfinite(each)]


def settings_played(record: xr.Dataset) -> Mapping[str, dict[str, Interval]]:
    """Regret of every row in every published setting."""
    found: dict[str, dict[str, Interval]] = {}
    for setting in record.setting.values.tolist():
        means = record.regret.sel(setting=setting)
        rows = means.dropna("agent", how="all").agent.values.tolist()
        found[setting] = {name: interval(runs_of(record, setting, name)) for name in rows}
    return found
