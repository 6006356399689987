"""Files written whole or not at all, and never through a symbolic link."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
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
            f"cannot write in {folder} ({reason(error)}); choose another folder"
        ) from None
    return folder


SPARE = 1 << 16
"""Bytes by which a file may be longer on disk than in memory."""
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
            filled[path] = _temporary(path)
            write(filled[path])
        for path, temporary in filled.items():
            temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write {path} ({reason(error)}); make room, or choose another folder"
        ) from error
    finally:
        for temporary in filled.values():
            with suppress(OSError):
                temporary.unlink()


def _temporary(path: Path) -> Path:
    """A new, empty file beside ``path``, with the rights that the process's umask leaves."""
    while True:
        made = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
        with suppress(FileExistsError):
            os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            return made


def write_atomically(path: Path | str, write: Writer) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then put it in place."""
    write_together({Path(path): write})


def check_room(path: Path, content: bytes | memoryview) -> None:
    """See that there is room for a file about to be written, by writing one like it.

    HDF5 on a full disk prints tracebacks and ends the process; so it writes to memory first, and
    to the disk once that is known to have room. (Its bytes in memory differ a little from those it
    writes to disk, which are therefore not simply copied.)
    """
    with path.open("wb") as file:
        file.write(content)
        file.write(bytes(SPARE))
    path.write_bytes(b"")


def open_itself(path: Path, flags: int) -> int:
    """Open a file, made if need be, but never what a symbolic link of that name points to."""
    refuse_link(path)
    return os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link where a file or folder of the package's own is to be written."""
    if path.is_symlink():
        raise InputError(
            f"{path} is a symbolic link, which is not followed; remove it, or choose another folder"
        )


def reason(error: OSError) -> str:
    """Why a file could not be read or written, on one line; HDF5 hides it in a long message."""
    text = " ".join(str(error.strerror or error).split())
    inner = re.search(r"error message = '([^']+)'", text)
    return inner.group(1) if inner else text[:300]
