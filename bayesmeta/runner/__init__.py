"""Studies: many independent cells, run anywhere and resumable. Nearly a package of its own."""

from __future__ import annotations

from bayesmeta.lazy import exports

__getattr__, __dir__, __all__ = exports(
    "bayesmeta.runner",
    {
        "limits": ("TimedOut",),
        "progress": ("progress_bar", "report_progress"),
        "report": ("Interrupted", "OtherSource", "Report"),
        "run": ("run_study", "study_status"),
        "study": ("Study", "grid"),
    },
)
