"""Record the full-size run of Figure 1, its IDS counterpart, and how often eq. (12) fails.

python analyses/figure1/run.py [figure1] [ids] [definiteness]    # all: about eight minutes
python analyses/figure1/report.py      # README, figure and summaries from the records
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from bayesmeta.agents import FIGURE_1, find_agents
from bayesmeta.environment import paper_family
from bayesmeta.progress import progress_bar
from bayesmeta.records import thin, write_record
from bayesmeta.simulator import simulate
from bayesmeta.studies import figure1

HERE = Path(__file__).parent
IDS = tuple(name.replace("TS", "IDS") for name in FIGURE_1)
LEARNERS = ("Th-MTS_tau", "All-MTS_tau", "All-MTS")


def record_figure1() -> None:
    """The paper's experiment at its full size."""
    with progress_bar("Figure 1", 10 * 10_000) as tick:
        write_record(thin(figure1.run(progress=tick)), HERE / "figure1.nc")


def record_orderings() -> None:
    """Sixty more runs of the same size: ten leave some of Section 6's statements undecided."""
    with progress_bar("orderings", 60 * 10_000) as tick:
        record = figure1.run(runs=60, seed=1, progress=tick)
        write_record(thin(record, points=100), HERE / "orderings.nc")


def record_ids() -> None:
    """The same rows with IDS inside; a fifth of the tasks, since a step of IDS costs 30 of TS."""
    with progress_bar("with IDS", 10 * 2_000) as tick:
        record = figure1.run(tasks=2_000, agents=IDS, progress=tick)
        write_record(thin(record), HERE / "ids.nc")


def record_definiteness() -> None:
    """Tasks whose widened covariance was not positive definite: most likely soon after warm-up."""
    rows = find_agents(LEARNERS)
    with progress_bar("positive definiteness", 400 * 300) as tick:
        record = simulate(paper_family(), rows, tasks=300, runs=400, seed=2, jobs=2, progress=tick)
        counts = record[["not_positive_definite"]].sum("task").astype(np.int32)
        write_record(counts.sel(agent=list(LEARNERS)), HERE / "definiteness.nc")


STAGES = {
    "figure1": record_figure1,
    "orderings": record_orderings,
    "ids": record_ids,
    "definiteness": record_definiteness,
}

if __name__ == "__main__":
    for stage in sys.argv[1:] or STAGES:
        STAGES[stage]()
