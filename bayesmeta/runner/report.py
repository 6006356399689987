"""How a study stands: counts of cells, failures, notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bayesmeta.runner.store import Failure, Store


@dataclass(frozen=True)
class Report:
    """How a study stands: counts of cells, failures (their tracebacks are in the folder), notes."""

    name: str
    store: Store = field(repr=False)
    total: int
    done: int
    failures: list[Failure]
    before: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path | None:
        """Where the cells are; None where they are in memory."""
        return self.store.folder

    @property
    def failed(self) -> int:
        """Cells that raised."""
        return len(self.failures)

    @property
    def remaining(self) -> int:
        """Cells not yet run."""
        return self.total - self.done - self.failed

    @property
    def complete(self) -> bool:
        """Whether every cell is done."""
        return self.done == self.total

    def __str__(self) -> str:
        earlier = f" ({self.before} of them earlier)" if self.before else ""
        return (
            f"{self.name}: {self.done} of {self.total} cells done{earlier}, "
            f"{self.failed} failed, {self.remaining} remaining"
        )


class OtherSource(RuntimeError):
    """A worker runs other source of this package; what other workers finished has been written."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a study: what is finished has been written."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report
