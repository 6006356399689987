"""What summing up a large table costs, beside merely reading it: rows a second and peak memory.

    python benchmarks/table_costs.py --rows 1e8

Writes a Parquet file of tasks whose rows are anywhere (--csv: also a CSV file), reads it batch by
batch and sums it up, each in a process of its own, and prints JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASKS = 100_000
FEATURES = ["x1", "x2", "x3"]


def write(rows: int, parquet: Path, csv: Path | None) -> None:
    """Rows of random tasks, a million at a time."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    writers: list[object] = []
    for start in range(0, rows, 1_000_000):
        n = min(1_000_000, rows - start)
        x = rng.standard_normal((3, n))
        columns = {"task": rng.integers(0, TASKS, n).astype(np.int32)}
        columns |= {"y": x.sum(axis=0) + rng.standard_normal(n)}
        table = pa.table(columns | dict(zip(FEATURES, x, strict=True)))
        if not writers:
            writers.append(
                pa.parquet.ParquetWriter(
                    parquet, table.schema, compression="NONE", use_dictionary=["task"]
                )
            )
            if csv is not None:
                writers.append(pa.csv.CSVWriter(csv, table.schema))
        for writer in writers:
            writer.write_table(table)  # type: ignore[attr-defined]
    for writer in writers:
        writer.close()  # type: ignore[attr-defined]


def measure(what: str, path: Path) -> dict[str, float]:
    """Read or sum up a file, in this process."""

    from bayesmeta.tables.batches import ROWS, opened
    from bayesmeta.tables.design import tabulate

    start = time.perf_counter()
    if what == "read":
        source = opened(path, "task")
        batches = source.scanner(batch_size=ROWS, batch_readahead=4, fragment_readahead=1)
        rows = sum(batch.num_rows for batch in batches.to_batches())
    else:
        stats = tabulate(
            path, task="task", reward="y", features=FEATURES, intercept=True, batches=True
        ).stats
        assert stats.count is not None
        rows = int(stats.count.sum())
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rows": rows, "seconds": round(seconds, 2), "peak_mb": round(peak)}


def main() -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--csv", action="store_true", help="a CSV file, too")
    parser.add_argument("--folder", type=Path, help="where files are written (a temporary one)")
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], Path(options.measure[1]))))
        return 0
    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        files = [Path(folder) / "table.parquet"]
        files += [Path(folder) / "table.csv"] if options.csv else []
        write(int(options.rows), files[0], files[1] if options.csv else None)
        for file in files:
            found[file.suffix[1:]] = {}
            for what in ("read", "sum"):
                command = [sys.executable, __file__, "--measure", what, str(file)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found[file.suffix[1:]][what] = json.loads(done.stdout)
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
