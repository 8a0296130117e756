"""The watch over the process that started this one: when it is gone, however it went, this one stops.

The end of the parent is seen in three ways, each of which is enough.

- The process itself ends: the kernel says so (a pidfd, on Linux), or a look at the parent's id five times a second.
  Linux's parent death signal would come at the end of the parent's thread, which a pool of threads may end at will.
- Standard input ends, where it is a pipe or a socket. Nothing is read from it; a terminal, a file and /dev/null are not
  watched.
- The parent was gone before this process looked, and the one that took it over is its parent now. With a pipe that is
  certain, too, and with `--parent-pid`. Otherwise two things give it away: a parent of another session, since a child
  is born into the session of its parent; and process 1 as the parent of one whose output nobody can read any more.
"""

from __future__ import annotations

import os
import select
import stat
import threading
import time
from collections.abc import Callable

_POLL_MS = 200
_INIT = 1
_HALF_CLOSED: int = getattr(select, "POLLRDHUP", 0)
"""Linux has to be asked for it; what else tells of an end is always told."""
_HUNG_UP = select.POLLHUP | select.POLLERR | _HALF_CLOSED
_STDIN = 0
_STREAMS = (0, 1, 2)

GRACE_S = 5.0
"""How long a clean stop may take; then the node ends as after a crash."""
LAST_S = 5.0
"""And how long that may take; then the process ends whatever it does, such as writing to a pipe that nobody reads."""


class ParentWatch:
    """Looks at the parent from now on.

    parent: the process that is meant, where it is not the parent of this one, because of a script in between.
    """

    def __init__(self, parent: int | None = None) -> None:
        found = os.getppid()
        self._pid = found if parent is None else parent
        self._is_parent = self._pid == found
        self._stdin = _STDIN if _is_pipe(_STDIN) else None
        self._pidfd = _pidfd(self._pid)
        self._is_gone = parent is None and _is_adopted(found)

    def start(self, ask: Callable[[str], None]) -> None:
        """Call `ask` in a thread when the parent is gone, and again when that has not ended the process in time."""

        def watch() -> None:
            ask(self.wait())
            time.sleep(GRACE_S)
            ask("")
            time.sleep(LAST_S)
            os._exit(1)

        threading.Thread(target=watch, name="parent watch", daemon=True).start()

    def wait(self) -> str:
        """Block until the parent is gone; returns how that was seen."""
        poll = select.poll()
        if self._pidfd is not None:
            poll.register(self._pidfd, select.POLLIN)
        if self._stdin is not None:
            poll.register(self._stdin, _HALF_CLOSED)
        while True:
            if not self._is_there():
                return f"process {self._pid}, which started this one, is gone"
            for descriptor, event in poll.poll(None if self._pidfd is not None else _POLL_MS):
                if descriptor == self._stdin and event & _HUNG_UP:
                    return "standard input has ended"
                if descriptor == self._stdin:  # somebody has closed it
                    poll.unregister(descriptor)
                    self._stdin = None
                else:
                    self._is_gone = True

    def _is_there(self) -> bool:
        if self._is_gone:
            return False
        if self._is_parent:
            return os.getppid() == self._pid
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True


def _pidfd(pid: int) -> int | None:
    """A descriptor that is readable when the process has ended; None where the system has none.

    The id may be another process's by now only if the parent is gone, and then it is not the parent's id any more.
    """
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _is_adopted(parent: int) -> bool:
    """Return whether the parent is for sure not the process that started this one."""
    own = os.getsid(0)
    try:
        if parent > 0 and own not in (os.getpid(), os.getsid(parent)):
            return True
    except OSError:  # it has just gone, or is of another user on a system that keeps that to itself
        pass
    return parent == _INIT and any(_has_no_other_end(each) for each in _STREAMS)


def _has_no_other_end(descriptor: int) -> bool:
    if not _is_pipe(descriptor):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
