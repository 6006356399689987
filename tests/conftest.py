"""Settings shared by all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from bayesmeta.runner import progress

# two processes of tests share two cores: threads of BLAS beside them only wait for each other;
# the variable reaches the processes that tests start, the call this one, where BLAS may be loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
threadpool_limits(1)
# what a command says is compared letter by letter, whether kernels are on disk yet or not
progress.LONG = 1e6

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
