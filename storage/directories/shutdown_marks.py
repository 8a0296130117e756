"""The marks of how a log directory was left: the files `.kafka_cleanshutdown` and `.boot-id`.

The first one is Kafka's (`CleanShutdownFileHandler`, KIP-966 for the broker epoch in it), the second ours alone.
"""

import json
import posixpath
from typing import Self

from ..files.disk import Disk

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
BOOT_ID_FILE = ".boot-id"
"""The start of the machine in which the logs were last written to."""


class ShutdownMarks:
    """Made by `ShutdownMarks.take`: a clean shutdown is valid for one start.

    machine_stayed_up: since the logs were last written to; then nothing is missing that was never flushed.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self.was_clean_shutdown = False
        self.previous_broker_epoch = -1
        self.machine_stayed_up = False
        self.is_boot_noted = False
        self._disk = disk
        self._path = path

    @classmethod
    def take(cls, disk: Disk, path: str) -> Self:
        """Take the marks of the log directory at this path. Raises `FileError`."""
        marks = cls(disk, path)
        marks._take_clean_shutdown()
        marks._compare_boot_ids()
        return marks

    def _take_clean_shutdown(self) -> None:
        path = self._join(CLEAN_SHUTDOWN_FILE)
        if not self._disk.exists(path):
            return
        self.was_clean_shutdown = True
        self.previous_broker_epoch = _broker_epoch(self._disk.read_file(path))
        self._disk.remove(path)
        self._disk.sync_directory(self._path)

    def _compare_boot_ids(self) -> None:
        path, boot_id = self._join(BOOT_ID_FILE), self._disk.boot_id().encode()
        self.is_boot_noted = self._disk.exists(path) and self._disk.read_file(path) == boot_id
        self.machine_stayed_up = self.is_boot_noted and boot_id != b""

    def note_boot_id(self) -> None:
        """Once all logs are recovered from what the start before may have left. Raises `NoRoom`."""
        self._disk.replace_file(self._join(BOOT_ID_FILE), self._disk.boot_id().encode(), sync=False)
        self.is_boot_noted = True

    def mark_clean_shutdown(self, broker_epoch: int) -> None:
        """Once everything else is durable. Raises `NoRoom`."""
        marker = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self._disk.replace_file(self._join(CLEAN_SHUTDOWN_FILE), marker.encode())

    def _join(self, name: str) -> str:
        return posixpath.join(self._path, name)


def _broker_epoch(marker: bytes) -> int:
    """-1 where an older Kafka wrote an empty marker."""
    try:
        return int(json.loads(marker)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1
