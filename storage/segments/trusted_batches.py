"""Batches that are taken as they are: a coordinator of this node made them, or a leader has taken them before.

What a producer sends is checked in `validation`.
"""

from collections.abc import Iterator, Sequence

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import MAGIC_VALUE_V2, LegacyMessage, RecordBatch, iter_batches

from ..files.disk import Buffer
from .log_config import LogConfig

PIECE_BYTES = 1024 * 1024
PIECE_BATCHES = 1000
"""It takes 4 ms to append them."""
_NEVER_TOO_MANY_BYTES = 61 * PIECE_BATCHES
_SIZE_PREFIX_BYTES = 12


def coordinator_batches(records: Buffer | None, config: LogConfig) -> Sequence[RecordBatch]:
    """One at least, which the log is to give their offsets. Raises `ApiError`."""
    batches = list(iter_batches(records or b""))
    if not batches:
        raise ApiError(ErrorCode.INVALID_RECORD, "nothing to append")
    for header, _ in batches:
        assert header.magic == MAGIC_VALUE_V2, "nobody here writes the old formats"
        if header.size_bytes > config.max_message_bytes:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {header.size_bytes} bytes, more than max.message.bytes"
            )
    return batches


def replicated_batches(records: Buffer, next_offset: int, max_leader_epoch: int | None = None) -> Sequence[RecordBatch]:
    """Those that are whole, with the offsets and epochs that their leader gave them; the log ends at `next_offset`.

    max_leader_epoch: whoever has sent a later one leads in an epoch that was not asked.
    Raises `ApiError`: CORRUPT_MESSAGE for a wrong checksum, OFFSET_OUT_OF_RANGE.
    """
    batches = list(iter_batches(records, allow_partial=True))
    for batch in batches:
        batch.ensure_valid()
    batches = [batch.located() if isinstance(batch, LegacyMessage) else batch for batch in batches]
    for number, (header, _) in enumerate(batches):
        if max_leader_epoch is not None and header.partition_leader_epoch > max_leader_epoch:
            return batches[:number]
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"a batch with offsets {header.base_offset} to {header.last_offset} cannot be at {next_offset}",
            )
        next_offset = header.next_offset
    return batches


def pieces_of_batches(records: Buffer) -> Iterator[memoryview]:
    """Cut batches into pieces that may each be appended without a pause; a large one is a piece of its own.

    Bytes that are no batch stay in one piece, for others to refuse.
    """
    view = memoryview(records)
    start = position = batches = 0
    while len(view) - start > _NEVER_TOO_MANY_BYTES and len(view) - position >= _SIZE_PREFIX_BYTES:
        size = _SIZE_PREFIX_BYTES + int.from_bytes(view[position + 8 : position + _SIZE_PREFIX_BYTES], "big")
        if batches and (batches == PIECE_BATCHES or position + size - start > PIECE_BYTES):
            yield view[start:position]
            start, batches = position, 0
        position += size
        batches += 1
    if start < len(view):
        yield view[start:]


def runs_for_segments(batches: Sequence[RecordBatch], segment_bytes: int) -> Iterator[Sequence[RecordBatch]]:
    """Neighbours that fit into a segment together; a batch that does not even fit alone is a run of its own."""
    start, size = 0, 0
    for number, (header, _) in enumerate(batches):
        if number > start and size + header.size_bytes > segment_bytes:
            yield batches[start:number]
            start, size = number, 0
        size += header.size_bytes
    yield batches[start:]
