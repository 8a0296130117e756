"""A snapshot of the metadata is bytes here: a header record, the records that give the image, a footer record
(KIP-630).

The bytes are those of a `.checkpoint` file, in Kafka's format (`RecordsSnapshotWriter`). Without its footer it is not
whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pykbroker.metadata.records import decode_record, encode_record
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.control_records import SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.control import ControlRecordType, decode_control_key, encode_control_key
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.schema import Message
from pykbroker.raft.control_records import decode_control_record

BATCH_RECORDS = 1024
BATCH_BYTES = 1 << 20

_QUORUM_TYPES = (ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS)


class InvalidSnapshot(Exception):
    """The bytes are no complete snapshot; the text says in one line what is wrong."""


@dataclass(slots=True)
class QuorumRecords:
    """The quorum records are the latest control records about the quorum itself (KIP-853): its `kraft.version`, and its
    voters.

    A quorum of static voters has none. Others are kept as they came, so that a snapshot does not lose the voters.
    """

    by_type: dict[ControlRecordType, tuple[bytes, bytes]] = field(default_factory=dict)

    def note(self, record: Record) -> None:
        """Take the next control record of the log or snapshot."""
        control_type = decode_control_key(record.key)
        if control_type is None or record.key is None or record.value is None:
            return
        if control_type in _QUORUM_TYPES:
            self.by_type[control_type] = (bytes(record.key), bytes(record.value))

    def messages(self) -> list[Message]:
        """KRaftVersionRecord and VotersRecord, as far as they are there. Raises MalformedMessage."""
        decoded = [decode_control_record(Record(key, value)) for key, value in self.by_type.values()]
        return [each for each in decoded if each is not None]

    def copy(self) -> QuorumRecords:
        return QuorumRecords(dict(self.by_type))

    def voter_ids(self) -> list[int] | None:
        """Return None where the records say nothing of voters. Raises MalformedMessage."""
        if ControlRecordType.KRAFT_VOTERS not in self.by_type:
            return None
        _, value = self.by_type[ControlRecordType.KRAFT_VOTERS]
        return sorted(voter.voter_id for voter in decode(VotersRecord, 0, value)[0].voters)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The snapshot is read whole. timestamp_ms: of the last record of the log that it covers."""

    timestamp_ms: int
    quorum: QuorumRecords
    messages: Sequence[Message]


def encode_snapshot(
    messages: Iterable[Message], *, epoch: int, timestamp_ms: int, now_ms: int, quorum: QuorumRecords | None = None
) -> Iterator[bytes]:
    """The file in portions. timestamp_ms: of the last record that it covers; now_ms stands in its own records."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms)
    head = [Record(encode_control_key(ControlRecordType.SNAPSHOT_HEADER), encode(header, 0), (), now_ms)]
    for control_type in _QUORUM_TYPES:
        if quorum is not None and control_type in quorum.by_type:
            key, value = quorum.by_type[control_type]
            head.append(Record(key, value, (), now_ms))
    yield encode_batch(head, partition_leader_epoch=epoch, is_control=True)
    offset = len(head)
    for records in _portions(messages, now_ms):
        yield encode_batch(records, base_offset=offset, partition_leader_epoch=epoch)
        offset += len(records)
    foot = Record(encode_control_key(ControlRecordType.SNAPSHOT_FOOTER), encode(SnapshotFooterRecord(), 0), (), now_ms)
    yield encode_batch([foot], base_offset=offset, partition_leader_epoch=epoch, is_control=True)


def _portions(messages: Iterable[Message], now_ms: int) -> Iterator[list[Record]]:
    records: list[Record] = []
    size_bytes = 0
    for message in messages:
        value = encode_record(message)
        records.append(Record(key=None, value=value, timestamp=now_ms))
        size_bytes += len(value)
        if len(records) >= BATCH_RECORDS or size_bytes >= BATCH_BYTES:
            yield records
            records, size_bytes = [], 0
    if records:
        yield records


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises InvalidSnapshot for what is damaged or not whole."""
    try:
        return _decode(data)
    except (InvalidRecords, MalformedMessage) as error:
        raise InvalidSnapshot(str(error)) from None


def _decode(data: bytes) -> Snapshot:
    header: SnapshotHeaderRecord | None = None
    quorum = QuorumRecords()
    messages: list[Message] = []
    is_complete = False
    next_offset = 0
    for batch in iter_batches(data):
        batch.ensure_valid()
        if batch.header.base_offset != next_offset:
            raise InvalidSnapshot(f"a batch begins at {batch.header.base_offset} where {next_offset} comes next")
        next_offset = batch.header.next_offset
        if is_complete:
            raise InvalidSnapshot("records follow the snapshot's footer")
        for record in iter_records(batch):
            if not batch.header.is_control:
                if header is None:
                    raise InvalidSnapshot("the snapshot does not begin with a header")
                if record.value is None:
                    raise InvalidSnapshot(f"record {record.offset} has no value")
                messages.append(decode_record(record.value))
                continue
            match decode_control_key(record.key):
                case ControlRecordType.SNAPSHOT_HEADER:
                    header = decode(SnapshotHeaderRecord, 0, record.value or b"")[0]
                case ControlRecordType.SNAPSHOT_FOOTER:
                    is_complete = True
                case _:
                    quorum.note(record)
    if header is None or not is_complete:
        raise InvalidSnapshot("the snapshot has no footer: it was not written to its end")
    return Snapshot(header.last_contained_log_timestamp, quorum, messages)
