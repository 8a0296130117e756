"""Record batches of format 2 (`DefaultRecordBatch`): header, iteration, encoding.

Messages of the formats 0 and 1 pass as batches here, and are read in `legacy`: `iter_batches` gives each as a
`LegacyMessage`, `iter_records` and `ensure_valid` know them. The header's field names are Kafka's.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from crc32c import crc32c
from pykbroker.protocol.errors import ErrorCode

from .compression import Buffer, Compression, compress, decompress
from .errors import InvalidRecords
from .legacy import decode_message_header, is_checksum_right, iter_legacy_records
from .record import NO_TIMESTAMP, Header, Record, decode_records, encode_record
from .record_parts import TOMBSTONE, WITH_VALUE, WITHOUT_KEY, RecordKeys, decode_keys

__all__ = [
    "LOG_OVERHEAD_BYTES",
    "MAGIC_VALUE_V2",
    "RECORD_BATCH_OVERHEAD_BYTES",
    "Header",
    "Record",
    "RecordBatch",
    "RecordBatchHeader",
    "TimestampType",
    "decode_batch_header",
    "encode_batch",
    "iter_batches",
    "iter_records",
]

LOG_OVERHEAD_BYTES = 12
"""Base offset and length: what stands in front of the bytes that `batch_length` counts."""
RECORD_BATCH_OVERHEAD_BYTES = 61
MAGIC_VALUE_V2 = 2

MAGIC_OFFSET = 16
CRC_OFFSET = 17
ATTRIBUTES_OFFSET = 21
"""The CRC covers everything from here on."""

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40

_HEADER = struct.Struct(">qiibIhiqqqhii")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_BEFORE_ATTRIBUTES = struct.Struct(">qiibI")
_LENGTH = struct.Struct(">i")
assert _HEADER.size == RECORD_BATCH_OVERHEAD_BYTES
_new_tuple = tuple.__new__  # what `_make` does in Python


class TimestampType(IntEnum):
    """Bit 3 of the attributes."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class RecordBatchHeader(NamedTuple):
    """The 61 bytes before a batch's records. A tuple, because one is made for every batch that passes.

    Of a message of format 0 or 1 (see `magic`) only size, last offset, largest timestamp and attributes are right.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included."""
        return LOG_OVERHEAD_BYTES + self.batch_length

    @property
    def last_offset(self) -> int:
        """The offset of the batch's last record, or of one that compaction has taken."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset behind the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> Compression:
        """Raises `InvalidRecords` for an id that means nothing."""
        return Compression.from_attributes(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        """Whose clock the timestamps are from."""
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_MASK else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Tell whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        """Tell whether the batch holds markers or raft's control records, which no consumer is shown."""
        return bool(self.attributes & CONTROL_MASK)

    @property
    def has_delete_horizon(self) -> bool:
        """Tell whether the base timestamp is the time from which on tombstones may go (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON_MASK)

    @property
    def has_producer_id(self) -> bool:
        """Tell whether an idempotent producer or one with transactions wrote the batch."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequences count from 0 to 2^31-1 and start again."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def decode_batch_header(data: Buffer, offset: int = 0) -> RecordBatchHeader:
    """Read the 61 bytes and check nothing; `struct.error` when they are not all there."""
    return _new_tuple(RecordBatchHeader, _HEADER.unpack_from(data, offset))


class RecordBatch(NamedTuple):
    """One whole batch: its header, and all of its bytes, the header's included."""

    header: RecordBatchHeader
    data: memoryview

    @property
    def is_crc_valid(self) -> bool:
        """Tell whether the checksum is that of the bytes."""
        return crc32c(self.data[ATTRIBUTES_OFFSET:]) == self.header.crc

    def ensure_valid(self) -> None:
        """Raises `InvalidRecords` when the checksum is not that of the bytes."""
        if not self.is_crc_valid:
            raise InvalidRecords(
                ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {self.header.base_offset} has a wrong checksum"
            )


class LegacyMessage(RecordBatch):
    """A message of format 0 or 1 in a batch's place."""

    __slots__ = ()

    @property
    def is_crc_valid(self) -> bool:
        return is_checksum_right(self.data)

    def located(self) -> "LegacyMessage":
        """Return the header with the right base offset, found in a decompressed wrapper. Raises `InvalidRecords`."""
        header = self.header
        if not header.attributes & COMPRESSION_MASK:
            return self
        first_offset = next(iter_legacy_records(self.data)).offset
        header = header._replace(base_offset=first_offset, last_offset_delta=header.last_offset - first_offset)
        return LegacyMessage(header, self.data)


def decode_header(data: Buffer) -> RecordBatchHeader:
    """Decode the header of a whole batch or message of any format, as `decode_batch_header` does."""
    fields = decode_message_header(data) if data[MAGIC_OFFSET] < MAGIC_VALUE_V2 else None
    return decode_batch_header(data) if fields is None else RecordBatchHeader._make(fields)


def iter_batches(data: Buffer, *, allow_partial: bool = False) -> Iterator[RecordBatch]:
    """Yield every batch in `data`, in order; checksums are not looked at (`RecordBatch.ensure_valid`).

    `allow_partial` is for what a fetch response holds: its last batch may be cut off, which ends the iteration.
    Otherwise, and for an unknown format, raises `InvalidRecords`.
    """
    view = memoryview(data)
    end = len(view)
    position = 0
    while position < end:
        if end - position <= MAGIC_OFFSET:
            if allow_partial:
                return
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"{end - position} stray bytes behind the last batch")
        if view[position + MAGIC_OFFSET] != MAGIC_VALUE_V2:
            message = _legacy_message(view, position)
            if message is None:
                if allow_partial:
                    return
                raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, "a message ends beyond the data")
            yield message
            position += len(message.data)
            continue
        (batch_length,) = _LENGTH.unpack_from(view, position + 8)
        stop = position + LOG_OVERHEAD_BYTES + batch_length
        if batch_length < RECORD_BATCH_OVERHEAD_BYTES - LOG_OVERHEAD_BYTES:
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"a batch with a length of {batch_length}")
        if stop > end:
            if allow_partial:
                return
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, "a batch ends beyond the data")
        yield RecordBatch(decode_batch_header(view, position), view[position:stop])
        position = stop


def _legacy_message(view: memoryview, position: int) -> LegacyMessage | None:
    """Return None where it is cut off."""
    magic = view[position + MAGIC_OFFSET]
    if magic > MAGIC_VALUE_V2:
        raise InvalidRecords(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"unsupported record format {magic}")
    (length,) = _LENGTH.unpack_from(view, position + 8)
    stop = position + LOG_OVERHEAD_BYTES + length
    if length > 0 and stop > len(view):
        return None
    fields = decode_message_header(view[position:stop])
    if fields is None:
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"a message of format {magic} with a length of {length}")
    return LegacyMessage(RecordBatchHeader._make(fields), view[position:stop])


def records_payload(header: RecordBatchHeader, data: Buffer, limit_bytes: int | None = None) -> bytes:
    """The records' bytes of the one batch in `data`, decompressed."""
    payload = memoryview(data)[RECORD_BATCH_OVERHEAD_BYTES : header.size_bytes]
    return bytes(decompress(header.compression, payload, limit_bytes))


def iter_records(batch: RecordBatch | Buffer, *, limit_bytes: int | None = None) -> Iterator[Record]:
    """Yield the records of one batch with their absolute offsets and timestamps (ms); those of control batches, too.

    limit_bytes: the most that is decompressed, `limit_of` the batch where it is not given. Raises `InvalidRecords`.
    """
    header, data = batch if isinstance(batch, RecordBatch) else (decode_header(batch), batch)
    if header.magic < MAGIC_VALUE_V2:
        return iter_legacy_records(data, limit_bytes)
    payload = records_payload(header, data, limit_bytes)
    records = decode_records(payload, header.records_count, header.base_offset, header.base_timestamp)
    if header.timestamp_type is TimestampType.CREATE_TIME:
        return records
    return (record._replace(timestamp=header.max_timestamp) for record in records)


def record_keys(batch: RecordBatch, *, limit_bytes: int | None = None) -> RecordKeys:
    """Iterate as `iter_records` does, without the values. Raises `InvalidRecords`."""
    header, data = batch
    if header.magic >= MAGIC_VALUE_V2:
        return decode_keys(records_payload(header, data, limit_bytes), header.records_count)
    records = list(iter_legacy_records(data, limit_bytes))
    kinds = (
        WITHOUT_KEY if record.key is None else TOMBSTONE if record.value is None else WITH_VALUE for record in records
    )
    return RecordKeys(
        [record.key for record in records], [record.offset - header.base_offset for record in records], bytes(kinds)
    )


def encode_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    compression_level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    is_transactional: bool = False,
    is_control: bool = False,
    offset_deltas: Sequence[int] | None = None,
    last_offset_delta: int | None = None,
) -> bytes:
    """Return the bytes of one batch. Records are numbered from `base_offset` on, whatever their own `offset` says.

    With holes, as compaction leaves them: `offset_deltas` and `last_offset_delta`. With LOG_APPEND_TIME the largest
    timestamp of the records stands for all of them.
    """
    batch = list(records)
    base_timestamp = batch[0].timestamp if batch else NO_TIMESTAMP
    deltas = range(len(batch)) if offset_deltas is None else offset_deltas
    encoded = [
        encode_record(record, delta, record.timestamp - base_timestamp)
        for record, delta in zip(batch, deltas, strict=True)
    ]
    payload = b"".join(encoded)
    if compression is not Compression.NONE:
        payload = compress(compression, payload, compression_level)
    attributes = int(compression)
    attributes |= TIMESTAMP_TYPE_MASK if timestamp_type is TimestampType.LOG_APPEND_TIME else 0
    attributes |= TRANSACTIONAL_MASK if is_transactional else 0
    attributes |= CONTROL_MASK if is_control else 0
    if last_offset_delta is None:
        last_offset_delta = max(deltas[-1], 0) if batch else 0
    return assemble_batch(
        payload,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max((record.timestamp for record in batch), default=NO_TIMESTAMP),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(batch),
    )


def encode_batch_prefix(base_offset: int, batch_length: int, partition_leader_epoch: int, crc: int) -> bytes:
    """The bytes before `ATTRIBUTES_OFFSET`: all that a leader changes in a batch, and none that the checksum covers."""
    return _BEFORE_ATTRIBUTES.pack(base_offset, batch_length, partition_leader_epoch, MAGIC_VALUE_V2, crc)


def assemble_batch(
    payload: Buffer,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    records_count: int,
) -> bytes:
    """A batch from ready records bytes (compressed as `attributes` say): length and checksum are filled in."""
    tail = _AFTER_CRC.pack(
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        records_count,
    )
    crc = crc32c(payload, crc32c(tail))
    batch_length = RECORD_BATCH_OVERHEAD_BYTES - LOG_OVERHEAD_BYTES + len(payload)
    head = _BEFORE_ATTRIBUTES.pack(base_offset, batch_length, partition_leader_epoch, MAGIC_VALUE_V2, crc)
    return b"".join((head, tail, payload))
