"""Agents played through tasks of a family: records of runs, and what they say."""

from __future__ import annotations

from bayesmeta.lazy import exports

__getattr__, __dir__, __all__ = exports(
    "bayesmeta.simulation",
    {
        "concurrent": ("play_concurrent",),
        "metadata": ("play_with_metadata",),
        "played": ("statistics_of",),
        "records": ("read_record", "thin", "write_record"),
        "slopes": ("growth_exponent",),
        "summaries": ("summarise",),
        "table": ("replay",),
    },
)
