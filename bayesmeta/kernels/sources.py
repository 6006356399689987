"""Which code this is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path


@cache
def digest() -> str:
    """A hash of all source files of the package."""
    return _hash(_files())


@cache
def kernel_digest() -> str:
    """A hash of the files that compiled code can depend on: kernels, and files that use them."""
    here = Path(__file__).parent
    used = (f for f in _files() if f.parent == here or b"bayesmeta.kernels" in f.read_bytes())
    return _hash(used)


def _files() -> list[Path]:
    return sorted(Path(__file__).parent.parent.rglob("*.py"))


def _hash(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
