"""`bootstrap.checkpoint`: the records that a new cluster's metadata log opens with, left by whoever formatted the node.

It is a snapshot in Kafka's format (KIP-630) that covers no offset: a header record, the records, a footer record.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from pykbroker.metadata.records import decode_record, encode_record
from pykbroker.protocol.compile import encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.control_records import SnapshotFooterRecord, SnapshotHeaderRecord
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.control import ControlRecordType, decode_control_key, encode_control_batch
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.schema import Message
from pykbroker.storage.disk import Disk

FILE_NAME = "bootstrap.checkpoint"
EPOCH = 0


class InvalidBootstrapCheckpoint(Exception):
    """The file is no complete snapshot; the text names it and says what is wrong, in one line."""


def write_bootstrap_checkpoint(disk: Disk, directory: str, messages: Sequence[Message], now_ms: int) -> None:
    """Durable when it returns; one that is there already is replaced."""
    header = encode_control_batch(
        ControlRecordType.SNAPSHOT_HEADER,
        encode(SnapshotHeaderRecord(), 0),
        base_offset=0,
        leader_epoch=EPOCH,
        timestamp=now_ms,
    )
    records = [Record(key=None, value=encode_record(message), timestamp=now_ms) for message in messages]
    body = encode_batch(records, base_offset=1, partition_leader_epoch=EPOCH)
    footer = encode_control_batch(
        ControlRecordType.SNAPSHOT_FOOTER,
        encode(SnapshotFooterRecord(), 0),
        base_offset=1 + len(records),
        leader_epoch=EPOCH,
        timestamp=now_ms,
    )
    disk.replace_file(posixpath.join(directory, FILE_NAME), header + body + footer)


def read_bootstrap_checkpoint(disk: Disk, directory: str) -> list[Message] | None:
    """The records, or None where there is no such file. Raises InvalidBootstrapCheckpoint."""
    path = posixpath.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    try:
        return _decode(disk.read_file(path))
    except (InvalidRecords, MalformedMessage, _Incomplete) as error:
        raise InvalidBootstrapCheckpoint(f"{path}: {error}") from None


class _Incomplete(Exception):
    pass


def _decode(data: bytes) -> list[Message]:
    messages: list[Message] = []
    complete = False
    for batch in iter_batches(data):
        batch.ensure_valid()
        if complete:
            raise _Incomplete("records follow the snapshot's footer")
        for record in iter_records(batch):
            if batch.header.is_control:
                complete = decode_control_key(record.key) is ControlRecordType.SNAPSHOT_FOOTER
            elif record.value is None:
                raise _Incomplete(f"record {record.offset} has no value")
            else:
                messages.append(decode_record(record.value))
    if not complete:
        raise _Incomplete("the snapshot has no footer: it was not written to its end")
    return messages
