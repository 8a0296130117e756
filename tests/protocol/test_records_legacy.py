"""Messages of the formats 0 and 1, against two other readers of them: the second description and kafka-python's."""

import pytest
from kafka.record.legacy_records import LegacyRecordBatch

from pykbroker.protocol.descriptions.legacy_messages import MESSAGE
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import (
    LegacyMessage,
    Record,
    TimestampType,
    decode_header,
    encode_batch,
    iter_batches,
    iter_records,
)
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.legacy import _xxh32, decode_message_header
from tests.legacy_messages import CODECS, message, messages, wrapper

RECORDS = [
    Record(
        None if number == 2 else b"k%d" % number, None if number == 3 else b"v" * number * 7, (), 1000 + number, number
    )
    for number in range(10, 18)
]
WITHOUT_TIMESTAMPS = [record._replace(timestamp=-1) for record in RECORDS]
COMPRESSED = CODECS[1:]


def records_of(magic: int) -> list[Record]:
    return RECORDS if magic else WITHOUT_TIMESTAMPS


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_and_wrappers_of_every_codec_are_read(magic: int) -> None:
    data = messages(records_of(magic), magic)
    batches = list(iter_batches(data))
    assert [type(batch) for batch in batches] == [LegacyMessage] * len(batches)
    assert [batch.header.last_offset for batch in batches] == [10, 11, 13, 15, 17]
    assert [batch.header.compression for batch in batches] == [Compression.NONE, *CODECS]
    for batch in batches:
        batch.ensure_valid()
        assert iter_header(batch) == decode_header(batch.data)
    assert [record for batch in batches for record in iter_records(batch)] == records_of(magic)
    assert [record for batch in batches for record in iter_records(batch.data)] == records_of(magic)


def iter_header(batch: object) -> object:
    assert isinstance(batch, LegacyMessage)
    assert not batch.header.has_producer_id
    assert not batch.header.is_control
    assert not batch.header.is_transactional
    return batch.header


@pytest.mark.parametrize(("magic", "codec"), [(0, codec) for codec in CODECS[:-1]] + [(1, codec) for codec in CODECS])
def test_kafka_python_reads_the_same(magic: int, codec: Compression) -> None:
    """It reads the lz4 of format 0 only with a package more."""
    some = records_of(magic)[4:5] if codec is Compression.NONE else records_of(magic)
    data = messages(some, magic, [codec])
    other = LegacyRecordBatch(data, magic)
    assert other.validate_crc()
    theirs = [(each.offset, -1 if each.timestamp is None else each.timestamp, each.key, each.value) for each in other]
    [batch] = iter_batches(data)
    assert [(each.offset, each.timestamp, each.key, each.value) for each in iter_records(batch)] == theirs


@pytest.mark.parametrize("codec", COMPRESSED)
def test_log_append_time_is_that_of_the_wrapper(codec: Compression) -> None:
    [batch] = iter_batches(wrapper(RECORDS, 1, codec, append_time=5000))
    assert batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.header.max_timestamp == 5000
    assert [record.timestamp for record in iter_records(batch)] == [5000] * len(RECORDS)


def test_a_compacted_wrapper_has_holes() -> None:
    [batch] = iter_batches(wrapper([RECORDS[0], RECORDS[3], RECORDS[4]], 1, Compression.GZIP))
    assert [record.offset for record in iter_records(batch)] == [10, 13, 14]


def test_relative_offsets_of_a_wrapper_without_its_own_stay() -> None:
    """Certain versions of librdkafka sent them, and Kafka reads them so."""
    [batch] = iter_batches(wrapper(RECORDS, 1, Compression.GZIP, offset=0))
    assert [record.offset for record in iter_records(batch)] == list(range(8))


def test_old_messages_and_batches_stand_side_by_side() -> None:
    data = message(WITHOUT_TIMESTAMPS[0], 0) + message(RECORDS[1], 1) + encode_batch(RECORDS[2:], base_offset=12)
    assert [batch.header.magic for batch in iter_batches(data)] == [0, 1, 2]
    assert [record.offset for batch in iter_batches(data) for record in iter_records(batch)] == list(range(10, 18))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_that_is_cut_off_ends_a_fetch_and_is_damage_elsewhere(magic: int) -> None:
    first, second = message(RECORDS[0], magic), message(RECORDS[1], magic)
    for end in range(1, len(second)):
        data = first + second[:end]
        assert len(list(iter_batches(data, allow_partial=True))) == 1
        with pytest.raises(InvalidRecords):
            list(iter_batches(data))


def read_all(data: bytearray) -> None:
    for batch in iter_batches(data):
        batch.ensure_valid()


@pytest.mark.parametrize("magic", [0, 1])
def test_every_flipped_bit_of_a_message_is_noticed(magic: int) -> None:
    """But for those of the offset, which no checksum covers."""
    data = bytearray(wrapper(records_of(magic), magic, Compression.GZIP))
    for position in range(8, len(data)):
        for bit in range(8):
            data[position] ^= 1 << bit
            with pytest.raises(InvalidRecords):
                read_all(data)
            data[position] ^= 1 << bit


def test_a_batch_whose_format_is_damaged_does_not_pass_for_a_message() -> None:
    data = bytearray(encode_batch(RECORDS))
    for magic in (0, 1):
        data[16] = magic
        with pytest.raises(InvalidRecords) as refused:
            list(iter_batches(data))
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    "data",
    [
        message(Record(None, None, (), 1, 5), 1, codec=Compression.GZIP),
        message(Record(None, b"", (), 1, 5), 0, codec=Compression.LZ4),
        message(Record(None, b"no gzip", (), 1, 5), 1, codec=Compression.GZIP),
        wrapper(RECORDS, 1, Compression.GZIP, offset=3),
    ],
    ids=["no value", "no lz4", "no gzip", "offset too small"],
)
def test_a_damaged_wrapper_gives_a_clear_error(data: bytes) -> None:
    [batch] = iter_batches(data)
    with pytest.raises(InvalidRecords):
        list(iter_records(batch))


@pytest.mark.parametrize("codec", COMPRESSED)
def test_decompression_is_bounded(codec: Compression) -> None:
    [batch] = iter_batches(wrapper([Record(None, bytes(1_000_000), (), 1, 0)], 1, codec))
    with pytest.raises(InvalidRecords) as refused:
        list(iter_records(batch, limit_bytes=10_000))
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_header_is_what_the_description_says() -> None:
    data = message(RECORDS[0], 1, append_time=77)
    parsed = MESSAGE.parse(data)
    header = decode_header(data)
    assert (header.base_offset, header.batch_length, header.crc) == (parsed.offset, parsed.size, parsed.crc)
    assert (header.max_timestamp, header.size_bytes) == (77, len(data))
    assert decode_message_header(data + b"\0") is None


def test_xxh32_is_the_published_one() -> None:
    assert [_xxh32(data) for data in (b"", b"a", b"abc")] == [0x02CC5D05, 0x550D7456, 0x32D153FF]
