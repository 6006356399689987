"""What is true of the package for all input, each with its oracle: shared by the quick fuzzer of
the suite (tests/test_fuzz.py) and the long one (tests/trials/fuzz.py)."""

from __future__ import annotations

from tests.properties import (
    fits,
    nouns,
    play,
    sampled,
    saved,
    studies,
    tables,
)  # they enter their checks
from tests.properties.rule import PROPERTIES, REFUSED, RIGHT, UNJUDGED, Property, judge

__all__ = ["PROPERTIES", "REFUSED", "RIGHT", "UNJUDGED", "Property", "judge"]
assert fits and nouns and play and sampled and saved and studies and tables
