"""The checks of a producer's batch by a leader, before it is part of the log (`LogValidator`, KIP-98, KIP-32).

Every record is looked at, in compressed batches too, and the largest timestamp is found anew, because neither counts,
offsets nor timestamps in a header can be believed. Stricter than Kafka where no client sends it and a reader would
suffer: offset deltas are 0…n-1, nothing stands behind the batch, attribute bits without a meaning are stored as 0.

What a batch costs is not to be seen from outside: a few kilobytes may hold millions of records. The check is therefore
made in steps (`client_batch_steps`, `steps`). Most batches need none: `check_at_once` has done with them in one turn.
"""

from collections.abc import Generator
from functools import partial
from itertools import chain, islice
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import NamedTuple, TypeAlias, cast

from crc32c import crc32c
from pykbroker.protocol.errors import ApiError, ErrorCode
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
from pykbroker.protocol.records.checking import TURN_UNITS, CheckBudget, CheckedRecords, check_records_in_turns
from pykbroker.protocol.records.compression import (
    Compression,
    LargePayload,
    compress,
    decompress,
    decompress_large,
    limit_of,
)
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record import NO_TIMESTAMP
from pykbroker.protocol.records.record_parts import timestamp_deltas
from pykbroker.protocol.records.record_sizes import first_larger_record
from pykbroker.protocol.records.varints import IndexedBytes

from ..files.disk import Buffer
from ..files.steps import MEDIUM_BYTES, Job, Steps, run_steps
from .log_config import MAX_LONG, LogConfig
from .record_errors import FrameError, RecordError, RecordValidationError

__all__ = [
    "CheckBudget",
    "CheckSteps",
    "CheckedBatch",
    "Job",
    "RecordError",
    "budget_of_request",
    "check_at_once",
    "check_client_batch",
    "client_batch_steps",
]

_MIN_LENGTH = RECORD_BATCH_OVERHEAD_BYTES - LOG_OVERHEAD_BYTES
_CODEC_AT = ATTRIBUTES_OFFSET + 1
"""The low byte of the attributes."""
_CLIENT_ATTRIBUTES_MASK = COMPRESSION_MASK | TRANSACTIONAL_MASK
_LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME
_UNCOMPRESSED = Compression.NONE

MAX_HEADERS = 1 << 20
"""Of one batch. They are the cheapest way to keep a broker busy: two bytes each, before compression."""
MAX_RECORD_ERRORS = 1000
"""An answer names no more records at fault."""

# What is done in place, a millisecond's work; more is for a thread.
_SMALL_COMPRESSED_BYTES = 64 * 1024
_SMALL_BYTES = 256 * 1024
_SMALL_PARTS = 256
_SMALL_TO_COMPRESS_BYTES = 32 * 1024
_COPIED_AT_ONCE_BYTES = 2 * 1024 * 1024

# Costs in units of `CheckBudget`; those of a byte as shifts.
_BATCH = 10
_CODEC = 20
_CHECKSUM = 13
_COPYING = 12
_DECOMPRESSION = {Compression.GZIP: 7}
_FASTER_DECOMPRESSION = 9
_COMPRESSION = 4

_ROOM_BYTES = 128 * 1024 * 1024
_ROOM_FACTOR = 64


def budget_of_request(records_bytes: int) -> CheckBudget:
    """The first turn of a request with so many bytes of records, and what all of them may decompress to."""
    return CheckBudget(TURN_UNITS, _ROOM_BYTES + _ROOM_FACTOR * records_bytes)


CheckSteps: TypeAlias = Steps["CheckedBatch"]


class CheckedBatch(NamedTuple):
    """A checked batch, as it goes into the log.

    `attributes` and `max_timestamp` may differ from the header's, `payload` is None unless the records were compressed
    anew.
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
    """Exactly one sound batch of a producer, all of it here and now. Raises `ApiError`."""
    return run_steps(client_batch_steps(records, config, now_ms, CheckBudget()))


def check_at_once(
    records: Buffer | None,
    config: LogConfig,
    now_ms: int,
    budget: CheckBudget,
    header: RecordBatchHeader | None = None,
) -> CheckedBatch | CheckSteps | None:
    """Check a batch without a codec by what is left of this turn.

    Return the steps that follow, where that is not enough; None where something is unusual: all of
    `client_batch_steps`.
    header: the batch's, where somebody has decoded it before.
    """
    if records is None or not RECORD_BATCH_OVERHEAD_BYTES < len(records) <= _COPIED_AT_ONCE_BYTES:
        return None
    if records[_CODEC_AT] & COMPRESSION_MASK or config.compression_type:
        return None
    header = _check_bytes(records, config, budget, header)
    data = bytes(records[RECORD_BATCH_OVERHEAD_BYTES:])
    walk = check_records_in_turns(
        data, len(data), header.records_count, budget, find_null_keys=config.compact, max_headers=MAX_HEADERS
    )
    try:
        next(walk)
    except StopIteration as end:
        checked: CheckedRecords = end.value
    else:
        return _walk_steps(walk, header, _UNCOMPRESSED, data, len(data), config, now_ms, budget)
    batch = _stamped(header, checked, config, now_ms)
    return None if checked.null_keys or _may_be_out_of_time(batch, config, now_ms) else batch


def client_batch_steps(
    records: Buffer | None,
    config: LogConfig,
    now_ms: int,
    budget: CheckBudget,
    header: RecordBatchHeader | None = None,
) -> CheckSteps:
    """Check a batch as `check_client_batch` does, in turns. What a job raises is to be thrown in."""
    header = _check_bytes(records, config, budget, header)
    assert records is not None
    payload = memoryview(records)[RECORD_BATCH_OVERHEAD_BYTES:]
    return (yield from _records_steps(header, payload, config, now_ms, budget))


def _check_bytes(
    records: Buffer | None, config: LogConfig, budget: CheckBudget, header: RecordBatchHeader | None
) -> RecordBatchHeader:
    """Check what is in front of the records, and the checksum of all."""
    header = _check_frame(records, header)
    assert records is not None
    size = len(records)
    if crc32c(memoryview(records)[ATTRIBUTES_OFFSET:]) != header.crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "the batch's checksum is not that of its bytes")
    budget.left -= _BATCH + (size >> _CHECKSUM)
    if size > config.max_message_bytes:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, more than the topic's max.message.bytes of {config.max_message_bytes}",
        )
    _check_header(header)
    return header


def _check_frame(records: Buffer | None, header: RecordBatchHeader | None) -> RecordBatchHeader:
    """One batch of format 2, whole, and nothing else."""
    if records is not None and len(records) >= RECORD_BATCH_OVERHEAD_BYTES and records[MAGIC_OFFSET] == MAGIC_VALUE_V2:
        if header is None:
            header = decode_batch_header(records)
        if header.batch_length + LOG_OVERHEAD_BYTES == len(records):
            return header
    raise _frame_rejection(records)


def check_frame(records: Buffer | None) -> None:
    """Raises `FrameError` where a client's records are not one batch of format 2, whole, and nothing else."""
    _check_frame(records, None)


def check_start(records: Buffer) -> None:
    """Raises `FrameError` where a client's records begin with no batch that can be recognised.

    Kafka looks for transactions in the first batch of each partition, and one that is broken spoils all of the request.
    """
    if len(records) < LOG_OVERHEAD_BYTES:
        return
    length = int.from_bytes(records[8:LOG_OVERHEAD_BYTES], "big", signed=True)
    if length < _MIN_LEGACY_LENGTH:
        raise FrameError(ErrorCode.CORRUPT_MESSAGE, f"the batch claims a length of {length} bytes")
    if len(records) > MAGIC_OFFSET and records[MAGIC_OFFSET] > MAGIC_VALUE_V2:
        raise FrameError(ErrorCode.CORRUPT_MESSAGE, f"the batch has the unknown format {records[MAGIC_OFFSET]}")


def _frame_rejection(records: Buffer | None) -> FrameError:
    if records is None or len(records) <= MAGIC_OFFSET:
        return _invalid_frame("a produce request must have exactly one record batch per partition")
    magic = records[MAGIC_OFFSET]
    length = int.from_bytes(records[8:12], "big", signed=True)
    if magic > MAGIC_VALUE_V2:
        return FrameError(ErrorCode.CORRUPT_MESSAGE, f"the batch has the unknown format {magic}")
    if length < (_MIN_LENGTH if magic == MAGIC_VALUE_V2 else _MIN_LEGACY_LENGTH):
        return FrameError(ErrorCode.CORRUPT_MESSAGE, f"the batch claims a length of {length} bytes")
    if magic < MAGIC_VALUE_V2:
        return _invalid_frame(f"a produce request may not hold records of the old format {magic}")
    return _invalid_frame("the batch's length is not that of the records field; one batch per partition is allowed")


def _invalid_frame(message: str) -> FrameError:
    return FrameError(ErrorCode.INVALID_RECORD, message)


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
        raise ApiError(ErrorCode.INVALID_TIMESTAMP, "producers must not set the timestamp type to LogAppendTime")


def _records_steps(
    header: RecordBatchHeader, payload: memoryview, config: LogConfig, now_ms: int, budget: CheckBudget
) -> CheckSteps:
    codec = header.compression if header.attributes & COMPRESSION_MASK else _UNCOMPRESSED
    data: IndexedBytes
    if codec is _UNCOMPRESSED and len(payload) <= _COPIED_AT_ONCE_BYTES:
        data, size = bytes(payload), len(payload)
    elif codec is _UNCOMPRESSED:
        data, size = yield from _copy(payload, budget)
    else:
        data, size = yield from _decompress(codec, payload, budget)
    walk = check_records_in_turns(
        data, size, header.records_count, budget, find_null_keys=config.compact, max_headers=MAX_HEADERS
    )
    return (yield from _walk_steps(walk, header, codec, data, size, config, now_ms, budget))


def _walk_steps(
    walk: Generator[None, object, CheckedRecords],
    header: RecordBatchHeader,
    codec: Compression,
    data: IndexedBytes,
    size: int,
    config: LogConfig,
    now_ms: int,
    budget: CheckBudget,
) -> CheckSteps:
    checked = yield from walk
    if codec is not _UNCOMPRESSED and size > config.max_decompressed_message_bytes:
        yield from _check_sizes(data, size, config, budget)
    if checked.null_keys:
        raise _null_keys(checked)
    batch = _stamped(header, checked, config, now_ms)
    if _may_be_out_of_time(batch, config, now_ms):
        yield from _check_timestamps(header, data, config, now_ms, budget)
    target = config.compression_type
    if target is None or target is codec:
        return batch
    compressed = yield from _compress(target, data, size, config, budget)
    return batch._replace(attributes=batch.attributes & ~COMPRESSION_MASK | target, payload=compressed)


def _check_sizes(data: IndexedBytes, size: int, config: LogConfig, budget: CheckBudget) -> Steps[None]:
    """Check that no record of a compressed batch is too large on its own (`max.decompressed.message.bytes`)."""
    large = yield from first_larger_record(data, size, config.max_decompressed_message_bytes, budget)
    if large is not None:
        raise _invalid(
            f"record {large.number} has {large.size_bytes} bytes, more than the topic's max.decompressed.message.bytes "
            f"of {config.max_decompressed_message_bytes}"
        )


def _stamped(header: RecordBatchHeader, checked: CheckedRecords, config: LogConfig, now_ms: int) -> CheckedBatch:
    attributes = header.attributes & _CLIENT_ATTRIBUTES_MASK
    if config.message_timestamp_type is _LOG_APPEND_TIME:
        return CheckedBatch(header, attributes | TIMESTAMP_TYPE_MASK, now_ms, None)
    return CheckedBatch(header, attributes, header.base_timestamp + checked.max_timestamp_delta, None)


def _may_be_out_of_time(batch: CheckedBatch, config: LogConfig, now_ms: int) -> bool:
    if batch.attributes & TIMESTAMP_TYPE_MASK:
        return False
    latest = batch.max_timestamp
    return (
        latest > now_ms + config.message_timestamp_after_max_ms
        or config.message_timestamp_before_max_ms != MAX_LONG
        or latest < NO_TIMESTAMP
    )


def _copy(payload: memoryview, budget: CheckBudget) -> Steps[LargePayload]:
    copy = mmap(-1, len(payload), flags=MAP_PRIVATE | MAP_ANONYMOUS)
    for start in range(0, len(payload), _COPIED_AT_ONCE_BYTES):
        if budget.left <= 0:
            yield None
        part = payload[start : start + _COPIED_AT_ONCE_BYTES]
        copy[start : start + len(part)] = part
        budget.left -= len(part) >> _COPYING
    return LargePayload(copy, len(payload))


def _decompress(codec: Compression, payload: memoryview, budget: CheckBudget) -> Steps[tuple[IndexedBytes, int]]:
    """Decompress in place where the result is small, otherwise in a thread."""
    limit_bytes = min(limit_of(len(payload)), budget.room_bytes)
    if limit_bytes <= 0:
        raise _request_too_large()
    budget.left -= _CODEC
    if len(payload) <= _SMALL_COMPRESSED_BYTES:
        small_bytes = min(_SMALL_BYTES, limit_bytes)
        try:
            data = decompress(codec, payload, small_bytes, max_parts=_SMALL_PARTS)
        except InvalidRecords as error:
            _ensure_too_large(error)
            budget.left -= small_bytes >> _DECOMPRESSION.get(codec, _FASTER_DECOMPRESSION)
        else:
            budget.room_bytes -= len(data)
            budget.left -= len(data) >> _DECOMPRESSION.get(codec, _FASTER_DECOMPRESSION)
            return data, len(data)
    if limit_bytes > MEDIUM_BYTES:
        try:
            return (yield from _decompress_in_thread(codec, payload, MEDIUM_BYTES, budget))
        except InvalidRecords as error:
            _ensure_too_large(error)
    limit_bytes = min(limit_bytes, budget.room_bytes)
    return (yield from _decompress_in_thread(codec, payload, limit_bytes, budget))


def _decompress_in_thread(
    codec: Compression, payload: memoryview, limit_bytes: int, budget: CheckBudget
) -> Steps[LargePayload]:
    if limit_bytes <= 0:
        raise _request_too_large()
    try:
        result = yield Job(partial(decompress_large, codec, payload, limit_bytes), limit_bytes > MEDIUM_BYTES)
    except InvalidRecords as error:
        if error.code is ErrorCode.MESSAGE_TOO_LARGE:
            budget.room_bytes -= limit_bytes
        raise
    large = cast(LargePayload, result)
    budget.room_bytes -= large.size
    return large


def _request_too_large() -> InvalidRecords:
    return InvalidRecords(ErrorCode.MESSAGE_TOO_LARGE, "the request decompresses to more than its size allows")


def _ensure_too_large(error: InvalidRecords) -> None:
    if error.code is not ErrorCode.MESSAGE_TOO_LARGE:
        raise error


def _compress(
    target: Compression, data: IndexedBytes, size: int, config: LogConfig, budget: CheckBudget
) -> Steps[bytes]:
    """The batch must not be too large for the topic afterwards, either."""
    room = config.max_message_bytes - RECORD_BATCH_OVERHEAD_BYTES
    if target is _UNCOMPRESSED:
        if size > room:
            raise _too_large_now(size, config)
        return data if isinstance(data, bytes) else bytes(data[:size])
    level = config.compression_level(target)
    if size <= _SMALL_TO_COMPRESS_BYTES:
        budget.left -= size >> _COMPRESSION
        compressed = compress(target, memoryview(data)[:size], level)
    else:
        job = Job(partial(compress, target, memoryview(data)[:size], level), size > MEDIUM_BYTES)
        compressed = cast(bytes, (yield job))
    if len(compressed) > room:
        raise _too_large_now(len(compressed), config)
    return compressed


def _too_large_now(size: int, config: LogConfig) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"with the topic's compression.type the batch has {size + RECORD_BATCH_OVERHEAD_BYTES} bytes, more than "
        f"max.message.bytes of {config.max_message_bytes}",
    )


def _check_timestamps(
    header: RecordBatchHeader, data: IndexedBytes, config: LogConfig, now_ms: int, budget: CheckBudget
) -> Steps[None]:
    """Record by record, because the answer names those at fault."""
    earliest = max(now_ms - config.message_timestamp_before_max_ms, -(2**63))
    latest = now_ms + config.message_timestamp_after_max_ms
    errors: list[RecordError] = []
    for index, delta in enumerate(timestamp_deltas(data, header.records_count)):
        if budget.left <= 0:
            yield None
        budget.left -= 2
        timestamp = header.base_timestamp + delta
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            errors.append(
                RecordError(
                    index,
                    f"Timestamp {timestamp} of message with offset {index} is out of range. "
                    f"The timestamp should be within [{earliest}, {latest}]",
                )
            )
            if len(errors) == MAX_RECORD_ERRORS:
                break
    if errors:
        raise RecordValidationError(
            ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", errors
        )


def _null_keys(checked: CheckedRecords) -> RecordValidationError:
    message = "Compacted topic cannot accept message without key"
    total = sum(map(len, checked.null_keys))
    indexes = islice(chain.from_iterable(checked.null_keys), MAX_RECORD_ERRORS)
    errors = [RecordError(index, message) for index in indexes]
    shown = ", ".join(f"RecordError(batchIndex={each.batch_index}, message='{each.message}')" for each in errors[:3])
    return RecordValidationError(
        ErrorCode.INVALID_RECORD,
        f"One or more records have been rejected due to {total} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]",
        errors,
    )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, message)
