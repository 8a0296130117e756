"""`partition.metadata`: the id of the topic that a partition's directory belongs to (KIP-516)."""

import posixpath

from pykbroker.protocol.uuids import uuid_from_text, uuid_to_text

from .disk import Disk
from .errors import CorruptLog

FILE_NAME = "partition.metadata"


def read_topic_id(disk: Disk, directory: str) -> bytes | None:
    """None where the file is missing or empty. Raises `CorruptLog` where it is damaged."""
    path = posixpath.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    words = disk.read_file(path).decode("utf-8", "replace").split()
    if not words:
        return None
    if len(words) != 4 or words[:3] != ["version:", "0", "topic_id:"]:
        raise CorruptLog(f"{path} is not in the format of version 0")
    try:
        return uuid_from_text(words[3])
    except ValueError as error:
        raise CorruptLog(f"{path} holds no sound topic id") from error


def write_topic_id(disk: Disk, directory: str, topic_id: bytes, *, sync: bool) -> None:
    text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    disk.replace_file(posixpath.join(directory, FILE_NAME), text.encode(), sync=sync)
