"""Random streams keyed by (seed, name), so that no consumer disturbs another.

A stream runs on from task to task. Keying each task anew would allow jumping to any of them, but
seeding or moving a generator takes 10 to 20 microseconds, a fifth of what playing a task takes;
instead every task consumes a fixed share of its streams, whatever happens in it.
"""

from __future__ import annotations

import hashlib

import numpy as np

ENVIRONMENT = "environment"
"""The stream of everything agents share: task parameters, noise, actions."""


def stream(seed: int, name: str) -> np.random.Generator:
    """The generator of one name."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(_number(name),)))
    )


def cell_seed(seed: int, cell: str) -> int:
    """The seed of one cell of a study, or one run of a simulation: of its seed and id alone."""
    return _number(f"{seed}/{cell}") >> 1  # 63 bits, so that every integer type holds it


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
