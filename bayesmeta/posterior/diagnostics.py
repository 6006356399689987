"""Whether a fit is to be trusted: a verdict with the numbers behind it and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesmeta.checks import InputError

if TYPE_CHECKING:
    import xarray as xr


class Check(NamedTuple):
    """One number against its threshold."""

    name: str
    value: float
    wanted: str
    passed: bool
    worst: str
    advice: str


class Diagnosis(tuple[Check, ...]):
    """All checks of a fit; false where one of them fails. Prints as a short table."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return all(check.passed for check in self)

    def __str__(self) -> str:
        lines = [f"{'check':<24}{'value':>10}  {'wanted':<10}{'':<5}worst"]
        lines += [
            f"{c.name:<24}{c.value:>10.5g}  {c.wanted:<10}{'ok' if c.passed else 'BAD':<5}{c.worst}"
            for c in self
        ]
        lines += [f"{c.name}: {c.advice}" for c in self if not c.passed]
        good = "the sampler has converged: the draws can be trusted"
        return "\n".join([*lines, good if self else "do not trust these draws"])

    __repr__ = __str__


_MORE = "draw more (draws, tune)"
_GEOMETRY = "raise target_accept (0.95), or give a prior that says more"


def group_of(tree: Any, name: str, *variables: str) -> xr.Dataset:
    """A group of a fitted tree with the variables that are needed of it; else what is missing."""
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


@np.errstate(divide="ignore", invalid="ignore")  # of chains that stand still; NaN fails
def diagnose(tree: xr.DataTree) -> Diagnosis:
    """R-hat, effective sample sizes, divergences, energy, Monte-Carlo error, tree depth.

    Thresholds of Vehtari et al. (2021; an effective sample size of 400 for four chains is 100 a
    chain) and Betancourt (2016). ``theta`` is left out, and what the prior holds fixed; anything
    else that does not move is a failure.
    """
    import arviz_stats as azs

    posterior = group_of(tree, "posterior", "mu")
    stats = group_of(tree, "sample_stats", "diverging")
    data = posterior[[name for name in ("mu", "Sigma", "sigma")
                      if name in posterior and not _known(tree, name)]]  # fmt: skip
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    checks = [
        Check("chains", chains, ">= 2", chains >= 2, "",
              "one chain cannot show that it has converged: chains=4"),
    ]  # fmt: skip
    if draws < 4:
        checks.append(Check("draws", draws, ">= 4", False, "", _MORE))
    else:
        if chains > 1:
            rhat = azs.rhat(data)
            checks.append(_judge("R-hat", rhat, 1.01, True, "chains disagree: " + _MORE))
        for kind in ("bulk", "tail"):
            ess = azs.ess(data, method=kind)
            checks.append(_judge(f"ESS {kind}", ess, 100.0 * chains, False, _MORE))
        sd = data.std(["chain", "draw"])
        still = {str(name): int((sd[name] <= 1e-12 * abs(data[name]).max()).sum())
                 for name in data.data_vars}  # fmt: skip
        if sum(still.values()):  # ArviZ finds nothing wrong with a constant
            checks.append(Check("entries that never moved", sum(still.values()), "0", False,
                                ", ".join(name for name, count in still.items() if count),
                                "the chains are stuck: tune longer"))  # fmt: skip
        error = azs.mcse(data) / sd.where(sd > 0)
        checks.append(_judge("MCSE / sd", error, 0.1, True, _MORE))
    diverging = float(stats["diverging"].sum())
    checks.append(Check("divergences", diverging, "0", diverging == 0, "", _GEOMETRY))
    if "energy" in stats and stats.sizes["draw"] > 10:
        bfmi = azs.bfmi(stats["energy"]).values
        low = float(bfmi.min())
        checks.append(Check("E-BFMI", low, ">= 0.3", low >= 0.3, f"chain {int(bfmi.argmin())}",
                            "heavy tails: tighten the prior, or draw more"))  # fmt: skip
    depth = next((stats[name] for name in ("reached_max_treedepth", "maxdepth_reached")
                  if name in stats), None)  # fmt: skip
    if depth is not None:
        share = float(depth.mean())
        checks.append(Check("at maximal tree depth", share, "<= 0.01", share <= 0.01, "",
                            "draws are far apart: tune longer"))  # fmt: skip
    return Diagnosis(checks)


def _known(tree: xr.DataTree, name: str) -> bool:
    """Whether the prior holds a variable fixed: its draws there are all the same, to rounding."""
    if "prior" not in tree.children or name not in tree["prior"]:
        return False
    values = tree["prior"].to_dataset()[name]
    size = float(np.abs(values).max())
    return float(values.std(["chain", "draw"]).max()) <= 1e-9 * size


def _judge(name: str, values: xr.Dataset, limit: float, below: bool, advice: str) -> Check:
    """The worst entry of all variables against a limit; NaN fails."""
    found: list[tuple[float, str]] = []
    for variable in values.data_vars:
        array = values[variable]
        flat = array.values.ravel()
        order = np.argmax(flat) if below else np.argmin(flat)
        if np.isnan(flat).any():
            order = np.argmax(np.isnan(flat))
        where = np.unravel_index(int(order), array.shape)
        labels = [str(array[dim].values[i]) if dim in array.coords else str(i)
                  for dim, i in zip(array.dims, where, strict=True)]  # fmt: skip
        found.append((float(flat[order]), f"{variable}[{', '.join(labels)}]" if labels else
                      str(variable)))  # fmt: skip
    bad = [one for one in found if np.isnan(one[0])]
    value, worst = bad[0] if bad else (max(found) if below else min(found))
    passed = bool(value <= limit if below else value >= limit)
    wanted = f"{'<=' if below else '>='} {limit:g}"
    return Check(name, value, wanted, passed, worst, advice)
