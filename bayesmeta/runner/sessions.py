"""The manifest of a study's folder: what was run, when, by which versions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from bayesmeta.runner.plain import plain
from bayesmeta.runner.provenance import commit, versions
from bayesmeta.runner.store import Store
from bayesmeta.runner.study import Settings, Study

MOST = 100
"""Sessions that a manifest lists; the earliest are dropped."""


class Session:
    """One call of ``run_study`` that computes cells, as the manifest of its store shows it."""

    def __init__(self, study: Study, store: Store, total: int, workers: str) -> None:
        self._study, self._store, self._total = study, store, total
        self._session: dict[str, Any] = {
            "started": _now(),
            "ended": None,
            "process": os.getpid(),
            "workers": workers,
            "versions": versions(),
            "commit": commit() if store.folder is not None else None,
        }
        earlier = store.manifest().get("sessions", [])[1 - MOST :]
        self._sessions = [*earlier, self._session]

    def write(self, done: int, failed: int) -> None:
        """Write the manifest."""
        study = self._study
        self._store.write_manifest(
            {
                "study": study.name,
                "function": study.function_name,
                "seed": study.random_seed,
                "dims": list(study.dims),
                "cells": self._total,
                "settings": _common(study.cells.values()),
                "done": done,
                "failed": failed,
                "sessions": self._sessions,
            }
        )

    def close(self, done: int, failed: int, cells: int) -> None:
        """Write the manifest for the last time, with the number of cells of this session."""
        self._session |= {"ended": _now(), "cells": cells}
        self.write(done, failed)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _common(settings: Iterable[Settings]) -> dict[str, Any]:
    """The settings that all cells share (those of a cell are stored with its result)."""
    found: dict[str, Any] | None = None
    for one in settings:
        texts = {name: json.dumps(value, default=plain) for name, value in one.items()}
        found = texts if found is None else dict(found.items() & texts.items())
        if not found:
            break
    return {name: json.loads(value) for name, value in sorted((found or {}).items())}
