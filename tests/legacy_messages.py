"""Messages of the formats 0 and 1, as brokers before 0.11 left them in logs. Built from the second description."""

from collections.abc import Sequence

import lz4.frame

from pykbroker.protocol.descriptions.legacy_messages import MESSAGE
from pykbroker.protocol.records.compression import Compression, compress
from pykbroker.protocol.records.record import Record

CODECS = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
_LZ4_CHECKSUM_AT = 6


def message(
    record: Record,
    magic: int,
    *,
    codec: Compression = Compression.NONE,
    append_time: int | None = None,
    offset: int | None = None,
) -> bytes:
    attributes = {
        "unused": 0,
        "timestamp_type": "create_time" if append_time is None else "log_append_time",
        "compression": codec.name.lower(),
    }
    content = {
        "magic": magic,
        "attributes": attributes,
        "timestamp": record.timestamp if append_time is None else append_time,
        "key": record.key,
        "value": record.value,
    }
    return bytes(MESSAGE.build({"offset": record.offset if offset is None else offset, "content": content}))


def wrapper(
    records: Sequence[Record],
    magic: int,
    codec: Compression,
    *,
    append_time: int | None = None,
    offset: int | None = None,
) -> bytes:
    """The records at their offsets in one compressed message."""
    base_offset = records[0].offset if magic == 1 else 0
    inner = b"".join(message(each, magic, offset=each.offset - base_offset) for each in records)
    outer = Record(None, _compressed(codec, inner, magic), (), max(each.timestamp for each in records))
    last_offset = records[-1].offset if offset is None else offset
    return message(outer, magic, codec=codec, append_time=append_time, offset=last_offset)


def _compressed(codec: Compression, data: bytes, magic: int) -> bytes:
    if codec is not Compression.LZ4:
        return compress(codec, data)
    frame = lz4.frame.compress(data, store_size=False, block_linked=False)
    if magic == 0:
        # Kafka before 0.10 computed the header's checksum over too many bytes.
        wrong = frame[_LZ4_CHECKSUM_AT] ^ 0x5A
        frame = frame[:_LZ4_CHECKSUM_AT] + bytes((wrong,)) + frame[_LZ4_CHECKSUM_AT + 1 :]
    return bytes(frame)


def messages(records: Sequence[Record], magic: int, codecs: Sequence[Compression] = CODECS) -> bytes:
    """A message for each record, or a wrapper for a share of them, codec after codec."""
    share = -(-len(records) // len(codecs))
    parts = []
    for number, codec in enumerate(codecs):
        some = records[number * share : (number + 1) * share]
        if codec is Compression.NONE:
            parts += [message(each, magic) for each in some]
        elif some:
            parts.append(wrapper(some, magic, codec))
    return b"".join(parts)
