"""Run every recorded study from one state of the source, and write all records and pages.

python analyses/record.py           # or: make record; one to two hours on two cores
python analyses/record.py figure1   # the studies whose name begins so, and all pages

Interrupted, the same command goes on with the cells that are missing. Cells are kept in a folder
named for the source (``results/record-DIGEST``), so that a change of it starts anew.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bayesmeta.commands.running import print_report, run
from bayesmeta.runner.collect import collect_kept
from bayesmeta.runner.provenance import versions
from bayesmeta.runner.report import Interrupted
from bayesmeta.simulation.records import write_record
from bayesmeta.studies import all_studies

HERE = Path(__file__).parent
PAGES = (
    "figure1",
    "estimators",
    "ranks",
    "calibration",
    "bayes-vs-moment",
    "theorems",
    "intervals",
    "rivals",
)


def main(wanted: list[str]) -> int:
    chosen = [
        study
        for name, study in all_studies().items()
        if study.record and (not wanted or any(name.startswith(one) for one in wanted))
    ]
    if not chosen:
        sys.exit(f"no recorded study begins with {' or '.join(wanted)}: see bayesmeta study list")
    cells = Path("results") / f"record-{versions()['source']}"
    for study in chosen:
        try:
            report = run(study, cells / study.name, {"jobs": None}, study.name, "cells")
        except Interrupted as stopped:
            print(f"{stopped}; the same command goes on", file=sys.stderr)
            return 130
        if print_report(report):
            return 1
        write_record(collect_kept(study, cells / study.name), HERE / study.record)
    for page in PAGES:
        subprocess.run([sys.executable, str(HERE / page / "report.py")], check=True)
    claims = [sys.executable, str(HERE / "claims" / "report.py"), *([] if wanted else ["--record"])]
    subprocess.run(claims, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
