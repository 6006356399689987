"""Settings shared by all tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# no deadlines: a first example may have to compile a kernel; examples are the same every time
settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files first, the notebooks and the wheel before all, so that two processes end at about
    the same time."""
    slow = {item.path for item in items if "slow" in item.keywords}
    items.sort(key=lambda item: (item.path not in slow, len(item.path.parts)))
