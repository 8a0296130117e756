"""Raft's own records in the log, as batches: who leads an epoch, the level of `kraft.version`, who votes.

Each is a control record whose key says what it is (Kafka's `ControlRecord`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.messages.control_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from pykbroker.protocol.records.batch import RecordBatch, encode_batch, iter_records
from pykbroker.protocol.records.control import ControlRecordType, decode_control_key, encode_control_key
from pykbroker.protocol.records.record import Record
from pykbroker.protocol.schema import Message

_TYPES: dict[type[Message], ControlRecordType] = {
    LeaderChangeMessage: ControlRecordType.LEADER_CHANGE,
    KRaftVersionRecord: ControlRecordType.KRAFT_VERSION,
    VotersRecord: ControlRecordType.KRAFT_VOTERS,
}
_CLASSES: dict[ControlRecordType, type[LeaderChangeMessage] | type[KRaftVersionRecord] | type[VotersRecord]] = {
    ControlRecordType.LEADER_CHANGE: LeaderChangeMessage,
    ControlRecordType.KRAFT_VERSION: KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: VotersRecord,
}


def encode_control_batch(messages: Sequence[Message], *, base_offset: int, leader_epoch: int, timestamp: int) -> bytes:
    """One batch of them."""
    records = [Record(encode_control_key(_TYPES[type(each)]), _encode_value(each), (), timestamp) for each in messages]
    return encode_batch(records, base_offset=base_offset, partition_leader_epoch=leader_epoch, is_control=True)


def _encode_value(message: Message) -> bytes:
    assert isinstance(message, LeaderChangeMessage | KRaftVersionRecord | VotersRecord)
    return encode(message, message.version)


def decode_control_batch(batch: RecordBatch) -> Iterator[tuple[int, Message]]:
    """Decode the control records that raft knows, with offsets. Raises InvalidRecords, MalformedMessage."""
    for record in iter_records(batch):
        message = decode_control_record(record)
        if message is not None:
            yield record.offset, message


def decode_control_record(record: Record) -> Message | None:
    """Return None for kinds that are not raft's. Raises InvalidRecords, MalformedMessage."""
    control_type = decode_control_key(record.key)
    if control_type is None or control_type not in _CLASSES or record.value is None:
        return None
    cls = _CLASSES[control_type]
    version = min(int.from_bytes(record.value[:2], "big"), cls.__schema__.versions.high)
    return decode(cls, version, record.value)[0]
