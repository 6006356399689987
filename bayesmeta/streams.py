"""Random streams keyed by (seed, run, name), so that no consumer disturbs another.

A stream runs on from task to task. Keying each task anew would allow jumping to any of them, but
seeding or moving a generator takes 10 to 20 microseconds, a fifth of what playing a task takes;
instead every task consumes a fixed share of its streams, whatever happens in it.
"""

from __future__ import annotations

import hashlib

import numpy as np

ENVIRONMENT = "environment"
"""The stream of everything agents share: task parameters, noise, actions."""


def stream(seed: int, run: int, name: str) -> np.random.Generator:
    """The generator of one name in one run."""
    key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run, key))))
