"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from bayesmeta.checks import InputError


def writable_folder(path: Path | str) -> Path:
    """Make a folder and see that files can be written in it, before any long work."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write in {folder} ({error.strerror or error}); choose another folder"
        ) from None
    return folder


Writer = Callable[[Path], object]
"""Fills the file at a path."""


def write_together(files: dict[Path, Writer]) -> None:
    """Fill a temporary file beside each path, then put all in place; on failure none is."""
    for path in files:
        if path.is_dir():
            raise InputError(f"cannot write {path}: a folder of that name is in the way")
    filled: dict[Path, Path] = {}
    try:
        for path, write in files.items():
            handle, name = tempfile.mkstemp(
                prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent
            )
            os.close(handle)
            filled[path] = Path(name)
            write(filled[path])
            filled[path].chmod(0o644)
        for path, temporary in filled.items():
            temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write {path} ({error.strerror or error}); make room, or choose another folder"
        ) from error
    finally:
        for temporary in filled.values():
            temporary.unlink(missing_ok=True)


def write_atomically(path: Path | str, write: Writer) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then put it in place."""
    write_together({Path(path): write})
