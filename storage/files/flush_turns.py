"""Turns of the flushes of a log, which run in threads, among each other and with truncations.

This is the one place of `storage` that knows of threads: it starts none, but whoever calls `Log.flush` does.
"""

from threading import Lock

from .errors import DiskFailed

Turn = Lock
"""For one at a time: a directory's checkpoint files are written from several threads, too."""


class FlushTurns:
    """The turns of one log.

    turn: held by the flush that is under way. moving: by whoever reads and then moves the recovery point, never for
    long. failure: of the sync after which nothing of the log is synced any more.
    """

    def __init__(self) -> None:
        self.turn = Lock()
        self.moving = Lock()
        self.failure: DiskFailed | None = None
