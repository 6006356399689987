"""Which code this is."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def digest(mentioning: str = "") -> str:
    """A hash of the package's source files, or of those that mention some words."""
    files = sorted(Path(__file__).parent.parent.rglob("*.py"))
    texts = (file.read_bytes() for file in files)
    return hashlib.sha256(
        b"".join(text for text in texts if mentioning.encode() in text)
    ).hexdigest()
