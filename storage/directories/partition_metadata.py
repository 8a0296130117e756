"""`partition.metadata`: the id of the topic that a partition's directory belongs to (KIP-516)."""

import logging
import posixpath
from collections.abc import Collection

from pykbroker.protocol.uuids import uuid_from_text, uuid_to_text

from ..files.disk import Disk
from ..files.errors import FileError

_log = logging.getLogger(__name__)

FILE_NAME = "partition.metadata"


def read_topic_id(disk: Disk, directory: str) -> bytes | None:
    """Return None where the file is missing or damaged.

    It is written without a sync, since many are when a topic is created; so a crash may leave anything of it.
    """
    path = posixpath.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    data = disk.read_file(path)
    words = data.decode("utf-8", "replace").split()
    if len(words) == 4 and words[:3] == ["version:", "0", "topic_id:"]:
        try:
            return uuid_from_text(words[3])
        except ValueError:
            pass
    if data.strip(b"\0"):
        _log.warning("%s is not in the format of version 0 and counts as missing", path)
    return None


def sync_topic_id(disk: Disk, directory: str) -> None:
    """Sync what `write_topic_id` wrote; unlike writing it once more that takes no room."""
    file = disk.open(posixpath.join(directory, FILE_NAME))
    try:
        file.sync()
    finally:
        file.close()
    disk.sync_directory(directory)


def write_topic_id(disk: Disk, directory: str, topic_id: bytes, *, sync: bool) -> None:
    text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    disk.replace_file(posixpath.join(directory, FILE_NAME), text.encode(), sync=sync)


class UnsyncedTopicIds:
    """The topic ids of partitions that were created lately, by the paths of their directories.

    A sync for each would make the creation of topics slow. Records that are durable must not turn up in another topic
    of the same name, so the id is made durable before they are.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._unsynced: dict[str, object] = {}
        """Each has a mark of its own: a directory may go, and another one get its path, while a thread syncs."""

    def __bool__(self) -> bool:
        return bool(self._unsynced)

    def add(self, path: str) -> None:
        self._unsynced[path] = object()

    def forget(self, path: str) -> None:
        """Forget the topic id of a log that is about to be deleted."""
        self._unsynced.pop(path, None)

    def forget_all(self) -> None:
        """Forget all ids: they are durable."""
        self._unsynced.clear()

    def sync(self, path: str) -> None:
        """Sync the topic id. May run in a thread, as a part of the log's first flush, and beside the log's deletion.
        Raises `FileError`.
        """
        mark = self._unsynced.get(path)
        if mark is None:
            return
        try:
            if self._disk.is_directory(path):
                sync_topic_id(self._disk, path)
        except FileError:
            if self._unsynced.get(path) is mark:
                raise
        if self._unsynced.get(path) is mark:
            self._unsynced.pop(path, None)

    def sync_all(self, paths: Collection[str]) -> None:
        for path in list(self._unsynced):
            if path in paths:
                self.sync(path)
