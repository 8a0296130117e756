"""What a leader asks of the batch that a producer sends, before it is part of the log (`LogValidator`, KIP-98, KIP-32).

Every record is looked at, in compressed batches too, and the largest timestamp is found anew, because neither counts,
offsets nor timestamps in a header can be believed. Stricter than Kafka where no client sends it and a reader would
suffer: offset deltas are 0…n-1, nothing stands behind the batch, attribute bits without a meaning are stored as 0.
"""

from typing import NamedTuple

from crc32c import crc32c
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    COMPRESSION_MASK,
    CONTROL_MASK,
    LOG_OVERHEAD_BYTES,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    NO_PRODUCER_ID,
    RECORD_BATCH_OVERHEAD_BYTES,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    RecordBatchHeader,
    TimestampType,
    assemble_batch,
    decode_batch_header,
)
from pykbroker.protocol.records.checking import CheckedRecords, check_records
from pykbroker.protocol.records.compression import Compression, compress, decompress
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record import NO_TIMESTAMP, decode_records

from .disk import Buffer
from .log_config import MAX_LONG, LogConfig
from .rejection import RecordError, RecordsRejected

__all__ = ["CheckedBatch", "RecordError", "RecordsRejected", "check_client_batch"]

_MIN_LENGTH = RECORD_BATCH_OVERHEAD_BYTES - LOG_OVERHEAD_BYTES
_CLIENT_ATTRIBUTES_MASK = COMPRESSION_MASK | TRANSACTIONAL_MASK
_LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME
_UNCOMPRESSED = Compression.NONE

MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024


class CheckedBatch(NamedTuple):
    """What goes into the log. `attributes` and `max_timestamp` may differ from the header's, `payload` is None unless
    the records were compressed anew.
    """

    header: RecordBatchHeader
    attributes: int
    max_timestamp: int
    payload: bytes | None

    @property
    def is_unchanged(self) -> bool:
        header = self.header
        return (
            self.payload is None and self.attributes == header.attributes and self.max_timestamp == header.max_timestamp
        )

    def rewritten(self, records: Buffer, base_offset: int, leader_epoch: int) -> bytes:
        """The batch with the header that the checks ask for, and perhaps other compression."""
        header = self.header
        payload = memoryview(records)[RECORD_BATCH_OVERHEAD_BYTES:] if self.payload is None else self.payload
        return assemble_batch(
            payload,
            base_offset=base_offset,
            partition_leader_epoch=leader_epoch,
            attributes=self.attributes,
            last_offset_delta=header.last_offset_delta,
            base_timestamp=header.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            records_count=header.records_count,
        )


def check_client_batch(records: Buffer | None, config: LogConfig, now_ms: int) -> CheckedBatch:
    """Exactly one sound batch of a producer. Raises `RecordsRejected`."""
    header = _check_frame(records)
    assert records is not None
    view = memoryview(records)
    if crc32c(view[ATTRIBUTES_OFFSET:]) != header.crc:
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, "the batch's checksum is not that of its bytes")
    if len(view) > config.max_message_bytes:
        raise RecordsRejected(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {len(view)} bytes, more than the topic's max.message.bytes of {config.max_message_bytes}",
        )
    _check_header(header)
    try:
        return _check_records(header, view[RECORD_BATCH_OVERHEAD_BYTES:], config, now_ms)
    except InvalidRecords as error:
        raise RecordsRejected(error.error_code, error.message) from error


def _check_frame(records: Buffer | None) -> RecordBatchHeader:
    """One batch of format 2, whole, and nothing else."""
    if records is None or len(records) <= MAGIC_OFFSET:
        raise _invalid("a produce request must have exactly one record batch per partition")
    magic = records[MAGIC_OFFSET]
    length = int.from_bytes(records[8:12], "big", signed=True)
    if magic > MAGIC_VALUE_V2:
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, f"the batch has the unknown format {magic}")
    if length < (_MIN_LENGTH if magic == MAGIC_VALUE_V2 else _MIN_LEGACY_LENGTH):
        raise RecordsRejected(ErrorCode.CORRUPT_MESSAGE, f"the batch claims a length of {length} bytes")
    if magic < MAGIC_VALUE_V2:
        raise _invalid(f"a produce request may not hold records of the old format {magic}")
    if length + LOG_OVERHEAD_BYTES != len(records):
        raise _invalid("the batch's length is not that of the records field; one batch per partition is allowed")
    return decode_batch_header(records)


_MIN_LEGACY_LENGTH = 14


def _check_header(header: RecordBatchHeader) -> None:
    if header.base_offset != 0:
        raise _invalid(f"the batch's base offset is {header.base_offset}; only the log gives offsets")
    if header.records_count <= 0 or header.records_count != header.last_offset_delta + 1:
        raise _invalid(
            f"the batch claims {header.records_count} records and a last offset delta of {header.last_offset_delta}"
        )
    if header.attributes & CONTROL_MASK:
        raise _invalid("clients must not write control batches")
    if header.producer_id > NO_PRODUCER_ID and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise _invalid(
            f"producer {header.producer_id} sent sequence {header.base_sequence}, epoch {header.producer_epoch}"
        )
    if header.attributes & TRANSACTIONAL_MASK and header.producer_id <= NO_PRODUCER_ID:
        raise _invalid("a transaction's batch needs a producer id")
    if header.attributes & TIMESTAMP_TYPE_MASK:
        raise RecordsRejected(ErrorCode.INVALID_TIMESTAMP, "producers must not set the timestamp type to LogAppendTime")


def _check_records(header: RecordBatchHeader, payload: memoryview, config: LogConfig, now_ms: int) -> CheckedBatch:
    codec = header.compression if header.attributes & COMPRESSION_MASK else _UNCOMPRESSED
    data = bytes(payload) if codec is _UNCOMPRESSED else decompress(codec, payload, MAX_DECOMPRESSED_BYTES)
    checked = check_records(data, header.records_count, find_null_keys=config.compact)
    if checked.null_keys:
        raise _null_keys(checked)
    attributes = header.attributes & _CLIENT_ATTRIBUTES_MASK
    if config.message_timestamp_type is _LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
        max_timestamp = now_ms
    else:
        max_timestamp = header.base_timestamp + checked.max_timestamp_delta
        latest = now_ms + config.message_timestamp_after_max_ms
        if max_timestamp > latest or config.message_timestamp_before_max_ms != MAX_LONG or max_timestamp < NO_TIMESTAMP:
            _check_timestamps(header, bytes(data), config, now_ms)
    target = config.compression_type
    if target is None or target is codec:
        return CheckedBatch(header, attributes, max_timestamp, None)
    attributes = attributes & ~COMPRESSION_MASK | target
    return CheckedBatch(header, attributes, max_timestamp, compress(target, data, config.compression_level(target)))


def _check_timestamps(header: RecordBatchHeader, data: bytes, config: LogConfig, now_ms: int) -> None:
    """Record by record, because the answer names those at fault."""
    earliest = max(now_ms - config.message_timestamp_before_max_ms, -(2**63))
    latest = now_ms + config.message_timestamp_after_max_ms
    errors = []
    for index, record in enumerate(decode_records(data, header.records_count, 0, header.base_timestamp)):
        timestamp = record.timestamp
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            errors.append(
                RecordError(
                    index,
                    f"Timestamp {timestamp} of message with offset {index} is out of range. "
                    f"The timestamp should be within [{earliest}, {latest}]",
                )
            )
    if errors:
        raise RecordsRejected(
            ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", errors
        )


def _null_keys(checked: CheckedRecords) -> RecordsRejected:
    message = "Compacted topic cannot accept message without key"
    errors = [RecordError(index, message) for indexes in checked.null_keys for index in indexes]
    shown = ", ".join(f"RecordError(batchIndex={each.batch_index}, message='{each.message}')" for each in errors[:3])
    return RecordsRejected(
        ErrorCode.INVALID_RECORD,
        f"One or more records have been rejected due to {len(errors)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]",
        errors,
    )


def _invalid(message: str) -> RecordsRejected:
    return RecordsRejected(ErrorCode.INVALID_RECORD, message)
