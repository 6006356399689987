"""Which sockets processes listen on, as the kernel says."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

LINUX = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="looks at processes and sockets in /proc"
)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def family(root: int) -> set[int]:
    """A process and all that descend from it."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended while we looked
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def listening(processes: set[int]) -> list[str]:
    """The addresses on which processes listen for TCP, one for each socket."""
    held = set()
    for process in processes:
        for link in Path(f"/proc/{process}/fd").glob("*"):
            try:
                held.add(str(link.readlink()))
            except OSError:
                continue
    found = []
    for name in ("tcp", "tcp6"):
        file = Path("/proc/net", name)
        for line in file.read_text().splitlines()[1:] if file.exists() else []:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in held:
                found.append(_address(fields[1].partition(":")[0]))
    return found


def _address(digits: str) -> str:
    """Words of 32 bits as this machine stores them, which is little-endian."""
    words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
    packed = b"".join(words)
    return str(IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed))


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach it."""
    return address in ("127.0.0.1", "::1")
