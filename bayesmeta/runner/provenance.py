"""Where results come from: versions, source, commit."""

from __future__ import annotations

import json
import platform
import subprocess
from collections import Counter
from functools import cache
from importlib.metadata import version
from pathlib import Path

from bayesmeta.kernels import sources

PACKAGES = (
    "bayesmeta",
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "xarray",
    "pytensor",
    "nutpie",
    "pymc",
    "arviz-stats",
)
"""What the bits of a record may depend on."""


@cache
def versions() -> dict[str, str]:
    """The versions of Python, of ``PACKAGES`` and of the package's source."""
    return (
        {"python": platform.python_version()}
        | {name: version(name) for name in PACKAGES}
        | {"source": sources.digest()[:12]}
    )


def sources_of(made_by: str) -> set[str]:
    """The states of the source in a record's attribute ``versions``."""
    found = json.loads(made_by)
    return {one["source"] for one in (found if isinstance(found, list) else [found])}


def changes(old: dict[str, str], new: dict[str, str]) -> str:
    """What differs between two sets of versions, in words."""
    return ", ".join(
        f"{name} {old.get(name, 'none')} then, {new.get(name, 'none')} now"
        for name in new | old
        if old.get(name) != new.get(name)
    )


def other_versions(counts: Counter[str], now: dict[str, str]) -> list[str]:
    """Notes on results that other versions made, or an earlier state of the study's file."""
    found = [(json.loads(text), count) for text, count in counts.items()]
    return [
        f"{count} cells were made by other versions ({changes(made_by, now)}); to make them anew, "
        "use an empty folder"
        for made_by, count in found
        if made_by != now
    ]


def other_source(where: str, version: str, source: str) -> str:
    """What to say of a worker whose source is not ours."""
    ours = versions()
    return (
        f"{where} runs other source of bayesmeta ({version}, source {source[:12]}) than this "
        f"process ({ours['bayesmeta']}, source {ours['source']}), and was refused; install the "
        "same there and start it again, or allow it: --allow-other-source, in Python "
        "allow_other_source=True"
    )


def commit() -> str | None:
    """The git commit of the package's source, marked where files have changed; None without."""
    folder = str(Path(__file__).parent)
    try:
        ours = ["git", "-C", folder, "ls-files", "--error-unmatch", "__init__.py"]
        subprocess.run(ours, capture_output=True, check=True, timeout=10)
        describe = ["git", "-C", folder, "describe", "--always", "--dirty=+changes", "--exclude=*"]
        done = subprocess.run(describe, capture_output=True, check=True, timeout=10, text=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
