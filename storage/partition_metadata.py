"""`partition.metadata`: the id of the topic that a partition's directory belongs to (KIP-516)."""

import logging
import posixpath

from pykbroker.protocol.uuids import uuid_from_text, uuid_to_text

from .disk import Disk

_log = logging.getLogger(__name__)

FILE_NAME = "partition.metadata"


def read_topic_id(disk: Disk, directory: str) -> bytes | None:
    """None where the file is missing or damaged.

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


def write_topic_id(disk: Disk, directory: str, topic_id: bytes, *, sync: bool) -> None:
    text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    disk.replace_file(posixpath.join(directory, FILE_NAME), text.encode(), sync=sync)
