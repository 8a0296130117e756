"""Turns of the flushes of a log, which run in threads, among each other and with truncations."""

from .disk import Disk
from .errors import DiskFailed


class FlushTurns:
    """The turns of one log.

    turn: held by the flush that is under way. moving: by whoever reads and then moves the recovery point, never for
    long. failure: of the sync after which nothing of the log is synced any more.
    """

    def __init__(self, disk: Disk) -> None:
        self.turn = disk.turn()
        self.moving = disk.turn()
        self.failure: DiskFailed | None = None
