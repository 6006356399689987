"""The fuzzer at length: the properties of tests/properties on thousands of random cases.

    python -m tests.trials.fuzz --cases 6000 --jobs 2

Records how many cases of each property ended in a right answer, how many were refused and how many
the oracle could not judge, and every failure with its smallest case. Exit code 0 where nothing
failed, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings  # noqa: E402

from tests.properties import PROPERTIES, REFUSED, RIGHT, UNJUDGED, judge  # noqa: E402

RECORD = ROOT / "analyses/hardening/fuzz.json"
PART = 50
"""Cases of one piece of work."""
ENDS = (RIGHT, REFUSED, UNJUDGED)


class Part(NamedTuple):
    """Some cases of one property."""

    name: str
    cases: int
    seed: int


class Done(NamedTuple):
    """How they ended; ``failure`` has the smallest case that fails."""

    name: str
    ends: Counter[str]
    failure: dict[str, Any] | None
    seconds: float


def run_part(part: Part) -> Done:
    """Draw cases until one fails, then look for a smaller one that fails."""
    ends: Counter[str] = Counter()
    smallest: list[tuple[str, str]] = []
    check = PROPERTIES[part.name].check

    @seed(part.seed)
    @settings(
        max_examples=part.cases,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
    )
    @given(PROPERTIES[part.name].cases)
    def every(case: object) -> None:
        try:
            ends[judge(check, case)] += 1
        except Exception:
            smallest[:] = [(repr(case), traceback.format_exc(limit=-4))]
            raise

    start = time.perf_counter()
    failure = None
    try:
        every()
    except Exception as error:
        case, where = smallest[0] if smallest else ("", traceback.format_exc())
        said = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        failure = {"property": part.name, "seed": part.seed, "error": said}
        failure |= {"case": case[:5000], "traceback": where}
    return Done(part.name, ends, failure, time.perf_counter() - start)


def parts_of(cases: int, random_seed: int, names: list[str]) -> list[Part]:
    """Pieces of work: cases are shared out by weight, the long ones first."""
    total = sum(PROPERTIES[name].weight for name in names)
    parts = []
    for place, name in enumerate(names):
        left = -(-cases * PROPERTIES[name].weight // total)
        while left > 0:
            number = min(left, PART)
            parts.append(Part(name, number, (random_seed * 1000 + place) * 1000 + len(parts)))
            left -= number
    return sorted(parts, key=lambda part: -part.cases)


def summary(done: list[Done], random_seed: int, seconds: float) -> dict[str, Any]:
    """What is recorded."""
    from bayesmeta.runner.provenance import versions

    properties: dict[str, dict[str, float]] = {}
    for name in PROPERTIES:
        mine = [one for one in done if one.name == name]
        ends = sum((one.ends for one in mine), Counter())
        if mine:
            properties[name] = {
                "cases": sum(ends.values()),
                **{end: ends[end] for end in ENDS},
                "seconds": round(sum(one.seconds for one in mine), 1),
            }
    return {
        "cases": sum(int(one["cases"]) for one in properties.values()),
        **{end: sum(int(one[end]) for one in properties.values()) for end in ENDS},
        "failures": [one.failure for one in done if one.failure is not None],
        "properties": properties,
        "seed": random_seed,
        "seconds": round(seconds),
        "versions": versions(),
    }


def run(parts: list[Part], jobs: int) -> tuple[list[Done], bool]:
    """All parts, in processes; what is done when Ctrl-C comes, and whether it came."""
    from bayesmeta.runner.progress import progress_bar

    done: list[Done] = []
    total = sum(part.cases for part in parts)
    pool = ProcessPoolExecutor(
        jobs, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    )  # a terminal sends Ctrl-C to workers, too
    try:
        with progress_bar("fuzzing", "cases", total) as tick:
            futures = {pool.submit(run_part, part): part for part in parts}
            ended = 0
            for future in as_completed(futures):
                done.append(future.result())
                ended += futures[future].cases
                tick(ended)
        pool.shutdown()
    except KeyboardInterrupt:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        return done, True
    return done, False


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0: no failure, 1: some, 130: Ctrl-C, nothing is recorded."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=6000, help="in total (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="default: a random one, which is recorded")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=PROPERTIES, metavar="PROPERTY", default=[])
    parser.add_argument("--record", type=Path, default=RECORD, help="default: %(default)s")
    options = parser.parse_args(arguments)
    random_seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    start = time.monotonic()
    names = options.only or list(PROPERTIES)
    done, stopped = run(parts_of(options.cases, random_seed, names), options.jobs)
    found = summary(done, random_seed, time.monotonic() - start)
    for failure in found["failures"]:
        print(f"{failure['property']}: {failure['error']}\n  {failure['case']:.1000}")
    print(f"{found['cases']} cases:", ", ".join(f"{found[end]} {end}" for end in ENDS), end=", ")
    print(f"{len(found['failures'])} failures (seed {random_seed}, {found['seconds']} s)")
    if stopped:
        print("interrupted: nothing was recorded", file=sys.stderr)
        return 130
    options.record.parent.mkdir(parents=True, exist_ok=True)
    options.record.write_text(json.dumps(found, indent=1, ensure_ascii=True) + "\n")
    print(f"wrote {options.record}")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
