"""Record batches: what we write is what Python's and Java's clients read, and the other way round."""

from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import (
    Record,
    RecordBatchHeader,
    TimestampType,
    decode_batch_header,
    encode_batch,
    iter_batches,
    iter_records,
)
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.errors import InvalidRecords
from tests.examples import examples

REAL_BATCHES = Path(__file__).parent / "real_batches"
CODECS = list(Compression)

header_lists = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3).map(tuple)
records = st.builds(
    Record,
    key=st.none() | st.binary(max_size=20),
    value=st.none() | st.binary(max_size=200),
    headers=header_lists,
    timestamp=st.integers(0, 2**40),
)


def numbered(batch: list[Record], base_offset: int) -> list[Record]:
    return [record._replace(offset=base_offset + index) for index, record in enumerate(batch)]


@examples(150)
@given(st.lists(records, min_size=1, max_size=30), st.sampled_from(CODECS), st.integers(0, 2**60))
def test_what_is_encoded_is_decoded_in_every_codec(batch: list[Record], codec: Compression, base_offset: int) -> None:
    data = encode_batch(batch, compression=codec, base_offset=base_offset)
    [decoded] = iter_batches(data)
    decoded.ensure_valid()
    assert list(iter_records(decoded)) == numbered(batch, base_offset)
    assert decoded.header.max_timestamp == max(record.timestamp for record in batch)
    assert decoded.header.compression is codec


@examples(50)
@given(st.lists(records, min_size=1, max_size=30), st.sampled_from(CODECS))
def test_python_clients_read_our_batches(batch: list[Record], codec: Compression) -> None:
    data = encode_batch(batch, compression=codec, base_offset=7)
    for reader in (KafkaPythonBatch(data), AiokafkaBatch(data)):
        assert reader.validate_crc()
        read = [
            Record(record.key, record.value, tuple(map(tuple, record.headers)), record.timestamp, record.offset)
            for record in reader
        ]
        assert read == numbered(batch, 7)


@pytest.mark.parametrize("builder_type", [KafkaPythonBuilder, AiokafkaBuilder])
@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_python_clients_are_read(builder_type: type, codec: Compression) -> None:
    builder = builder_type(2, int(codec), False, 12, 3, 40, 1 << 20)
    for index in range(20):
        builder.append(index, 1_700_000_000_000 + index, b"key", b"value" * index, [("name", b"x")])
    [batch] = iter_batches(bytes(builder.build()))
    batch.ensure_valid()
    expected = [
        Record(b"key", b"value" * index, (("name", b"x"),), 1_700_000_000_000 + index, index) for index in range(20)
    ]
    assert list(iter_records(batch)) == expected
    header = batch.header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (12, 3, 40)
    assert header.last_sequence == 59


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("client", ["java", "librdkafka"])
def test_batches_that_real_producers_wrote_are_read(client: str, codec: Compression) -> None:
    data = (REAL_BATCHES / f"{client}-{codec.name.lower()}.log").read_bytes()
    [batch] = iter_batches(data)
    batch.ensure_valid()
    assert batch.header.compression is codec
    read = [(record.key, record.value, record.offset) for record in iter_records(batch)]
    third = b"third" if client == "java" else None
    second = b"second second second second second"
    assert read == [(b"k1", b"first", 0), (b"k2", second, 1), (b"k3", third, 2)]
    headers = () if client == "java" else (("h", b"x"), ("n", None))
    assert all(record.headers == headers for record in iter_records(batch))


def test_header_has_the_fields_and_bits_of_kafka() -> None:
    data = encode_batch(
        [Record(None, b"a", timestamp=5), Record(None, b"b", timestamp=9)],
        base_offset=100,
        compression=Compression.ZSTD,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        producer_id=8,
        producer_epoch=2,
        base_sequence=2**31 - 1,
        partition_leader_epoch=4,
        is_transactional=True,
    )
    header = decode_batch_header(data)
    assert header == RecordBatchHeader(100, len(data) - 12, 4, 2, header.crc, 0b0001_1100, 1, 5, 9, 8, 2, 2**31 - 1, 2)
    assert (header.last_offset, header.next_offset, header.size_bytes) == (101, 102, len(data))
    assert header.last_sequence == 0, "sequences start again behind 2^31-1"
    assert header.is_transactional
    assert not header.is_control
    assert not header.has_delete_horizon
    assert [record.timestamp for record in iter_records(data)] == [9, 9]


def test_offsets_with_holes_are_kept() -> None:
    batch = [Record(b"a", None), Record(b"b", None)]
    data = encode_batch(batch, base_offset=10, offset_deltas=[2, 5], last_offset_delta=9)
    assert [record.offset for record in iter_records(data)] == [12, 15]
    assert decode_batch_header(data).last_offset == 19


def test_last_batch_of_a_fetch_may_be_cut_off() -> None:
    data = encode_batch([Record(None, b"a")]) + encode_batch([Record(None, b"b")], base_offset=1)
    whole = len(data)
    size = whole // 2
    for end in range(size, whole):
        [only] = iter_batches(data[:end], allow_partial=True)
        assert only.header.base_offset == 0
        if end > size:
            with pytest.raises(InvalidRecords):
                list(iter_batches(data[:end]))


def test_unknown_formats_are_refused_with_a_clear_error() -> None:
    data = bytearray(encode_batch([Record(None, b"a")]))
    data[16] = 3
    with pytest.raises(InvalidRecords) as refused:
        list(iter_batches(data))
    assert refused.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_every_flipped_bit_behind_the_checksum_is_noticed() -> None:
    data = bytearray(encode_batch([Record(b"k", b"v", (("h", b"x"),), 1)]))
    for position in range(21, len(data)):
        for bit in range(8):
            data[position] ^= 1 << bit
            [batch] = iter_batches(data)
            assert not batch.is_crc_valid
            with pytest.raises(InvalidRecords):
                batch.ensure_valid()
            del batch
            data[position] ^= 1 << bit


def test_header_keys_that_are_not_text_survive() -> None:
    key = b"\xff\xfe".decode("utf-8", "surrogateescape")
    data = encode_batch([Record(None, None, ((key, b"v"),), 1)])
    [record] = iter_records(data)
    assert encode_batch([record]) == data


@examples(300)
@given(st.lists(records, min_size=1, max_size=5), st.sampled_from(CODECS), st.data())
def test_damaged_records_give_an_error_and_nothing_else(
    batch: list[Record], codec: Compression, data: st.DataObject
) -> None:
    encoded = bytearray(encode_batch(batch, compression=codec))
    position = data.draw(st.integers(61, len(encoded) - 1))
    encoded[position] = data.draw(st.integers(0, 255))
    try:
        read = list(iter_records(encoded))
    except InvalidRecords:
        return
    assert len(read) == len(batch)
