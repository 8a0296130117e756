"""Ephemeral directories live as long as the process that made them, and are swept up by a later one if that was killed.

Each has an owner file that its process holds locked (`flock`); the kernel gives the lock back however the process ends.
A sweep takes the lock before it removes anything, so that it never touches the directory of a living process, and two
sweeps never meet in one directory. The rules that make this safe:

- The owner has the lock before the directory is used, and sees then that the directory is still there: a sweep may have
  come between the making and the locking. It makes another one in that case.
- Whoever removes a directory removes the owner file last. What a kill leaves in the middle is swept next time; a
  directory without an owner file is removed only if it is empty and old.
- A sweep looks at directories alone that have the full form of the name and belong to this user. It follows no links.

One process may have many ephemeral directories. The module is for everybody who runs brokers, commands and libraries.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_log = logging.getLogger(__name__)

PREFIX = "pykbroker-ephemeral-"
OWNER_FILE = ".owner"
SWEPT_AT_MOST = 100
"""How many directories one sweep removes; the rest is left to the next one."""
SWEEP_S = 10.0
_NAME = re.compile(re.escape(PREFIX) + "[a-z0-9_]{8}")
_EMPTY_AND_OLD_S = 60.0
"""Longer than anybody takes from making a directory to making its owner file."""
_ATTEMPTS = 10


@contextmanager
def ephemeral_directory(parent: Path | None = None) -> Iterator[Path]:
    """Make a directory for the body, in `parent` or else where the system has temporary files. Raises OSError."""
    path, lock = _make(Path(parent or tempfile.gettempdir()))
    process = os.getpid()
    try:
        yield path
    finally:
        if os.getpid() == process:  # a fork that runs through the same code owns nothing
            _remove(path)
        os.close(lock)


def sweep(parent: Path | None = None, *, at_most: int = SWEPT_AT_MOST, seconds: float = SWEEP_S) -> int:
    """Remove the directories whose processes are gone; returns how many. What cannot be removed is left there."""
    deadline = time.monotonic() + seconds
    swept = 0
    with suppress(OSError), os.scandir(parent or tempfile.gettempdir()) as entries:
        for entry in entries:
            if swept >= at_most or time.monotonic() > deadline:
                break
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                swept += _sweep_one(Path(entry.path), deadline)
    return swept


def sweep_in_background(parent: Path | None = None) -> threading.Thread:
    """Sweep in a thread for which no process waits at its end."""

    def work() -> None:
        if swept := sweep(parent):
            _log.info("%d directories of processes that were killed are removed", swept)

    thread = threading.Thread(target=work, name="sweep", daemon=True)
    thread.start()
    return thread


def _make(parent: Path) -> tuple[Path, int]:
    """Return a new directory, and the descriptor that holds its lock."""
    for _ in range(_ATTEMPTS):
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        with suppress(FileNotFoundError, BlockingIOError):  # a sweep was quicker
            return path, _lock(path)
    raise OSError(f"every directory that is made in {parent} is removed at once")


def _lock(path: Path) -> int:
    descriptor = os.open(path / OWNER_FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there, held = os.stat(path / OWNER_FILE), os.fstat(descriptor)
        if not os.path.samestat(there, held):
            raise FileNotFoundError(path)
        os.write(descriptor, f"{os.getpid()}\n".encode())  # for people
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _sweep_one(path: Path, deadline: float) -> bool:
    """Remove the directory if its owner is gone; False where it is not, or not as a whole."""
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        status = os.fstat(directory)
        if status.st_uid != os.geteuid():
            return False
        try:
            lock = os.open(OWNER_FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
        except FileNotFoundError:
            return _remove_if_empty(path, status)
        try:
            if not stat.S_ISREG(os.fstat(lock).st_mode):
                return False
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            there = os.stat(OWNER_FILE, dir_fd=directory, follow_symlinks=False)
            return os.path.samestat(there, os.fstat(lock)) and _remove(path, deadline)
        finally:
            os.close(lock)
    except OSError:  # somebody has the lock, or was quicker
        return False
    finally:
        os.close(directory)


def _remove_if_empty(path: Path, status: os.stat_result) -> bool:
    if time.time() - status.st_mtime < _EMPTY_AND_OLD_S:
        return False
    path.rmdir()  # of what is not empty the system removes nothing
    return True


def _remove(path: Path, deadline: float = float("inf")) -> bool:
    """Remove the directory, the owner file last; False where something is left."""
    try:
        for name in os.listdir(path):
            if time.monotonic() > deadline:
                return False
            if name != OWNER_FILE:
                _remove_entry(path / name)
        if set(os.listdir(path)) - {OWNER_FILE}:
            return False
        (path / OWNER_FILE).unlink(missing_ok=True)
        path.rmdir()
    except OSError:
        return False
    return True


def _remove_entry(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
