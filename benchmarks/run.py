"""Measure speed as ratios, side by side in one run, and record them.

    python benchmarks/run.py              # or: make bench; about a quarter of an hour
    python benchmarks/run.py simulation   # one part again, the others as they were

Writes ``results.json`` beside this file, and the page made of it (``report.py``). Every ratio
compares pieces of work that alternate in the same process, round by round. A number is the ratio of
the fastest rounds of either side, since whatever else the machine does only ever adds time.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import report

from bayesmeta.runner.files import write_atomically
from bayesmeta.runner.provenance import versions

HERE = Path(__file__).parent
PARTS = ("simulation", "likelihood", "posterior", "studies", "lab", "rivals")
"""Each is a script of this folder that prints JSON."""
SCRIPTS = {"studies": "study_costs.py", "rivals": "rival_costs.py"}


def measure(part: str, before: dict[str, Any]) -> dict[str, Any]:
    """What a part's script prints; where R is not installed, lme4's row as it was recorded."""
    script = HERE / SCRIPTS.get(part, f"{part}_costs.py")
    if part == "studies":
        subprocess.run([sys.executable, str(script), "warm"], check=True)
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    if part == "likelihood" and found["fits"]["lme4"] is None and before:
        found["fits"]["lme4"] = {**before["fits"]["lme4"], "earlier": True}
    return found


def main(parts: list[str]) -> None:
    unknown = set(parts) - set(PARTS)
    if unknown:
        sys.exit(f"no part is called {unknown.pop()}: choose from {', '.join(PARTS)}")
    record = HERE / "results.json"
    results = json.loads(record.read_text())
    for part in parts or PARTS:
        print(part, file=sys.stderr, flush=True)
        results[part] = measure(part, results.get(part, {}))
        results["versions"][part] = versions()
        results["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
        text = json.dumps(results, indent=2) + "\n"
        write_atomically(record, lambda to, text=text: to.write_text(text))
    report.write(results)
    print(report.main_block(results))


if __name__ == "__main__":
    main(sys.argv[1:])
