"""The process that holds a port or a directory of this machine, found out of Linux's /proc.

A process of another user, or one outside of this container, may not be visible; then nothing is said of it. The look
ends after a while, however many processes there are. On systems without /proc nothing is found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LOOK_S: Final = 1.0
_LARGEST_TABLE_BYTES: Final = 32 << 20
_LONGEST_COMMAND: Final = 120
_LISTENS: Final = "0A"


@dataclass(frozen=True, slots=True)
class Holder:
    """A process; its command is one line of ASCII."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid}" + (f" ({self.command})" if self.command else "")


def holder_of_port(port: int) -> Holder | None:
    """Return the process that listens on a TCP port of this machine; None where it is not visible."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    return None if not sockets else next(_with_descriptors(sockets), None)


def is_listened_on(port: int) -> bool:
    """Tell whether somebody listens on the port, visible or not."""
    return any(True for _ in _listening(port))


def holder_of_file(path: str) -> Holder | None:
    """Return the process that has a lock on a file or directory; None where it is not visible."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    locks = [(at, int(pid)) for at, inode, pid in _locks() if inode == str(found.st_ino) and pid.isdecimal()]
    on_device = [pid for at, pid in locks if at == device] or [pid for _, pid in locks]
    return next((Holder(pid, _command(pid)) for pid in on_device if pid != os.getpid()), None)


def who_holds(*paths: str) -> str:
    """Return the words for the process that has a lock on one of these files or directories."""
    holders = (holder_of_file(path) for path in paths)
    holder = next((each for each in holders if each is not None), None)
    return "another process, which is not visible from here" if holder is None else str(holder)


def _listening(port: int) -> Iterator[str]:
    """The inodes of sockets that listen on the port."""
    suffix = f":{port:04X}"
    for name in ("tcp", "tcp6"):
        for line in _table(_PROC / "net" / name)[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTENS and fields[1].endswith(suffix):
                yield fields[9]


def _locks() -> Iterator[tuple[str, str, str]]:
    """Device, inode and process of each lock."""
    for line in _table(_PROC / "locks"):
        fields = line.split()
        if "->" not in fields and len(fields) > 5 and fields[5].count(":") == 2:
            device, _, inode = fields[5].rpartition(":")
            yield device, inode, fields[4]


def _table(path: Path) -> list[str]:
    try:
        with path.open() as file:
            return file.read(_LARGEST_TABLE_BYTES).splitlines()
    except OSError:
        return []


def _with_descriptors(targets: Iterable[str]) -> Iterator[Holder]:
    wanted = set(targets)
    ends = time.monotonic() + _LOOK_S
    for pid in _processes():
        if time.monotonic() > ends:
            return
        if any(each in wanted for each in _descriptors(pid)):
            yield Holder(pid, _command(pid))


def _processes() -> list[int]:
    try:
        return sorted((int(name) for name in os.listdir(_PROC) if name.isdecimal()), reverse=True)
    except OSError:
        return []


def _descriptors(pid: int) -> Iterator[str]:
    directory = _PROC / str(pid) / "fd"
    try:
        for name in os.listdir(directory):
            yield os.readlink(directory / name)
    except OSError:
        return


def _command(pid: int) -> str:
    try:
        with (_PROC / str(pid) / "cmdline").open("rb") as file:
            words = file.read(4096)
    except OSError:
        return ""
    text = ascii(" ".join(words.rstrip(b"\0").decode("utf-8", "replace").split("\0")))[1:-1]
    return text if len(text) <= _LONGEST_COMMAND else text[: _LONGEST_COMMAND - 3] + "..."
