"""Cells for the tests of studies; here, where workers of any kind can import them."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from bayesmeta import Study, grid, report_progress
from bayesmeta.runner.pinning import PINNED


def draws(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Normal draws and a count, after a while."""
    time.sleep(settings.get("seconds", 0.0))
    rng = np.random.default_rng(seed)
    size = settings.get("matrix", 2)
    square = rng.standard_normal((size, size))
    return xr.Dataset(
        {
            "eigenvalue": ((), np.linalg.eigvalsh(square + square.T)[size // 2]),
            "value": ("axis", settings.get("shift", 0.0) + rng.standard_normal(3)),
            "count": ((), rng.integers(100)),
        },
        coords={"axis": ["x", "y", "z"], "weight": ("axis", [1.0, 2.0, 3.0])},
        attrs={"about": "draws"},
    )


def of_dimension(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """As many draws as the settings say, and a variable that only some cells have."""
    d = settings["d"]
    data = xr.Dataset({"value": ("axis", np.random.default_rng(seed).standard_normal(d))})
    data = data.assign_coords(axis=np.arange(d))
    return data.assign(extra=1.5) if d > 2 else data


def moody(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Raises where the settings say so, unless the marker is there."""
    marker = Path(settings["marker"])
    if settings["run"] in settings["bad"] and not marker.exists():
        raise RuntimeError(f"run {settings['run']} is in a mood")
    return draws(settings, seed)


def not_a_dataset(settings: dict[str, Any], seed: int) -> Any:
    """Returns what NetCDF, or a study, cannot take, where the settings say so."""
    made = draws(settings, seed)
    return {
        0: made,
        1: {"value": 1.0},
        2: None,
        3: made.assign(bad=("odd", np.array([object()], dtype=object))),
    }[settings["run"]]


def quits(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Leaves by SystemExit."""
    raise SystemExit(3)


def dies_once(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Its process is killed the first time run 1 is tried, and every time run 2 is.

    Otherwise it says how many threads numerical libraries may use, and which process it is.
    """
    marker = Path(settings["marker"])
    if settings["run"] == 2 or (settings["run"] == 1 and not marker.exists()):
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    threads = [int(os.environ.get(name, "0")) for name in PINNED]
    return draws(settings, seed).assign(threads=("library", threads), process=os.getpid())


def stuck(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Never returns in runs 1 and 3, crashes in run 4; leaves the number of its process."""
    run = settings["run"]
    if "marker" in settings:
        Path(settings["marker"], f"{run}.{os.getpid()}").touch()
    if run == 1:  # holds Python's lock, deaf to SIGTERM
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ctypes.PyDLL(None).sleep(1000)
    if run == 3:  # can do nothing at all, not even end itself
        os.kill(os.getpid(), signal.SIGSTOP)
    if run == 4:
        ctypes.string_at(0)
    return draws(settings, seed)


def halves(settings: dict[str, Any], seed: int) -> xr.Dataset:
    """Says when it is half done."""
    report_progress(0.5)
    return draws(settings, seed)


def small_study(runs: int = 6, seconds: float = 0.0, **settings: Any) -> Study:
    """A few cells that draw."""
    return Study(
        "small", grid({"seconds": seconds, **settings}, run=range(runs)), draws, 7, ("run",)
    )


slow = small_study(40, 0.05, matrix=300)
"""Two seconds of work, to be disturbed."""
two = small_study(2)
not_a_study = 3
