"""What draws from the posterior of (mu, Sigma) cost: effective draws a second, and the wait.

Run in a process of its own; prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import bayesmeta as bm
from bayesmeta.agents.roster import ROSTER
from bayesmeta.environment import paper_family
from bayesmeta.posterior.online import prior_from_bounds
from bayesmeta.posterior.sampling import FitWarning
from bayesmeta.simulation.played import statistics_of

DIM, TASKS = 5, 500
CONTENDERS = {
    "fused, nutpie": ("fused", "nutpie"),
    "fused, sample_posterior": ("fused", "ours"),
    "collapsed, plain graph, nutpie": ("collapsed", "nutpie"),
    "non-centred, nutpie": ("noncentred", "nutpie"),
    "fused, PyMC's sampler": ("fused", "pymc"),
}


def data(tasks: int, seed: int = 0) -> tuple[bm.TaskStatistics, bm.LKJ]:
    """All steps that Thompson Sampling with a vague prior takes in tasks of the paper's family."""
    family = paper_family(horizon=50)
    stats = statistics_of(family, ROSTER["UKTS"], tasks, seed)
    return stats, prior_from_bounds(family.told())


def draw(model: str, sampler: str) -> tuple[xr.Dataset, float, float]:
    """Draws, seconds of drawing (tuning included, compiling not), seconds before.

    Models with nutpie are compiled as its users do, by nutpie itself, all alike. What
    ``sample_posterior`` needs, compiled its own way, is measured from call to verdict.
    """
    stats, prior = data(TASKS)
    start = time.perf_counter()
    if sampler == "ours":
        bm.sample_posterior(stats, 1.0, prior=prior, draws=1, tune=1, chains=1)
        ready = time.perf_counter()
        tree = bm.sample_posterior(stats, 1.0, prior=prior, cores=2)
        return tree["posterior"].to_dataset(), time.perf_counter() - ready, ready - start
    made = bm.build_model(stats, 1.0, prior, model)
    if sampler == "nutpie":
        import nutpie

        compiled = nutpie.compile_pymc_model(made)
        ready = time.perf_counter()
        tree = nutpie.sample(
            compiled,
            draws=1000,
            tune=500,
            chains=4,
            cores=2,
            seed=0,
            progress_bar=False,
            save_warmup=False,
            target_accept=0.8,
        )
        return tree["posterior"].to_dataset(), time.perf_counter() - ready, ready - start
    import pymc as pm

    with made:
        tree = pm.sample(
            draws=1000,
            tune=500,
            chains=4,
            cores=2,
            random_seed=0,
            nuts_sampler="pymc",
            progressbar=False,
            compute_convergence_checks=False,
            target_accept=0.8,
        )
    took = time.perf_counter() - start
    posterior = tree["posterior"].to_dataset()
    drawing = float(posterior.attrs["sampling_time"])
    return posterior, drawing, took - drawing


def one_contender(name: str) -> dict[str, Any]:
    """The smallest bulk ESS of mu and Sigma a second; means with their Monte-Carlo errors."""
    import warnings

    import arviz_stats as azs

    warnings.simplefilter("ignore", FitWarning)  # one draw, to compile
    posterior, drawing, before = draw(*CONTENDERS[name])
    below = np.tril_indices(DIM)
    mus = posterior["mu"].transpose("chain", "draw", ...).values
    covs = posterior["Sigma"].transpose("chain", "draw", ...).values[:, :, *below]
    values = xr.Dataset({"q": (("chain", "draw", "i"), np.concatenate([mus, covs], axis=2))})
    least = float(azs.ess(values)["q"].min())
    return {
        "seconds": drawing,
        "wait": before,
        "ess": least,
        "ess_per_second": least / drawing,
        "rhat": float(azs.rhat(values)["q"].max()),
        "mean": values["q"].mean(["chain", "draw"]).values.tolist(),
        "mean_error": azs.mcse(values)["q"].values.tolist(),
        "sd": values["q"].std(["chain", "draw"]).values.tolist(),
        "sd_error": azs.mcse(values, method="sd")["q"].values.tolist(),
    }


def agreement(found: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The largest difference to the fused model's mean or standard deviation, in Monte-Carlo
    standard errors of the difference, over all entries of mu and Sigma."""
    ours = found["fused, nutpie"]
    out = {}
    for name, one in found.items():
        if one is ours:
            continue
        z = [
            np.abs(np.subtract(ours[what], one[what]))
            / np.hypot(ours[f"{what}_error"], one[f"{what}_error"])
            for what in ("mean", "sd")
        ]
        out[name] = float(np.max(z))
    return out


def large(tasks: int = 10_000) -> dict[str, float]:
    """Four chains for many tasks, from the statistics to the verdict, compiled before."""
    stats, prior = data(tasks)
    start = time.perf_counter()
    tree = bm.sample_posterior(stats, 1.0, prior=prior, cores=2, random_seed=1)
    took = time.perf_counter() - start
    return {"tasks": tasks, "seconds": took, "trusted": tree.attrs["trusted"]}


_WAIT = """
import json, time, warnings
import bayesmeta as bm
from posterior_costs import data
warnings.simplefilter("ignore", bm.FitWarning)
stats, prior = data(500)
other, _ = data(300, seed=1)
start = time.perf_counter()
bm.sample_posterior(stats, 1.0, prior=prior, draws=1, tune=1, chains=1)
first = time.perf_counter() - start
start = time.perf_counter()
bm.sample_posterior(other, 1.0, prior=prior, draws=1, tune=1, chains=1)
print(json.dumps([first, time.perf_counter() - start]))
"""


def waits() -> dict[str, float]:
    """Seconds from calling ``sample_posterior`` to its first draw, in fresh processes: nothing
    kept of earlier compilation, then all of it; and for a second fit of the same shape."""

    def fresh(flags: str) -> list[float]:
        environment = os.environ | {"PYTENSOR_FLAGS": flags}
        done = subprocess.run(
            [sys.executable, "-c", _WAIT],
            cwd=Path(__file__).parent,
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
        found: list[float] = json.loads(done.stdout)
        return found

    with tempfile.TemporaryDirectory() as folder:
        flags = f"base_compiledir={folder}"
        cold, _ = fresh(flags)
        warm = [fresh(flags) for _ in range(3)]
    return {
        "cold": cold,
        "warm": float(np.median([one[0] for one in warm])),
        "second": float(np.median([one[1] for one in warm])),
    }


def main() -> None:
    """Measure and print."""
    found = {}
    for name in CONTENDERS:
        found[name] = one_contender(name)
        print(f"{name}: {found[name]['seconds']:.0f} s", file=sys.stderr, flush=True)
    kept = ("seconds", "wait", "ess", "ess_per_second", "rhat")
    print(
        json.dumps(
            {
                "contenders": {n: {k: one[k] for k in kept} for n, one in found.items()},
                "agreement": agreement(found),
                "entries": DIM + DIM * (DIM + 1) // 2,
                "large": large(),
                "waits": waits(),
            }
        )
    )


if __name__ == "__main__":
    main()
