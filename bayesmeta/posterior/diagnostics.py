"""Whether draws can be trusted: ArviZ's diagnostics against their thresholds, with advice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import Advice, InputError
from bayesmeta.display import visible
from bayesmeta.runner.plain import without_nan

if TYPE_CHECKING:
    import xarray as xr

KHAT, EFFICIENCY, OUTSIDE = 0.5, 0.5, 0.01
"""Limits of draws by importance weights: of the tail of the weights, of their effective sample size
a proposal (at least), and of the share of proposals where Sigma is not positive definite."""
WEIGHTS = ("khat", "efficiency", "outside")
"""Their names among the sampler's statistics."""
CHECKED = ("mu", "Sigma", "sigma")
"""The variables whose draws are checked, where there are such."""
_MORE = Advice("draw more ({draws}, {tune})")
_OTHER = Advice("the posterior is no Gaussian that weights can mend: set {method} to nuts")
_STILL = "entries that never moved"
_DEPTH = "at maximal tree depth"
ADVICE = {
    "chains": Advice("one chain cannot show that it has converged: set {chains} to 4"),
    "draws": _MORE,
    "R-hat": Advice("chains disagree: draw more ({draws}, {tune})"),
    "ESS bulk": _MORE,
    "ESS tail": _MORE,
    _STILL: Advice("the chains are stuck: tune longer ({tune})"),
    "MCSE / sd": _MORE,
    "divergences": Advice(
        "raise {target_accept} to 0.95, or give a prior that says more ({prior})"
    ),
    "E-BFMI": Advice("heavy tails: tighten the prior ({prior}), or draw more ({draws})"),
    _DEPTH: Advice("draws are far apart: tune longer ({tune})"),
    "Pareto k-hat": _OTHER,
    "weights' efficiency": _OTHER,
    "outside": _OTHER,
}
"""What to do where a check fails, by its name."""


class Check(NamedTuple):
    """One number against its threshold; ``worst`` is the entry it is of."""

    name: str
    value: float
    wanted: str
    passed: bool
    worst: str = ""

    @property
    def advice(self) -> Advice:
        """What to do where it fails."""
        return ADVICE[self.name]


class Trust(tuple[Check, ...]):
    """All checks of a fit, what ``trustworthy`` returns.

    True where all of them pass; prints as a short table.

    Examples
    --------
    >>> from bayesmeta.posterior.diagnostics import Check, Trust
    >>> bool(Trust([Check("divergences", 0.0, "0", True)]))
    True
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return all(check.passed for check in self)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that fail."""
        return tuple(check for check in self if not check.passed)

    def text(self, wording: Callable[[Advice], str] = str) -> str:
        """The table, the advice in a wording (that of Python, or of a command), the conclusion."""
        lines = [f"{'check':<24}{'value':>10}  {'wanted':<10}{'':<5}worst"]
        lines += [
            f"{c.name:<24}{c.value:>10.5g}  {c.wanted:<10}{'ok' if c.passed else 'BAD':<5}{c.worst}"
            for c in self
        ]
        lines += [f"{check.name}: {wording(check.advice)}" for check in self.failed]
        good = "the sampler has converged: the draws can be trusted"
        return "\n".join([*lines, good if self else "do not trust these draws"])

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def group_of(tree: Any, name: str, *variables: str) -> xr.Dataset:
    """A group of a fitted tree; refuses a tree that lacks it, or ``variables`` in it."""
    import xarray as xr

    if not isinstance(tree, xr.DataTree):
        raise InputError(
            f"tree must be a DataTree, as sample_posterior returns it, got {repr(tree)[:80]}"
        )
    if name not in tree.children:
        raise InputError(f"the tree has no {name}, which sample_posterior keeps; draw with it")
    group = tree[name].to_dataset()
    missing = [variable for variable in variables if variable not in group.variables]
    if missing:
        raise InputError(f"{name} of the tree has no {', '.join(missing)}; draw the tree anew")
    return group


def trustworthy(tree: xr.DataTree) -> Trust:
    """Whether draws can be trusted: true where every check passes (``arviz.diagnose`` is false).

    R-hat, effective sample sizes, Monte-Carlo errors and E-BFMI as arviz-stats computes them,
    divergences and tree depth. Thresholds of Vehtari et al. (2021; an effective sample size of 400
    for four chains is 100 a chain) and Betancourt (2016). ``theta`` is left out, and what the
    prior holds fixed; anything else that does not move is a failure.

    ``sample_posterior`` stores the checks with the draws, as JSON in ``tree.attrs["diagnostics"]``;
    they are computed only where a tree has none, or has another number of draws since.

    Parameters
    ----------
    tree
        As ``sample_posterior`` returns it.

    Returns
    -------
    Trust
        The checks; prints as a table with advice on those that fail.

    Examples
    --------
    >>> from bayesmeta.posterior.example import example_tree
    >>> tree = example_tree()
    >>> bool(bm.trustworthy(tree))
    True
    """
    group_of(tree, "posterior", "mu")
    _stats_of(tree)
    stored = json.loads(tree.attrs.get("diagnostics", "{}"))
    if stored.get("draws") == _digest(tree):
        return Trust(
            Check(**check | {"value": np.nan if check["value"] is None else check["value"]})
            for check in stored["checks"]
        )
    return check_draws(tree)


def as_attribute(trust: Trust, tree: xr.DataTree) -> str:
    """JSON of the checks, for the attributes of the tree whose draws were checked."""
    checks = [check._asdict() for check in trust]
    return json.dumps(without_nan({"draws": _digest(tree), "checks": checks}))


def _digest(tree: xr.DataTree) -> str:
    """Of the draws that are checked: others have to be checked anew."""
    posterior, stats = tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset()
    found = blake2b(digest_size=8)
    own = [stats[name] for name in ("diverging", *WEIGHTS) if name in stats]
    for data in (*(posterior[name] for name in CHECKED if name in posterior), *own):
        found.update(repr(data.shape).encode())
        found.update(np.ascontiguousarray(data.values).tobytes())
    return found.hexdigest()


def _size(posterior: xr.Dataset) -> list[int]:
    return [posterior.sizes["chain"], posterior.sizes["draw"]]


@np.errstate(divide="ignore", invalid="ignore")  # of chains that stand still; NaN fails
def check_draws(tree: xr.DataTree) -> Trust:
    """Compute all checks of a tree."""
    posterior = group_of(tree, "posterior", "mu")
    stats = _stats_of(tree)
    names = [name for name in CHECKED if name in posterior]
    data = _entries_once(posterior[[name for name in names if not _known(tree, name)]])
    chains, draws = _size(posterior)
    checks = [Check("chains", chains, ">= 2", chains >= 2)]
    if draws < 4:
        checks.append(Check("draws", draws, ">= 4", False))
    else:
        checks += _convergence(data, chains)
    return Trust([*checks, *(_weights(stats) if "khat" in stats else _sampler(stats))])


def _entries_once(data: xr.Dataset) -> xr.Dataset:
    """The same without the entries of Sigma that others repeat."""
    import xarray as xr

    if "Sigma" not in data:
        return data
    whole = data["Sigma"]
    ways = [str(dim) for dim in whole.dims if dim not in ("chain", "draw")]
    upper = dict(zip(ways, np.triu_indices(whole.sizes[ways[0]]), strict=True))
    labels = [[_label(whole, way, i) for i in index.tolist()] for way, index in upper.items()]
    names = [", ".join(pair) for pair in zip(*labels, strict=True)]
    once = whole.isel({way: xr.DataArray(index, dims="entry") for way, index in upper.items()})
    once = once.drop_vars(ways, errors="ignore").assign_coords(entry=names)
    return data.drop_vars("Sigma").assign(Sigma=once)


def _stats_of(tree: xr.DataTree) -> xr.Dataset:
    """The sampler's statistics: those of importance weights, or those of trajectories."""
    stats = group_of(tree, "sample_stats")
    return stats if "khat" in stats else group_of(tree, "sample_stats", "diverging")


def _weights(stats: xr.Dataset) -> Iterator[Check]:
    """Checks of the importance weights of draws by ``method="laplace"``; NaN fails."""
    khat, efficiency, outside = (float(stats[name]) for name in WEIGHTS)
    yield Check("Pareto k-hat", khat, f"< {KHAT:g}", khat < KHAT)
    good = efficiency >= EFFICIENCY
    yield Check("weights' efficiency", efficiency, f">= {EFFICIENCY:g}", good)
    yield Check("outside", outside, f"<= {OUTSIDE:g}", outside <= OUTSIDE)


def _convergence(data: xr.Dataset, chains: int) -> Iterator[Check]:
    """Checks of draws, by arviz-stats; ArviZ finds nothing wrong with constants, we do."""
    import arviz_stats as azs

    if chains > 1:
        yield _worst("R-hat", azs.rhat(data), most=1.01)
    for kind in ("bulk", "tail"):
        yield _worst(f"ESS {kind}", azs.ess(data, method=kind), least=100.0 * chains)
    sd = data.std(["chain", "draw"])
    still = {
        str(name): int((sd[name] <= 1e-12 * abs(data[name]).max()).sum()) for name in data.data_vars
    }
    if sum(still.values()):
        where = ", ".join(name for name, count in still.items() if count)
        yield Check(_STILL, sum(still.values()), "0", False, where)
    yield _worst("MCSE / sd", azs.mcse(data) / sd.where(sd > 0), most=0.1)


def _sampler(stats: xr.Dataset) -> Iterator[Check]:
    """Checks of the sampler's own statistics, under nutpie's names and PyMC's."""
    import arviz_stats as azs

    diverging = float(stats["diverging"].sum())
    yield Check("divergences", diverging, "0", diverging == 0)
    if "energy" in stats and stats.sizes["draw"] > 10:
        bfmi = azs.bfmi(stats["energy"]).values
        low = float(bfmi.min())
        yield Check("E-BFMI", low, ">= 0.3", low >= 0.3, f"chain {int(bfmi.argmin())}")
    for name in ("reached_max_treedepth", "maxdepth_reached"):
        if name in stats:
            share = float(stats[name].mean())
            yield Check(_DEPTH, share, "<= 0.01", share <= 0.01)
            return


def _known(tree: xr.DataTree, name: str) -> bool:
    """Whether the prior holds a variable fixed: its draws there are all the same, to rounding."""
    if "prior" not in tree.children or name not in tree["prior"]:
        return False
    values = tree["prior"].to_dataset()[name]
    size = float(np.abs(values).max())
    return float(values.std(["chain", "draw"]).max()) <= 1e-9 * size


def _worst(
    name: str, values: xr.Dataset, *, least: float | None = None, most: float | None = None
) -> Check:
    """The worst entry of all variables against a limit, from below or above; NaN fails."""
    sign = 1.0 if least is None else -1.0
    limit = most if least is None else least
    assert limit is not None
    found: list[tuple[float, str]] = []
    for variable, array in values.data_vars.items():
        flat = sign * array.values.ravel()
        place = int(np.argmax(np.isnan(flat)) if np.isnan(flat).any() else np.argmax(flat))
        found.append((float(flat[place]), _entry(str(variable), array, place)))
    bad = [one for one in found if np.isnan(one[0])]
    value, where = bad[0] if bad else max(found)
    wanted = f"{'<=' if least is None else '>='} {limit:g}"
    return Check(name, sign * value, wanted, bool(value <= sign * limit), where)


def _entry(variable: str, array: xr.DataArray, place: int) -> str:
    """A name such as Sigma[price, quality] of an entry of a variable."""
    places = map(int, np.unravel_index(place, array.shape))
    labels = [_label(array, str(dim), i) for dim, i in zip(array.dims, places, strict=True)]
    return f"{variable}[{', '.join(labels)}]" if labels else variable


def _label(array: xr.DataArray, dim: str, i: int) -> str:
    """What a place along a dimension is called."""
    return visible(array[dim].values[i]) if dim in array.coords else str(i)
