"""`bootstrap.checkpoint` has the records that a new cluster's metadata log opens with; formatting a node leaves it
there.

The file is a snapshot in Kafka's format (KIP-630) that covers no offset.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from pykbroker.protocol.schema import Message
from pykbroker.storage.files.disk import Disk

from .snapshot_format import InvalidSnapshot, decode_snapshot, encode_snapshot

FILE_NAME = "bootstrap.checkpoint"
EPOCH = 0


class InvalidBootstrapCheckpoint(Exception):
    """The file is no complete snapshot; the text names it and says what is wrong, in one line."""


def write_bootstrap_checkpoint(disk: Disk, directory: str, messages: Sequence[Message], now_ms: int) -> None:
    """Durable when it returns; one that is there already is replaced."""
    portions = encode_snapshot(messages, epoch=EPOCH, timestamp_ms=0, now_ms=now_ms)
    disk.replace_file(posixpath.join(directory, FILE_NAME), b"".join(portions))


def read_bootstrap_checkpoint(disk: Disk, directory: str) -> list[Message] | None:
    """The records, or None where there is no such file. Raises InvalidBootstrapCheckpoint."""
    path = posixpath.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    try:
        return list(decode_snapshot(disk.read_file(path)).messages)
    except InvalidSnapshot as error:
        raise InvalidBootstrapCheckpoint(f"{path}: {error}") from None
