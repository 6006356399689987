"""Record the full-size run of Figure 1, its IDS counterpart, and how often eq. (12) fails.

    python analyses/figure1/run.py          # about five minutes on two cores
    python analyses/figure1/report.py       # README, figure and summaries from the records
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bayesmeta.agents import FIGURE_1, find_agents
from bayesmeta.cli import progress_bar
from bayesmeta.environment import paper_family
from bayesmeta.records import thin, write_record
from bayesmeta.simulator import simulate
from bayesmeta.studies import figure1

HERE = Path(__file__).parent
IDS = tuple(name.replace("TS", "IDS") for name in FIGURE_1)


def main() -> None:
    with progress_bar("Figure 1", 10 * 10_000) as tick:
        write_record(thin(figure1.run(progress=tick)), HERE / "figure1.nc")
    with progress_bar("with IDS", 10 * 2_000) as tick:
        record = figure1.run(tasks=2_000, agents=[*IDS, "KTS"], progress=tick)
        write_record(thin(record), HERE / "ids.nc")
    # the moment after the warm-up is when eq. (12) is most likely not positive definite
    learners = find_agents(("Th-MTS_tau", "All-MTS_tau", "All-MTS"))
    with progress_bar("positive definiteness", 200 * 300) as tick:
        record = simulate(
            paper_family(), learners, tasks=300, runs=200, seed=1, jobs=2, progress=tick
        )
        counts = record[["not_positive_definite"]].sum("task").astype(np.int32)
        write_record(counts.sel(agent=[row.name for row in learners]), HERE / "definiteness.nc")


if __name__ == "__main__":
    main()
