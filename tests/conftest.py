"""Settings shared by all tests."""

from __future__ import annotations

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
