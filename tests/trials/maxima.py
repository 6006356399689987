"""Does the search for the largest likelihood find it? Small tables against a general optimiser.

    python -m tests.trials.maxima --tables 2000 --jobs 2

Every table is fitted by ``ml`` or ``reml``, the noise given or not. The exact likelihood at the
estimate is compared with the best of 50 starts of L-BFGS-B, which share no code with the package.
A run that was interrupted goes on where it ended. Exit code 1 where an estimate whose status does
not say so falls short by more than 1e-6.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy: matrices are small

import numpy as np  # noqa: E402
import scipy  # noqa: E402

import bayesmeta as bm  # noqa: E402
from bayesmeta.estimators.maximum import Options, fit_likelihood  # noqa: E402
from bayesmeta.kernels.sources import digest  # noqa: E402
from tests.trials import tables  # noqa: E402

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "analyses/hardening/maxima.json"
SHORT = 1e-6
"""An estimate falls short if its log-likelihood is lower than the best by more."""
SAYS_SO = ("NO_NOISE", "IMPRECISE", "NOT_CONVERGED", "REFUSED")
"""Statuses that say that there is no maximum, or that it may not have been found."""
HARD = 30
"""Tables whose best likelihoods are kept for the test suite: those on which the usual starts alone
fall short the most."""


def statistics(made: tables.Table) -> bm.TaskStatistics:
    """What the tasks of a table leave behind."""
    pairs = list(zip(made.rows, made.rewards, strict=True))
    return bm.TaskStatistics(
        [a.T @ a for a, _ in pairs],
        [a.T @ x for a, x in pairs],
        [len(x) for _, x in pairs],
        [x @ x for _, x in pairs],
    )


def fitted(made: tables.Table, thorough: bool = True) -> dict[str, Any]:
    """The status, the exact likelihood at the estimate, and by how much the reported one errs."""
    variance = None if made.noise_sd is None else made.noise_sd**2
    started = time.perf_counter()
    try:
        found = fit_likelihood(
            statistics(made), variance, made.restricted, Options(thorough=thorough)
        )
    except bm.InputError as error:
        return {"status": "REFUSED", "why": str(error)}
    seconds = time.perf_counter() - started
    assert found.noise_sd is not None and found.log_likelihood is not None
    try:
        value = tables.exact(made, found.prior.cov, found.noise_sd**2)
    except ValueError:  # less noise than the covariance has lost by rounding: no density
        value = -math.inf
    return {
        "status": found.status.name,
        "value": value,
        "error": abs(found.log_likelihood - value),
        "noise_sd": found.noise_sd,
        "seconds": seconds,
    }


def reference(seed: int) -> dict[str, Any]:
    """The best that the general optimiser finds."""
    best = tables.best_of(tables.table(seed))
    return {"seed": seed, **best._asdict()}


def judge(seed: int) -> dict[str, Any]:
    """The fit of a table, and that of the usual starts alone."""
    made = tables.table(seed)
    return {"seed": seed, "fit": fitted(made), "usual": fitted(made, thorough=False)}


def run(work: Any, seeds: Iterable[int], path: Path, jobs: int, title: str) -> list[dict[str, Any]]:
    """Do the work for all seeds that ``path`` does not have yet; the results of all of them."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    wanted = set(seeds)
    done: dict[int, dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                one = json.loads(line)
            except ValueError:  # the run was killed while it wrote this line
                continue
            if one["seed"] in wanted:
                done[one["seed"]] = one
    path.parent.mkdir(parents=True, exist_ok=True)
    left = sorted(wanted - set(done))
    columns = (title, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # children leave Ctrl-C to this process
    pool = ProcessPoolExecutor(
        jobs, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    )
    try:
        with Progress(*columns, console=Console(stderr=True)) as bar, path.open("a") as file:
            file.write("\n")  # after a line that was cut off
            task = bar.add_task(title, total=len(wanted), completed=len(done))
            for future in as_completed([pool.submit(work, seed) for seed in left]):
                one = future.result()
                done[one["seed"]] = one
                file.write(json.dumps(one) + "\n")
                file.flush()
                bar.advance(task)
    finally:
        pool.shutdown(cancel_futures=True)
    return [done[seed] for seed in sorted(wanted)]


def summary(references: list[dict[str, Any]], fits: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of statuses, the worst shortfall, and who fell short without a word."""
    out: dict[str, Any] = {"tables": len(fits)}
    for name in ("fit", "usual"):
        statuses: Counter[str] = Counter()
        silent, said = {}, {}
        worst, error = 0.0, 0.0
        for best, one in zip(references, fits, strict=True):
            found = one[name]
            status = found["status"]
            statuses[status] += 1
            if status == "REFUSED":
                continue
            short = best["value"] - found["value"]
            if status in SAYS_SO:
                if short > SHORT:
                    said[str(one["seed"])] = short
                continue
            worst, error = max(worst, short), max(error, found["error"])
            if short > SHORT:
                silent[str(one["seed"])] = short
        out[name] = {
            "statuses": dict(sorted(statuses.items())),
            "worst_shortfall": worst,
            "short_in_silence": silent,
            "short_and_said": len(said),
            "largest_error_of_the_value": error,
            "median_seconds_of_a_fit": float(
                np.median([one[name]["seconds"] for one in fits if "seconds" in one[name]])
            ),
        }
    out["short"] = len(out["fit"]["short_in_silence"])
    out["no_noise"] = no_noise(references, fits)
    worst_first = sorted(out["usual"]["short_in_silence"].items(), key=lambda pair: -pair[1])
    best_of = {one["seed"]: one["value"] for one in references}
    out["hard"] = {seed: best_of[int(seed)] for seed, _ in worst_first[:HARD]}
    return out


def no_noise(references: list[dict[str, Any]], fits: list[dict[str, Any]]) -> dict[str, int]:
    """Where the optimiser went to the least noise it may try: what the package said of it; and
    how often NO_NOISE was said where it did not."""
    said: Counter[str] = Counter()
    for best, one in zip(references, fits, strict=True):
        status = one["fit"]["status"]
        if best["at_floor"]:
            said[f"at the floor: {status}"] += 1
        elif status == "NO_NOISE":
            higher = one["fit"]["value"] > best["value"] - SHORT
            said["elsewhere, as high or higher" if higher else "elsewhere, and lower"] += 1
    return dict(sorted(said.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first table")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--results", type=Path, default=ROOT / "results/maxima")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.tables)
    own = hashlib.sha256(Path(tables.__file__).read_bytes()).hexdigest()[:12]
    started = time.perf_counter()
    try:
        at = options.results / f"references-{own}.jsonl"
        references = run(reference, seeds, at, options.jobs, "50 starts")
        at = options.results / f"fits-{own}-{digest()[:12]}.jsonl"
        fits = run(judge, seeds, at, options.jobs, "fits")
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where it ended", file=sys.stderr)
        return 130
    found = summary(references, fits)
    found = {
        "first_seed": options.seed,
        **found,
        "seconds": round(time.perf_counter() - started),
        "versions": {
            "bayesmeta": bm.__version__,
            "source": digest()[:12],
            "tables": own,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "python": platform.python_version(),
        },
    }
    options.record.parent.mkdir(parents=True, exist_ok=True)
    options.record.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({key: value for key, value in found.items() if key != "hard"}, indent=1))
    return 1 if found["short"] else 0


if __name__ == "__main__":
    sys.exit(main())
