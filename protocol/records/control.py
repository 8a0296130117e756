"""Control records: their key says what they are; clients never see them (`ControlRecordType`, `EndTransactionMarker`).

The bodies of the raft control records (`LeaderChangeMessage`, `SnapshotHeaderRecord`, `SnapshotFooterRecord`,
`KRaftVersionRecord`, `VotersRecord`) are declared messages; here are only the keys that announce them.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from pykbroker.protocol.errors import ErrorCode

from .batch import encode_batch
from .errors import InvalidRecords
from .record import Record

_KEY = struct.Struct(">hh")
_END_TRANSACTION = struct.Struct(">hi")
KEY_VERSION = 0
END_TRANSACTION_MARKER_VERSION = 0


class ControlRecordType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def encode_control_key(control_type: ControlRecordType) -> bytes:
    return _KEY.pack(KEY_VERSION, control_type)


def decode_control_key(key: bytes | None) -> ControlRecordType | None:
    """Return None for a type that this version does not know: such records are passed over, as Kafka does.

    Raises `InvalidRecords` when it is no control key at all.
    """
    if key is None or len(key) < _KEY.size:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, "a control record without the key of one")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"a control record's key has version {version}")
    return _TYPES.get(type_id)


_TYPES = {int(control_type): control_type for control_type in ControlRecordType}


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """`control_type` is COMMIT or ABORT."""

    control_type: ControlRecordType
    coordinator_epoch: int


def decode_end_transaction_marker(record: Record) -> EndTransactionMarker:
    control_type = decode_control_key(record.key)
    if control_type is not ControlRecordType.COMMIT and control_type is not ControlRecordType.ABORT:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"no transaction marker but {control_type!r}")
    if record.value is None or len(record.value) < _END_TRANSACTION.size:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, "a transaction marker without its value")
    _version, coordinator_epoch = _END_TRANSACTION.unpack_from(record.value)
    return EndTransactionMarker(control_type, coordinator_epoch)


def encode_end_transaction_batch(
    marker: EndTransactionMarker, *, producer_id: int, producer_epoch: int, timestamp: int
) -> bytes:
    """The control batch that ends a producer's transaction in one partition."""
    record = Record(
        key=encode_control_key(marker.control_type),
        value=_END_TRANSACTION.pack(END_TRANSACTION_MARKER_VERSION, marker.coordinator_epoch),
        timestamp=timestamp,
    )
    return encode_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
