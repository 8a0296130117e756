"""Record batches as sequences describe them, good ones and bad ones.

Keys of a batch, all of them optional: `values` (texts of records; null is a tombstone), `key` (of all its records; null
for none), `at` (milliseconds behind `T0`), `compression` (its number), `producer`, `epoch`, `sequence`,
`transactional`, `control`, `magic` (0 or 1), `log_append_time`, `base_offset`, `leader_epoch`, and `fault`, the name of
a way in which it is broken (`FAULTS`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

from crc32c import crc32c

from pykbroker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    CRC_OFFSET,
    MAGIC_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Record,
    TimestampType,
    encode_batch,
)
from pykbroker.protocol.records.compression import Compression

T0: Final = 1_700_000_000_000
"""The time of the first record, in milliseconds: a constant, so that what is recorded holds on any day."""

LAST_OFFSET_DELTA_OFFSET: Final = ATTRIBUTES_OFFSET + 2
RECORDS_COUNT_OFFSET: Final = 57


def encoded_batches(batches: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(map(_encoded, batches))


def _encoded(batch: Mapping[str, Any]) -> bytes:
    key = batch.get("key", "k")
    records = [
        Record(
            None if key is None else key.encode(),
            None if value is None else value.encode(),
            timestamp=T0 + batch.get("at", 0) + number,
        )
        for number, value in enumerate(batch.get("values", ["v"]))
    ]
    if "magic" in batch:
        data = b"".join(_legacy(each, batch["magic"], number) for number, each in enumerate(records))
    else:
        data = encode_batch(
            records,
            base_offset=batch.get("base_offset", 0),
            compression=Compression(batch.get("compression", 0)),
            timestamp_type=TimestampType(batch.get("log_append_time", 0)),
            producer_id=batch.get("producer", NO_PRODUCER_ID),
            producer_epoch=batch.get("epoch", NO_PRODUCER_EPOCH),
            base_sequence=batch.get("sequence", NO_SEQUENCE),
            partition_leader_epoch=batch.get("leader_epoch", -1),
            is_transactional=batch.get("transactional", False),
            is_control=batch.get("control", False),
        )
    fault = batch.get("fault")
    return FAULTS[fault](data) if fault else data


def _legacy(record: Record, magic: int, offset: int) -> bytes:
    """A message of format 0 or 1."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", record.timestamp) if magic else b"")
    for part in (record.key, record.value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    message = struct.pack(">I", crc32(body)) + body
    return struct.pack(">qi", offset, len(message)) + message


def _patched(at: int, replacement: bytes, *, checked: bool = True) -> Callable[[bytes], bytes]:
    """Other bytes at a position; the checksum is made to fit. A message that ends before the position stays."""

    def patch(data: bytes) -> bytes:
        if len(data) < at + len(replacement):
            return data
        changed = bytearray(data)
        changed[at : at + len(replacement)] = replacement
        if checked:
            struct.pack_into(">I", changed, CRC_OFFSET, crc32c(changed[ATTRIBUTES_OFFSET:]))
        return bytes(changed)

    return patch


FAULTS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "checksum": _patched(CRC_OFFSET, b"\x00\x00\x00\x07", checked=False),
    "magic 3": _patched(MAGIC_OFFSET, b"\x03", checked=False),
    "magic -1": _patched(MAGIC_OFFSET, b"\xff", checked=False),
    "cut off": lambda data: data[:-3],
    "header alone": lambda data: data[:30],
    "size and more": lambda data: data + b"\x00" * 5,
    "last offset delta": _patched(LAST_OFFSET_DELTA_OFFSET, struct.pack(">i", 5)),
    "negative last offset delta": _patched(LAST_OFFSET_DELTA_OFFSET, struct.pack(">i", -1)),
    "too many records": _patched(RECORDS_COUNT_OFFSET, struct.pack(">i", 9)),
    "too few records": _patched(RECORDS_COUNT_OFFSET, struct.pack(">i", 0)),
    "negative count": _patched(RECORDS_COUNT_OFFSET, struct.pack(">i", -1)),
    "codec 7": _patched(ATTRIBUTES_OFFSET + 1, b"\x07"),
    "length 0": _patched(8, struct.pack(">i", 0), checked=False),
    "negative length": _patched(8, struct.pack(">i", -1), checked=False),
    "length beyond": _patched(8, struct.pack(">i", 10_000), checked=False),
}
"""Ways in which a batch is broken, by name."""
